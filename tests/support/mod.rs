//! What the process tests see of the system: processes by pid and start time, and lines from a pipe.

use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use std::{fs, io};

use tokio::net::unix::pipe::Receiver;
use workflow_mcp::process::{Command, Spawned, Waits, spawn};

/// Long enough for a loaded machine; a test that needs it has failed.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);

/// A server from a shell script, with nothing but a PATH. Its stderr leads nowhere: dash remarks there on every child that a
/// signal ended, and would die of SIGPIPE in a test that dropped the reading end.
pub(crate) fn sh(script: &str) -> Command {
    Command {
        program: PathBuf::from("/bin/sh"),
        arguments: vec!["-c".into(), format!("exec 2>/dev/null\n{script}")],
        directory: None,
        variables: vec![("PATH".into(), std::env::var("PATH").unwrap())],
    }
}

pub(crate) async fn started(command: Command) -> Spawned {
    spawn(command, false).await.unwrap()
}

pub(crate) fn waits(end_of_input: u64, terminate: u64) -> Waits {
    Waits { end_of_input: Duration::from_millis(end_of_input), terminate: Duration::from_millis(terminate) }
}

/// One process, told from a later one of the same number by its start time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) pid: u32,
    start: u64,
}

impl Seen {
    /// The process of this number, if it is there and no zombie.
    pub(crate) fn alive(pid: u32) -> Option<Self> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let fields: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_ascii_whitespace().collect();
        (fields[0] != "Z").then(|| Self { pid, start: fields[19].parse().unwrap() })
    }

    pub(crate) fn lives(self) -> bool {
        Self::alive(self.pid) == Some(self)
    }

    /// Waits until it is gone; false when it still lives after [`PATIENCE`].
    pub(crate) async fn gone(self) -> bool {
        let start = Instant::now();
        while self.lives() {
            if start.elapsed() > PATIENCE {
                return false;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        true
    }
}

/// The lines that a server writes.
pub(crate) struct Lines {
    pipe: Receiver,
    read: Vec<u8>,
}

impl Lines {
    pub(crate) fn of(pipe: OwnedFd) -> Self {
        Self { pipe: Receiver::from_owned_fd(pipe).unwrap(), read: Vec::new() }
    }

    /// The next line, `None` at the end.
    pub(crate) async fn next(&mut self) -> Option<String> {
        loop {
            if let Some(end) = self.read.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.read.drain(..=end).collect();
                return Some(String::from_utf8(line).unwrap().trim_end().to_owned());
            }
            let ready = tokio::time::timeout(PATIENCE, self.pipe.readable()).await;
            ready.expect("the server wrote nothing").unwrap();
            let mut chunk = [0; 4096];
            match self.pipe.try_read(&mut chunk) {
                Ok(0) => return None,
                Ok(length) => self.read.extend_from_slice(&chunk[..length]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => panic!("{error}"),
            }
        }
    }

    /// The process whose pid is on the next line.
    pub(crate) async fn process(&mut self) -> Seen {
        let line = self.next().await.unwrap();
        Seen::alive(line.parse().unwrap()).unwrap()
    }

    /// All lines up to the end.
    pub(crate) async fn rest(&mut self) -> Vec<String> {
        let mut lines = Vec::new();
        while let Some(line) = self.next().await {
            lines.push(line);
        }
        lines
    }
}

/// Everybody in a process group who is no zombie.
pub(crate) fn members_of(group: u32) -> Vec<Seen> {
    let mut members = Vec::new();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let stat = fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        let Some((head, tail)) = stat.rsplit_once(')') else { continue };
        if tail.split_ascii_whitespace().nth(2) == Some(group.to_string().as_str()) {
            let pid = head.split_once(' ').unwrap().0.parse().unwrap();
            members.extend(Seen::alive(pid));
        }
    }
    members
}

/// Waits until the number is free: no process, no zombie.
pub(crate) async fn reaped(pid: u32) -> bool {
    let start = Instant::now();
    while fs::exists(format!("/proc/{pid}")).unwrap() {
        if start.elapsed() > PATIENCE {
            return false;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    true
}
