//! The way to a server's stdin: non-blocking, in order, from any thread.
//!
//! A frame is written by the thread that sends it when nothing is queued: a thread hop costs more than the whole write
//! (5-10 us at best, measured), so this is what makes small calls fast. The lock is held for one non-blocking write at a time,
//! which copies at most what the kernel's pipe holds (64 KiB).

use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::io::Errno;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
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
    fd: Option<Arc<AsyncFd<OwnedFd>>>,
    queue: VecDeque<Frame>,
    /// Bytes of the first queued frame that are written.
    written: usize,
    unasked: usize,
    bytes: u64,
}

impl Pipe {
    /// Takes a non-blocking descriptor. Must be called on the I/O thread, and [`Pipe::run`] spawned there.
    pub fn new(fd: OwnedFd) -> std::io::Result<Self> {
        let fd = Arc::new(AsyncFd::with_interest(fd, Interest::WRITABLE)?);
        let state = State { fd: Some(fd), queue: VecDeque::new(), written: 0, unasked: 0, bytes: 0 };
        Ok(Self { state: Mutex::new(state), changed: Notify::new() })
    }

    /// Writes a frame, or queues what does not fit.
    pub fn send(&self, mut frame: Frame) -> Sent {
        frame.text.push('\n');
        let mut state = self.lock();
        if state.fd.is_none() {
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
        if state.fd.is_none() { Sent::Gone } else { Sent::Taken }
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
            let Some(fd) = self.lock().fd.clone() else { return };
            tokio::select! {
                () = self.changed.notified() => {}
                ready = fd.writable(), if self.has_queued() => match ready {
                    // The write itself tells whether the kernel's buffer is full; readiness is cleared then.
                    Ok(mut guard) => if !self.lock().write() { guard.clear_ready() },
                    Err(_) => self.end(),
                },
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
        while let (Some(fd), Some(frame)) = (&self.fd, self.queue.front()) {
            match rustix::io::write(fd.get_ref(), &frame.text.as_bytes()[self.written..]) {
                Ok(count) => {
                    self.bytes += count as u64;
                    self.written += count;
                    if self.written == frame.text.len() {
                        self.unasked -= usize::from(frame.id.is_none());
                        self.written = 0;
                        self.queue.pop_front();
                    }
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return false,
                // EPIPE: nobody reads. That the server is gone is the watcher's to say, with its exit code. Node and Rust ignore
                // SIGPIPE, so this is an error and not a signal.
                Err(_) => self.clear(),
            }
        }
        true
    }

    fn clear(&mut self) {
        self.fd = None;
        self.queue.clear();
        self.written = 0;
        self.unasked = 0;
    }
}
