//! The stop ladder: end of input, SIGTERM to the group, SIGKILL to the group; then the same for whoever left the group. It always
//! comes to an end.

use std::time::Duration;

use rustix::process::Signal;
use tokio::time::{Instant, sleep, timeout};

use super::descendants::Strays;
use super::group::Group;
use super::guardian::Listing;
use super::outcome::{Ended, Outcome, Waits};
use super::watch::Leader;

/// How long SIGKILL is repeated. Whatever can die is dead after the first; the bound is for what cannot.
const KILL_STAGE: Duration = Duration::from_secs(2);

const FIRST_GAP: Duration = Duration::from_millis(1);
const LONGEST_GAP: Duration = Duration::from_millis(50);

/// What is to be known before the server is asked to leave.
#[derive(Debug)]
pub(super) struct Survey {
    strays: Strays,
    /// A server that is quick leaves between the end of its input and our next look: that was no leaving by itself.
    had_left: bool,
}

/// Finds no strays where the host reaped the leader, since its number may be a stranger's by now.
pub(super) async fn survey(leader: &Leader) -> Survey {
    let strays = Strays::of(Group::led_by(leader.pid())).await;
    let strays = if leader.holds_number() { strays } else { Strays::default() };
    Survey { strays, had_left: leader.look().is_some() }
}

/// Runs the ladder from the end of the input, which the caller has brought about, and reaps the leader unless it survives.
///
/// The group is taken off the guardian's list when the ladder is through with it.
pub(super) async fn climb(
    leader: &mut Leader,
    listing: Listing,
    waits: Waits,
    surveyed: Option<Survey>,
) -> Outcome {
    let group = Group::led_by(leader.pid());
    let patience = Instant::now() + waits.end_of_input;
    let gone_by_now = leader.look().is_some();
    let (mut strays, had_left) = match surveyed {
        Some(Survey { strays, had_left }) => (strays, had_left),
        None => (survey(leader).await.strays, gone_by_now),
    };
    let mut ended = if had_left { Ended::ByItself } else { Ended::EndOfInput };

    let polite = timeout(waits.end_of_input, leader.left()).await.is_ok();
    // A server that did not leave has used up the time of its strays, too.
    let terminated = (!polite && strays.any()).then(|| {
        strays.signal(Signal::TERM);
        Instant::now()
    });
    // Whether SIGTERM will be what ended somebody can only be seen before it is sent; a look at each process of the system, so for
    // a leader that had company alone.
    let company = polite && strays.had_company() && !group.members().await.is_empty();
    let mut empty = !leader.holds_number() && !group.lives().await;
    if !empty {
        // A leader that left does not end the matter: whoever it left behind has lost its reason to be (BR-01: a wrapper
        // ends at once, the real server stays). So also then, and while the leader is a zombie.
        group.signal(Signal::TERM);
        if polite {
            leader.reap();
            empty = !group.lives().await;
        }
        if company {
            ended = Ended::Terminate;
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
    // Before those outside of the group are waited for, which takes seconds: the number of an empty group is anybody's, and a host that
    // died meanwhile would have the guardian kill a stranger. Members that survived SIGKILL are left to that signal.
    drop(listing);
    let mut survivors = if empty { Vec::new() } else { group.members().await };
    if let Some(needed) = end(&mut strays, patience, terminated, waits.terminate).await {
        ended = ended.max(needed);
        survivors.extend(strays.pids());
    }
    Outcome { exit: leader.look(), ended, survivors }
}

/// Ends those outside the group; gives the rung that was needed, if any was.
///
/// They have until `patience` also when their server has left: one that heeds the end of the input, such as what a container
/// runtime's client talks to, may need the whole time (BR-09).
async fn end(
    strays: &mut Strays,
    patience: Instant,
    terminated: Option<Instant>,
    terminate: Duration,
) -> Option<Ended> {
    let terminated = match terminated {
        Some(at) => at,
        None if gone(strays, patience).await => return None,
        None => {
            strays.signal(Signal::TERM);
            Instant::now()
        }
    };
    if gone(strays, terminated + terminate).await {
        return Some(Ended::Terminate);
    }
    strays.look_again().await;
    strays.signal(Signal::KILL);
    gone(strays, Instant::now() + KILL_STAGE).await;
    Some(Ended::Kill)
}

/// Whether none of them was left at the deadline.
async fn gone(strays: &mut Strays, deadline: Instant) -> bool {
    let mut gap = FIRST_GAP;
    while strays.any() {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return false;
        }
        sleep(gap.min(left)).await;
        gap = (gap * 2).min(LONGEST_GAP);
    }
    true
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
