//! What comes from a server: to the session as it is, to rmcp's transport as a stand-in.

use std::sync::Arc;

use rmcp::model::{ListToolsResult, ServerJsonRpcMessage};

use super::client::{Client, Failed};
use super::outgoing::{INITIALIZE, Outgoing};
use super::parts::lock;
use super::standin;
use crate::error::McpError;
use crate::link::envelope::{self, AnswerId, Message};
use crate::link::{Arrival, Frame, POOL_FROM};

/// With which a server of 2026-07-28 refuses headers that do not repeat what its schemas want.
const HEADER_MISMATCH: i64 = -32020;

/// What rmcp is told of an answer: it goes on, or ends its worker.
pub(super) type Standin = Result<ServerJsonRpcMessage, Failed>;

impl Client {
    /// Takes the messages of one body or event. `asked`: the request it came for, with its id; the stand-in is that one's, once its
    /// answer is there.
    pub(super) async fn take(&self, asked: Option<(&Arc<Outgoing>, u64)>, body: Vec<u8>) -> Option<Standin> {
        let Ok(messages) = off_thread(body.len(), || envelope::parse_owned(body)).await? else {
            return None;
        };
        let mut standin = None;
        for message in messages {
            match asked {
                Some((outgoing, id)) if answers(&message, id) => {
                    standin = Some(self.answer(outgoing, id, message).await);
                }
                _ => self.pass(message),
            }
        }
        standin
    }

    /// A message that answers another request than the one it came for, or none.
    fn pass(&self, message: Message) {
        if let Message::Result { id: AnswerId::Number(id), .. }
        | Message::Error { id: AnswerId::Number(id), .. } = &message
            && let Some(outgoing) = lock(&self.0.requests).remove(id)
        {
            // Its own response, which may stay open, is waited for no longer.
            outgoing.answered();
            outgoing.given_up.cancel();
        }
        self.0.arrived(Arrival::Message(message));
    }

    async fn answer(&self, outgoing: &Arc<Outgoing>, id: u64, message: Message) -> Standin {
        match message {
            Message::Result { result, .. } if outgoing.method == "tools/list" && self.0.is_modern() => {
                // It goes up when rmcp has said which tools it can make headers for.
                let made = off_thread(result.len(), move || (standin::listed(id, &result), result)).await;
                let (standin, result) = made.ok_or(Failed)?;
                lock(&self.0.lists).insert(id, result.into_string());
                Ok(standin)
            }
            Message::Result { result, .. } => {
                let version = if outgoing.method == INITIALIZE { standin::version(&result) } else { None };
                if let Some(version) = &version {
                    self.0.set_modern(!version.has_initialize());
                }
                self.deliver(outgoing, id, Message::Result { id: AnswerId::Number(id), result });
                match version {
                    Some(version) => Ok(standin::initialized(id, version)),
                    None if outgoing.method == INITIALIZE => Err(Failed),
                    None => Ok(standin::answered(id)),
                }
            }
            Message::Error { error, .. } => {
                self.deliver(outgoing, id, Message::Error { id: AnswerId::Number(id), error });
                // A handshake that was refused is the end of this worker.
                if outgoing.is_handshake() { Err(Failed) } else { Ok(standin::answered(id)) }
            }
            Message::Request { .. } | Message::Notification { .. } => Ok(standin::answered(id)),
        }
    }

    fn deliver(&self, outgoing: &Outgoing, id: u64, message: Message) {
        lock(&self.0.requests).remove(&id);
        // Not a second time: rmcp repeats `initialize` by itself where a session was lost.
        if outgoing.answered() {
            self.0.arrived(Arrival::Message(message));
        }
    }

    /// One request failed; nothing comes for it any more.
    pub(super) fn fail(&self, outgoing: &Outgoing, error: McpError) {
        if let Some(id) = outgoing.id() {
            lock(&self.0.requests).remove(&id);
            if outgoing.answered() {
                self.0.arrived(Arrival::Failed { id, error });
            }
        }
    }

    pub(super) fn are_headers_outdated(&self, outgoing: &Outgoing, error: &McpError) -> bool {
        self.0.is_modern()
            && outgoing.method == "tools/call"
            && error.detail("rpcCode").and_then(serde_json::Value::as_i64) == Some(HEADER_MISMATCH)
    }

    pub(super) fn outdated(&self, outgoing: &Outgoing, id: u64, error: McpError) -> ServerJsonRpcMessage {
        lock(&self.0.requests).remove(&id);
        if outgoing.answered() {
            let text = String::from_utf8_lossy(&outgoing.text).into_owned();
            let frame = Frame { kind: outgoing.kind, text };
            self.0.arrived(Arrival::Outdated { id, frame, error });
        }
        standin::answered(id)
    }

    /// A list of tools that rmcp has been through: what it dropped is dropped here, too.
    pub(super) async fn listed(&self, id: u64, kept: ListToolsResult) {
        let Some(result) = lock(&self.0.lists).remove(&id) else { return };
        let made = off_thread(result.len(), move || {
            standin::without_dropped(&result, &kept).unwrap_or_else(|| (result, Vec::new()))
        });
        let Some((result, dropped)) = made.await else { return };
        for name in dropped {
            let message = "A tool of the server has annotations (x-mcp-header) that no header can be made of; it was left out.";
            self.0.warn("WARN_MCP_TOOL_SKIPPED", message, vec![("tool", name.into())]);
        }
        let outgoing = lock(&self.0.requests).get(&id).cloned();
        if let Some(outgoing) = outgoing {
            self.deliver(&outgoing, id, Message::Result { id: AnswerId::Number(id), result: result.into() });
        }
    }
}

/// Whether a message is the answer to the request it came for. An error that names nobody is: it came for nobody else.
fn answers(message: &Message, id: u64) -> bool {
    match message {
        Message::Result { id: answered, .. } => *answered == AnswerId::Number(id),
        Message::Error { id: answered, .. } => {
            *answered == AnswerId::Number(id) || *answered == AnswerId::Absent
        }
        Message::Request { .. } | Message::Notification { .. } => false,
    }
}

/// Does what takes time with a text of this length: here, or on the pool where it is long. `None` when the pool is gone.
pub(super) async fn off_thread<T: Send + 'static>(
    length: usize,
    work: impl FnOnce() -> T + Send + 'static,
) -> Option<T> {
    if length <= POOL_FROM {
        return Some(work());
    }
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => Some(done),
        Err(lost) if lost.is_panic() => std::panic::resume_unwind(lost.into_panic()),
        Err(_) => None,
    }
}
