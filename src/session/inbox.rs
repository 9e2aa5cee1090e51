//! The session as its link sees it: what arrives, and what follows from it.

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use serde_json::Value;

use super::calls::Terms;
use super::{Event, Reason, Shared, wire};
use crate::error::{ErrorCode, McpError};
use crate::link::envelope::{AnswerId, Message, RpcError, answer_id_text};
use crate::link::fields::fields;
use crate::link::{Arrival, Frame, Receiver};

/// As much of a server's error text as is shown.
const RPC_MESSAGE_MAX: usize = 2_000;

/// Terms of a listing that the session itself asks for; the session's timeout bounds it as a whole.
pub(super) const LISTING: Terms =
    Terms { phase: "list", timeout: None, total: None, reset_on_progress: false, on_progress: None };

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
                shared.calls.answered(&answer_id_text(&id), Err(error.of_server(&shared.id)));
            }
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
}

impl Shared {
    fn message(self: &Arc<Self>, message: Message) {
        match message {
            Message::Result { id, result } => self.calls.answered(&id, Ok(result)),
            Message::Error { id, error } => self.calls.answered(&id, Err(self.rpc_error(&error))),
            Message::Request { method, .. } if ONLY_CLIENTS_ASK.contains(&method.as_str()) => {
                let message = "The server sends back what it is sent; is the command an MCP server?";
                let error = McpError::new(ErrorCode::Handshake, message).of_server(&self.id);
                self.end(Reason::ProtocolError, &error);
            }
            Message::Request { id, method } => {
                // A modern server has no requests, and must not be sent a response (2026-07-28, stdio).
                if let Some(link) = self.link.get().filter(|_| self.modern_meta().is_none()) {
                    link.send(Frame { id: None, is_answer: true, text: wire::answer(&id, &method) });
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
                if let Some(listener) = listener {
                    listener(self.without_secrets(params));
                }
            }
            "notifications/message" if self.listens.log => {
                self.owner.heard(Event::Log(self.redactor.json(&params)));
            }
            "notifications/message" | "notifications/cancelled" => {}
            "notifications/tools/list_changed" => self.refresh(),
            _ => {
                self.unknown.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    /// JSON text as it came, unless there is a secret in it: a progress message goes to screens and logs like any other.
    fn without_secrets(&self, json: String) -> String {
        match self.redactor.text(&json) {
            Cow::Borrowed(_) => json,
            Cow::Owned(_) => self.redactor.json(&json).to_string(),
        }
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

    /// The server says that its tools changed.
    fn refresh(self: &Arc<Self>) {
        if self.refresh_wanted.swap(true, Ordering::AcqRel) {
            return;
        }
        let shared = self.clone();
        self.runtime.spawn(async move {
            // Wait for the listing under way: a change that is told while it runs may not be in it.
            drop(shared.listing.lock().await);
            shared.refresh_wanted.store(false, Ordering::Release);
            if shared.closing.load(Ordering::Acquire) || !shared.connected.load(Ordering::Acquire) {
                return;
            }
            match shared.list_again(LISTING, None).await {
                Ok(tools) => shared.owner.heard(Event::ToolsChanged(tools)),
                Err(error) if shared.closing.load(Ordering::Acquire) => drop(error),
                Err(error) => {
                    let message = format!(
                        "The server's tools changed and could not be listed; the old list stays. {}",
                        error.message
                    );
                    shared.warn("WARN_MCP_TOOLS_NOT_REFRESHED", &message, vec![("error", error.to_json())]);
                }
            }
        });
    }
}
