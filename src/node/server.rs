//! One server of a project, as JavaScript calls it: its session, opened on demand, and the calls that are under way.

use std::collections::HashMap;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use napi_derive::napi;
use serde_json::{Value, json};
use tokio::runtime::Handle;
use tokio::task::AbortHandle;
use tokio::time::Instant;

use super::blocking::{BlockingCall, BlockingCalls, Waits};
use super::call_options::{CallOptions, terms};
use super::dispatcher::Dispatcher;
use super::headers::FunctionHeaders;
use super::questions::Questions;
use crate::error::{ErrorCode, McpError};
use crate::link::stdio::turn;
use crate::session::calls::{OnProgress, Outcome, Settle, Terms};
use crate::session::on_demand::{Access, OnDemand, Opening};
use crate::session::{Asked, Event, Owner, Session};

/// What one server of a project consists of.
pub(super) struct Server {
    pub name: String,
    pub on_demand: OnDemand,
    pub headers: Arc<FunctionHeaders>,
    pub has_headers_function: bool,
    pub blocking: Arc<BlockingCalls>,
    /// Of a call that names none.
    pub timeout: Duration,
    pub runtime: Handle,
    pub dispatcher: Arc<Dispatcher>,
    pub calls: Calls,
}

/// The calls of a server.
#[derive(Default)]
pub(super) struct Calls {
    under_way: Mutex<HashMap<i64, UnderWay>>,
    /// Synchronous calls have numbers below zero, where no token of JavaScript is.
    last_blocking: AtomicI64,
}

/// One call, from its beginning to its outcome.
#[derive(Clone)]
struct Call {
    key: i64,
    what: What,
    terms: Terms,
    meta: Option<Arc<str>>,
    settle: Arc<Mutex<Option<Settle>>>,
    blocking: Option<Arc<BlockingCall>>,
    /// It was not sent again yet.
    is_first: bool,
}

#[derive(Clone)]
enum What {
    Request { method: Arc<str>, params: Option<Arc<str>> },
    List,
}

/// How a call is given up. It does not keep the call: one that is lost, by a panic say, settles as it is dropped.
struct UnderWay {
    settle: Weak<Mutex<Option<Settle>>>,
    stop: Option<Stop>,
}

enum Stop {
    /// It waits for the session, or lists.
    Task(AbortHandle),
    Request(Session, u64),
}

impl Server {
    fn begin(self: &Arc<Self>, call: Call) {
        self.under_way().insert(call.key, UnderWay { settle: Arc::downgrade(&call.settle), stop: None });
        match self.on_demand.access() {
            Access::Failed(error) => self.finish(&call, Err(error)),
            Access::Open(session) => self.send(session, call),
            Access::Opening(opening) => {
                let (server, key) = (self.clone(), call.key);
                // Locked before the task begins, which may be at its end, and say how to stop what comes after it, before this goes on.
                let calls = self.under_way();
                let waiting = self.runtime.spawn(async move { server.wait(opening, call).await });
                stop_by(calls, key, Stop::Task(waiting.abort_handle()));
            }
        }
    }

