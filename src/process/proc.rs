//! What `/proc` of Linux tells of processes, in one reading of `/proc/<pid>/stat` each (proc(5)).

use std::path::Path;
use std::time::Duration;
use std::{fs, process};

use tokio::task::spawn_blocking;
use tokio::time::timeout;

/// After that a reading counts as failed.
const LONGEST_READING: Duration = Duration::from_millis(500);

/// The part of a `stat` file that tells whose child, in whose group, alive or a zombie, and which of several with the same pid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stat {
    pub(super) parent: i32,
    pub(super) group: i32,
    /// In ticks since the start of the system. With the pid it names one process for ever.
    pub(super) start: u64,
    state: u8,
    threads: u32,
}

impl Stat {
    /// `None` when there is no such process, not even a zombie.
    pub(super) fn of(pid: i32) -> Option<Self> {
        // The name of a process need not be UTF-8.
        let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
        Self::parse(&String::from_utf8_lossy(&stat))
    }

    fn parse(stat: &str) -> Option<Self> {
        // The second field, the name in brackets, may hold spaces and brackets itself.
        let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace();
        let state = *fields.next()?.as_bytes().first()?;
        let parent = fields.next()?.parse().ok()?;
        let group = fields.next()?.parse().ok()?;
        let threads = fields.nth(14)?.parse().ok()?;
        Some(Self { parent, group, state, threads, start: fields.nth(1)?.parse().ok()? })
    }

    /// `Z` with more than one thread is a process whose first thread ended before the others: it runs on.
    pub(super) fn lives(&self) -> bool {
        match self.state {
            b'Z' => self.threads > 1,
            b'X' | b'x' => false,
            _ => true,
        }
    }
}

/// Whether `/proc` is there and numbers processes as this one does. In a PID namespace without a `/proc` of its own it is
/// that of the system outside, where our numbers are strangers.
pub(super) fn is_ours() -> bool {
    fs::read_link("/proc/self").is_ok_and(|own| own == Path::new(&process::id().to_string()))
}

/// Every process of the system; `None` where that cannot be told.
pub(super) fn everybody() -> Option<Vec<(i32, Stat)>> {
    if !is_ours() {
        return None;
    }
    let pids =
        fs::read_dir("/proc").ok()?.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    // Whoever ended since the listing is left out.
    Some(pids.filter_map(|pid| Some((pid, Stat::of(pid)?))).collect())
}

/// Whether a living process has no child at all, which is far cheaper to learn than who its descendants are. False also where
/// the kernel does not tell (`CONFIG_PROC_CHILDREN`).
pub(super) fn is_childless(pid: i32) -> bool {
    let Ok(threads) = fs::read_dir(format!("/proc/{pid}/task")) else { return false };
    threads
        .flatten()
        .all(|thread| fs::read(thread.path().join("children")).is_ok_and(|children| children.is_empty()))
}

/// Runs what reads `/proc` on the pool: a look at each process of the system takes some 10 us, too long for the I/O thread on a
/// busy machine. Bounded, because whoever asks must not wait for a pool that is busy with programs that take long to start.
pub(super) async fn on_the_pool<T: Send + 'static>(read: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    timeout(LONGEST_READING, spawn_blocking(read)).await.ok()?.ok()
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "in tests")]

    use super::*;

    /// Taken from a machine: `sleep`, unreaped, and a Python whose main thread called `pthread_exit`.
    const ZOMBIE: &str = "7301 (sleep) Z 7299 7251 3897 0 -1 4227084 131 0 0 0 0 0 0 0 20 0 1 0 87827 0 0";
    const HEADLESS: &str =
        "7254 (a) b (c) Z 7253 7251 3897 0 -1 4227084 2940 6604 20 2 1 2 4 1 20 0 2 0 87776 0 0";

    #[test]
    fn a_zombie_is_dead_but_a_process_that_lost_its_first_thread_lives() {
        let zombie = Stat::parse(ZOMBIE).unwrap();
        assert_eq!(zombie, Stat { parent: 7299, group: 7251, start: 87827, state: b'Z', threads: 1 });
        assert!(!zombie.lives());
        let headless = Stat::parse(HEADLESS).unwrap();
        assert_eq!(headless, Stat { parent: 7253, group: 7251, start: 87776, state: b'Z', threads: 2 });
        assert!(headless.lives());
    }

    #[test]
    fn this_process_is_one_of_everybody() {
        let own = i32::try_from(process::id()).unwrap();
        let everybody = everybody().unwrap();
        let (_, stat) = everybody.iter().find(|(pid, _)| *pid == own).unwrap();
        assert_eq!(stat.group, rustix::process::getpgrp().as_raw_pid());
        assert!(stat.lives());
    }

    #[test]
    fn a_process_is_childless_until_it_has_a_child() {
        let mut parent = process::Command::new("/bin/sh")
            .args(["-c", "read go; sleep 300 & read stop; kill $!"])
            .stdin(process::Stdio::piped())
            .spawn()
            .unwrap();
        let pid = i32::try_from(parent.id()).unwrap();
        assert!(is_childless(pid));
        let mut input = parent.stdin.take().unwrap();
        std::io::Write::write_all(&mut input, b"go\n").unwrap();
        let start = std::time::Instant::now();
        while is_childless(pid) {
            assert!(start.elapsed() < Duration::from_secs(10));
        }
        drop(input);
        parent.wait().unwrap();
        assert!(!is_childless(pid), "of a process that is gone nothing is known");
    }
}
