//! What `/proc` of Linux tells of processes (proc(5)).

use std::collections::HashSet;
use std::path::Path;
use std::time::Duration;
use std::{fs, process};

use tokio::task::spawn_blocking;
use tokio::time::timeout;

/// After that a reading counts as failed.
const LONGEST_READING: Duration = Duration::from_millis(500);

/// The end of a chase after descendants that fork as fast as they are looked at.
const MOST_DESCENDANTS: usize = 10_000;

/// The part of a `stat` file that tells whose child, in whose group, alive or a zombie, and which of several with the same pid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stat {
    pub(super) parent: i32,
    pub(super) group: i32,
    /// In ticks since the start of the system. With the pid it names one process for ever.
    pub(super) start: u64,
    pub(super) threads: u32,
    state: u8,
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

/// Everybody who descends from these living processes, without themselves; `None` where the kernel does not list children
/// (`CONFIG_PROC_CHILDREN`).
///
/// Some 5 us for each of their threads, while [`everybody`] takes 10 us for each process of the system. Whoever is started while
/// this reads may be missing, and so may the brother of one that ends (proc(5)).
pub(super) fn below(roots: impl IntoIterator<Item = i32>) -> Option<Vec<(i32, Stat)>> {
    if !is_ours() {
        return None;
    }
    let mut found = Vec::new();
    let mut parents: Vec<i32> = roots.into_iter().collect();
    let mut seen: HashSet<i32> = parents.iter().copied().collect();
    while let Some(parent) = parents.pop() {
        for child in children(parent)? {
            // One that has ended since, and whose number is another's now, has another parent.
            if let Some(stat) = Stat::of(child).filter(|stat| stat.parent == parent)
                && found.len() < MOST_DESCENDANTS
                && seen.insert(child)
            {
                found.push((child, stat));
                parents.push(child);
            }
        }
    }
    Some(found)
}

/// Whether a process is known to have no child. Some 5 us for each of its threads.
pub(super) fn is_childless(pid: i32) -> bool {
    is_ours() && children(pid).is_some_and(|children| children.is_empty())
}

/// `None` where the kernel does not tell; none also of a process that has ended.
fn children(parent: i32) -> Option<Vec<i32>> {
    let Ok(threads) = fs::read_dir(format!("/proc/{parent}/task")) else { return Some(Vec::new()) };
    let mut children = Vec::new();
    for thread in threads.flatten() {
        match fs::read_to_string(thread.path().join("children")) {
            Ok(pids) => {
                children.extend(pids.split_ascii_whitespace().filter_map(|pid| pid.parse::<i32>().ok()));
            }
            // The thread has ended, or the file is not there.
            Err(_) if thread.path().exists() => return None,
            Err(_) => {}
        }
    }
    Some(children)
}

/// Runs what reads much of `/proc` on the pool: a look at each process of the system takes some 10 us, too long for the I/O thread on a
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
    fn those_below_a_process_are_its_children_and_theirs() {
        let mut parent = process::Command::new("/bin/sh")
            .args(["-c", "sh -c 'sleep 300 & read line; kill $!'; true"])
            .stdin(process::Stdio::piped())
            .spawn()
            .unwrap();
        let pid = i32::try_from(parent.id()).unwrap();
        let start = std::time::Instant::now();
        let found = loop {
            let found = below([pid]).unwrap();
            if found.len() >= 2 {
                break found;
            }
            assert!(start.elapsed() < Duration::from_secs(10));
        };
        assert_eq!(found.len(), 2);
        assert_eq!((found[0].1.parent, found[1].1.parent), (pid, found[0].0));
        assert!(!is_childless(pid) && is_childless(found[1].0));
        drop(parent.stdin.take());
        parent.wait().unwrap();
        assert_eq!(below([pid]), Some(vec![]));
    }
}