    /// Waits for the session no longer than the call may take.
    async fn wait(self: Arc<Self>, opening: Opening, call: Call) {
        let timeout =
            [call.terms.timeout, call.terms.total].into_iter().flatten().min().unwrap_or(self.timeout);
        let waited = call.terms.begun.map(|begun| begun.elapsed()).unwrap_or_default();
        match tokio::time::timeout(timeout.saturating_sub(waited), opening.opened()).await {
            Ok(Ok(session)) => self.send(session, call),
            Ok(Err(error)) => self.finish(&call, Err(error)),
            Err(_) => {
                let ms = u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX);
                let message = format!(
                    "The server {} was not there within {ms} ms; its opening goes on. Raise timeout if it may take longer.",
                    self.name
                );
                let error =
                    McpError::new(ErrorCode::Timeout, message).with("phase", "connect").with("ms", ms);
                self.finish(&call, Err(error.of_server(&self.name)));
            }
        }
    }

    fn send(self: &Arc<Self>, session: Session, call: Call) {
        let (server, again, lost) = (self.clone(), call.clone(), session.clone());
        let settle = Settle::new(move |outcome| {
            // The session went between being there and being asked; such a call was not sent, which the code says.
            let is_unsent =
                outcome.as_ref().is_err_and(|error| error.code == ErrorCode::Closed) && lost.is_gone();
            if is_unsent && again.is_first && !server.on_demand.is_closed() {
                server.begin(Call { is_first: false, ..again });
            } else {
                server.finish(&again, outcome);
            }
        });
        let asked = Asked { terms: call.terms.clone(), meta: call.meta.as_deref() };
        match &call.what {
            What::List => {
                call.waits(Waits::ForAny);
                let listing = session.list_tools(asked, settle);
                stop_by(self.under_way(), call.key, Stop::Task(listing));
            }
            What::Request { method, params } => {
                if let Some(id) = session.request(method, params.as_deref(), asked, settle) {
                    call.waits(Waits::ForAnswer(id));
                    // It may have been asked for in the moment before.
                    self.headers.waiting().into_iter().for_each(|needed| self.blocking.would_block(needed));
                    stop_by(self.under_way(), call.key, Stop::Request(session, id));
                }
            }
        }
    }

    fn finish(&self, call: &Call, outcome: Outcome) {
        self.under_way().remove(&call.key);
        if let Some(settle) = taken(&call.settle) {
            settle.with(outcome);
        }
    }

    /// Gives a call up. True when it will not settle any more.
    fn cancel(&self, key: i64) -> bool {
        let Some(under_way) = self.under_way().remove(&key) else { return false };
        let settle = under_way.settle.upgrade().and_then(|settle| taken(&settle));
        if let Some(stop) = under_way.stop {
            stop.now();
        }
        settle.map(Settle::forget).is_some()
    }

    fn under_way(&self) -> MutexGuard<'_, HashMap<i64, UnderWay>> {
        self.calls.under_way.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Says how the call is given up from now on. One that was given up a moment ago is stopped here and now; one that has settled is not
/// there to be stopped.
fn stop_by(mut calls: MutexGuard<'_, HashMap<i64, UnderWay>>, key: i64, stop: Stop) {
    let Some(under_way) = calls.get_mut(&key) else {
        drop(calls);
        stop.now();
        return;
    };
    under_way.stop = Some(stop);
}

impl Stop {
    fn now(self) {
        match self {
            Self::Task(task) => task.abort(),
            Self::Request(session, id) => drop(session.cancel(id)),
        }
    }
}

impl Call {
    fn waits(&self, waits: Waits) {
        if let Some(blocking) = &self.blocking {
            blocking.waits(waits);
        }
    }
}

fn taken(settle: &Mutex<Option<Settle>>) -> Option<Settle> {
    settle.lock().unwrap_or_else(PoisonError::into_inner).take()
}

/// What JavaScript holds of one server of a project.
#[napi]
pub struct ProjectServer(Arc<Server>);

impl ProjectServer {
    pub(super) fn of(server: Arc<Server>) -> Self {
        Self(server)
    }

    fn call(&self, key: i64, what: What, options: Option<CallOptions>, settle: Settle) -> Call {
        let phase = if matches!(what, What::List) { "list" } else { "call" };
        let on_progress = || {
            let dispatcher = self.0.dispatcher.clone();
            Arc::new(move |params| dispatcher.progressed(key, params)) as OnProgress
        };
        let (mut terms, meta) = terms(options, phase, self.0.timeout, on_progress);
        terms.begun = Some(Instant::now());
        let settle = Arc::new(Mutex::new(Some(settle)));
        Call { key, what, terms, meta: meta.map(Into::into), settle, blocking: None, is_first: true }
    }

    fn begin(&self, token: i64, what: What, options: Option<CallOptions>, settle: Settle) {
        self.0.begin(self.call(token, what, options, settle));
    }

    fn begin_blocking(&self, what: What, options: Option<CallOptions>) -> Waiting {
        let server = self.0.clone();
        let key = server.calls.last_blocking.fetch_sub(1, Ordering::Relaxed) - 1;
        let blocking = server.blocking.begin();
        if server.has_headers_function && server.headers.are_missing() {
            blocking.settle(Err(server.blocking.refusal()));
        } else {
            let settled = blocking.clone();
            let settle = Settle::new(move |outcome| settled.settle(outcome));
            let call = self.call(key, what, options, settle);
            server.begin(Call { blocking: Some(blocking.clone()), ..call });
        }
        Waiting { server, key, blocking }
    }
}

