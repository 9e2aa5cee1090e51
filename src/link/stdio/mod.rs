//! A server as a child process: lines on its stdout, a pipe to its stdin, the tail of its stderr.
//!
//! - [`intake`] — what the server says, from bytes to arrivals
//! - [`lines`], [`oversize`] — bytes in, bounded lines out; whose answer an over-long line was
//! - `ahead`, `pages` — memory for the rest of a long line, asked for before it is used
//! - [`pipe`] — the way out
//! - [`turn`] — what is sent in one turn of an event loop
//! - `reading`, [`read`] — who reads what the server writes, and how a non-blocking pipe is read
//! - [`traffic`] — what went to and fro, and whether calls come one at a time
//! - `lending`, `loan` — stdout lent to the host's own thread, and while that reads it
//! - [`stderr`], [`noise`] — what the server says beside the protocol

mod ahead;
pub mod intake;
#[cfg(unix)]
mod lending;
pub mod lines;
#[cfg(unix)]
mod loan;
pub mod noise;
pub mod oversize;
mod pages;
pub mod pipe;
pub mod read;
mod reading;
pub mod stderr;
pub mod traffic;
pub mod turn;

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::sync::{Notify, OnceCell, watch};

#[cfg(unix)]
use self::lending::Lending;
use self::noise::Noise;
use self::pipe::Pipe;
use self::stderr::{Stderr, telling_line};
use self::traffic::{Noted, Traffic};
use super::{End, Frame, FrameKind, Link, Receiver, STDERR_IN_ERRORS, Sent, run};
use crate::error::{ErrorCode, McpError};
use crate::policy::found::program_of;
use crate::policy::redact::Redactor;
use crate::process::pipes;
use crate::process::{self, Command, Ended, Process, SpawnError, Waits};

/// How long the exit code is waited for after stdout or stdin has ended, and the end of stderr after the exit.
const EXIT_WAIT: Duration = Duration::from_millis(250);
const STDERR_WAIT: Duration = Duration::from_millis(100);

/// What a stdio link is made from.
pub struct Opening {
    /// The server's name, for messages.
    pub server: String,
    pub command: Command,
    pub guardian: bool,
    pub max_message_bytes: usize,
    pub redactor: Redactor,
    /// Somebody wants the lines of stderr.
    pub wants_stderr: bool,
}

/// One server process and the three pipes to it.
pub struct Stdio {
    server: String,
    process: Process,
    pipe: Arc<Pipe>,
    stderr: Stderr,
    noise: Arc<Noise>,
    traffic: Arc<Traffic>,
    #[cfg(unix)]
    lending: Lending,
    /// The server has stopped reading its stdin, which only a write finds out.
    deaf: Notify,
    end: OnceCell<End>,
    /// The server and whoever it left behind are gone.
    over: watch::Sender<bool>,
}

/// Starts the server and everything that reads from it. Must be called on the I/O thread.
pub async fn open(opening: Opening, receiver: Arc<dyn Receiver>) -> Result<Arc<Stdio>, McpError> {
    let spawned =
        process::spawn(opening.command, opening.guardian).await.map_err(|error| not_started(&error))?;
    let stdio = Arc::new(Stdio {
        server: opening.server,
        pipe: Arc::new(Pipe::new(spawned.stdin).map_err(|error| unwatched(&error))?),
        stderr: Stderr::new(opening.redactor.clone()),
        noise: Arc::new(Noise::new(opening.redactor)),
        traffic: Arc::default(),
        #[cfg(unix)]
        lending: Lending::default(),
        deaf: Notify::new(),
        end: OnceCell::new(),
        over: watch::Sender::new(false),
        process: spawned.process,
    });
    let stdout = pipes::output(spawned.stdout).map_err(|error| unwatched(&error))?;
    let mut stderr = pipes::output(spawned.stderr).map_err(|error| unwatched(&error))?;
    let (writer, listener, reader) = (stdio.clone(), stdio.clone(), stdio.clone());
    // Not the link: a guardian whose start hangs would keep that for ever.
    let (process, hears_warnings) = (stdio.process.clone(), receiver.clone());
    tokio::spawn(async move {
        if let Some(warning) = process.guardian_warning().await {
            hears_warnings.warning("WARN_MCP_GUARDIAN", &warning, Vec::new());
        }
    });
    let writing = async move {
        if writer.pipe.run().await {
            writer.deaf.notify_one();
        }
    };
    run(writing, receiver.clone());
    let hears_lines = opening.wants_stderr.then(|| {
        let receiver = receiver.clone();
        move |line| receiver.stderr_line(line)
    });
    let listening = async move {
        listener.stderr.run(&mut stderr, &listener.process, hears_lines).await;
        listener.drain(&mut stderr).await;
    };
    run(listening, receiver.clone());
    let hears_messages: Arc<dyn Receiver> =
        Arc::new(Noted { receiver: receiver.clone(), traffic: stdio.traffic.clone() });
    run(async move { reader.run(stdout, opening.max_message_bytes, hears_messages).await }, receiver);
    Ok(stdio)
}

