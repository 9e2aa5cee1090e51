//! The calls that are under way: ids, deadlines, progress, and the promise that each settles exactly once.
//!
//! Calls are begun on any thread, mostly the host's JavaScript thread; they settle where their answers are read (the
//! I/O thread, or the host's own for calls that come one at a time), with a long error on the pool, and where they
//! begin when they are refused. Beginning one takes no hop: the deadline keeper is woken only when the new deadline is
//! earlier than the one it sleeps for.

use std::collections::{BTreeSet, HashMap};
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

use crate::error::{ErrorCode, McpError};
use crate::link::envelope::AnswerId;
use crate::link::result_text::ResultText;

/// The outcome of one call: the text of its result.
pub type Outcome = Result<ResultText, McpError>;

/// Who waits for a call. Dropped without an outcome, it settles with `ERR_MCP_INTERNAL`: no path, not even a panic,
/// leaves a promise open.
pub struct Settle(Option<Box<dyn FnOnce(Outcome) + Send>>);

impl Settle {
    #[must_use]
    pub fn new(settle: impl FnOnce(Outcome) + Send + 'static) -> Self {
        Self(Some(Box::new(settle)))
    }

    pub fn with(mut self, outcome: Outcome) {
        if let Some(settle) = self.0.take() {
            settle(outcome);
        }
    }

    /// For a caller that was released another way.
    pub fn forget(mut self) {
        self.0 = None;
    }
}

impl Drop for Settle {
    fn drop(&mut self) {
        if let Some(settle) = self.0.take() {
            settle(Err(McpError::new(ErrorCode::Internal, "The call was dropped; please report this.")));
        }
    }
}

/// Hears the `params` of each progress notification, in order.
pub type OnProgress = Arc<dyn Fn(String) + Send + Sync>;

/// How long a call may take, and what it wants to hear.
#[derive(Clone)]
pub struct Terms {
    /// `details.phase` of a timeout: `connect`, `list`, `call`.
    pub phase: &'static str,
    pub timeout: Option<Duration>,
    /// Bounds the call even when progress restarts the timeout.
    pub total: Option<Duration>,
    pub reset_on_progress: bool,
    pub on_progress: Option<OnProgress>,
    /// When the caller began to wait, if that was before the session was there: all times count from then.
    pub begun: Option<Instant>,
}

impl Terms {
    /// A timeout, where there is one, and nothing else.
    #[must_use]
    pub const fn within(phase: &'static str, timeout: Option<Duration>) -> Self {
        Self { phase, timeout, total: None, reset_on_progress: false, on_progress: None, begun: None }
    }

    /// Whether the request must carry a progress token.
    #[must_use]
    pub fn wants_progress(&self) -> bool {
        self.reset_on_progress || self.on_progress.is_some()
    }
}

/// A call that ran out of time.
pub struct Expired {
    pub id: u64,
    pub settle: Settle,
    pub phase: &'static str,
    pub waited: Duration,
    /// It was `total` that passed, not `timeout`.
    pub is_total: bool,
}

#[derive(Default)]
pub struct Calls {
    state: Mutex<State>,
    /// An earlier deadline than the keeper knows of, or the end.
    changed: Notify,
}

#[derive(Default)]
struct State {
    last_id: u64,
    pending: HashMap<u64, Pending, BuildHasherDefault<IdHasher>>,
    /// Ids under which calls were sent first, of those that were sent again under another.
    renamed: HashMap<u64, u64>,
    deadlines: BTreeSet<(Instant, u64)>,
    /// What the keeper sleeps for.
    armed: Option<Instant>,
    /// Why no call can be begun any more.
    gone: Option<McpError>,
    /// Answers nobody waited for.
    unexpected: u64,
}

/// Ids are ours, one after the other, so nobody can choose them to collide; the default hasher took a tenth of what it
/// takes to begin a call.
#[derive(Default)]
struct IdHasher(u64);

