//! A command becomes a process in its own group.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{self, Child, Stdio};

use rustix::process::{Pid, Signal, WaitOptions, kill_process_group, waitpid};
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;

use super::at_exit::Birth;
use super::command::{Command, Spawned};
use super::error::SpawnError;
use super::exec::exec;
use super::guardian::{Guardian, Listing};
use super::handle::Process;
use super::watch::Leader;

/// Starts a command in a process group of its own, told to the guardian if that is wanted.
///
/// A caller that is dropped meanwhile leaves nothing behind: the process is started, and then ended like any other that nobody
/// holds.
pub async fn spawn(command: Command, guardian: bool) -> Result<Spawned, SpawnError> {
    let guardian = guardian.then(Guardian::of_this_host);
    if let Some(guardian) = guardian {
        guardian.begin();
    }
    let asked = command.clone();
    // A task of its own runs to its end whatever becomes of the caller. Dropping its result drops the `Process`.
    tokio::spawn(start(command, guardian))
        .await
        .unwrap_or_else(|lost| Err(SpawnError::explain(&asked, io::Error::other(lost))))
}

/// Starts at a time: one less than the I/O thread's pool has threads. An exec can hang (on a network file system that is gone), and
/// large messages, looks at `/proc` and the guardian need a thread, too.
static STARTS: Semaphore = Semaphore::const_new(3);

async fn start(command: Command, guardian: Option<&'static Guardian>) -> Result<Spawned, SpawnError> {
    let asked = command.clone();
    let explain = move |error| SpawnError::explain(&asked, error);
    // An error would mean that the semaphore was closed, which nobody does.
    let turn = STARTS.acquire().await;
    let newborn = spawn_blocking(move || {
        let explain = |error| SpawnError::explain(&command, error);
        let _birth = Birth::announce().map_err(explain)?;
        let newborn = Newborn::start(&command).map_err(explain)?;
        // At once: a host that dies before the guardian knows the group leaves it to the end of its input.
        let listing = Listing::of(newborn.pid, guardian);
        Ok((newborn, listing))
    });
    let newborn = newborn.await;
    drop(turn);
    let (newborn, listing) = newborn.map_err(|lost| explain(io::Error::other(lost)))??;
    match Leader::adopt(newborn.pid) {
        Ok(leader) => Ok(Spawned {
            process: Process::supervise(leader, listing),
            stdin: newborn.stdin,
            stdout: newborn.stdout,
            stderr: newborn.stderr,
        }),
        Err(error) => {
            let _ = spawn_blocking(move || abandon(newborn.pid, Some(listing))).await;
            Err(explain(error))
        }
    }
}

/// A child that nobody watches yet.
struct Newborn {
    pid: Pid,
    stdin: OwnedFd,
    stdout: OwnedFd,
    stderr: OwnedFd,
}

impl Newborn {
    /// Blocks until the exec. The standard library takes `posix_spawn` for exactly this set of wishes; with `pre_exec` it would fork,
    /// which costs 56 ms instead of 3 ms in a host with 1 GiB resident.
    fn start(command: &Command) -> io::Result<Self> {
        let mut wish = process::Command::new(&command.program);
        wish.args(&command.arguments)
            .env_clear()
            .envs(command.variables.iter().map(|(name, value)| (name, value)))
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        if let Some(directory) = &command.directory {
            wish.current_dir(directory);
        }
        let child = exec(&mut wish)?;
        let pid = Pid::from_child(&child);
        Self::take(pid, child).inspect_err(|_| abandon(pid, None))
    }

    fn take(pid: Pid, child: Child) -> io::Result<Self> {
        let missing = || io::Error::other("a pipe end is missing");
        let stdin = OwnedFd::from(child.stdin.ok_or_else(missing)?);
        let stdout = OwnedFd::from(child.stdout.ok_or_else(missing)?);
        let stderr = OwnedFd::from(child.stderr.ok_or_else(missing)?);
        for end in [&stdin, &stdout, &stderr] {
            rustix::io::ioctl_fionbio(end.as_fd(), true)?;
        }
        Ok(Self { pid, stdin, stdout, stderr })
    }
}

/// Ends a child that cannot be watched. Blocks until it is reaped.
fn abandon(pid: Pid, listing: Option<Listing>) {
    let _ = kill_process_group(pid, Signal::KILL);
    while let Err(rustix::io::Errno::INTR) = waitpid(Some(pid), WaitOptions::empty()) {}
    drop(listing);
}
