//! A server that cannot be reached is tried by one request at a time, after gaps that grow; all others get the last failure at once. So
//! fifty callers in a loop are few attempts (BR-83), and none of them waits for a connection that will not come about.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::error::McpError;

/// How long the first failure is everybody's answer, and how long a later one is at most.
const FIRST_GAP: Duration = Duration::from_millis(100);
const LONGEST_GAP: Duration = Duration::from_secs(5);

/// Whether a server can be reached, as far as is known.
#[derive(Default)]
pub(super) struct Outage(Mutex<Option<Since>>);

struct Since {
    error: McpError,
    gap: Duration,
    until: Instant,
    /// A request is trying.
    is_tried: bool,
}

/// One request on its way. Dropped without a word it leaves the place to the next.
pub(super) struct Attempt<'a> {
    outage: &'a Outage,
    tries: bool,
}

impl Outage {
    /// Lets a request go, or says why it need not.
    pub(super) fn attempt(&self) -> Result<Attempt<'_>, McpError> {
        let mut since = self.since();
        let tries = match &mut *since {
            None => false,
            Some(since) if since.is_tried || Instant::now() < since.until => return Err(since.error.clone()),
            Some(since) => {
                since.is_tried = true;
                true
            }
        };
        Ok(Attempt { outage: self, tries })
    }

    fn since(&self) -> MutexGuard<'_, Option<Since>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Attempt<'_> {
    /// The server answered.
    pub(super) fn reached(self) {
        *self.outage.since() = None;
    }

    /// No connection came about.
    pub(super) fn failed(self, error: &McpError) {
        let mut since = self.outage.since();
        let gap = match &*since {
            // Those that failed beside it are the same failure.
            Some(known) if !self.tries => known.gap,
            Some(known) => known.gap.saturating_mul(2).min(LONGEST_GAP),
            None => FIRST_GAP,
        };
        *since = Some(Since { error: error.clone(), gap, until: Instant::now() + gap, is_tried: false });
    }
}

impl Drop for Attempt<'_> {
    fn drop(&mut self) {
        if self.tries
            && let Some(since) = &mut *self.outage.since()
        {
            since.is_tried = false;
        }
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;
    use crate::error::ErrorCode;

    fn passes(outage: &Outage) {
        outage.since().as_mut().unwrap().until = Instant::now();
    }

    #[test]
    fn after_a_failure_one_request_tries_and_the_others_are_told() {
        let (outage, error) = (Outage::default(), McpError::new(ErrorCode::Connect, "down"));
        let (first, beside) = (outage.attempt().unwrap(), outage.attempt().unwrap());
        first.failed(&error);
        beside.failed(&error);
        assert_eq!(outage.attempt().err(), Some(error.clone()));
        passes(&outage);
        let trying = outage.attempt().unwrap();
        assert_eq!(outage.attempt().err(), Some(error.clone()));
        trying.failed(&error);
        assert_eq!(outage.since().as_ref().unwrap().gap, 2 * FIRST_GAP);
        passes(&outage);
        drop(outage.attempt().unwrap());
        outage.attempt().unwrap().reached();
        assert!(outage.attempt().is_ok() && outage.since().is_none());
    }
}
