//! What JavaScript holds of one session: handles only. Dropping it, which the garbage collector does, ends the server.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use napi::Env;
use napi_derive::napi;
use serde_json::{Value, json};
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio::task::AbortHandle;

use super::call_options::CallOptions;
use super::caller::{CallTool, Caller, call_id, refused};
#[cfg(unix)]
use super::dispatcher::DeliveryLoop;
use super::dispatcher::Dispatcher;
use super::pieces;
#[cfg(unix)]
use crate::link::HostLoop;
use crate::session::calls::Settle;
use crate::session::{Asked, CloseInfo, Event, Owner, Plan, Reason, Session, Welcome, connect};

/// One server: starting, connected or gone.
#[napi]
pub struct Connection {
    session: Arc<OnceLock<Session>>,
    /// Dropped, it stops a start that is under way.
    starting: Mutex<Option<oneshot::Sender<()>>>,
    /// Ended before or while it started: whoever of both comes second closes the session.
    ended: Arc<AtomicBool>,
    listings: Mutex<HashMap<i64, AbortHandle>>,
    caller: Arc<Caller>,
    events: Arc<Events>,
}

#[napi]
impl Connection {
    /// The function that calls a tool; the outcome comes under `token`. Its result is the call's id for `cancel`, -1
    /// when it has failed already.
    #[napi(
        catch_unwind,
        ts_return_type = "(token: number, name: string, args: string, options?: CallOptions) => number"
    )]
    pub fn caller<'a>(&self, env: &'a Env) -> napi::Result<CallTool<'a>> {
        self.caller.function(env)
    }

    /// Calls a tool as the `caller` does, with the arguments in pieces: see `jsonPieces` in lib/call-options.js.
    #[napi(catch_unwind)]
    pub fn call_tool_in_pieces(
        &self,
        token: i64,
        name: String,
        pieces: Vec<String>,
        options: Option<CallOptions>,
    ) -> i64 {
        self.caller.call_tool(token, &name, pieces::joined(&pieces), options)
    }

    /// Sends any request; as the `caller`.
    #[napi(catch_unwind)]
    pub fn request(
        &self,
        token: i64,
        method: String,
        params: Option<String>,
        options: Option<CallOptions>,
    ) -> i64 {
        let settle = self.caller.answer(token, false);
        let Some(session) = self.session.get() else { return refused(settle) };
        let (terms, meta) = self.caller.terms("call", token, options);
        call_id(session.request(&method, params.as_deref(), Asked { terms, meta: meta.as_deref() }, settle))
    }

    /// Lists the tools again; the outcome, a JSON array, comes under `token`.
    #[napi(catch_unwind)]
    pub fn list_tools(&self, token: i64, options: Option<CallOptions>) {
        let settle = settle(token, self.caller.dispatcher.clone());
        let Some(session) = self.session.get() else {
            refused(settle);
            return;
        };
        let (terms, meta) = self.caller.terms("list", token, options);
        let listing = session.list_tools(Asked { terms, meta: meta.as_deref() }, settle);
        let mut listings = self.listings.lock().unwrap_or_else(PoisonError::into_inner);
        listings.retain(|_, listing| !listing.is_finished());
        listings.insert(token, listing);
    }

    /// Gives a call up. True when it will not settle any more.
    #[napi(catch_unwind)]
    pub fn cancel(&self, id: i64) -> bool {
        let id = u64::try_from(id).ok();
        self.session.get().zip(id).is_some_and(|(session, id)| session.cancel(id))
    }

    /// Gives a listing up; it settles with an error at once.
    #[napi(catch_unwind)]
    pub fn cancel_listing(&self, token: i64) {
        if let Some(listing) = self.listings.lock().unwrap_or_else(PoisonError::into_inner).remove(&token) {
            listing.abort();
        }
    }

    /// Stops a start that is under way, or closes the connection; the end comes as an event.
    #[napi(catch_unwind)]
    pub fn close(&self) {
        self.end(Reason::Closed);
    }

    #[napi(catch_unwind)]
    pub fn stderr(&self) -> String {
        self.session.get().map(Session::stderr).unwrap_or_default()
    }

    /// A JSON object.
    #[napi(catch_unwind)]
    pub fn diagnostics(&self) -> String {
        let mut diagnostics = self.session.get().map_or_else(|| json!({}), Session::diagnostics);
        diagnostics["droppedNotifications"] = self.events.dropped.load(Ordering::Relaxed).into();
        diagnostics.to_string()
    }
}

