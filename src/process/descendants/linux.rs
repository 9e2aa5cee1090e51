//! Found by the parents in `/proc`, held by pidfds.

use std::collections::HashSet;
use std::os::fd::OwnedFd;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, getpid, kill_process, pidfd_open, pidfd_send_signal};

use crate::process::group::Group;
use crate::process::proc::{self, Stat};

/// One process, told from a later one of the same number by its start time.
#[derive(Debug)]
pub(super) struct Stray {
    pid: Pid,
    start: u64,
    /// Names this very process to the kernel. `None` before Linux 5.3 and where a sandbox refuses it.
    pidfd: Option<OwnedFd>,
}

impl Stray {
    fn held(pid: i32, stat: &Stat) -> Option<Self> {
        let pid = Pid::from_raw(pid)?;
        let stray = Self { pid, start: stat.start, pidfd: pidfd_open(pid, PidfdFlags::empty()).ok() };
        // Still the one that was seen, now that the descriptor holds it.
        stray.is_the_same().then_some(stray)
    }

    pub(super) fn pid(&self) -> u32 {
        self.pid.as_raw_pid().unsigned_abs()
    }

    pub(super) fn lives(&self) -> bool {
        let Some(pidfd) = &self.pidfd else { return self.is_the_same() };
        // Readable once all its threads have ended.
        poll(&mut [PollFd::new(pidfd, PollFlags::IN)], Some(&Timespec { tv_sec: 0, tv_nsec: 0 })) == Ok(0)
    }

    pub(super) fn signal(&self, signal: Signal) {
        match &self.pidfd {
            Some(pidfd) => drop(pidfd_send_signal(pidfd, signal)),
            None if self.is_the_same() => drop(kill_process(self.pid, signal)),
            None => {}
        }
    }

    fn is_the_same(&self) -> bool {
        Stat::of(self.pid.as_raw_pid()).is_some_and(|stat| stat.start == self.start && stat.lives())
    }
}

/// Everybody alive who descends from the group and is not in it.
pub(super) async fn outside(group: Group) -> Vec<Stray> {
    let found = proc::on_the_pool(move || {
        // The usual server has no children, and then there is nobody to look for. (Save below a member of the group whose own
        // parent has ended; not worth a look at each process of the system at each close.)
        let group = group.number();
        if Stat::of(group).is_some_and(|leader| leader.lives()) && proc::is_childless(group) {
            return Vec::new();
        }
        let Some(everybody) = proc::everybody() else { return Vec::new() };
        let members = everybody.iter().filter(|(_, stat)| stat.group == group).map(|(pid, _)| *pid).collect();
        descendants(&everybody, members)
            .filter(|(_, stat)| stat.group != group)
            .filter_map(|(pid, stat)| Stray::held(*pid, stat))
            .collect()
    });
    found.await.unwrap_or_default()
}

/// Everybody alive who descends from these, without themselves.
pub(super) async fn below(strays: &[Stray]) -> Vec<Stray> {
    let known: Vec<(i32, u64)> = strays.iter().map(|stray| (stray.pid.as_raw_pid(), stray.start)).collect();
    let found = proc::on_the_pool(move || {
        let Some(everybody) = proc::everybody() else { return Vec::new() };
        let is_known = |(pid, stat): &(i32, Stat)| known.contains(&(*pid, stat.start));
        let roots = everybody.iter().filter(|one| is_known(one)).map(|(pid, _)| *pid).collect();
        descendants(&everybody, roots)
            .filter(|one| !is_known(one))
            .filter_map(|(pid, stat)| Stray::held(*pid, stat))
            .collect()
    });
    found.await.unwrap_or_default()
}

/// The living among these and whoever descends from them. Never PID 1 or this process, whatever `/proc` says.
fn descendants(everybody: &[(i32, Stat)], mut family: HashSet<i32>) -> impl Iterator<Item = &(i32, Stat)> {
    let own = getpid().as_raw_pid();
    let mut size = 0;
    // A child may have a smaller number than its parent: again, until a round finds nobody new.
    while size != family.len() {
        size = family.len();
        for (pid, stat) in everybody {
            if *pid > 1 && *pid != own && family.contains(&stat.parent) {
                family.insert(*pid);
            }
        }
    }
    everybody.iter().filter(move |(pid, stat)| family.contains(pid) && stat.lives())
}
