//! What a server writes to its stdout, from bytes to arrivals: wherever the reads were cut, whatever the bytes are.

use std::sync::Arc;

use super::lines::{Chunk, Lines};
use super::noise::Noise;
use crate::error::{ErrorCode, McpError};
use crate::link::envelope::{self, Message};
use crate::link::outline::Outline;
use crate::link::{Arrival, POOL_FROM, Receiver};

/// A line that came whole.
enum WholeLine {
    Short(Vec<u8>),
    Long(Vec<u8>, Box<Outline>),
}

pub struct Intake {
    server: String,
    limit: usize,
    lines: Lines,
    noise: Arc<Noise>,
}

impl Intake {
    /// Messages of at most `limit` bytes; what is no message goes to `noise`.
    #[must_use]
    pub fn new(server: String, limit: usize, noise: Arc<Noise>) -> Self {
        Self { server, limit, lines: Lines::new(limit), noise }
    }

    /// Where the next bytes are to be appended, with room reserved.
    pub fn space(&mut self) -> &mut Vec<u8> {
        self.lines.space()
    }

    /// Bytes that were not delivered yet.
    #[must_use]
    pub fn length(&self) -> usize {
        self.lines.length()
    }

    /// Whether nothing is held but whole lines.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.lines.is_whole()
    }

    /// Whether a line over the limit is going by.
    #[must_use]
    pub fn is_skipping(&self) -> bool {
        self.lines.is_skipping()
    }

    /// Gives back what room large lines have taken. Only where nothing is held.
    pub fn shrink(&mut self) {
        self.lines.shrink();
    }

    /// Hands up what is whole. An error is the server's breach of the protocol; nothing more is to be read then.
    pub async fn deliver(&mut self, receiver: &dyn Receiver) -> Result<(), McpError> {
        while let Some(line) = self.next_line(receiver)? {
            match line {
                WholeLine::Short(line) => self.take_in(envelope::parse_owned(line), receiver),
                WholeLine::Long(line, outline) => self.long(line, *outline, receiver).await,
            }
        }
        Ok(())
    }

    /// The same on a thread that does not wait for the pool, for what is not long; how many lines that were.
    pub fn deliver_here(&mut self, receiver: &dyn Receiver) -> Result<usize, McpError> {
        let mut count = 0;
        while let Some(line) = self.next_line(receiver)? {
            let messages = match line {
                WholeLine::Short(line) => envelope::parse_owned(line),
                WholeLine::Long(line, outline) => envelope::parse_outlined(line, *outline),
            };
            self.take_in(messages, receiver);
            count += 1;
        }
        Ok(count)
    }

    /// The next line to be read; what over-long ones answer is handed up meanwhile.
    fn next_line(&mut self, receiver: &dyn Receiver) -> Result<Option<WholeLine>, McpError> {
        while let Some(chunk) = self.lines.next_chunk() {
            match chunk {
                Chunk::Line(line) => return Ok(Some(WholeLine::Short(line))),
                Chunk::Long(line, outline) => return Ok(Some(WholeLine::Long(line, outline))),
                Chunk::TooLarge { id: Some(id) } => {
                    receiver.arrived(Arrival::TooLarge { id, limit: self.limit });
                }
                Chunk::TooLarge { id: None } => {
                    return Err(self.too_large("answers no call that could be told"));
                }
            }
        }
        if self.lines.is_endless() {
            return Err(self.too_large("had no end after four times of it"));
        }
        Ok(None)
    }

    /// Hands up an unterminated last line, after the end of the input.
    pub async fn finish(&mut self, receiver: &dyn Receiver) {
        if let Some(rest) = self.lines.rest() {
            self.long(rest, Outline::default(), receiver).await;
        }
    }

    /// One line, on the pool where there is much left to do.
    async fn long(&self, line: Vec<u8>, outline: Outline, receiver: &dyn Receiver) {
        let messages = if line.len() > POOL_FROM && !outline.is_plain() {
            match tokio::task::spawn_blocking(|| envelope::parse_outlined(line, outline)).await {
                Ok(messages) => messages,
                // Ends the link, which settles the call that the message may have answered.
                Err(lost) if lost.is_panic() => std::panic::resume_unwind(lost.into_panic()),
                Err(_) => return,
            }
        } else {
            envelope::parse_outlined(line, outline)
        };
        self.take_in(messages, receiver);
    }

    fn take_in(&self, messages: Result<Vec<Message>, String>, receiver: &dyn Receiver) {
        match messages {
            Ok(messages) => {
                for message in messages {
                    receiver.arrived(Arrival::Message(message));
                }
            }
            Err(noise) => self.heard_noise(&noise, receiver),
        }
    }

    fn heard_noise(&self, line: &str, receiver: &dyn Receiver) {
        if line.trim_matches(envelope::is_json_space).is_empty() {
            return;
        }
        if self.noise.heard(line) {
            let message = "The server printed a line on stdout that is no MCP message; it was skipped. Servers log to stderr.";
            receiver.warning(
                "WARN_MCP_STDOUT_NOISE",
                message,
                vec![("samples", self.noise.samples().into())],
            );
        }
    }

    fn too_large(&self, why: &str) -> McpError {
        let Self { server, limit, .. } = self;
        let message = format!(
            "The server {server} sent a message over the limit of {limit} bytes that {why}; raise maxMessageBytes if it is legitimate."
        );
        McpError::new(ErrorCode::MessageTooLarge, message).with("limit", *limit)
    }
}
