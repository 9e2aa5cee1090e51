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

/// A leader with more is looked at on the pool.
const FEW_THREADS: u32 = 4;

/// Everybody alive who descends from the group and is not in it, and whether anybody but the leader is in it.
pub(super) async fn outside(group: Group) -> (Vec<Stray>, bool) {
    let group = group.number();
    // Most servers have started nobody, which shows in 25 us, and 5 more for each further thread. To the pool and back takes 40 us where
    // cores sleep, and a close waits for it.
    let leader = Stat::of(group).filter(|leader| leader.lives() && leader.threads <= FEW_THREADS);
    if leader.is_some() && proc::is_childless(group) {
        return (Vec::new(), false);
    }
    let found = proc::on_the_pool(move || {
        // From a living leader downwards: far less to read. (Nobody is found below a member of the group whose own parent has ended;
        // that is not worth a look at each process of the system at each close.)
        let leads = Stat::of(group).is_some_and(|leader| leader.lives());
        let below = if leads { proc::below([group]) } else { None };
        let found = below.unwrap_or_else(|| search(|(_, stat)| stat.group == group));
        let company = found.iter().any(|(pid, stat)| stat.group == group && *pid != group && stat.lives());
        (hold(found.iter().filter(|(_, stat)| stat.group != group)), company)
    });
    found.await.unwrap_or_default()
}

/// Everybody alive who descends from these, without themselves.
pub(super) async fn below(strays: &[Stray]) -> Vec<Stray> {
    let known: Vec<(i32, u64)> = strays.iter().map(|stray| (stray.pid.as_raw_pid(), stray.start)).collect();
    let found = proc::on_the_pool(move || {
        let is_known = |(pid, stat): &(i32, Stat)| known.contains(&(*pid, stat.start));
        let below = proc::below(known.iter().map(|(pid, _)| *pid));
        let found = below.unwrap_or_else(|| search(is_known));
        hold(found.iter().filter(|one| !is_known(one)))
    });
    found.await.unwrap_or_default()
}

/// Never PID 1 or this process, whatever `/proc` says.
fn hold<'a>(found: impl Iterator<Item = &'a (i32, Stat)>) -> Vec<Stray> {
    let own = getpid().as_raw_pid();
    let others = found.filter(|(pid, stat)| *pid > 1 && *pid != own && stat.lives());
    others.filter_map(|(pid, stat)| Stray::held(*pid, stat)).collect()
}

/// These and whoever descends from them, among all processes of the system.
fn search(is_root: impl Fn(&(i32, Stat)) -> bool) -> Vec<(i32, Stat)> {
    let everybody = proc::everybody().unwrap_or_default();
    let mut family: HashSet<i32> = everybody.iter().filter(|one| is_root(one)).map(|(pid, _)| *pid).collect();
    let mut size = 0;
    // A child may have a smaller number than its parent: again, until a round finds nobody new.
    while size != family.len() {
        size = family.len();
        for (pid, stat) in &everybody {
            if family.contains(&stat.parent) {
                family.insert(*pid);
            }
        }
    }
    everybody.into_iter().filter(|(pid, _)| family.contains(pid)).collect()
}
