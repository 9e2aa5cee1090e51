//! Processes of servers: started, watched, ended with all their descendants.
//!
//! - [`spawn`] — a command becomes a [`Process`] in its own group and three pipe ends, or a [`SpawnError`] that explains itself
//! - [`exec`] — the start of a program, of which no other one inherits a pipe
//! - [`handle`] — the shared handle, and the one task behind it that watches, runs the ladder and reaps
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

mod at_exit;
mod descendants;
mod exec;
mod group;
mod guardian;
mod handle;
mod ladder;
#[cfg(target_os = "linux")]
mod proc;
mod spawn;
mod watch;

pub use handle::Process;
pub use ladder::{Ended, Outcome, Waits};
pub use spawn::{Command, SpawnError, Spawned, What, spawn};
pub use watch::Exit;
