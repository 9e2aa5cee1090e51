//! One JavaScript environment: the main thread or a Worker.

use std::sync::Arc;

use napi::Env;
use napi::bindgen_prelude::{Function, Unknown};
use napi_derive::napi;
use serde_json::Value;

use super::batch::Batch;
use super::connection::Connection;
use super::dispatcher::Dispatcher;
use super::project::Project;
use super::questions::Questions;
use super::{io_thread, values};
use crate::error::McpError;
use crate::link::stdio::turn;
use crate::policy::definition::{self, Definition};
use crate::policy::options::{self, Options};
use crate::policy::platform::Platform;
use crate::session::Plan;

/// What an environment needs of this side. Everything comes back through `deliver`.
#[napi]
pub struct Host {
    dispatcher: Arc<Dispatcher>,
    questions: Arc<Questions>,
}

#[napi]
impl Host {
    /// `deliver` is called with what there is to deliver, `4 * token + kind, text, …` or one array of that, or with
    /// nothing when it is to be taken. `holds`: see src/node/holds.rs. `engineIsNode`: not Bun and not Deno, which have
    /// some of what Node.js exports beside Node-API, and work differently.
    #[napi(constructor)]
    pub fn new(
        env: Env,
        #[napi(ts_arg_type = "(...batch: unknown[]) => void")] deliver: Function<'_, (), Unknown<'static>>,
        #[napi(ts_arg_type = "Int32Array")] holds: Unknown<'_>,
        engine_is_node: bool,
    ) -> napi::Result<Self> {
        let dispatcher = Dispatcher::new(&env, &deliver, &holds, engine_is_node)?;
        Ok(Self { questions: Arc::new(Questions::new(dispatcher.clone())), dispatcher })
    }

    /// What there is to deliver: `[4 * token + kind, text, …]`.
    #[napi(catch_unwind, ts_return_type = "unknown[]")]
    pub fn take(&self) -> Batch {
        self.dispatcher.take()
    }

    /// Reads a project's configuration. Options and environment are descriptions; the project's events come under `token`.
    #[napi(catch_unwind)]
    pub fn open_project(&self, options: String, host_env: String, token: i64) -> Project {
        Project::open(&options, &host_env, token, self.dispatcher.clone(), self.questions.clone())
    }

    /// Answers a question that came as an event; no answer says that the host's function failed.
    #[napi(catch_unwind)]
    pub fn answer(&self, question: i64, answer: Option<String>) {
        self.questions.answered(question, answer);
    }

    /// Keeps the event loop alive until `release`, however often it was called.
    #[napi(catch_unwind)]
    pub fn hold(&self, env: Env) {
        self.dispatcher.hold(&env);
    }

    #[napi(catch_unwind)]
    pub fn release(&self, env: Env) {
        self.dispatcher.release(&env);
    }

    /// Keeps the calls that are begun until `flush`, to write them together.
    #[napi(catch_unwind)]
    pub fn gather(&self) {
        turn::gather();
    }

    /// Writes the calls that were kept.
    #[napi(catch_unwind)]
    pub fn flush(&self) {
        turn::flush();
    }

    /// Delivers nothing until `resume`, so that the event loop can turn.
    #[napi(catch_unwind)]
    pub fn rest(&self) {
        self.dispatcher.rest();
    }

    #[napi(catch_unwind)]
    pub fn resume(&self) {
        self.dispatcher.resume();
    }
}

/// Judged definitions, ready to be started.
#[napi]
pub struct Plans {
    judged: Result<(Vec<Definition>, Arc<Options>), McpError>,
}

/// Judges definitions and options before anything starts, which takes no host. All three are descriptions; `shape` is `one`, `group` or
/// `normalize`.
#[napi(catch_unwind)]
pub fn plan(definitions: String, options: String, host_env: String, shape: String) -> Plans {
    Plans { judged: judge(&definitions, &options, &host_env, &shape) }
}

#[napi]
impl Plans {
    /// The first fault, as a JSON description of an error.
    #[napi(getter, catch_unwind)]
    pub fn error(&self) -> Option<String> {
        self.judged.as_ref().err().map(|error| error.to_json().to_string())
    }

    /// The definitions with every default filled in: a JSON array.
    #[napi(getter, catch_unwind)]
    pub fn normalized(&self) -> String {
        let definitions = self
            .judged
            .as_ref()
            .map(|(definitions, _)| definitions.iter().map(Definition::to_json).collect());
        Value::Array(definitions.unwrap_or_default()).to_string()
    }

    /// Whether a group resolves although some of its servers failed.
    #[napi(getter, catch_unwind)]
    pub fn partial(&self) -> bool {
        self.judged.as_ref().is_ok_and(|(_, options)| options.partial)
    }

    /// Starts the server at `index`. The result of the token is its welcome; its events carry the token too. Both go to `host`.
    #[napi(catch_unwind)]
    pub fn connect(&self, host: &Host, index: u32, token: i64) -> napi::Result<Connection> {
        let no_plan = || napi::Error::from_reason("there is no such definition in the plan");
        let (definitions, options) = self.judged.as_ref().map_err(|_| no_plan())?;
        let definition = definitions.get(index as usize).ok_or_else(no_plan)?.clone();
        let directory = std::env::current_dir().ok();
        let runtime = io_thread::handle().map_err(|error| napi::Error::from_reason(error.message))?;
        let plan = Plan::of(definition, options.clone(), directory);
        Ok(Connection::start(plan, token, host.dispatcher.clone(), &runtime))
    }
}

fn judge(
    definitions: &str,
    options: &str,
    host_env: &str,
    shape: &str,
) -> Result<(Vec<Definition>, Arc<Options>), McpError> {
    let options = options::judge(&values::read(options), || values::read(host_env), shape == "group")?;
    let definitions = values::read(definitions);
    let definitions = match shape {
        "one" => vec![definition::judge_one(&definitions, &options, Platform::HOST)?],
        "group" => definition::judge_group(&definitions, &options, Platform::HOST)?,
        _ => definition::judge_all(&definitions, &options, Platform::HOST)?,
    };
    Ok((definitions, Arc::new(options)))
}
