//! The way to a server's stdin: non-blocking, in order, from any thread.
//!
//! A frame is written by the thread that sends it when nothing is queued (or kept for others of its turn, see
//! [`turn`]): a thread hop costs more than the whole write (5-10 us at best, measured), so this is what makes small
//! calls fast. The lock is held for one non-blocking write at a time, which copies at most what the kernel's pipe holds
//! (64 KiB).

use std::collections::VecDeque;
use std::io::{ErrorKind, IoSlice};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

use super::turn;
use crate::link::{Frame, FrameKind, Sent};
use crate::process::pipes::{self, End, Input};

/// Answers that may wait, and their bytes: a server that asks without reading is not answered further, and it chooses the ids that the
/// answers repeat. Cancellations are not counted: each belongs to a request that the server was sent.
const ANSWERS_MAX: usize = 256;
const ANSWER_BYTES_MAX: usize = 1024 * 1024;

/// So many frames are kept for the end of a [turn]: the server begins with these while the thread that sends goes on.
const KEPT_MAX: usize = 16;

/// A longer frame is not kept.
const KEPT_LENGTH_MAX: usize = 4 * 1024;

/// A frame is not kept longer, however busy the thread that sent it is: about, since timers count whole milliseconds.
const KEPT_FOR: Duration = Duration::from_millis(1);

/// So much is written at an end, where there is room: a server that reads as fast as this writes would keep the thread that ends.
const LAST_MAX: u64 = 1024 * 1024;

/// One pipe. Requests and their cancellation share its queue, so that neither overtakes the other.
pub struct Pipe {
    state: Mutex<State>,
    /// Something was queued, or the input has ended.
    changed: Notify,
}

struct State {
    /// `None` once the input has ended. The descriptor closes with the last clone.
    sender: Option<Arc<Input>>,
    queue: VecDeque<Frame>,
    /// How many frames are kept for the end of a turn, which are then all that is queued.
    kept: usize,
    /// When [`Pipe::run`] looks whether frames are kept too long.
    looks: Option<Instant>,
    /// Bytes of the first queued frame that are written.
    written: usize,
    answers: usize,
    answer_bytes: usize,
    bytes: u64,
    /// The input ended by a write that failed.
    is_broken: bool,
}

impl Pipe {
    /// Takes the near end. Must be called on the I/O thread, and [`Pipe::run`] spawned there.
    pub fn new(end: End) -> std::io::Result<Self> {
        let sender = Some(Arc::new(pipes::input(end)?));
        let state = State {
            sender,
            queue: VecDeque::new(),
            kept: 0,
            looks: None,
            written: 0,
            answers: 0,
            answer_bytes: 0,
            bytes: 0,
            is_broken: false,
        };
        Ok(Self { state: Mutex::new(state), changed: Notify::new() })
    }

    /// Writes a frame, or queues what does not fit, or keeps it for the end of a [turn].
    pub fn send(self: &Arc<Self>, mut frame: Frame) -> Sent {
        frame.text.push('\n');
        let mut state = self.lock();
        if state.sender.is_none() {
            return Sent::Gone;
        }
        if frame.kind == FrameKind::Answer {
            let bytes = state.answer_bytes + frame.text.len();
            if state.answers >= ANSWERS_MAX || bytes > ANSWER_BYTES_MAX {
                return Sent::Taken;
            }
            state.answers += 1;
            state.answer_bytes = bytes;
        }
        let is_behind = state.queue.len() > state.kept;
        let is_kept = !is_behind
            && state.kept + 1 < KEPT_MAX
            && frame.text.len() <= KEPT_LENGTH_MAX
            && turn::is_gathering();
        state.queue.push_back(frame);
        if is_kept {
            self.keep(&mut state);
            return Sent::Taken;
        }
        if is_behind {
            return Sent::Taken;
        }
        self.write(state)
    }

    /// Writes what was kept for the end of a turn, or let go of and is not written yet.
    pub fn flush(&self) {
        let state = self.lock();
        if !state.queue.is_empty() {
            self.write(state);
        }
    }

    /// The same where nobody may come after this one who could write the rest.
    pub fn flush_last(&self) {
        self.lock().write_last();
    }

    fn keep(self: &Arc<Self>, state: &mut State) {
        state.kept += 1;
        if state.kept == 1 {
            turn::keeps(self);
            if state.looks.is_none() {
                state.looks = Some(Instant::now() + KEPT_FOR);
                self.changed.notify_one();
            }
        }
    }

    /// Writes what is queued, on the thread that has just done that; what does not fit is left to the one that runs the pipe.
    fn write(&self, mut state: MutexGuard<'_, State>) -> Sent {
        state.kept = 0;
        // Without the fast way the thread that runs the pipe writes everything.
        let is_written = cfg!(not(feature = "slow-paths")) && state.write();
        let is_gone = state.sender.is_none();
        if !is_written || is_gone {
            self.changed.notify_one();
        }
        if is_gone { Sent::Gone } else { Sent::Taken }
    }

