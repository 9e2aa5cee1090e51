//! The way to a server's stdin: non-blocking, in order, from any thread.
//!
//! A frame is written by the thread that sends it when nothing is queued: a thread hop costs more than the whole write
//! (5-10 us at best, measured), so this is what makes small calls fast. The lock is held for one non-blocking write at a time,
//! which copies at most what the kernel's pipe holds (64 KiB).

use std::collections::VecDeque;
use std::io::ErrorKind;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use crate::link::{Frame, Sent};
use crate::process::pipes::{self, End, Input};

/// Frames without an id (answers to pings, notifications) that may wait: a server that asks without reading is not answered further.
const UNASKED_MAX: usize = 256;

/// One pipe. Requests and their cancellation share its queue, so that neither overtakes the other.
pub struct Pipe {
    state: Mutex<State>,
    /// Something was queued, or the pipe was ended.
    changed: Notify,
}

struct State {
    /// `None` once the input has ended. The descriptor closes with the last clone.
    sender: Option<Arc<Input>>,
    queue: VecDeque<Frame>,
    /// Bytes of the first queued frame that are written.
    written: usize,
    unasked: usize,
    bytes: u64,
}

impl Pipe {
    /// Takes the near end. Must be called on the I/O thread, and [`Pipe::run`] spawned there.
    pub fn new(end: End) -> std::io::Result<Self> {
        let sender = Some(Arc::new(pipes::input(end)?));
        let state = State { sender, queue: VecDeque::new(), written: 0, unasked: 0, bytes: 0 };
        Ok(Self { state: Mutex::new(state), changed: Notify::new() })
    }

    /// Writes a frame, or queues what does not fit.
    pub fn send(&self, mut frame: Frame) -> Sent {
        frame.text.push('\n');
        let mut state = self.lock();
        if state.sender.is_none() {
            return Sent::Gone;
        }
        if frame.id.is_none() {
            if state.unasked >= UNASKED_MAX {
                return Sent::Taken;
            }
            state.unasked += 1;
        }
        let was_idle = state.queue.is_empty();
        state.queue.push_back(frame);
        if was_idle && !state.write() {
            self.changed.notify_one();
        }
        if state.sender.is_none() { Sent::Gone } else { Sent::Taken }
    }

    /// Takes a queued frame back if none of it was written.
    pub fn withdraw(&self, id: u64) -> bool {
        let mut state = self.lock();
        let untouched = usize::from(state.written > 0);
        let position = state.queue.iter().skip(untouched).position(|frame| frame.id == Some(id));
        position.is_some_and(|position| state.queue.remove(position + untouched).is_some())
    }

    /// Ends the server's input now, whatever is still queued: closing never waits for a write.
    pub fn end(&self) {
        self.lock().clear();
        self.changed.notify_one();
    }

    /// Bytes written so far.
    pub fn bytes(&self) -> u64 {
        self.lock().bytes
    }

    /// Writes what was queued, until the pipe is ended.
    pub async fn run(&self) {
        loop {
            let Some(sender) = self.lock().sender.clone() else { return };
            tokio::select! {
                () = self.changed.notified() => {}
                ready = sender.writable(), if self.has_queued() => {
                    if ready.is_err() {
                        self.end();
                    }
                    self.lock().write();
                }
            }
        }
    }

    fn has_queued(&self) -> bool {
        !self.lock().queue.is_empty()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Writes as much as goes at once; true when the queue is empty or the pipe is gone.
    fn write(&mut self) -> bool {
        while let (Some(sender), Some(frame)) = (&self.sender, self.queue.front()) {
            match sender.try_write(&frame.text.as_bytes()[self.written..]) {
                Ok(count) => {
                    self.bytes += count as u64;
                    self.written += count;
                    if self.written == frame.text.len() {
                        self.unasked -= usize::from(frame.id.is_none());
                        self.written = 0;
                        self.queue.pop_front();
                    }
                }
                Err(error) => match error.kind() {
                    ErrorKind::Interrupted => {}
                    ErrorKind::WouldBlock => return false,
                    // EPIPE: nobody reads. That the server is gone is the watcher's to say, with its exit code. Node and Rust ignore
                    // SIGPIPE, so this is an error and not a signal.
                    _ => self.clear(),
                },
            }
        }
        true
    }

    fn clear(&mut self) {
        self.sender = None;
        self.queue.clear();
        self.written = 0;
        self.unasked = 0;
    }
}

#[cfg(all(test, unix))]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

