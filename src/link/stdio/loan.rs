//! A server's stdout, lent to the host's own event loop.
//!
//! A call that is alone goes from the host's thread through the pipe to the server, whose answer wakes the I/O thread,
//! which wakes the host's: three switches of threads, of which the last is all that the answer is waited for. Read on
//! the host's thread itself there are two. That pays for calls that come one after the other and whose answers are not
//! long; of others the I/O thread takes the reading off the host's.

use std::any::Any;
use std::io;
use std::os::fd::OwnedFd;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::runtime::Handle;
use tokio::sync::Notify;

use super::intake::Intake;
use super::read::{Read, outcome};
use super::traffic::Traffic;
use crate::error::McpError;
use crate::link::{Receiver, Source};
use crate::process::pipes::read_now;

/// So many reads in a row without the answer that is waited for, or so many lines in one: the server talks of its own
/// accord, or in small pieces, which are many wakes of this thread for one answer. It bounds what is read in one turn of the loop, too, however fast the server writes.
const UNASKED_MAX: u32 = 8;

/// One loan, from the I/O thread's giving it to its taking it back. Both may look at it, one at a time.
pub(super) struct Loan {
    lent: Mutex<Option<Lent>>,
    /// It is to be taken back.
    over: Notify,
    is_refused: AtomicBool,
    reads: AtomicU64,
    runtime: Handle,
}

/// What is lent. Whoever holds the lock reads; it is never held while JavaScript runs.
struct Lent {
    end: OwnedFd,
    intake: Intake,
    receiver: Arc<dyn Receiver>,
    traffic: Arc<Traffic>,
    answers: u64,
    unasked: u32,
    /// Nothing more is to be read here.
    is_over: bool,
    breach: Option<McpError>,
    panic: Option<Box<dyn Any + Send>>,
}

/// What comes back of a loan. Where a read panicked, taking this panics: the link is gone then, as with any panic of its parts.
pub(super) struct Returned {
    pub(super) end: OwnedFd,
    pub(super) intake: Intake,
    /// How many were read.
    pub(super) answers: u64,
    /// The server broke the protocol.
    pub(super) breach: Option<McpError>,
}

impl Loan {
    /// Within the runtime.
    pub(super) fn new(
        end: OwnedFd,
        intake: Intake,
        receiver: Arc<dyn Receiver>,
        traffic: Arc<Traffic>,
    ) -> Self {
        let lent = Lent {
            end,
            intake,
            receiver,
            traffic,
            answers: 0,
            unasked: 0,
            is_over: false,
            breach: None,
            panic: None,
        };
        Self {
            lent: Mutex::new(Some(lent)),
            over: Notify::new(),
            is_refused: AtomicBool::new(false),
            reads: AtomicU64::new(0),
            runtime: Handle::current(),
        }
    }

    /// Hands up what was read before. Of anything else the lock keeps it away meanwhile.
    pub(super) fn deliver(&self) {
        if let Some(lent) = &mut *self.lock() {
            lent.guarded(|lent| {
                lent.deliver();
                lent.intake.shrink();
            });
            self.look_over(lent);
        }
    }

    /// How often it was read.
    pub(super) fn reads(&self) -> u64 {
        self.reads.load(Ordering::Relaxed)
    }

    /// Reads it on the I/O thread, because the host's may be busy; true while there may be more.
    pub(super) fn has_more(&self) -> bool {
        let mut lent = self.lock();
        let Some(lent) = lent.as_mut().filter(|lent| !lent.is_over) else { return false };
        let mut has_read = false;
        lent.guarded(|lent| has_read = lent.read());
        self.look_over(lent) && has_read
    }

    /// Whether the borrower could not do anything with it.
    pub(super) fn is_refused(&self) -> bool {
        self.is_refused.load(Ordering::Relaxed)
    }

    /// Asks for it to be taken back. From any thread.
    pub(super) fn end(&self) {
        self.over.notify_one();
    }

    /// Waits until it is to be taken back.
    pub(super) async fn ended(&self) {
        self.over.notified().await;
    }

    /// Takes it back, once.
    pub(super) fn take(&self) -> Option<Returned> {
        let Lent { end, intake, answers, breach, panic, .. } = self.lock().take()?;
        if let Some(panic) = panic {
            resume_unwind(panic);
        }
        Some(Returned { end, intake, answers, breach })
    }

    /// Whether it may be read on.
    fn look_over(&self, lent: &Lent) -> bool {
        if lent.is_over {
            self.end();
        }
        !lent.is_over
    }

    fn lock(&self) -> MutexGuard<'_, Option<Lent>> {
        self.lent.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Source for Loan {
    fn descriptor(&self) -> io::Result<OwnedFd> {
        match &*self.lock() {
            Some(lent) => lent.end.try_clone(),
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }

    fn read(&self) -> bool {
        let mut lent = self.lock();
        let Some(lent) = lent.as_mut().filter(|lent| !lent.is_over) else { return false };
        self.reads.fetch_add(1, Ordering::Relaxed);
        // What follows from a message may start a task.
        let _within = self.runtime.enter();
        lent.guarded(|lent| {
            lent.read();
        });
        self.look_over(lent)
    }

    fn refused(&self) {
        self.is_refused.store(true, Ordering::Relaxed);
        self.end();
    }
}

impl Lent {
    /// A panic would go through libuv, which is C.
    fn guarded(&mut self, act: impl FnOnce(&mut Self)) {
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| act(self))) {
            self.panic = Some(panic);
            self.is_over = true;
        }
    }

    /// Reads what is there, up to the end of a line; true if that was anything. A line that comes in pieces is read on
    /// at once: the next has mostly come while the last was looked at, and a turn of the loop costs more than a read.
    fn read(&mut self) -> bool {
        let mut has_read = false;
        while self.read_once() {
            has_read = true;
            if self.is_over || self.intake.is_whole() {
                break;
            }
        }
        has_read
    }

    /// True if something was there. The end of the pipe is left there for the I/O thread to find.
    fn read_once(&mut self) -> bool {
        let before = self.intake.length();
        let space = self.intake.space();
        match outcome(read_now(&self.end, space)) {
            None | Some(Read::Nothing) => return false,
            Some(Read::End) => {
                self.is_over = true;
                return false;
            }
            Some(Read::Some) => {}
        }
        self.traffic.received(self.intake.length() - before, self.intake.length());
        let lines = self.deliver();
        if self.traffic.has_answer() {
            (self.answers, self.unasked) = (self.answers + 1, 0);
        } else {
            self.unasked += 1;
        }
        self.is_over |= self.unasked > UNASKED_MAX
            || lines > UNASKED_MAX
            || !self.traffic.is_sequential()
            || self.intake.is_skipping();
        true
    }

    /// How many lines that were.
    fn deliver(&mut self) -> u32 {
        match self.intake.deliver_here(&*self.receiver) {
            Ok(lines) => u32::try_from(lines).unwrap_or(u32::MAX),
            Err(breach) => {
                self.breach = Some(breach);
                self.is_over = true;
                0
            }
        }
    }
}

#[cfg(test)]
mod tests;
