//! The one place that starts programs: servers and the guardian.

use std::io;
use std::process::{Child, Command};
#[cfg(target_os = "macos")]
use std::sync::{Mutex, PoisonError};

/// Starts a program. Blocks until the exec.
///
/// macOS has no `pipe2`: between the making of a pipe and its close-on-exec flag no other program of ours may be started, or that one
/// would hold this one's input open (BR-14). The guardian's input is one of those pipes: a server that held it would hide the host's end.
pub(super) fn exec(command: &mut Command) -> io::Result<Child> {
    #[cfg(target_os = "macos")]
    let _one_at_a_time = {
        static STARTING: Mutex<()> = Mutex::new(());
        STARTING.lock().unwrap_or_else(PoisonError::into_inner)
    };
    command.spawn()
}