    use std::io::Read;
    use std::os::fd::OwnedFd;

    use super::*;

    fn pipe() -> (Arc<Pipe>, std::io::PipeReader) {
        let (reader, writer) = std::io::pipe().unwrap();
        let writer = OwnedFd::from(writer);
        rustix::io::ioctl_fionbio(&writer, true).unwrap();
        let pipe = Arc::new(Pipe::new(writer).unwrap());
        let runs = pipe.clone();
        tokio::spawn(async move { runs.run().await });
        (pipe, reader)
    }

    fn frame(id: u64, length: usize) -> Frame {
        let id_text = id.to_string();
        Frame { id: Some(id), text: format!("{id_text}{}", "x".repeat(length - id_text.len())) }
    }

    async fn read_all(mut reader: std::io::PipeReader) -> String {
        let read = tokio::task::spawn_blocking(move || {
            let mut text = String::new();
            reader.read_to_string(&mut text).unwrap();
            text
        });
        read.await.unwrap()
    }

    async fn until_empty(pipe: &Pipe) {
        while pipe.has_queued() {
            tokio::task::yield_now().await;
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        }
    }

    #[tokio::test]
    async fn frames_arrive_whole_and_in_order_however_full_the_pipe_is() {
        let (pipe, reader) = pipe();
        let read = tokio::spawn(read_all(reader));
        let mut expected = String::new();
        for id in 0..200 {
            let frame = frame(id, 5_000);
            expected.push_str(&frame.text);
            expected.push('\n');
            assert_eq!(pipe.send(frame), Sent::Taken);
        }
        until_empty(&pipe).await;
        pipe.end();
        assert!(read.await.unwrap() == expected, "frames were mixed or lost");
        assert_eq!(pipe.bytes(), expected.len() as u64);
        assert_eq!(pipe.send(frame(1, 5)), Sent::Gone);
    }

    #[tokio::test]
    async fn what_is_not_begun_can_be_taken_back_and_what_is_begun_is_finished() {
        let (pipe, reader) = pipe();
        // Fills the kernel's buffer: nobody reads yet.
        pipe.send(frame(1, 1 << 20));
        pipe.send(frame(2, 10));
        pipe.send(frame(3, 10));
        while pipe.bytes() == 0 {
            tokio::task::yield_now().await;
        }
        assert!(!pipe.withdraw(1), "partly written");
        assert!(pipe.withdraw(2));
        assert!(!pipe.withdraw(2), "gone already");
        let read = tokio::spawn(read_all(reader));
        until_empty(&pipe).await;
        pipe.end();
        let text = read.await.unwrap();
        let lines: Vec<_> = text.lines().map(|line| (&line[..1], line.len())).collect();
        assert_eq!(lines, [("1", 1 << 20), ("3", 10)]);
    }

    #[tokio::test]
    async fn ending_waits_for_no_write_and_closes_the_input() {
        let (pipe, reader) = pipe();
        pipe.send(frame(1, 1 << 20));
        pipe.end();
        assert_eq!(pipe.send(frame(2, 10)), Sent::Gone);
        assert!(read_all(reader).await.len() < 1 << 20);
    }

    #[tokio::test]
    async fn answers_to_a_server_that_does_not_read_are_bounded() {
        let (pipe, _reader) = pipe();
        pipe.send(frame(1, 1 << 20));
        for _ in 0..10_000 {
            pipe.send(Frame { id: None, text: "pong".into() });
        }
        assert!(pipe.lock().queue.len() <= UNASKED_MAX + 1);
    }

    #[tokio::test]
    async fn a_reader_that_is_gone_is_no_signal_and_no_error_here() {
        let (pipe, reader) = pipe();
        drop(reader);
        while pipe.send(frame(1, 10)) == Sent::Taken {
            tokio::task::yield_now().await;
        }
    }
}
