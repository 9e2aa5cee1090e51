//! The way to a server's stdin: non-blocking, in order, from any thread.
//!
//! A frame is written by the thread that sends it when nothing is queued: a thread hop costs more than the whole write
//! (5-10 us at best, measured), so this is what makes small calls fast. The lock is held for one non-blocking write at a time,
//! which copies at most what the kernel's pipe holds (64 KiB).

use std::collections::VecDeque;
use std::io::ErrorKind;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::net::unix::pipe::Sender;
use tokio::sync::Notify;

use crate::link::{Frame, Sent};

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
    sender: Option<Arc<Sender>>,
    queue: VecDeque<Frame>,
    /// Bytes of the first queued frame that are written.
    written: usize,
    unasked: usize,
    bytes: u64,
}

impl Pipe {
    /// Takes the near end. Must be called on the I/O thread, and [`Pipe::run`] spawned there.
    pub fn new(fd: OwnedFd) -> std::io::Result<Self> {
        let sender = Some(Arc::new(Sender::from_owned_fd(fd)?));
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
