//! When a stream that ended is asked for again: after gaps that grow, and not for ever.

use std::time::Duration;

use tokio::time::Instant;

/// Streams that brought nothing, one after the other, before nobody asks any more.
const FRUITLESS_MAX: u32 = 5;
/// Where the server says nothing.
const FIRST_GAP: Duration = Duration::from_secs(1);
/// A server that wants to be asked within a millisecond is asked no sooner.
const SHORTEST_GAP: Duration = Duration::from_millis(100);
const LONGEST_GAP: Duration = Duration::from_secs(30);
/// A stream that was open for so long did what it is for, whether anything came or not.
const LONG_ENOUGH: Duration = Duration::from_secs(10);

#[derive(Debug)]
pub(super) struct Reconnects {
    /// The `retry` of the last event that had one: it holds from then on.
    asked: Option<Duration>,
    fruitless: u32,
    /// When the stream began that ended, until its end has been counted: the time that nobody answers is no stream's.
    opened: Option<Instant>,
}

impl Reconnects {
    pub(super) fn new() -> Self {
        Self { asked: None, fruitless: 0, opened: None }
    }

    /// The server says how long to wait.
    pub(super) fn asked(&mut self, time: Duration) {
        self.asked = Some(time);
    }

    pub(super) fn opened(&mut self) {
        self.opened = Some(Instant::now());
    }

    /// A message came.
    pub(super) fn was_fruitful(&mut self) {
        self.fruitless = 0;
    }

    /// How long to wait before asking again; `None` when that was often enough.
    pub(super) fn gap(&mut self) -> Option<Duration> {
        if self.opened.take().is_some_and(|opened| opened.elapsed() >= LONG_ENOUGH) {
            self.fruitless = 0;
        }
        if self.fruitless >= FRUITLESS_MAX {
            return None;
        }
        let first = self.asked.unwrap_or(FIRST_GAP).clamp(SHORTEST_GAP, LONGEST_GAP);
        let gap = first.saturating_mul(1 << self.fruitless).min(LONGEST_GAP);
        self.fruitless += 1;
        Some(gap)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gaps(reconnects: &mut Reconnects) -> Vec<u128> {
        std::iter::from_fn(|| reconnects.gap()).map(|gap| gap.as_millis()).collect()
    }

    #[test]
    fn gaps_grow_and_end_unless_a_stream_brings_something() {
        let mut reconnects = Reconnects::new();
        assert_eq!(gaps(&mut reconnects), [1_000, 2_000, 4_000, 8_000, 16_000]);
        assert_eq!(gaps(&mut reconnects), [0_u128; 0]);
        reconnects.was_fruitful();
        assert_eq!(reconnects.gap(), Some(FIRST_GAP));
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_does_not_answer_is_given_up_however_long_its_last_stream_was_open() {
        let mut reconnects = Reconnects::new();
        reconnects.opened();
        tokio::time::advance(LONG_ENOUGH).await;
        let mut attempts = 0;
        while let Some(gap) = reconnects.gap() {
            attempts += 1;
            assert!(attempts <= FRUITLESS_MAX, "asked again after {gap:?}");
            tokio::time::advance(gap).await;
        }
        assert_eq!(attempts, FRUITLESS_MAX);
        reconnects.opened();
        tokio::time::advance(LONG_ENOUGH).await;
        assert_eq!(reconnects.gap(), Some(FIRST_GAP), "a long stream makes up for what was before");
    }

    #[test]
    fn the_servers_own_time_is_kept_within_bounds() {
        for (asked, expected) in [(700, 700), (1, 100), (3_600_000, 30_000)] {
            let mut reconnects = Reconnects::new();
            reconnects.asked(Duration::from_millis(asked));
            assert_eq!(reconnects.gap(), Some(Duration::from_millis(expected)));
        }
    }
}