impl Hasher for IdHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u64(&mut self, id: u64) {
        // The table looks at the highest bits as well as the lowest: 2^64 divided by the golden ratio spreads into both.
        self.0 = (self.0 ^ id).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(32);
    }
}

struct Pending {
    settle: Settle,
    terms: Terms,
    begun: Instant,
    deadline: Option<Instant>,
    /// The id it was sent under first, where that is not its own.
    was: Option<u64>,
}

impl Calls {
    /// Registers a call and gives its id; when the session is gone it settles at once and there is none.
    pub fn begin(&self, terms: Terms, settle: Settle) -> Option<u64> {
        let begun = terms.begun.unwrap_or_else(Instant::now);
        let mut state = self.lock();
        if let Some(gone) = state.gone.clone() {
            drop(state);
            settle.with(Err(gone));
            return None;
        }
        state.last_id += 1;
        let id = state.last_id;
        let pending = Pending { settle, terms, begun, deadline: None, was: None };
        state.pending.insert(id, pending);
        if state.set_deadline(id, begun) {
            self.changed.notify_one();
        }
        Some(id)
    }

    /// An id for a request that is no call: nobody waits for its answer.
    pub fn reserve(&self) -> Option<u64> {
        let mut state = self.lock();
        if state.gone.is_some() {
            return None;
        }
        state.last_id += 1;
        Some(state.last_id)
    }

    /// Settles the call that an answer names.
    pub fn answered(&self, id: &AnswerId, outcome: Outcome) {
        if let Some(settle) = self.claim(id, outcome.is_err()) {
            settle.with(outcome);
        }
    }

    /// Takes over settling the call that an answer names. `Absent` names the only pending one, if there is exactly one and it is an
    /// error.
    pub fn claim(&self, id: &AnswerId, is_error: bool) -> Option<Settle> {
        let mut state = self.lock();
        let id = match id {
            AnswerId::Number(id) => Some(*id),
            AnswerId::Absent if is_error && state.pending.len() == 1 => state.pending.keys().next().copied(),
            AnswerId::Absent | AnswerId::Foreign => None,
        };
        let claimed = id.and_then(|id| state.remove(id));
        state.unexpected += u64::from(claimed.is_none());
        claimed.map(|pending| pending.settle)
    }

    /// Takes a call back without settling it, and gives the id under which the server knows it: a caller has the first
    /// one. `None` when it has settled already.
    pub fn withdraw(&self, id: u64) -> Option<(u64, Settle)> {
        let mut state = self.lock();
        let current = state.current(id);
        state.remove(current).map(|pending| (current, pending.settle))
    }

    /// A new id for a call that is sent again, under which it keeps its deadline. `None` when it has settled, or was sent again before.
    pub fn again(&self, id: u64) -> Option<u64> {
        let mut state = self.lock();
        if !state.may_be_sent_again(id) {
            return None;
        }
        let mut pending = state.remove(id)?;
        state.last_id += 1;
        let next = state.last_id;
        pending.was = Some(id);
        state.renamed.insert(id, next);
        if let Some(deadline) = pending.deadline {
            state.deadlines.insert((deadline, next));
        }
        state.pending.insert(next, pending);
        Some(next)
    }

    /// Whether a call still waits and was sent once only.
    #[must_use]
    pub fn may_be_sent_again(&self, id: u64) -> bool {
        self.lock().may_be_sent_again(id)
    }

    /// Restarts the timeout of a call that asked for it, and says who wants to hear of the progress.
    pub fn progressed(&self, id: u64) -> Option<OnProgress> {
        let mut state = self.lock();
        let id = state.current(id);
        let pending = state.pending.get(&id)?;
        let listener = pending.terms.on_progress.clone();
        if pending.terms.reset_on_progress && state.set_deadline(id, Instant::now()) {
            self.changed.notify_one();
        }
        listener
    }

