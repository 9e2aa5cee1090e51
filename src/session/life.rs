//! How a session ends, and who is told: once, whichever came first of its end and its being connected.

use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

use super::{Event, Shared, sentence_of};
use crate::error::{ErrorCode, McpError};
use crate::link::End;

/// Why a session ended: `reason` of `McpCloseInfo`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    Closed,
    Exited,
    /// Nobody holds the connection any more, or its environment ended.
    Aborted,
    ProtocolError,
}

impl Reason {
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Closed => "closed",
            Self::Exited => "exited",
            Self::Aborted => "aborted",
            Self::ProtocolError => "protocol-error",
        }
    }
}

/// `McpCloseInfo`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CloseInfo {
    pub reason: Reason,
    pub end: End,
}

/// Where a session's life has got to. A server may leave in the moment between its last answer and `connect`'s taking it in.
#[derive(Default)]
pub(super) struct Life {
    is_connected: bool,
    ended: Option<CloseInfo>,
    is_told: bool,
}

impl Shared {
    pub(super) fn close(self: &Arc<Self>, reason: Reason) {
        self.end(reason, &self.closed_error());
    }

    /// Callers are released first, the server is stopped after.
    pub(super) fn end(self: &Arc<Self>, reason: Reason, error: &McpError) {
        if self.closing.swap(true, Ordering::AcqRel) {
            return;
        }
        let closed = self.closed_error();
        // What was pending may have had its effect, what comes later is not even sent: only the latter is safe to do again.
        let later = if error.code == ErrorCode::Closed {
            closed
        } else {
            let why = sentence_of(&self.id, error);
            McpError { message: format!("The connection to {} is closed: {why}", self.id), ..closed }
                .caused_by(error.clone())
        };
        self.calls.end(error, &later);
        self.subscription.end();
        let shared = self.clone();
        self.runtime.spawn(async move {
            let end = match shared.link.get() {
                Some(link) => link.close(shared.waits).await,
                None => return,
            };
            let info = CloseInfo { reason, end };
            shared.lives(|life| life.ended = Some(info.clone()));
            shared.closed.send_replace(Some(info));
        });
    }

    /// From now on the owner is told of the end.
    pub(super) fn connected(&self) {
        self.lives(|life| life.is_connected = true);
    }

    /// Changes where the life has got to, and tells of the end of one that was connected: once, whichever came second.
    fn lives(&self, change: impl FnOnce(&mut Life)) {
        let mut life = self.life.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut life);
        let ended = if life.is_connected && !life.is_told { life.ended.clone() } else { None };
        life.is_told |= ended.is_some();
        drop(life);
        if let Some(info) = ended {
            self.owner.heard(Event::Closed(info));
        }
    }

    pub(super) fn is_connected(&self) -> bool {
        self.life.lock().unwrap_or_else(PoisonError::into_inner).is_connected
    }

    pub(super) async fn until_closed(&self) -> CloseInfo {
        let mut closed = self.closed.subscribe();
        loop {
            if let Some(info) = closed.borrow_and_update().clone() {
                return info;
            }
            // The sender is in self: this cannot fail while self is borrowed.
            let _ = closed.changed().await;
        }
    }
}
