//! What the stop ladder is asked, and what it tells.

use std::time::Duration;

/// How long each rung waits before the next.
#[derive(Debug, Clone, Copy)]
pub struct Waits {
    /// After the end of the server's input, before SIGTERM.
    pub end_of_input: Duration,
    /// After SIGTERM, before SIGKILL. On Windows, which has no SIGTERM, what a job gets after its leader left or after
    /// `end_of_input`, before it is ended.
    pub terminate: Duration,
}

/// How a server ended, together with everybody in its group and whoever left it and was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// The direct child's; `None` if even SIGKILL did not end it in time.
    pub exit: Option<Exit>,
    /// What it took for all of them.
    pub ended: Ended,
    /// The pids that SIGKILL did not end within 2 s: waiting in the kernel, or of another user.
    pub survivors: Vec<u32>,
}

/// The highest rung that was needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Ended {
    /// The server had left before it was asked to, and left nobody behind.
    ByItself,
    EndOfInput,
    /// Never on Windows.
    Terminate,
    Kill,
}

/// How a process ended: a code or a signal, or neither where the host took the status before us.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Exit {
    pub code: Option<i32>,
    /// Never on Windows.
    pub signal: Option<i32>,
}
