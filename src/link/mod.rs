//! What carries messages between a session and its server, and says when it is gone.
//!
//! - [`envelope`] — one message: its id, method, result or error, by reference
//! - [`outline`], [`result_text`] — a long line, read while it comes; a result that stays where it came
//! - [`fields`] — the members of a JSON object, without decoding their values
//! - [`stdio`] — a child process: lines in, a pipe out, the tail of stderr
//! - [`http`] — a server behind a URL: streamable HTTP

pub mod envelope;
pub mod fields;
pub mod http;
pub mod outline;
pub mod result_text;
pub mod stdio;

use std::fmt;
use std::future::Future;
#[cfg(unix)]
use std::io;
#[cfg(unix)]
use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::sync::Arc;

use serde_json::Value;

use crate::error::{ErrorCode, McpError};
use crate::process::Waits;
use envelope::Message;

/// How much of a server's stderr goes into an error: each of a thousand pending calls gets its own copy.
pub const STDERR_IN_ERRORS: usize = 4 * 1024;

/// Larger texts are scanned on the pool: on the I/O thread they would hold up every other session (about 1 ms a MiB).
pub const POOL_FROM: usize = 1024 * 1024;

/// One message on its way out.
pub struct Frame {
    pub kind: FrameKind,
    /// JSON without a newline.
    pub text: String,
}

impl fmt::Debug for Frame {
    /// Without the text: arguments may be secret.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Frame {{ {:?}, {} bytes }}", self.kind, self.text.len())
    }
}

/// What a frame is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FrameKind {
    /// With its id: what [`Link::withdraw`] looks for.
    Request(u64),
    Notification,
    /// To a request of the server: the server decides how many there are and how long, so a link may drop them.
    Answer,
}

/// Whether a link took a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sent {
    Taken,
    /// The way out is gone; [`Arrival::Gone`] follows or has come.
    Gone,
}

/// The near end of a connection to one server. Every method may be called from any thread and returns at once.
pub trait Link: Send + Sync + 'static {
    /// Sends or queues one frame; frames go out in the order of the calls.
    fn send(&self, frame: Frame) -> Sent;

    /// Takes back a request of which nothing was written yet; false when it is too late.
    fn withdraw(&self, id: u64) -> bool;

    /// Hands up what has arrived and waits for a busy thread of the host to read it. On the I/O thread.
    fn catch_up(&self) {}

    /// Ends the connection and everything behind it. Idempotent: every caller gets the same end. The future must be
    /// polled on the I/O thread.
    fn close(&self, waits: Waits) -> Pin<Box<dyn Future<Output = End> + Send + '_>>;

    /// The server's process, where there is one.
    fn pid(&self) -> Option<u32> {
        None
    }

    /// The last `limit` bytes of what the server wrote beside the protocol, redacted. What has no stderr has none of it.
    fn stderr(&self, _limit: usize) -> String {
        String::new()
    }

    /// The one line of it that says the most, for a message of one sentence.
    fn last_words(&self) -> Option<String> {
        None
    }

    /// The first lines that were no messages, redacted: why a handshake hangs (BR-33).
    fn skipped(&self) -> Vec<String> {
        Vec::new()
    }

    /// Counters and bounded samples, as `diagnostics()` shows them.
    fn diagnostics(&self) -> Vec<(&'static str, Value)>;
}

/// Who hears what a link carries: the session. Called on the I/O thread, or on that of its
/// [`host_loop`](Receiver::host_loop), one arrival after the other; must not block.
pub trait Receiver: Send + Sync + 'static {
    fn arrived(&self, arrival: Arrival);
    /// One line of stderr, redacted; only asked for when somebody listens.
    fn stderr_line(&self, line: String);
    /// Something worth knowing that is no error.
    fn warning(&self, code: &'static str, message: &str, details: Vec<(&'static str, Value)>);

    /// The event loop to which all this goes in the end, where that can read what a link reads. Then messages may
    /// arrive on its thread, too, still one after the other.
    fn host_loop(&self) -> Option<Arc<dyn HostLoop>> {
        None
    }
}

/// An event loop of the host: that of one of the threads that JavaScript runs on.
pub trait HostLoop: Send + Sync + 'static {
    /// Reads from the source on that thread whenever it has something, until it says that it is over, or what this gives is dropped. From
    /// any thread. `None` where that cannot be done.
    fn watch(&self, source: Arc<dyn Source>) -> Option<Box<dyn Watch>>;
}

/// Dropped, it ends the watching, soon.
pub trait Watch: Send {}

/// What a [`HostLoop`] reads from.
pub trait Source: Send + Sync + 'static {
    /// A duplicate of the descriptor to wait for: the number of one that was closed may be somebody else's.
    #[cfg(unix)]
    fn descriptor(&self) -> io::Result<OwnedFd>;

    /// Reads once, and hands up what came. False when there is nothing to be read here any more.
    fn read(&self) -> bool;

    /// It will not be read: the loop does not take its descriptor.
    fn refused(&self);
}

/// Runs a part of a link on the I/O thread. Should it panic, which is a fault of ours, the link is gone: nobody must wait for what it would
/// have brought (BR-85).
fn run(part: impl Future<Output = ()> + Send + 'static, receiver: Arc<dyn Receiver>) {
    let part = tokio::spawn(part);
    tokio::spawn(async move {
        if part.await.is_err_and(|error| error.is_panic()) {
            receiver.arrived(Arrival::Gone(Gone { error: fault(), protocol_error: true }));
        }
    });
}

fn fault() -> McpError {
    McpError::new(ErrorCode::Internal, "The connection broke by a fault in workflow-mcp; please report this.")
}

/// What a link hands up.
#[derive(Debug)]
pub enum Arrival {
    Message(Message),
    /// A message over the limit went by; the id it answers is all that was kept.
    TooLarge {
        id: String,
        limit: usize,
    },
    /// One request failed on the way, and nothing else with it.
    Failed {
        id: u64,
        error: McpError,
    },
    /// A call was refused, and did not run, because its headers do not say what the tool's schema wants in them; after a new list of
    /// tools they may.
    Outdated {
        id: u64,
        frame: Frame,
        error: McpError,
    },
    /// Nothing comes after this.
    Gone(Gone),
}

/// Why a link is gone, other than by [`Link::close`].
#[derive(Debug, Clone)]
pub struct Gone {
    /// What pending calls reject with.
    pub error: McpError,
    /// The server broke the protocol, as opposed to having left.
    pub protocol_error: bool,
}

/// How a link ended: the fields of `McpCloseInfo` that a link knows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct End {
    pub exit_code: Option<i32>,
    pub signal: Option<&'static str>,
    /// What it took: `by-itself`, `end-of-input`, `terminate`, `kill`.
    pub ended: &'static str,
    pub survivors: Vec<u32>,
}
