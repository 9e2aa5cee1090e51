//! Waits for a descriptor on the JavaScript thread, in its own event loop.
//!
//! A handle lives from one [`Poll::wanted`] to its end and has a duplicate of the descriptor for itself: what others close meanwhile
//! cannot make it wait for a stranger's.

#![expect(unsafe_code, reason = "libuv is C")]

use std::ffi::{c_int, c_void};
use std::os::fd::{AsRawFd, OwnedFd};
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::libuv::{POLL, READABLE};
use super::wake::LoopHandle;
use crate::link::Watch;

/// What becomes of a descriptor that has something to read.
pub(super) struct Next {
    /// It is waited for again.
    pub(super) goes_on: bool,
    /// There is something to deliver.
    pub(super) delivers: bool,
}

/// Called on the JavaScript thread. It calls no JavaScript and does not panic.
pub(super) type Ready = Box<dyn Fn() -> Next + Send + Sync>;

/// Called on the JavaScript thread where libuv does not take the descriptor. It calls no JavaScript and does not panic.
pub(super) type Refused = Box<dyn Fn() + Send + Sync>;

/// One descriptor that is waited for.
pub(super) struct Poll {
    handle: Arc<LoopHandle>,
    ready: Ready,
    refused: Refused,
    /// Until the handle has closed, or none was made.
    descriptor: Mutex<Option<OwnedFd>>,
    is_wanted: AtomicBool,
    /// The handle while it is open. Of the JavaScript thread alone.
    raw: AtomicPtr<c_void>,
}

impl Poll {
    pub(super) fn new(
        handle: Arc<LoopHandle>,
        descriptor: OwnedFd,
        ready: Ready,
        refused: Refused,
    ) -> Arc<Self> {
        Arc::new(Self {
            handle,
            ready,
            refused,
            descriptor: Mutex::new(Some(descriptor)),
            is_wanted: AtomicBool::new(true),
            raw: AtomicPtr::default(),
        })
    }

    /// Opens or closes the handle, as is wanted by now. On the JavaScript thread. True when it is open.
    pub(super) fn follow(self: &Arc<Self>) -> bool {
        let is_open = !self.raw.load(Ordering::Relaxed).is_null();
        match (self.is_wanted.load(Ordering::Acquire), is_open) {
            (true, false) => {
                let is_open = self.open();
                if !is_open {
                    (self.refused)();
                }
                is_open
            }
            (false, true) => {
                self.close();
                false
            }
            (_, is_open) => is_open,
        }
    }

    fn open(self: &Arc<Self>) -> bool {
        let descriptor = self.descriptor.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(number) = descriptor.as_ref().map(AsRawFd::as_raw_fd) else { return false };
        let libuv = self.handle.libuv();
        let raw = libuv.allocate(POLL);
        // SAFETY: memory for such a handle, the loop of this thread, and a descriptor that is open until the handle has closed.
        if unsafe { (libuv.poll_init)(self.handle.uv_loop(), raw, number) } != 0 {
            // SAFETY: the block from above, which libuv did not take.
            unsafe { libuv.free(raw, POLL) };
            return false;
        }
        self.raw.store(raw, Ordering::Relaxed);
        self.handle.opened();
        // SAFETY: `data`, the first member of every handle, is its owner's; it holds one count of ours until `closed`.
        // Not referenced, it keeps no event loop alive.
        let status = unsafe {
            raw.cast::<*const Self>().write(Arc::into_raw(self.clone()));
            (libuv.unreference)(raw);
            (libuv.poll_start)(raw, READABLE, readable)
        };
        if status != 0 {
            self.close();
        }
        status == 0
    }

    /// On the JavaScript thread.
    pub(super) fn close(&self) {
        let raw = self.raw.swap(ptr::null_mut(), Ordering::Relaxed);
        if !raw.is_null() {
            // SAFETY: an open handle on its own thread, which is closed once: nobody finds it any more.
            unsafe { (self.handle.libuv().close)(raw, closed) };
        }
    }
}

/// The polls of one event loop.
#[derive(Default)]
pub(super) struct Polls(Mutex<State>);

#[derive(Default)]
struct State {
    /// Those of which something else is wanted than before.
    changed: Vec<Arc<Poll>>,
    open: Vec<Arc<Poll>>,
    /// The environment is ending.
    is_over: bool,
}

impl Polls {
    pub(super) fn changed(&self, poll: &Arc<Poll>) {
        let mut state = self.lock();
        if !state.is_over {
            state.changed.push(poll.clone());
        }
    }

    /// On the JavaScript thread, as is what follows.
    pub(super) fn follow(&self) {
        let mut state = self.lock();
        for poll in std::mem::take(&mut state.changed) {
            state.open.retain(|open| !Arc::ptr_eq(open, &poll));
            if poll.follow() {
                state.open.push(poll);
            }
        }
    }

    pub(super) fn forget(&self, poll: &Arc<Poll>) {
        self.lock().open.retain(|open| !Arc::ptr_eq(open, poll));
    }

    pub(super) fn end(&self) {
        let mut state = self.lock();
        state.is_over = true;
        state.changed.clear();
        state.open.drain(..).for_each(|poll| poll.close());
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whoever wants a [`Poll`].
pub(super) struct Wanted(pub(super) Arc<Poll>);

impl Watch for Wanted {}

impl Drop for Wanted {
    fn drop(&mut self) {
        // Otherwise it has closed by itself, and nobody need be woken.
        if self.0.is_wanted.swap(false, Ordering::AcqRel) {
            self.0.handle.changed(&self.0);
        }
    }
}

/// Something can be read, or the descriptor will never have anything again, which a read tells.
unsafe extern "C" fn readable(raw: *mut c_void, _status: c_int, _events: c_int) {
    // SAFETY: `data` of the handle, set before it was started; it holds a count until `closed`, after which libuv does not call this. A
    // count of its own, since JavaScript may end the environment meanwhile.
    let poll = unsafe {
        let data = raw.cast::<*const Poll>().read();
        Arc::increment_strong_count(data);
        Arc::from_raw(data)
    };
    let Next { goes_on, delivers } = (poll.ready)();
    if !goes_on {
        poll.is_wanted.store(false, Ordering::Release);
        poll.close();
        poll.handle.forget(&poll);
    }
    if delivers {
        poll.handle.call();
    }
}

/// Frees the handle, and then the descriptor.
unsafe extern "C" fn closed(raw: *mut c_void) {
    // SAFETY: the count that `data` holds, taken back once; after this libuv does not touch the block, which was allocated by `open`.
    let poll = unsafe {
        let poll = Arc::from_raw(raw.cast::<*const Poll>().read());
        poll.handle.libuv().free(raw, POLL);
        poll
    };
    drop(poll.descriptor.lock().unwrap_or_else(PoisonError::into_inner).take());
    poll.handle.closed_one();
}
