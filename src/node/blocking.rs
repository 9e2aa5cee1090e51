//! Synchronous calls: the calling thread waits for them, in pieces, and whatever would need that very thread ends them at once.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::error::{ErrorCode, McpError};
use crate::link::http::Needed;
use crate::session::calls::Outcome;

/// One synchronous call of a server.
pub struct BlockingCall {
    state: Mutex<State>,
    settled: Condvar,
}

struct State {
    outcome: Option<Outcome>,
    waits: Waits,
}

/// What a call waits for, by which is told whether a question to JavaScript holds it up.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Waits {
    /// A session.
    ForSession,
    /// The answer to this request.
    ForAnswer(u64),
    /// One request or several, whose ids nobody knows outside of the session.
    ForAny,
}

impl BlockingCall {
    pub fn settle(&self, outcome: Outcome) {
        let mut state = self.lock();
        state.outcome.get_or_insert(outcome);
        drop(state);
        self.settled.notify_all();
    }

    pub fn waits(&self, waits: Waits) {
        self.lock().waits = waits;
    }

    /// Waits for the outcome, but no longer than `time`.
    pub fn wait(&self, time: Duration) -> Option<Outcome> {
        let state = self.lock();
        let waited = self.settled.wait_timeout_while(state, time, |state| state.outcome.is_none());
        waited.unwrap_or_else(PoisonError::into_inner).0.outcome.take()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The synchronous call of a server that is under way: one at most, for the thread that the server belongs to does
/// nothing else meanwhile.
pub struct BlockingCalls {
    server: String,
    under_way: Mutex<Option<Arc<BlockingCall>>>,
}

impl BlockingCalls {
    #[must_use]
    pub fn of(server: &str) -> Self {
        Self { server: server.to_owned(), under_way: Mutex::default() }
    }

    #[must_use]
    pub fn begin(&self) -> Arc<BlockingCall> {
        let state = Mutex::new(State { outcome: None, waits: Waits::ForSession });
        let call = Arc::new(BlockingCall { state, settled: Condvar::new() });
        *self.lock() = Some(call.clone());
        call
    }

    pub fn end(&self, call: &Arc<BlockingCall>) {
        self.lock().take_if(|other| Arc::ptr_eq(other, call));
    }

    /// JavaScript is to be asked for headers. Requests that were begun after the call's own are made on its behalf, such as a list of
    /// tools before it is sent again: the thread that could begin others is blocked.
    pub fn would_block(&self, needed: Needed) {
        self.refuse(|waits| match (waits, needed) {
            (_, Needed::Aside) => false,
            (_, Needed::Handshake) | (Waits::ForSession | Waits::ForAny, Needed::Request(_)) => true,
            (Waits::ForAnswer(own), Needed::Request(id)) => id >= own,
        });
    }

    /// A question came up, and any call may be why.
    pub fn may_block(&self) {
        self.refuse(|_| true);
    }

    #[must_use]
    pub fn refusal(&self) -> McpError {
        let message = format!(
            "A synchronous call of the server {} would wait for a function that runs on the thread it blocks (headers or \
             onInputRequired); use the asynchronous form.",
            self.server
        );
        McpError::new(ErrorCode::WouldBlock, message).of_server(&self.server)
    }

    fn refuse(&self, is_held_up: impl FnOnce(Waits) -> bool) {
        let under_way = self.lock().clone();
        if let Some(call) = under_way {
            let waits = call.lock().waits;
            if is_held_up(waits) {
                call.settle(Err(self.refusal()));
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<Arc<BlockingCall>>> {
        self.under_way.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    fn code(call: &BlockingCall) -> Option<ErrorCode> {
        call.wait(Duration::ZERO).map(|outcome| outcome.unwrap_err().code)
    }

    #[test]
    fn only_a_call_that_the_question_holds_up_is_refused() {
        let calls = BlockingCalls::of("exa");
        calls.would_block(Needed::Handshake);
        let call = calls.begin();
        call.waits(Waits::ForAnswer(7));
        calls.would_block(Needed::Aside);
        calls.would_block(Needed::Request(6));
        assert_eq!(code(&call), None);
        for needed in [Needed::Request(7), Needed::Request(8), Needed::Handshake] {
            calls.would_block(needed);
            assert_eq!(code(&call), Some(ErrorCode::WouldBlock));
        }
        for waits in [Waits::ForSession, Waits::ForAny] {
            let call = calls.begin();
            call.waits(waits);
            calls.would_block(Needed::Request(1));
            assert_eq!(code(&call), Some(ErrorCode::WouldBlock));
        }
    }

    #[test]
    fn the_first_outcome_counts_and_wakes_who_waits() {
        let calls = BlockingCalls::of("exa");
        let call = calls.begin();
        call.settle(Ok("first".into()));
        calls.may_block();
        assert_eq!(call.wait(Duration::ZERO), Some(Ok("first".into())));
        let settler = call.clone();
        let thread = std::thread::spawn(move || settler.settle(Ok("later".into())));
        // A wait that nobody ended would show as a test that hangs.
        assert_eq!(call.wait(Duration::from_hours(1)), Some(Ok("later".into())));
        thread.join().unwrap();
        calls.end(&call);
        calls.may_block();
        assert_eq!(call.wait(Duration::ZERO), None);
    }
}
