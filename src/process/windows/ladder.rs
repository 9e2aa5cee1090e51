//! The stop ladder: end of input, then the end of the job. It always comes to an end.
//!
//! Nothing stands between the two: `CTRL_BREAK` reaches only those who share a console with the host, and `WM_CLOSE` only those
//! who have a window. So both waits are given to the end of the input.

use std::future::{Ready, ready};
use std::time::Duration;

use tokio::time::{Instant, sleep, timeout};

use super::guardian::Listing;
use super::job::Job;
use super::watch::Leader;
use crate::process::outcome::{Ended, Outcome, Waits};

/// How long the end of the job is repeated. Whatever can end has ended after the first; the bound is for what cannot.
const KILL_STAGE: Duration = Duration::from_secs(2);

const FIRST_GAP: Duration = Duration::from_millis(1);
const LONGEST_GAP: Duration = Duration::from_millis(50);

/// What is to be known before the server is asked to leave. Nobody leaves a job, so nobody is to be looked for outside of it.
pub(in crate::process) struct Survey {
    /// A server that is quick leaves between the end of its input and our next look: that was no leaving by itself.
    had_left: bool,
}

pub(in crate::process) fn survey(leader: &Leader) -> Ready<Survey> {
    ready(Survey { had_left: leader.look().is_some() && leader.job().members().is_empty() })
}

/// Runs the ladder from the end of the input, which the caller has brought about.
pub(in crate::process) async fn climb(
    leader: &mut Leader,
    _: Listing,
    waits: Waits,
    surveyed: Option<Survey>,
) -> Outcome {
    let Survey { had_left } = match surveyed {
        Some(surveyed) => surveyed,
        None => survey(leader).await,
    };
    let mut ended = if had_left { Ended::ByItself } else { Ended::EndOfInput };

    let _ = timeout(waits.end_of_input, leader.left()).await;
    // A leader that left does not end the matter: whom it left behind has lost its reason to be (BR-01: a wrapper ends at
    // once, the real server stays).
    let mut empty = emptied(leader, waits.terminate, |_| {}).await;
    if !empty {
        ended = Ended::Kill;
        empty = emptied(leader, KILL_STAGE, Job::end).await;
    }
    let survivors = if empty { Vec::new() } else { leader.job().members() };
    Outcome { exit: leader.look(), ended, survivors }
}

/// Whether the leader and its job were gone `within` this time. What is done is done at each look, because a process that
/// was being created during the first may have escaped it.
async fn emptied(leader: &mut Leader, within: Duration, act: impl Fn(&Job)) -> bool {
    let deadline = Instant::now() + within;
    let mut gap = FIRST_GAP;
    loop {
        let left = leader.look().is_some();
        if left && leader.job().members().is_empty() {
            return true;
        }
        if Instant::now() >= deadline {
            return false;
        }
        act(leader.job());
        let gap_now = gap.min(deadline.saturating_duration_since(Instant::now()));
        if left {
            sleep(gap_now).await;
        } else {
            let _ = timeout(gap_now, leader.left()).await;
        }
        gap = (gap * 2).min(LONGEST_GAP);
    }
}