    /// Settles every pending call with `error`, and every later one, which is not sent at all, with `later`. The first reason stays.
    pub fn end(&self, error: &McpError, later: &McpError) {
        let mut state = self.lock();
        state.gone.get_or_insert_with(|| later.clone());
        let pending = std::mem::take(&mut state.pending);
        state.deadlines.clear();
        state.renamed.clear();
        drop(state);
        self.changed.notify_one();
        for (_, pending) in pending {
            pending.settle.with(Err(error.clone()));
        }
    }

    /// Why no call can be begun any more, once that is so.
    #[must_use]
    pub fn gone(&self) -> Option<McpError> {
        self.lock().gone.clone()
    }

    /// Waits for deadlines and hands over what expired, until the end. One keeper a session, on the I/O thread. Before anything expires
    /// `catch_up` takes in what has arrived and nobody has read yet: an answer that came in time counts.
    pub async fn keep_deadlines(&self, catch_up: impl Fn(), expired: impl Fn(Expired)) {
        loop {
            let next = {
                let mut state = self.lock();
                if state.gone.is_some() {
                    return;
                }
                state.armed = state.deadlines.first().map(|(deadline, _)| *deadline);
                state.armed
            };
            match next {
                None => self.changed.notified().await,
                Some(deadline) => tokio::select! {
                    () = self.changed.notified() => {}
                    () = tokio::time::sleep_until(deadline) => {
                        catch_up();
                        self.take_expired().into_iter().for_each(&expired);
                    }
                },
            }
        }
    }

    /// How many calls wait, and how many answers nobody waited for.
    #[must_use]
    pub fn counts(&self) -> (usize, u64, u64) {
        let state = self.lock();
        (state.pending.len(), state.last_id, state.unexpected)
    }

    fn take_expired(&self) -> Vec<Expired> {
        let now = Instant::now();
        let mut state = self.lock();
        let mut expired = Vec::new();
        while let Some(&(deadline, id)) = state.deadlines.first().filter(|(deadline, _)| *deadline <= now) {
            let Some(pending) = state.remove(id) else {
                state.deadlines.remove(&(deadline, id));
                continue;
            };
            expired.push(pending.expired(id, deadline));
        }
        expired
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn current(&self, id: u64) -> u64 {
        self.renamed.get(&id).copied().unwrap_or(id)
    }

    fn may_be_sent_again(&self, id: u64) -> bool {
        self.pending.get(&id).is_some_and(|pending| pending.was.is_none())
    }

    fn remove(&mut self, id: u64) -> Option<Pending> {
        let id = self.current(id);
        let pending = self.pending.remove(&id)?;
        if let Some(was) = pending.was {
            self.renamed.remove(&was);
        }
        if let Some(deadline) = pending.deadline {
            self.deadlines.remove(&(deadline, id));
        }
        Some(pending)
    }

    /// Gives a call its deadline, counted from `from`; true when the keeper must be woken for it.
    fn set_deadline(&mut self, id: u64, from: Instant) -> bool {
        let Some(pending) = self.pending.get_mut(&id) else { return false };
        let total = pending.terms.total.and_then(|total| pending.begun.checked_add(total));
        let timeout = pending.terms.timeout.and_then(|timeout| from.checked_add(timeout));
        let deadline = [timeout, total].into_iter().flatten().min();
        if let Some(old) = std::mem::replace(&mut pending.deadline, deadline) {
            self.deadlines.remove(&(old, id));
        }
        let Some(deadline) = deadline else { return false };
        self.deadlines.insert((deadline, id));
        let earlier = self.armed.is_none_or(|armed| deadline < armed);
        if earlier {
            self.armed = Some(deadline);
        }
        earlier
    }
}

impl Pending {
    fn expired(self, id: u64, deadline: Instant) -> Expired {
        let waited = deadline.saturating_duration_since(self.begun);
        let is_total = self.terms.total == Some(waited);
        Expired { id, phase: self.terms.phase, settle: self.settle, waited, is_total }
    }
}

#[cfg(test)]
mod tests;