#[napi]
impl ProjectServer {
    /// Sends a request, once there is a session; the outcome comes under `token`, of a tool's result as `Connection` gives it.
    #[napi(catch_unwind)]
    pub fn request(&self, token: i64, method: String, params: Option<String>, options: Option<CallOptions>) {
        let dispatcher = self.0.dispatcher.clone();
        let is_tool_result = method == "tools/call";
        let settle = Settle::new(move |outcome| dispatcher.answered(token, outcome, is_tool_result));
        self.begin(token, request(&method, params), options, settle);
    }

    /// Lists the tools; the outcome, a JSON array, comes under `token`.
    #[napi(catch_unwind)]
    pub fn list_tools(&self, token: i64, options: Option<CallOptions>) {
        let dispatcher = self.0.dispatcher.clone();
        let settle = Settle::new(move |outcome| dispatcher.settled(token, outcome));
        self.begin(token, What::List, options, settle);
    }

    /// Gives a call up. True when it will not settle any more.
    #[napi(catch_unwind)]
    pub fn cancel(&self, token: i64) -> bool {
        self.0.cancel(token)
    }

    /// As `request`, for a caller that blocks.
    #[napi(catch_unwind)]
    pub fn request_sync(
        &self,
        method: String,
        params: Option<String>,
        options: Option<CallOptions>,
    ) -> Waiting {
        self.begin_blocking(request(&method, params), options)
    }

    /// As `listTools`, for a caller that blocks.
    #[napi(catch_unwind)]
    pub fn list_tools_sync(&self, options: Option<CallOptions>) -> Waiting {
        self.begin_blocking(What::List, options)
    }
}

fn request(method: &str, params: Option<String>) -> What {
    What::Request { method: method.into(), params: params.map(Into::into) }
}

/// A synchronous call. Dropped before its outcome, it is given up.
#[napi]
pub struct Waiting {
    server: Arc<Server>,
    key: i64,
    blocking: Arc<BlockingCall>,
}

/// What came of a synchronous call: one of the two.
#[napi(object)]
pub struct Settled {
    pub result: Option<String>,
    /// A JSON description of an error.
    pub error: Option<String>,
}

#[napi]
impl Waiting {
    /// Blocks until the outcome is there, but no longer than `ms`: then there is none yet.
    #[napi(catch_unwind)]
    pub fn wait(&self, ms: u32) -> Option<Settled> {
        turn::flush();
        let outcome = self.blocking.wait(Duration::from_millis(ms.into()))?;
        self.end();
        Some(match outcome {
            Ok(result) => Settled { result: Some(result.into_string()), error: None },
            Err(error) => Settled { result: None, error: Some(error.to_json().to_string()) },
        })
    }
}

impl Waiting {
    fn end(&self) {
        self.server.blocking.end(&self.blocking);
        // It goes on where it was refused for what it would have needed.
        self.server.cancel(self.key);
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.end();
    }
}

/// A server's events on their way to the listener of its project.
pub(super) struct Events {
    pub server: String,
    /// Of the project.
    pub token: i64,
    pub dispatcher: Arc<Dispatcher>,
    pub questions: Arc<Questions>,
    pub blocking: Arc<BlockingCalls>,
}

impl Owner for Events {
    fn heard(&self, event: Event) {
        match event {
            Event::Warning { code, message, details } => {
                let details = details.into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
                self.warn(code, &message, Value::Object(details));
            }
            Event::InputRequired(question) => {
                self.blocking.may_block();
                let event = json!({ "inputOf": self.server, "request": question.request });
                self.questions.ask(self.token, event, move |_, answer| {
                    question.answer(answer.ok_or_else(|| "the host could not answer".to_owned()));
                });
            }
            // Nobody listens to a script's servers, and a session that is gone is opened again.
            Event::StderrLine(_)
            | Event::Log(_)
            | Event::ToolsPage(_)
            | Event::ToolsChanged(_)
            | Event::Closed(_) => {}
        }
    }
}

impl Events {
    pub(super) fn warn(&self, code: &str, message: &str, details: Value) {
        let warning = json!({ "code": code, "message": message, "details": details });
        self.dispatcher.chattered(self.token, &json!({ "warning": warning, "server": self.server }));
    }
}