    /// Takes a queued frame back if none of it was written.
    pub fn withdraw(&self, id: u64) -> bool {
        let mut state = self.lock();
        let untouched = usize::from(state.written > 0);
        let position =
            state.queue.iter().skip(untouched).position(|frame| frame.kind == FrameKind::Request(id));
        let is_withdrawn =
            position.is_some_and(|position| state.queue.remove(position + untouched).is_some());
        if is_withdrawn {
            state.kept = state.kept.saturating_sub(1);
        }
        is_withdrawn
    }

    /// Ends the server's input now, whatever is still queued: closing never waits for a write. What was begun before goes out if there
    /// is room for it.
    pub fn end(&self) {
        let mut state = self.lock();
        state.write_last();
        state.clear();
        drop(state);
        self.changed.notify_one();
    }

    /// Bytes written so far.
    pub fn bytes(&self) -> u64 {
        self.lock().bytes
    }

    /// Writes what was queued, until the pipe is ended. True when that was not [`Pipe::end`]: the server reads no more.
    pub async fn run(&self) -> bool {
        loop {
            let (sender, has_queued, looks) = {
                let state = self.lock();
                let Some(sender) = state.sender.clone() else { return state.is_broken };
                (sender, state.queue.len() > state.kept, state.looks)
            };
            tokio::select! {
                () = self.changed.notified() => {}
                // Nobody is left to read what was written, or will be: a call on its way would wait for its timeout.
                () = pipes::unread(&sender) => self.lock().give_up(),
                ready = sender.writable(), if has_queued => {
                    let mut state = self.lock();
                    if ready.is_err() {
                        state.give_up();
                    }
                    state.kept = 0;
                    state.write();
                }
                () = async { if let Some(looks) = looks { sleep_until(looks).await } }, if looks.is_some() => {
                    self.look();
                }
            }
        }
    }

    /// Lets go of what is kept because the thread that sent it is busy: a call must not wait for that.
    fn look(&self) {
        let mut state = self.lock();
        state.looks = None;
        state.kept = 0;
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Writes once; true when the queue is empty or the pipe is gone. Not more than once for one holding of the lock: a server that reads
    /// as fast as this writes would keep the thread that sends a large frame.
    fn write(&mut self) -> bool {
        while let Some(sender) = self.sender.as_ref().filter(|_| !self.queue.is_empty()) {
            match write_now(sender, &self.queue, self.written) {
                Ok(count) => {
                    self.wrote(count);
                    return self.queue.is_empty();
                }
                Err(error) => match error.kind() {
                    ErrorKind::Interrupted => {}
                    ErrorKind::WouldBlock => return false,
                    // EPIPE: nobody reads. That the server is gone is the watcher's to say, with its exit code. Node and Rust ignore
                    // SIGPIPE, so this is an error and not a signal.
                    _ => self.give_up(),
                },
            }
        }
        true
    }

    /// Writes what there is room for, up to [`LAST_MAX`].
    fn write_last(&mut self) {
        let begun = self.bytes;
        let mut before = None;
        while before != Some(self.bytes) && self.bytes - begun < LAST_MAX && !self.queue.is_empty() {
            before = Some(self.bytes);
            self.write();
        }
        self.kept = 0;
    }

    fn wrote(&mut self, count: usize) {
        self.bytes += count as u64;
        self.written += count;
        while let Some(frame) = self.queue.front().filter(|frame| frame.text.len() <= self.written) {
            self.written -= frame.text.len();
            if frame.kind == FrameKind::Answer {
                self.answers -= 1;
                self.answer_bytes -= frame.text.len();
            }
            self.queue.pop_front();
        }
    }

    fn give_up(&mut self) {
        self.is_broken = true;
        self.clear();
    }

    fn clear(&mut self) {
        self.sender = None;
        self.queue.clear();
        self.kept = 0;
        self.written = 0;
        self.answers = 0;
        self.answer_bytes = 0;
    }
}

/// Writes what follows the bytes of the first frame that are written already.
fn write_now(sender: &Input, queue: &VecDeque<Frame>, written: usize) -> std::io::Result<usize> {
    // As a call alone is: the kernel has less to do for one piece.
    if let (1, Some(frame)) = (queue.len(), queue.front()) {
        return sender.try_write(&frame.text.as_bytes()[written..]);
    }
    let mut slices = [IoSlice::new(&[]); KEPT_MAX];
    let mut start = written;
    for (slice, frame) in slices.iter_mut().zip(queue) {
        *slice = IoSlice::new(&frame.text.as_bytes()[start..]);
        start = 0;
    }
    sender.try_write_vectored(&slices[..queue.len().min(KEPT_MAX)])
}

#[cfg(all(test, unix))]
mod tests;
