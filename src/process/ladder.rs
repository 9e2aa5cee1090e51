//! The stop ladder: end of input, SIGTERM to the group, SIGKILL to the group. It always comes to an end.

use std::time::Duration;

use rustix::process::Signal;
use tokio::time::{Instant, sleep, timeout};

use super::group::Group;
use super::outcome::{Ended, Outcome, Waits};
use super::watch::Leader;

/// How long SIGKILL is repeated. Whatever can die is dead after the first; the bound is for what cannot.
const KILL_STAGE: Duration = Duration::from_secs(2);

const FIRST_GAP: Duration = Duration::from_millis(1);
const LONGEST_GAP: Duration = Duration::from_millis(50);

/// Runs the ladder from the end of the input, which the caller has brought about, and reaps the leader unless it survives.
pub(super) async fn climb(leader: &mut Leader, waits: Waits) -> Outcome {
    let group = Group::led_by(leader.pid());
    let mut ended = if leader.look().is_some() { Ended::ByItself } else { Ended::EndOfInput };

    let polite = timeout(waits.end_of_input, leader.left()).await.is_ok();
    let mut empty = !leader.holds_number() && !group.lives().await;
    if !empty {
        // A leader that left does not end the matter: whoever it left behind has lost its reason to be (BR-01: a wrapper
        // ends at once, the real server stays). So also then, and while the leader is a zombie.
        group.signal(Signal::TERM);
        if polite {
            leader.reap();
            empty = !group.lives().await;
        }
    }
    if !empty {
        ended = Ended::Terminate;
        empty = emptied(leader, group, waits.terminate, None).await;
    }
    if !empty {
        ended = Ended::Kill;
        empty = emptied(leader, group, KILL_STAGE, Some(Signal::KILL)).await;
    }
    let survivors = if empty { Vec::new() } else { group.members().await };
    Outcome { exit: leader.look(), ended, survivors }
}

/// Whether the leader and its group were gone `within` this time. The signal is repeated at each look, because a process
/// that was being forked during the first one may have escaped it (BR-08).
async fn emptied(leader: &mut Leader, group: Group, within: Duration, signal: Option<Signal>) -> bool {
    let deadline = Instant::now() + within;
    let mut gap = FIRST_GAP;
    loop {
        let left = leader.look().is_some();
        if left {
            leader.reap();
            if !group.lives().await {
                return true;
            }
        }
        if Instant::now() >= deadline {
            return false;
        }
        if let Some(signal) = signal {
            group.signal(signal);
        }
        let gap_now = gap.min(deadline.saturating_duration_since(Instant::now()));
        if left {
            sleep(gap_now).await;
        } else {
            let _ = timeout(gap_now, leader.left()).await;
        }
        gap = (gap * 2).min(LONGEST_GAP);
    }
}
