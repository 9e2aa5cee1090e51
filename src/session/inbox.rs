//! The session as its link sees it: what arrives, and what follows from it.

use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::atomic::Ordering;
use std::sync::{Arc, MutexGuard, PoisonError};

use serde_json::Value;

use super::{Event, Reason, Shared, wire};
use crate::error::{ErrorCode, McpError};
use crate::link::envelope::{AnswerId, Message, RpcError, answer_id_text};
use crate::link::fields::fields;
use crate::link::{Arrival, Frame, FrameKind, HostLoop, POOL_FROM, Receiver};

/// As much of a server's error text as is shown.
const RPC_MESSAGE_MAX: usize = 2_000;

/// How many questions of a server wait for the host at one time, whether the server still waits for them or not; more are refused.
const INPUTS_MAX: usize = 64;

/// The longest question that the host is asked, in bytes.
const INPUT_MAX: usize = 1024 * 1024;

/// A request with a longer id has no answer: that would repeat it, and a server decides how many answers there are.
const ID_MAX: usize = 1024;

/// What a session asks before it is connected: from a server it is an echo (`command: ['/bin/cat']`), which would go on to take our
/// refusal for its answer.
const ONLY_CLIENTS_ASK: [&str; 2] = ["initialize", "server/discover"];

pub(super) struct Inbox(pub(super) Arc<Shared>);

impl Receiver for Inbox {
    fn arrived(&self, arrival: Arrival) {
        let shared = &self.0;
        match arrival {
            Arrival::Message(message) => shared.message(message),
            Arrival::TooLarge { id, limit } => {
                let message = format!(
                    "The answer of the server {} is over the limit of {limit} bytes; raise maxMessageBytes if it is legitimate.",
                    shared.id
                );
                let error = McpError::new(ErrorCode::MessageTooLarge, message).with("limit", limit);
                let id = answer_id_text(&id);
                if !shared.ends_subscription(&id) {
                    shared.calls.answered(&id, Err(error.of_server(&shared.id)));
                }
            }
            Arrival::Failed { id, error } => {
                let id = AnswerId::Number(id);
                if !shared.ends_subscription(&id) {
                    shared.calls.answered(&id, Err(error.of_server(&shared.id)));
                }
            }
            Arrival::Outdated { id, frame, error } => shared.send_again(id, &frame, error),
            Arrival::Gone(gone) => {
                let reason = if gone.protocol_error { Reason::ProtocolError } else { Reason::Exited };
                shared.end(reason, &gone.error.of_server(&shared.id));
            }
        }
    }

    fn stderr_line(&self, line: String) {
        self.0.owner.heard(Event::StderrLine(line));
    }

    fn warning(&self, code: &'static str, message: &str, details: Vec<(&'static str, Value)>) {
        self.0.warn(code, message, details);
    }

    fn host_loop(&self) -> Option<Arc<dyn HostLoop>> {
        self.0.owner.host_loop()
    }
}

/// What a server asks the user. It belongs to the session that it came over.
pub struct Question {
    /// `{"method":…,"params":…}` as the server wrote them.
    pub request: String,
    id: String,
    shared: Arc<Shared>,
}

impl Question {
    /// Answers with the text of a result, or with what went wrong. An answer that the server no longer waits for is not sent.
    pub fn answer(self, outcome: Result<String, String>) {
        self.shared.answer_input(&self.id, outcome);
    }
}

impl Drop for Question {
    fn drop(&mut self) {
        self.shared.asking.fetch_sub(1, Ordering::AcqRel);
    }
}

/// What becomes of a question of the server.
enum Taken {
    New,
    /// It came a second time while the host has it: a stream that is taken up again may repeat what it brought.
    Before,
    Refused,
}

