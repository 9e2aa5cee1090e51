//! What to start, and what comes of it.

use std::path::PathBuf;

use super::handle::Process;
use super::pipes::End;

/// What to start. Never through a shell.
#[derive(Clone)]
pub struct Command {
    /// Absolute.
    pub program: PathBuf,
    pub arguments: Vec<String>,
    /// `None`: the host's own.
    pub directory: Option<PathBuf>,
    /// The whole environment; nothing of the host's is added.
    pub variables: Vec<(String, String)>,
}

/// A started server. Its pipe ends are non-blocking and close-on-exec.
#[derive(Debug)]
pub struct Spawned {
    pub process: Process,
    pub stdin: End,
    pub stdout: End,
    pub stderr: End,
}
