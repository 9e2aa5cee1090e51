//! The one call that is sent again by the session itself: a server of 2026-07-28 refused its headers, which repeat
//! arguments as the schema of the tool says, and the schema was an old one (SEP-2243). Such a call did not run.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::listing::LISTING;
use super::{Event, Shared, wire};
use crate::error::McpError;
use crate::link::envelope::AnswerId;
use crate::link::{Frame, FrameKind};

impl Shared {
    /// Lists the tools, and sends the call again under a new id. `refused` is what it settles with where that does not help.
    pub(super) fn send_again(self: &Arc<Self>, id: u64, frame: &Frame, refused: McpError) {
        let refused = refused.of_server(&self.id);
        if !self.calls.may_be_sent_again(id) {
            self.calls.answered(&AnswerId::Number(id), Err(refused));
            return;
        }
        let (shared, text) = (self.clone(), frame.text.clone());
        let seen = self.listings.load(Ordering::Acquire);
        self.runtime.spawn(async move {
            let listed = tokio::time::timeout(shared.timeout, shared.list_since(seen)).await;
            if !matches!(listed, Ok(Ok(()))) {
                shared.calls.answered(&AnswerId::Number(id), Err(refused));
                return;
            }
            // Its caller may have given up meanwhile.
            let Some(next) = shared.calls.again(id) else { return };
            if let Some(link) = shared.link.get() {
                link.send(Frame { kind: FrameKind::Request(next), text: wire::with_id(&text, id, next) });
            }
        });
    }

    /// A list that was begun after `seen` of them: one for all calls that were refused together.
    async fn list_since(self: &Arc<Self>, seen: u64) -> Result<(), McpError> {
        let _one_at_a_time = self.listing.lock().await;
        if self.listings.load(Ordering::Acquire) > seen {
            return Ok(());
        }
        let tools = self.list(LISTING, None).await?;
        self.listings.fetch_add(1, Ordering::AcqRel);
        if self.lists_tools {
            self.owner.heard(Event::ToolsChanged(self.set_tools(tools)));
        }
        Ok(())
    }
}
