//! Those who call: what became of each call, and what it must not hear.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use workflow_mcp::error::ErrorCode;
use workflow_mcp::session::calls::{OnProgress, Outcome, Settle, Terms};

/// What became of one call.
#[derive(Default)]
pub(crate) struct Slot {
    pub(crate) outcome: Option<Outcome>,
    pub(crate) progress: usize,
    /// Given up: nobody may settle it any more.
    pub(crate) is_cancelled: bool,
}

pub(crate) struct Call {
    /// The id on the wire; none for a listing, or for a call that was refused at once.
    pub(crate) id: Option<u64>,
    pub(crate) slot: Arc<Mutex<Slot>>,
    pub(crate) hears_progress: bool,
}

impl Call {
    pub(crate) fn is_pending(&self) -> bool {
        let slot = self.slot.lock().unwrap();
        slot.outcome.is_none() && !slot.is_cancelled
    }
}

pub(crate) enum Expected {
    Result(String),
    Error(ErrorCode),
    /// Nobody is answered by it.
    Nothing,
    /// It depends on what else is under way.
    Unknown,
}

impl Expected {
    pub(crate) fn check(&self, slot: &Slot, method: &str) {
        match (self, &slot.outcome) {
            (Self::Result(result), Some(Ok(outcome))) => assert_eq!(*result, **outcome, "{method}"),
            (Self::Error(code), Some(Err(error))) => assert_eq!(*code, error.code, "{method}"),
            (Self::Nothing, None) | (Self::Unknown, _) => {}
            (_, outcome) => panic!("an answer to {method} led to {outcome:?}"),
        }
    }
}

pub(crate) fn slot() -> (Arc<Mutex<Slot>>, Settle) {
    let slot = Arc::<Mutex<Slot>>::default();
    let settled = slot.clone();
    let settle = Settle::new(move |outcome| {
        let mut slot = settled.lock().unwrap();
        assert!(slot.outcome.is_none() && !slot.is_cancelled, "a call settled twice");
        slot.outcome = Some(outcome);
    });
    (slot, settle)
}

pub(crate) fn terms(
    slot: &Arc<Mutex<Slot>>,
    timeout: u8,
    hears_progress: bool,
    reset_on_progress: bool,
) -> Terms {
    let slot = slot.clone();
    let on_progress = hears_progress.then(|| {
        Arc::new(move |_params| {
            let mut slot = slot.lock().unwrap();
            assert!(slot.outcome.is_none() && !slot.is_cancelled, "progress after the end of its call");
            slot.progress += 1;
        }) as OnProgress
    });
    Terms {
        phase: "call",
        timeout: Some(Duration::from_millis(u64::from(timeout) * 20)),
        total: reset_on_progress.then_some(Duration::from_secs(10)),
        reset_on_progress,
        on_progress,
        begun: None,
    }
}
