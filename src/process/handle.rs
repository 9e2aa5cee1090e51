//! The handle of a started server, and the one task behind it.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot, watch};

use super::guardian::{Guardian, Listing};
use super::ladder;
use super::outcome::{Ended, Exit, Outcome, Waits};
use super::watch::Leader;

/// A server's process, shared by all clones.
///
/// Whoever holds it calls [`Process::stop`], also after the process left by itself: until then the direct child stays a
/// zombie, so that its number cannot become somebody else's. When the last clone is dropped without that, the task behind it runs the
/// ladder with short waits.
#[derive(Debug, Clone)]
pub struct Process(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    pid: u32,
    exit: watch::Receiver<Option<Exit>>,
    orders: mpsc::UnboundedSender<Order>,
    outcome: watch::Receiver<Option<Outcome>>,
    guardian: Option<&'static Guardian>,
}

/// What the task behind a process is asked to do.
#[derive(Debug)]
enum Order {
    Survey(oneshot::Sender<()>),
    Stop(Waits),
}

/// For a process that nobody holds any more. As long as the guardian waits, which serves the same case.
const UNHELD: Waits =
    Waits { end_of_input: Duration::from_millis(300), terminate: Duration::from_millis(300) };

impl Process {
    /// Puts the task behind a leader that was just started.
    pub(super) fn supervise(leader: Leader, listing: Listing) -> Self {
        let (orders, ordered) = mpsc::unbounded_channel();
        let (finish, outcome) = watch::channel(None);
        let shared = Shared {
            pid: leader.number(),
            exit: leader.subscribe(),
            orders,
            outcome,
            guardian: listing.guardian(),
        };
        tokio::spawn(supervise(leader, listing, ordered, finish));
        Self(Arc::new(shared))
    }

    #[must_use]
    pub fn pid(&self) -> u32 {
        self.0.pid
    }

    /// How the direct child ended, once it has.
    #[must_use]
    pub fn exit(&self) -> Option<Exit> {
        *self.0.exit.borrow()
    }

    /// Waits until the direct child has ended, for any number of callers.
    pub async fn exited(&self) -> Exit {
        let mut exit = self.0.exit.clone();
        // The sender lives until an exit was sent, unless the runtime is being torn down.
        exit.wait_for(Option::is_some).await.map_or_else(|_| Exit::default(), |exit| exit.unwrap_or_default())
    }

    /// Notes for [`Process::stop`], within half a second, whether the server is there and which descendants have left its group.
    /// Called before the end of its input: a server that leaves then leaves them without a trace of where they came from.
    pub async fn survey(&self) {
        let (done, surveyed) = oneshot::channel();
        // Refused when the ladder is through.
        if self.0.orders.send(Order::Survey(done)).is_ok() {
            let _ = surveyed.await;
        }
    }

    /// Ends the process, its group and, as far as they can be found, descendants that left it, and tells what that took. The
    /// caller has ended the server's input already.
    ///
    /// Runs once, with the waits of the first caller, also when that caller is dropped; all callers get the same outcome, after
    /// the two waits and 2 s at the latest, or 4 s with descendants outside the group.
    pub async fn stop(&self, waits: Waits) -> Outcome {
        // Refused only when the ladder is through and the task gone: then the outcome is there.
        let _ = self.0.orders.send(Order::Stop(waits));
        let mut outcome = self.0.outcome.clone();
        let outcome = outcome.wait_for(Option::is_some).await.ok().and_then(|outcome| outcome.clone());
        // Without an outcome the runtime is being torn down, and nobody can say more than this.
        outcome.unwrap_or_else(|| Outcome {
            exit: self.exit(),
            ended: Ended::Kill,
            survivors: vec![self.pid()],
        })
    }

    /// Why the guardian would not end this server if the host died now, in a sentence; `None` also if it was not asked for.
    ///
    /// The start of a guardian is never waited for by a spawn, so this may take some milliseconds after the first one.
    pub async fn guardian_warning(&self) -> Option<String> {
        self.0.guardian?.warning().await
    }
}

async fn supervise(
    mut leader: Leader,
    listing: Listing,
    mut ordered: mpsc::UnboundedReceiver<Order>,
    finish: watch::Sender<Option<Outcome>>,
) {
    let mut surveyed = None;
    let waits = loop {
        let order = tokio::select! {
            order = ordered.recv() => order,
            // Only to tell those who wait for the exit.
            _ = leader.left(), if leader.look().is_none() => continue,
        };
        match order {
            Some(Order::Survey(done)) => {
                surveyed = Some(ladder::survey(&leader).await);
                let _ = done.send(());
            }
            Some(Order::Stop(waits)) => break waits,
            None => break UNHELD,
        }
    };
    let outcome = ladder::climb(&mut leader, listing, waits, surveyed).await;
    finish.send_replace(Some(outcome));
    // One that survived SIGKILL waits in the kernel, and is reaped whenever it comes back.
    leader.left().await;
    leader.reap();
}
