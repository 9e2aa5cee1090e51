//! A command becomes a process in a job of its own.

use std::io;
use std::os::windows::io::{AsHandle, OwnedHandle};
use std::os::windows::process::CommandExt;
use std::process::{self, Child};

use tokio::task::spawn_blocking;
use windows_sys::Win32::System::Threading::{CREATE_NO_WINDOW, CREATE_SUSPENDED};

use super::guardian::Listing;
use super::job::Job;
use super::pipes::{self, Way};
use super::resume::resume;
use super::watch::Leader;
use crate::process::command::{Command, Spawned};
use crate::process::error::SpawnError;
use crate::process::handle::Process;

/// Starts a command in a job of its own. Whether a guardian is wanted means nothing here: a job needs none.
///
/// A caller that is dropped meanwhile leaves nothing behind: the process is started, and then ended like any other that nobody
/// holds.
pub async fn spawn(command: Command, _guardian: bool) -> Result<Spawned, SpawnError> {
    let asked = command.clone();
    // A task of its own runs to its end whatever becomes of the caller. Dropping its result drops the `Process`.
    let spawned = tokio::spawn(start(command)).await.unwrap_or_else(|lost| Err(lost.into()));
    spawned.map_err(|error| SpawnError::explain(&asked, error))
}

async fn start(command: Command) -> io::Result<Spawned> {
    let (stdin, its_stdin) = pipes::open(Way::ToServer).await?;
    let (stdout, its_stdout) = pipes::open(Way::FromServer).await?;
    let (stderr, its_stderr) = pipes::open(Way::FromServer).await?;
    let born = spawn_blocking(move || bear(&command, [its_stdin, its_stdout, its_stderr]));
    let (child, job) = born.await??;
    // If it fails the job is closed, and that ends the process.
    let leader = Leader::adopt(child, job)?;
    Ok(Spawned { process: Process::supervise(leader, Listing::default()), stdin, stdout, stderr })
}

/// Blocks until the process runs.
///
/// It is suspended until it is in its job, so that it starts nobody outside of it. A host that is killed within these
/// milliseconds leaves it behind, suspended for ever; the standard library offers no way to be born into a job.
///
/// A batch file is started through `cmd.exe` by the standard library, which refuses arguments that cannot be quoted for it.
fn bear(command: &Command, [stdin, stdout, stderr]: [OwnedHandle; 3]) -> io::Result<(Child, Job)> {
    let job = Job::new()?;
    let mut wish = process::Command::new(&command.program);
    wish.args(&command.arguments)
        .env_clear()
        .envs(command.variables.iter().map(|(name, value)| (name, value)))
        .creation_flags(CREATE_SUSPENDED | CREATE_NO_WINDOW)
        .stdin(stdin)
        .stdout(stdout)
        .stderr(stderr);
    if let Some(directory) = &command.directory {
        wish.current_dir(directory);
    }
    let mut child = wish.spawn()?;
    let runs = job.take(child.as_handle()).and_then(|()| resume(&child));
    if let Err(error) = runs {
        // In its job or not.
        let _ = child.kill();
        return Err(error);
    }
    Ok((child, job))
}