impl Stdio {
    /// What there is to say of a server that has left, or has closed this pipe.
    fn obituary(&self, pipe: &str) -> McpError {
        let exit = self.process.exit();
        let stderr = self.stderr.tail(STDERR_IN_ERRORS);
        let how = match exit {
            Some(exit) => match (exit.code, exit.signal_name()) {
                (Some(code), _) => format!("exited with code {code}"),
                (None, Some(signal)) => format!("was ended by {signal}"),
                (None, None) => "has left".to_owned(),
            },
            None => format!("closed its {pipe} without exiting"),
        };
        let said = telling_line(&stderr).map(|line| format!("; its stderr says: {line}"));
        McpError::new(
            ErrorCode::Exited,
            format!("The server {} {how}{}.", self.server, said.unwrap_or_default()),
        )
        .with("exitCode", exit.and_then(|exit| exit.code))
        .with("signal", exit.and_then(|exit| exit.signal_name()))
        .with("stderr", stderr)
    }
}

impl Link for Stdio {
    fn send(&self, frame: Frame) -> Sent {
        if let FrameKind::Request(id) = frame.kind
            && !self.traffic.asked(id)
        {
            #[cfg(unix)]
            self.end_loan();
        }
        self.pipe.send(frame)
    }

    fn withdraw(&self, id: u64) -> bool {
        self.pipe.withdraw(id)
    }

    #[cfg(unix)]
    fn catch_up(&self) {
        self.read_loan();
    }

    fn close(&self, waits: Waits) -> Pin<Box<dyn Future<Output = End> + Send + '_>> {
        Box::pin(async move {
            let end = self.end.get_or_init(async || {
                self.process.survey().await;
                self.pipe.end();
                let outcome = self.process.stop(waits).await;
                self.over.send_replace(true);
                // The last words come before the end.
                let _ = tokio::time::timeout(STDERR_WAIT, self.stderr.drained()).await;
                End {
                    exit_code: outcome.exit.and_then(|exit| exit.code),
                    signal: outcome.exit.and_then(|exit| exit.signal_name()),
                    ended: match outcome.ended {
                        Ended::ByItself => "by-itself",
                        Ended::EndOfInput => "end-of-input",
                        Ended::Terminate => "terminate",
                        Ended::Kill => "kill",
                    },
                    survivors: outcome.survivors,
                }
            });
            end.await.clone()
        })
    }

    fn pid(&self) -> Option<u32> {
        Some(self.process.pid())
    }

    fn stderr(&self, limit: usize) -> String {
        self.stderr.tail(limit)
    }

    fn last_words(&self) -> Option<String> {
        telling_line(&self.stderr.tail(STDERR_IN_ERRORS)).map(str::to_owned)
    }

    fn skipped(&self) -> Vec<String> {
        self.noise.samples()
    }

    fn diagnostics(&self) -> Vec<(&'static str, Value)> {
        vec![
            ("bytesSent", self.pipe.bytes().into()),
            ("bytesReceived", self.traffic.total().into()),
            ("stderrBytes", self.stderr.total().into()),
            ("skippedLines", self.noise.count().into()),
            ("skippedLineSamples", self.noise.samples().into()),
        ]
    }
}

fn unwatched(error: &io::Error) -> McpError {
    McpError::new(ErrorCode::Internal, format!("The pipes to the server could not be watched: {error}."))
}

fn not_started(error: &SpawnError) -> McpError {
    let path = error.path.to_string_lossy();
    let is_missing = error.source.kind() == io::ErrorKind::NotFound;
    let shown = if is_missing { program_of(&path) } else { &path };
    McpError::new(ErrorCode::Spawn, format!("{error}.").replace(&*path, shown))
        .with("errno", error.errno)
        .with("path", shown)
        .with("what", error.what.as_str())
}
