//! One server's session: the engine on top of every link. It never decodes a result.
//!
//! - [`plan`] — what is to be connected
//! - [`connect`] — from a plan to a session: start or reach the server, handshake, listing, under one deadline
//! - [`failed_start`] — why there is none
//! - [`handshake`] — which revision both sides speak
//! - [`listing`] — which tools there are
//! - [`subscription`] — how changes of them are heard of
//! - [`calls`] — what is under way
//! - [`inbox`] — what arrives
//! - [`life`] — how it ends, and who is told
//! - [`named`] — the plan of a server that a project names
//! - [`on_demand`] — a session that is opened when it is needed, and again after it was lost
//! - [`resend`] — the one call that is sent again
//! - [`wire`] — the text of what goes out

pub mod calls;
mod connect;
mod failed_start;
mod handshake;
mod inbox;
mod life;
pub mod listing;
mod named;
pub mod on_demand;
mod plan;
mod resend;
mod subscription;
mod wire;

pub use connect::{Welcome, connect, connect_through};
pub use inbox::Question;
pub use life::{CloseInfo, Reason};
pub use plan::{Plan, Server};

use std::collections::HashSet;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use serde_json::{Map, Value};
use tokio::sync::watch;

use self::calls::{Calls, Expired, Outcome, Settle, Terms};
use self::handshake::Negotiated;
use self::life::Life;
use self::subscription::Subscription;
use crate::error::{ErrorCode, McpError};
use crate::link::{Frame, FrameKind, HostLoop, Link, Sent};
use crate::policy::definition::ToolFilter;
use crate::policy::options::Listens;
use crate::policy::redact::Redactor;
use crate::process::Waits;

/// What a session tells its owner. Called on the I/O thread or its own [`host_loop`](Owner::host_loop), and from the
/// pool with a long log message, which later events may overtake; must not block.
pub trait Owner: Send + Sync + 'static {
    fn heard(&self, event: Event);

    /// The event loop of whoever waits for the calls: see [`Receiver::host_loop`](crate::link::Receiver::host_loop).
    /// `None` where its thread may block in a call.
    fn host_loop(&self) -> Option<Arc<dyn HostLoop>> {
        None
    }
}

/// One thing that happened.
pub enum Event {
    StderrLine(String),
    /// The `params` of `notifications/message`, redacted.
    Log(Value),
    /// A JSON array of tools that come before those of the [`Welcome`]: while the host takes them in, more of the list is asked for.
    ToolsPage(String),
    /// The new list: a JSON array.
    ToolsChanged(String),
    /// The server asks the user something in mid-call. Only where [`Plan::answers_input`] says so; to be answered.
    InputRequired(Question),
    Warning {
        code: &'static str,
        message: String,
        details: Vec<(&'static str, Value)>,
    },
    /// The last one, but for a log message that was still on the pool. Only of a session that was connected.
    Closed(CloseInfo),
}

impl fmt::Debug for Event {
    /// What happened: tools are handed on as the server wrote them.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::StderrLine(line) => write!(formatter, "StderrLine({line:?})"),
            Self::Log(params) => write!(formatter, "Log({params})"),
            Self::ToolsPage(tools) => write!(formatter, "ToolsPage({} bytes)", tools.len()),
            Self::ToolsChanged(tools) => write!(formatter, "ToolsChanged({} bytes)", tools.len()),
            Self::Warning { code, message, .. } => write!(formatter, "Warning({code}: {message})"),
            Self::InputRequired { .. } => write!(formatter, "InputRequired"),
            Self::Closed(info) => write!(formatter, "Closed({info:?})"),
        }
    }
}

/// One call, as the caller wants it.
pub struct Asked<'a> {
    pub terms: Terms,
    /// A JSON object that goes into `_meta`.
    pub meta: Option<&'a str>,
}

/// A connected server. Clones are handles of one session.
#[derive(Clone)]
pub struct Session(Arc<Shared>);

