//! One project: its configuration, and the servers of it that were called.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use napi_derive::napi;
use serde_json::json;

use super::blocking::BlockingCalls;
use super::dispatcher::Dispatcher;
use super::dispatcher::handle::DispatcherHandle;
use super::headers::FunctionHeaders;
use super::questions::Questions;
use super::server::{Calls, Events, ProjectServer, Server};
use super::{io_thread, values};
use crate::error::McpError;
use crate::project::server::Reach;
use crate::project::{self, options};
use crate::session::calls::Settle;
use crate::session::on_demand::OnDemand;
use crate::session::{Plan, Reason};

/// A project's configuration, and the servers of it that were called. Dropped, it ends their sessions.
#[napi]
pub struct Project {
    opened: Result<Arc<project::Project>, McpError>,
    /// Its events come under it.
    token: i64,
    dispatcher: Arc<Dispatcher>,
    questions: Arc<Questions>,
    servers: Mutex<Servers>,
}

#[derive(Default)]
struct Servers {
    by_name: HashMap<String, Arc<Server>>,
    is_closed: bool,
}

impl Project {
    fn opened(&self) -> napi::Result<&Arc<project::Project>> {
        self.opened.as_ref().map_err(|_| napi::Error::from_reason("the project could not be opened"))
    }

    fn make(&self, project: &Arc<project::Project>, name: &str) -> Result<Server, McpError> {
        let entry = project.entry(name)?;
        let (timeout, has_headers_function) = (entry.timeout(), entry.has_headers_function());
        let runtime = io_thread::handle()?;
        let blocking = Arc::new(BlockingCalls::of(name));
        let headers = FunctionHeaders::new(name, self.token, self.questions.clone(), blocking.clone());
        let headers = Arc::new(headers);
        let events = Arc::new(Events {
            server: name.to_owned(),
            token: self.token,
            dispatcher: self.dispatcher.clone(),
            questions: self.questions.clone(),
            blocking: blocking.clone(),
        });
        let plan = plans(project.clone(), name.to_owned(), headers.clone(), events.clone());
        let on_demand = OnDemand::new(name, runtime.clone(), events, plan);
        Ok(Server {
            name: name.to_owned(),
            on_demand,
            headers,
            has_headers_function,
            blocking,
            timeout,
            runtime,
            dispatcher: self.dispatcher.clone(),
            calls: Calls::default(),
        })
    }

    /// Ends every session; `ended` is called when nothing is left.
    fn end(&self, reason: Reason, ended: impl FnOnce() + Send + 'static) {
        let servers: Vec<_> = {
            let mut servers = self.servers.lock().unwrap_or_else(PoisonError::into_inner);
            servers.is_closed = true;
            servers.by_name.values().cloned().collect()
        };
        // No thread is started for a project of which no server was ever called.
        let runtime = if servers.is_empty() { None } else { io_thread::handle().ok() };
        let endings: Vec<_> = servers.iter().map(|server| server.on_demand.close(reason)).collect();
        let Some(runtime) = runtime else {
            ended();
            return;
        };
        runtime.spawn(async move {
            for ending in endings {
                ending.await;
            }
            ended();
        });
    }
}

/// Reads the configuration that the options name, or finds it. Options and environment are descriptions; the project's events come under
/// `token`.
#[napi(catch_unwind)]
pub fn open_project(handle: &DispatcherHandle, options: String, host_env: String, token: i64) -> Project {
    let open = || {
        let options = options::judge(&values::read(&options), || values::read(&host_env))?;
        let directory = std::env::current_dir().unwrap_or_else(|_| PathBuf::from("/"));
        project::Project::open(options, &directory).map(Arc::new)
    };
    Project {
        opened: open(),
        token,
        dispatcher: handle.dispatcher.clone(),
        questions: handle.questions.clone(),
        servers: Mutex::default(),
    }
}

#[napi]
impl Project {
    /// Why there is none, as a JSON description of an error.
    #[napi(getter, catch_unwind)]
    pub fn error(&self) -> Option<String> {
        self.opened.as_ref().err().map(described)
    }

    /// The file that the configuration came from.
    #[napi(getter, catch_unwind)]
    pub fn file(&self) -> Option<String> {
        self.opened.as_ref().ok()?.file().map(|file| file.to_string_lossy().into_owned())
    }

    /// The servers that are not disabled.
    #[napi(getter, catch_unwind)]
    pub fn server_names(&self) -> Vec<String> {
        self.opened.as_ref().map(|project| project.names().map(str::to_owned).collect()).unwrap_or_default()
    }

    /// Why a script may not have the server of that name, as a JSON description of an error.
    #[napi(catch_unwind)]
    pub fn refusal(&self, name: String) -> napi::Result<Option<String>> {
        Ok(self.opened()?.entry(&name).err().as_ref().map(described))
    }

    /// The server of a name that is not refused. Nothing is opened yet.
    #[napi(catch_unwind)]
    pub fn server(&self, name: String) -> napi::Result<ProjectServer> {
        let project = self.opened()?;
        let mut servers = self.servers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(server) = servers.by_name.get(&name) {
            return Ok(ProjectServer::of(server.clone()));
        }
        let server = self.make(project, &name).map_err(|error| napi::Error::from_reason(error.message))?;
        if servers.is_closed {
            drop(server.on_demand.close(Reason::Closed));
        }
        let server = Arc::new(server);
        servers.by_name.insert(name, server.clone());
        Ok(ProjectServer::of(server))
    }

    /// Ends every session; `token` settles when nothing is left.
    #[napi(catch_unwind)]
    pub fn close(&self, token: i64) {
        let dispatcher = self.dispatcher.clone();
        // Settles even where the ending is lost.
        let settle = Settle::new(move |outcome| dispatcher.settled(token, outcome));
        self.end(Reason::Closed, move || settle.with(Ok("null".to_owned().into())));
    }
}

impl Drop for Project {
    fn drop(&mut self) {
        let (dispatcher, token) = (self.dispatcher.clone(), self.token);
        self.end(Reason::Aborted, move || dispatcher.happened(token, json!({ "gone": true })));
    }
}

/// Makes the plan of one server, as often as it is opened.
fn plans(
    project: Arc<project::Project>,
    name: String,
    headers: Arc<FunctionHeaders>,
    events: Arc<Events>,
) -> impl Fn() -> Result<Plan, McpError> {
    let warned = OnceLock::new();
    move || {
        let server = project.server(project.entry(&name)?)?;
        if let Reach::Url { is_private, .. } = server.reach {
            headers.sent_privately(is_private);
        }
        if !server.literals.is_empty() && warned.set(()).is_ok() {
            warn_of_literals(&events, &project, &server.literals);
        }
        let redactor = headers.redactor();
        Ok(Plan::named(server, project.options(), (headers.clone(), redactor)))
    }
}

fn warn_of_literals(events: &Events, project: &project::Project, paths: &[String]) {
    let place = project.file().map(|file| format!(" in {}", file.display())).unwrap_or_default();
    let message = format!(
        "The server {} has a secret written down{place} ({}); put it into a variable, write ${{NAME}} in its place, and allow the \
         name in options.allowedInheritedEnvKeys.",
        events.server,
        paths.join(", ")
    );
    events.warn("WARN_MCP_LITERAL_CAPABILITY", &message, json!({ "paths": paths }));
}

fn described(error: &McpError) -> String {
    error.to_json().to_string()
}
