//! Changes of the tools that a server tells only those who asked: one `subscriptions/listen` that stays open as long as the session
//! (2026-07-28, subscriptions). It is no call: nobody waits for its answer, which is its end.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rmcp::model::{SubscriptionFilter, SubscriptionsListenRequestParams};
use tokio::task::AbortHandle;

use super::handshake::Negotiated;
use super::{Shared, wire};
use crate::link::envelope::{AnswerId, answer_id};
use crate::link::fields::fields;
use crate::link::{Frame, FrameKind};

/// Where a notification says to which subscription it belongs: on one pipe there may be several.
const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";

/// How long after the end of a subscription another one is opened, the first time; it doubles so many times.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const DOUBLINGS: u32 = 6;

/// The one subscription of a session.
#[derive(Default)]
pub(super) struct Subscription(Mutex<State>);

#[derive(Default)]
enum State {
    #[default]
    None,
    Open {
        id: u64,
        /// How many there were before.
        earlier: u32,
        is_acknowledged: bool,
    },
    Pausing(AbortHandle),
    /// The server does not want one, or the session has ended.
    Over,
}

impl Subscription {
    /// With the session. The server learns of it by the end of the link.
    pub(super) fn end(&self) {
        if let State::Pausing(pause) = std::mem::replace(&mut *self.lock(), State::Over) {
            pause.abort();
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Shared {
    /// Asks to be told of changes, where the server offers that. A server that refuses is left in peace.
    pub(super) fn subscribe(&self) {
        let offered = self.negotiated.get().is_some_and(Negotiated::tells_changes_when_asked);
        if offered {
            self.listen(0);
        }
    }

    fn listen(&self, earlier: u32) {
        let mut state = self.subscription.lock();
        if matches!(*state, State::Over) {
            return;
        }
        let filter = SubscriptionFilter::builder().tools_list_changed().build();
        let params = serde_json::to_string(&SubscriptionsListenRequestParams::new(filter)).ok();
        let meta = wire::Meta { modern: self.modern_meta(), ..wire::Meta::default() };
        let params = wire::params(params.as_deref(), meta).ok().flatten();
        let Some((id, link)) = self.calls.reserve().zip(self.link.get()) else { return };
        *state = State::Open { id, earlier, is_acknowledged: false };
        drop(state);
        let text = wire::request(id, "subscriptions/listen", params.as_deref());
        link.send(Frame { kind: FrameKind::Request(id), text });
    }

    /// Whether this answers the subscription, which is its end: a refusal, or a server that ends it in good order. One that had begun is
    /// opened again, after a pause.
    pub(super) fn ends_subscription(self: &Arc<Self>, answered: &AnswerId) -> bool {
        let mut state = self.subscription.lock();
        let State::Open { id, earlier, is_acknowledged } = *state else { return false };
        if *answered != AnswerId::Number(id) {
            return false;
        }
        *state = if is_acknowledged {
            let shared = self.clone();
            let pause = self.runtime.spawn(async move {
                tokio::time::sleep(FIRST_PAUSE * 2_u32.pow(earlier.min(DOUBLINGS))).await;
                shared.listen(earlier.saturating_add(1));
            });
            State::Pausing(pause.abort_handle())
        } else {
            State::Over
        };
        true
    }

    pub(super) fn subscription_acknowledged(self: &Arc<Self>, params: &str) {
        let mut state = self.subscription.lock();
        let State::Open { id, earlier, is_acknowledged } = &mut *state else { return };
        if subscription_of(params) != Some(AnswerId::Number(*id)) || *is_acknowledged {
            return;
        }
        *is_acknowledged = true;
        let is_reopened = *earlier > 0;
        drop(state);
        // What changed before the server listened to us was told to nobody. A link that keeps the order of what is sent
        // has the first list still to come here.
        if is_reopened || self.is_connected() {
            self.refresh();
        }
    }

    /// Whether a change that is told concerns this session. One without an id is a legacy server's, or that of a server that answers in
    /// the new revision and tells in the old way.
    pub(super) fn hears_change(&self, params: &str) -> bool {
        let Some(told) = subscription_of(params) else { return true };
        match *self.subscription.lock() {
            State::Open { id, .. } => told == AnswerId::Number(id),
            _ => false,
        }
    }
}

/// The subscription that a notification names.
fn subscription_of(params: &str) -> Option<AnswerId> {
    let [meta] = fields(params, ["_meta"])?;
    let [id] = fields(meta?.get(), [SUBSCRIPTION_ID])?;
    id.map(|id| answer_id(Some(id)))
}