impl Shared {
    fn message(self: &Arc<Self>, message: Message) {
        match message {
            Message::Result { id, .. } | Message::Error { id, .. } if self.ends_subscription(&id) => {}
            Message::Result { id, result } => self.calls.answered(&id, Ok(result)),
            Message::Error { id, error } => {
                // Claimed here and now: on the pool it would be late for an end of the server right behind it.
                if let Some(settle) = self.calls.claim(&id, true) {
                    let length = error.message.len() + error.data.as_ref().map_or(0, String::len);
                    self.at_length(length, move |shared| settle.with(Err(shared.rpc_error(&error))));
                }
            }
            Message::Request { method, .. } if self.is_own_echo(&method) => {
                let message = "The server sends back what it is sent; is the command an MCP server?";
                let error = McpError::new(ErrorCode::Handshake, message).of_server(&self.id);
                self.end(Reason::ProtocolError, &error);
            }
            // A modern server has no requests, and must not be sent a response (2026-07-28, stdio).
            Message::Request { .. } if self.modern_meta().is_some() => {}
            Message::Request { id, .. } if id.len() > ID_MAX => {
                self.unknown.fetch_add(1, Ordering::Relaxed);
            }
            Message::Request { id, method, params } => {
                let may_be_asked = method == "elicitation/create" && params.len() <= INPUT_MAX;
                let taken = if may_be_asked { self.takes_input(&id) } else { Taken::Refused };
                match taken {
                    Taken::New => {
                        let request = format!(r#"{{"method":{},"params":{params}}}"#, wire::quoted(&method));
                        let question = Question { request, id, shared: self.clone() };
                        self.owner.heard(Event::InputRequired(question));
                    }
                    Taken::Before => {}
                    Taken::Refused => self.answer(wire::answer(&id, &method)),
                }
            }
            Message::Notification { method, params } => self.notification(&method, params),
        }
    }

    fn notification(self: &Arc<Self>, method: &str, params: String) {
        match method {
            "notifications/progress" => {
                let token = fields(&params, ["progressToken"])
                    .and_then(|[token]| token)
                    .map(|token| answer_id_text(token.get()));
                let listener = match token {
                    Some(AnswerId::Number(id)) => self.calls.progressed(id),
                    _ => None,
                };
                if let Some(listener) = listener
                    && let Some(params) = self.without_secrets(params)
                {
                    listener(params);
                }
            }
            "notifications/message" if self.listens.log => {
                self.at_length(params.len(), move |shared| {
                    shared.owner.heard(Event::Log(shared.redactor.json(&params)));
                });
            }
            "notifications/cancelled" => {
                if let Some([Some(id)]) = fields(&params, ["requestId"]) {
                    self.inputs().remove(id.get());
                }
            }
            "notifications/message" => {}
            "notifications/tools/list_changed" if self.hears_change(&params) => self.refresh(),
            "notifications/subscriptions/acknowledged" => self.subscription_acknowledged(&params),
            _ => {
                self.unknown.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    /// Whether the host is to answer this request.
    fn takes_input(&self, id: &str) -> Taken {
        let mut inputs = self.inputs();
        if inputs.contains(id) {
            Taken::Before
        } else if self.answers_input && self.asking.load(Ordering::Acquire) < INPUTS_MAX {
            inputs.insert(id.to_owned());
            self.asking.fetch_add(1, Ordering::AcqRel);
            Taken::New
        } else {
            Taken::Refused
        }
    }

    fn answer_input(&self, id: &str, outcome: Result<String, String>) {
        if self.inputs().remove(id) {
            self.answer(wire::answer_input(id, outcome));
        }
    }

    fn answer(&self, text: String) {
        if let Some(link) = self.link.get() {
            link.send(Frame { kind: FrameKind::Answer, text });
        }
    }

    fn inputs(&self) -> MutexGuard<'_, HashSet<String>> {
        self.inputs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Once connected, such a request is refused like any other that is not served.
    fn is_own_echo(&self, method: &str) -> bool {
        self.negotiated.get().is_none() && ONLY_CLIENTS_ASK.contains(&method)
    }

    /// Does what takes time with a text of this length: here, or on the pool where it is long.
    fn at_length(self: &Arc<Self>, length: usize, work: impl FnOnce(&Self) + Send + 'static) {
        if length <= POOL_FROM {
            work(self);
            return;
        }
        let shared = self.clone();
        drop(self.runtime.spawn_blocking(move || work(&shared)));
    }

    /// JSON text as it came, unless there is a secret in it: a progress message goes to screens and logs like any other. `None` for what
    /// might hold one and cannot be read.
    fn without_secrets(&self, json: String) -> Option<String> {
        // Any letter may be written as an escape, and some writers do that with `+`, `<` or `&`: then only the string itself tells.
        if !json.contains('\\') && matches!(self.redactor.text(&json), Cow::Borrowed(_)) {
            return Some(json);
        }
        let shown = self.redactor.json(&json);
        shown.is_object().then(|| shown.to_string())
    }

    fn rpc_error(&self, error: &RpcError) -> McpError {
        let said = self.redactor.excerpt(&error.message, RPC_MESSAGE_MAX);
        let code = self.redactor.value(error.code.clone());
        // As the official server writes its messages, which would say the code twice.
        let said = said.strip_prefix(&format!("MCP error {code}: ")).unwrap_or(&said);
        let said = if said.is_empty() { "(no message)" } else { said };
        let data = error.data.as_deref().map(|data| self.redactor.json(data));
        let message = format!("The server {} answered with error {code}: {said}", self.id);
        McpError::new(ErrorCode::Rpc, message).with("rpcCode", code).with("data", data).of_server(&self.id)
    }
}