/// What a session's parts share.
pub(crate) struct Shared {
    id: String,
    filter: ToolFilter,
    redactor: Redactor,
    /// As opposed to a server that was there before.
    is_process: bool,
    lists_tools: bool,
    answers_input: bool,
    listens: Listens,
    waits: Waits,
    timeout: Duration,
    max_message_bytes: usize,
    runtime: tokio::runtime::Handle,
    owner: Arc<dyn Owner>,
    link: OnceLock<Arc<dyn Link>>,
    negotiated: OnceLock<Negotiated>,
    calls: Calls,
    names: Mutex<HashSet<String>>,
    /// One listing at a time; a refresh that is wanted while one waits is the same refresh.
    listing: tokio::sync::Mutex<()>,
    refresh_wanted: AtomicBool,
    /// When the latest refresh ended.
    refreshed: Mutex<Option<tokio::time::Instant>>,
    subscription: Subscription,
    /// Lists that were made for calls to be sent again.
    listings: AtomicU64,
    closing: AtomicBool,
    life: Mutex<Life>,
    closed: watch::Sender<Option<CloseInfo>>,
    /// Names that the server was to inherit and that are not set.
    missing: Vec<String>,
    /// Requests of the server that the host is to answer, by the text of their ids.
    inputs: Mutex<HashSet<String>>,
    /// Questions that the host has not answered, those that the server took back included.
    asking: AtomicUsize,
    unknown: AtomicU64,
    handshake_ms: AtomicU64,
}

impl Session {
    /// Calls a tool; `arguments` is the text of a JSON object. The call's id is for [`Session::cancel`]; a call that
    /// fails before anything is sent has none.
    #[must_use]
    pub fn call_tool(
        &self,
        name: &str,
        arguments: impl Into<String>,
        asked: Asked<'_>,
        settle: Settle,
    ) -> Option<u64> {
        if let Err(error) = self.0.check_tool(name) {
            settle.with(Err(error));
            return None;
        }
        self.0.begin("tools/call", asked, settle, |meta| {
            wire::tool_call(name, arguments.into(), meta).map(Some)
        })
    }

    /// Sends any request; `params` is the text of a JSON object.
    #[must_use]
    pub fn request(
        &self,
        method: &str,
        params: Option<&str>,
        asked: Asked<'_>,
        settle: Settle,
    ) -> Option<u64> {
        self.0.begin(method, asked, settle, |meta| wire::params(params, meta))
    }

    /// Lists the tools again; settles with a JSON array, which is then what may be called. Of the terms the times count, for all
    /// pages together; the `_meta` goes with each page.
    #[must_use]
    pub fn list_tools(&self, asked: Asked<'_>, settle: Settle) -> tokio::task::AbortHandle {
        let shared = self.0.clone();
        let (terms, meta) = (asked.terms, asked.meta.map(str::to_owned));
        let task = self.0.runtime.spawn(async move {
            let outcome = shared.list_again(terms, meta.as_deref()).await;
            settle.with(outcome.map(Into::into));
        });
        task.abort_handle()
    }

    /// Gives a call up: the server is told, a late answer is ignored. True when the call will not settle any more, false when it has.
    #[must_use]
    pub fn cancel(&self, id: u64) -> bool {
        self.0.give_up(id).map(Settle::forget).is_some()
    }

    /// Ends the session: pending calls reject at once, then the server is stopped. Idempotent.
    pub fn close(&self, reason: Reason) {
        self.0.close(reason);
    }

    /// Whether it can take no call any more: it is ending, or has ended.
    #[must_use]
    pub fn is_gone(&self) -> bool {
        self.0.closing.load(Ordering::Acquire)
    }

    /// Whether nothing of it is left.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.0.closed.borrow().is_some()
    }

    /// How it ended, once it has.
    pub async fn closed(&self) -> CloseInfo {
        self.0.until_closed().await
    }

    /// The tail of stderr, redacted.
    #[must_use]
    pub fn stderr(&self) -> String {
        self.0.link.get().map(|link| link.stderr(usize::MAX)).unwrap_or_default()
    }

    /// Counters and bounded samples.
    #[must_use]
    pub fn diagnostics(&self) -> Value {
        let (pending, begun, unexpected) = self.0.calls.counts();
        let mut diagnostics = Map::new();
        let link = self.0.link.get().map(|link| link.diagnostics()).unwrap_or_default();
        diagnostics.extend(link.into_iter().map(|(name, value)| (name.to_owned(), value)));
        let own = [
            ("requests", begun),
            ("pendingRequests", pending as u64),
            ("unexpectedAnswers", unexpected),
            ("unknownMessages", self.0.unknown.load(Ordering::Relaxed)),
            ("handshakeMs", self.0.handshake_ms.load(Ordering::Relaxed)),
        ];
        diagnostics.extend(own.map(|(name, value)| (name.to_owned(), value.into())));
        diagnostics.insert("missingEnv".to_owned(), self.0.missing.clone().into());
        Value::Object(diagnostics)
    }
}

