//! Processes of servers: started, watched, ended with all their descendants.
//!
//! - [`command`], [`outcome`] — what to start and what came of it; how it ended
//! - [`error`] — a [`SpawnError`] that explains itself
//! - [`format`] — what a file is that the system refuses to execute
//! - [`handle`] — the shared handle, and the one task behind it that watches, runs the ladder and reaps
//!
//! Each system has its own of these. `windows/` holds those of Windows, with a job in place of the group; the others are here:
//!
//! - [`spawn`] — a command becomes a [`Process`] in its own group and three pipe ends
//! - [`exec`] — the start of a program, of which no other one inherits a pipe
//! - [`pipes`] — the host's ends of the pipes
//! - [`executable`] — what the system makes of a file that it is asked to execute
//! - [`watch`] — how the direct child ends, seen without reaping it
//! - [`ladder`] — end of input, SIGTERM, SIGKILL, and how far it had to climb
//! - [`group`] — everybody the ladder reaches: signalled together, counted without the zombies
//! - [`descendants`] — who left the group: found by their parents, signalled one by one
//! - [`proc`] — what Linux tells of processes
//! - [`guardian`] — the helper that ends the groups when the host dies
//! - [`at_exit`] — what is done at the exit of a host without a guardian
//!
//! Everything here runs on the I/O thread, which never blocks: starting a program suspends its thread until the exec, so
//! it goes to the blocking pool. `tokio::process` serves nothing here: it reaps before the group can be signalled,
//! and shares SIGCHLD with Node.

mod command;
mod error;
mod format;
mod handle;
mod outcome;

#[cfg(unix)]
mod at_exit;
#[cfg(unix)]
mod descendants;
#[cfg(unix)]
mod exec;
#[cfg(unix)]
mod executable;
#[cfg(unix)]
mod group;
#[cfg(unix)]
mod guardian;
#[cfg(unix)]
mod ladder;
#[cfg(unix)]
pub mod pipes;
#[cfg(target_os = "linux")]
mod proc;
#[cfg(unix)]
mod spawn;
#[cfg(unix)]
mod watch;

#[cfg(windows)]
mod windows;
#[cfg(windows)]
pub use windows::pipes;
#[cfg(windows)]
use windows::{executable, guardian, ladder, spawn, watch};

pub use command::{Command, Spawned};
pub use error::{SpawnError, What};
pub use handle::Process;
pub use outcome::{Ended, Exit, Outcome, Waits};
pub use spawn::spawn;
