//! Everybody the ladder reaches: the process group that a server leads.

#[cfg(target_os = "linux")]
use std::{fs, time::Duration};

use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};

/// The process group of one number.
///
/// Whose number is it? While the leader is not reaped, ours. Afterwards it stays taken for as long as the group has a
/// member (POSIX, `fork`: a new process ID matches no active process group ID). So after the reaping a signal is sent only
/// right after [`Group::lives`] said yes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Group(Pid);

/// After that the group counts as alive.
#[cfg(target_os = "linux")]
const LONGEST_SCAN: Duration = Duration::from_millis(500);

impl Group {
    pub(super) fn led_by(leader: Pid) -> Self {
        Self(leader)
    }

    /// To every member. ESRCH and EPERM are no failure here: `lives` says what is left.
    pub(super) fn signal(self, signal: Signal) {
        let _ = kill_process_group(self.0, signal);
    }

    /// Whether anybody but zombies is left. Meant for the time after the leader was reaped.
    pub(super) async fn lives(self) -> bool {
        match test_kill_process_group(self.0) {
            Err(Errno::SRCH) => false,
            // What macOS says of a group of zombies. Elsewhere it is a member that changed its user.
            Err(Errno::PERM) if cfg!(target_os = "macos") => false,
            // Where PID 1 does not reap, zombies answer `kill(-pgid, 0)` for ever: look at them.
            _ => !self.members().await.is_empty(),
        }
    }

    /// The pids of the members that are no zombies; the group's own number where the system cannot list them.
    #[cfg_attr(not(target_os = "linux"), expect(clippy::unused_async, reason = "only /proc takes its time"))]
    pub(super) async fn members(self) -> Vec<u32> {
        let number = self.0.as_raw_pid();
        #[cfg(target_os = "linux")]
        {
            // A look at each process of the system, some 10 us each: too long for the I/O thread on a busy machine. The ladder is
            // bounded, so it does not wait for a pool that is busy with programs that take long to start.
            let scan = tokio::task::spawn_blocking(move || members_in_proc(number));
            if let Ok(Ok(Some(members))) = tokio::time::timeout(LONGEST_SCAN, scan).await {
                return members;
            }
        }
        vec![number.unsigned_abs()]
    }
}

/// `None` where there is no `/proc`.
#[cfg(target_os = "linux")]
fn members_in_proc(group: i32) -> Option<Vec<u32>> {
    let mut members = Vec::new();
    let mut readable = false;
    for entry in fs::read_dir("/proc").ok()?.flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else {
            continue;
        };
        // It may have ended since the listing. `comm` need not be UTF-8.
        let Ok(stat) = fs::read(entry.path().join("stat")) else { continue };
        readable = true;
        if Stat::parse(&String::from_utf8_lossy(&stat))
            .is_some_and(|stat| stat.group == group && stat.lives())
        {
            members.push(pid);
        }
    }
    readable.then_some(members)
}

/// The part of `/proc/<pid>/stat` (proc(5)) that tells a member from a zombie.
#[cfg(target_os = "linux")]
struct Stat<'a> {
    state: &'a str,
    group: i32,
    threads: u32,
}

#[cfg(target_os = "linux")]
impl<'a> Stat<'a> {
    fn parse(stat: &'a str) -> Option<Self> {
        // The second field, the name in brackets, may hold spaces and brackets itself.
        let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace();
        let state = fields.next()?;
        let group = fields.nth(1)?.parse().ok()?;
        let threads = fields.nth(14)?.parse().ok()?;
        Some(Self { state, group, threads })
    }

    /// `Z` with more than one thread is a process whose first thread ended before the others: it runs on.
    fn lives(&self) -> bool {
        match self.state {
            "Z" => self.threads > 1,
            "X" | "x" => false,
            _ => true,
        }
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    #![expect(clippy::unwrap_used, reason = "in tests")]

    use super::*;

    /// Taken from a machine: `sleep`, unreaped, and a Python whose main thread called `pthread_exit`.
    const ZOMBIE: &str = "7301 (sleep) Z 7299 7251 3897 0 -1 4227084 131 0 0 0 0 0 0 0 20 0 1 0 87827 0 0";
    const HEADLESS: &str =
        "7254 (a) b (c) Z 7251 7251 3897 0 -1 4227084 2940 6604 20 2 1 2 4 1 20 0 2 0 87776 0 0";

    #[test]
    fn a_zombie_is_dead_but_a_process_that_lost_its_first_thread_lives() {
        let zombie = Stat::parse(ZOMBIE).unwrap();
        assert_eq!((zombie.group, zombie.threads, zombie.lives()), (7251, 1, false));
        let headless = Stat::parse(HEADLESS).unwrap();
        assert_eq!((headless.group, headless.threads, headless.lives()), (7251, 2, true));
    }

    #[test]
    fn this_process_is_a_member_of_its_own_group() {
        let group = rustix::process::getpgrp().as_raw_pid();
        assert!(members_in_proc(group).unwrap().contains(&std::process::id()));
    }
}