impl Shared {
    fn link(&self) -> Result<&Arc<dyn Link>, McpError> {
        self.link.get().ok_or_else(|| self.closed_error())
    }

    fn modern_meta(&self) -> Option<&str> {
        self.negotiated.get().and_then(|negotiated| negotiated.modern_meta.as_deref())
    }

    fn closed_error(&self) -> McpError {
        McpError::new(ErrorCode::Closed, format!("The connection to {} is closed.", self.id))
            .of_server(&self.id)
    }

    fn begin(
        &self,
        method: &str,
        asked: Asked<'_>,
        settle: Settle,
        params: impl FnOnce(wire::Meta<'_>) -> Result<Option<String>, McpError>,
    ) -> Option<u64> {
        let wants_progress = asked.terms.wants_progress();
        let id = self.calls.begin(asked.terms, settle)?;
        let progress_token = wants_progress.then_some(id);
        let meta = wire::Meta { given: asked.meta, progress_token, modern: self.modern_meta() };
        let sent = params(meta).and_then(|params| {
            let frame =
                Frame { kind: FrameKind::Request(id), text: wire::request_around(id, method, params) };
            // A link that is gone says so with all there is to say; the call waits for that.
            self.link().map(|link| link.send(frame))
        });
        match sent {
            Ok(Sent::Taken | Sent::Gone) => Some(id),
            Err(error) => {
                if let Some((_, settle)) = self.calls.withdraw(id) {
                    settle.with(Err(error.of_server(&self.id)));
                }
                None
            }
        }
    }

    /// One request of the session's own. Dropping the future gives the request up.
    async fn ask(&self, method: &str, params: Option<&str>, terms: Terms) -> Outcome {
        let (sender, answer) = tokio::sync::oneshot::channel();
        let settle = Settle::new(|outcome| drop(sender.send(outcome)));
        let id = self.calls.begin(terms, settle);
        let guard = id.map(|id| GiveUp { shared: self, id });
        if let Some(id) = id {
            self.link()?
                .send(Frame { kind: FrameKind::Request(id), text: wire::request(id, method, params) });
        }
        let outcome = answer.await.unwrap_or_else(|_| Err(self.closed_error()));
        // Answered: giving it up finds nothing any more.
        drop(guard);
        outcome
    }

    /// Takes a call back and tells the server, unless nothing was sent yet. `initialize` is never cancelled on the wire: the
    /// process is stopped instead (2025-11-25, cancellation).
    fn give_up(&self, id: u64) -> Option<Settle> {
        let (current, settle) = self.calls.withdraw(id)?;
        self.tell_cancelled(current);
        Some(settle)
    }

    fn tell_cancelled(&self, id: u64) {
        if let Some(link) = self.link.get().filter(|_| self.negotiated.get().is_some())
            && !link.withdraw(id)
        {
            link.send(Frame { kind: FrameKind::Notification, text: wire::cancelled(id) });
        }
    }

    fn expired(&self, call: Expired) {
        self.tell_cancelled(call.id);
        let bound = if call.is_total { "maxTotalTimeout" } else { "timeout" };
        call.settle.with(Err(self.timed_out(call.phase, call.waited, "answer", bound)));
    }

    fn timed_out(&self, phase: &'static str, waited: Duration, what: &str, bound: &str) -> McpError {
        let ms = milliseconds(waited);
        let id = &self.id;
        let message =
            format!("The server {id} did not {what} within {ms} ms; raise {bound} if it may take longer.");
        McpError::new(ErrorCode::Timeout, message).with("phase", phase).with("ms", ms).of_server(id)
    }

    fn warn(&self, code: &'static str, message: &str, details: Vec<(&'static str, Value)>) {
        if self.listens.warning {
            // The names of tools and other words of the server are in here.
            let message = self.redactor.text(message).into_owned();
            let details = details.into_iter().map(|(key, value)| (key, self.redactor.value(value))).collect();
            self.owner.heard(Event::Warning { code, message, details });
        }
    }
}

/// Gives a request up when whoever asked no longer waits.
struct GiveUp<'a> {
    shared: &'a Shared,
    id: u64,
}

impl Drop for GiveUp<'_> {
    fn drop(&mut self) {
        drop(self.shared.give_up(self.id));
    }
}

/// What an error says of this server, to go on in a sentence that has named it: `it exited with code 1 …`.
fn sentence_of(id: &str, error: &McpError) -> String {
    let subject = format!("The server {id} ");
    error.message.strip_prefix(&subject).map_or_else(|| error.message.clone(), |rest| format!("it {rest}"))
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
