//! Descendants of a server that left its group (`setsid`, `setpgid`): reached one by one, as far as their parents lead to them.
//!
//! Of a descendant whose own parent has ended before the look (a double fork, a daemon) nothing says any more where it came
//! from: it belongs to PID 1. On systems other than Linux nobody is looked for.

#[cfg(target_os = "linux")]
mod linux;

#[cfg(target_os = "linux")]
use self::linux::{Stray, below, outside};
use rustix::process::Signal;

use super::group::Group;

/// The descendants of one server outside its group that were found and not yet seen dead.
#[derive(Debug, Default)]
pub(super) struct Strays {
    strays: Vec<Stray>,
    /// Whether the leader had company in its group.
    company: bool,
}

impl Strays {
    /// Looks for them. The number of the group must be taken by the server's leader or its zombie; and since a child of a process
    /// that has ended is no child any more, this comes before the end of the server's input.
    pub(super) async fn of(group: Group) -> Self {
        let (strays, company) = outside(group).await;
        Self { strays, company }
    }

    /// Whether there were descendants that stayed in the group.
    pub(super) fn had_company(&self) -> bool {
        self.company
    }

    /// Adds what those that live have started since.
    pub(super) async fn look_again(&mut self) {
        if self.any() {
            let more = below(&self.strays).await;
            self.strays.extend(more);
        }
    }

    /// Failures are no failures here: `any` says what is left.
    pub(super) fn signal(&self, signal: Signal) {
        self.strays.iter().for_each(|stray| stray.signal(signal));
    }

    /// Whether one of them lives.
    pub(super) fn any(&mut self) -> bool {
        self.strays.retain(Stray::lives);
        !self.strays.is_empty()
    }

    /// The pids of those that live.
    pub(super) fn pids(&mut self) -> Vec<u32> {
        self.strays.retain(Stray::lives);
        self.strays.iter().map(Stray::pid).collect()
    }
}

#[cfg(not(target_os = "linux"))]
use self::nowhere::{Stray, below, outside};

#[cfg(not(target_os = "linux"))]
mod nowhere {
    use rustix::process::Signal;

    use super::Group;

    #[derive(Debug)]
    pub(super) enum Stray {}

    impl Stray {
        pub(super) fn pid(&self) -> u32 {
            match *self {}
        }

        pub(super) fn lives(&self) -> bool {
            match *self {}
        }

        pub(super) fn signal(&self, _: Signal) {
            match *self {}
        }
    }

    pub(super) async fn outside(_: Group) -> (Vec<Stray>, bool) {
        (Vec::new(), false)
    }

    pub(super) async fn below(_: &[Stray]) -> Vec<Stray> {
        Vec::new()
    }
}