impl Connection {
    /// Starts a server on the I/O thread.
    pub(super) fn start(plan: Plan, token: i64, dispatcher: Arc<Dispatcher>, runtime: &Handle) -> Self {
        let session: Arc<OnceLock<Session>> = Arc::default();
        let (starting, stopped) = oneshot::channel::<()>();
        let timeout = plan.timeout;
        let events = Arc::new(Events { token, dispatcher: dispatcher.clone(), dropped: AtomicU64::new(0) });
        let owner = events.clone();
        let settle = settle(token, dispatcher.clone());
        let ended: Arc<AtomicBool> = Arc::default();
        let (connected, was_ended) = (session.clone(), ended.clone());
        runtime.spawn(async move {
            // An error means that the sender was dropped, with the connection: that stops the start too.
            let stopped = async { drop(stopped.await) };
            let outcome = connect(plan, owner, stopped).await.map(|(session, Welcome(welcome))| {
                let session = connected.get_or_init(|| session);
                // Each side writes its own before it reads the other's, or both could miss each other: see `end`.
                fence(Ordering::SeqCst);
                if was_ended.load(Ordering::SeqCst) {
                    session.close(Reason::Aborted);
                }
                welcome.into()
            });
            settle.with(outcome);
        });
        Self {
            caller: Arc::new(Caller { session: session.clone(), timeout, dispatcher }),
            session,
            starting: Mutex::new(Some(starting)),
            ended,
            listings: Mutex::default(),
            events,
        }
    }

    fn end(&self, reason: Reason) {
        self.ended.store(true, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        drop(self.starting.lock().unwrap_or_else(PoisonError::into_inner).take());
        if let Some(session) = self.session.get() {
            session.close(reason);
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.end(Reason::Aborted);
    }
}

/// A session's events on their way to JavaScript.
struct Events {
    token: i64,
    dispatcher: Arc<Dispatcher>,
    dropped: AtomicU64,
}

impl Events {
    fn chatter(&self, event: &Value) {
        if !self.dispatcher.chattered(self.token, event) {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl Owner for Events {
    /// Of a connection there are no synchronous calls, which would block it.
    #[cfg(unix)]
    fn host_loop(&self) -> Option<Arc<dyn HostLoop>> {
        Some(Arc::new(DeliveryLoop(self.dispatcher.clone())))
    }

    fn heard(&self, event: Event) {
        match event {
            Event::StderrLine(line) => self.chatter(&json!({ "stderr": line })),
            Event::Log(message) => self.chatter(&json!({ "log": message })),
            Event::Warning { code, message, details } => {
                let details = details.into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
                let warning = json!({ "code": code, "message": message, "details": Value::Object(details) });
                self.chatter(&json!({ "warning": warning }));
            }
            Event::ToolsPage(tools) => {
                self.dispatcher.happened(self.token, format_args!(r#"{{"page":{tools}}}"#));
            }
            Event::ToolsChanged(tools) => {
                self.dispatcher.tools_changed(self.token, &json!({ "tools": tools }));
            }
            // A connection does not offer to answer, so nothing is asked.
            Event::InputRequired(question) => question.answer(Err("nobody is here to answer".to_owned())),
            Event::Closed(CloseInfo { reason, end }) => {
                let info = json!({
                    "reason": reason.as_str(),
                    "exitCode": end.exit_code,
                    "signal": end.signal,
                    "ended": end.ended,
                    "survivors": end.survivors,
                });
                self.dispatcher.happened(self.token, json!({ "closed": info }));
            }
        }
    }
}

fn settle(token: i64, dispatcher: Arc<Dispatcher>) -> Settle {
    Settle::new(move |outcome| dispatcher.settled(token, outcome))
}
