//! Wakes the JavaScript thread of one environment from any other.
//!
//! A threadsafe function of Node-API holds its lock while it wakes the thread, which by then runs on another core and
//! waits for that lock: more than every other call cost two more switches of threads (measured: 1.6 waits a call
//! instead of 1). libuv's own handle, on which it is built, has no lock, so that is used where the host has it;
//! elsewhere the threadsafe function is.

#![expect(unsafe_code, reason = "libuv is C, and napi-rs has no safe form of ref/unref without &mut")]

use std::ffi::c_void;
#[cfg(unix)]
use std::os::fd::OwnedFd;
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use napi::bindgen_prelude::{Function, JsValue, Unknown, check_status};
use napi::threadsafe_function::{ThreadsafeFunction, ThreadsafeFunctionCallMode};
use napi::{Env, Status, sys};

use super::batch::Batch;
use super::holds::Holds;
use super::libuv::{ASYNC, Libuv};
#[cfg(unix)]
use super::poll::{Poll, Polls, Ready, Refused, Wanted};
use crate::link::stdio::turn;

type Wakeable<'a> = Function<'a, (), Unknown<'static>>;

/// Gives what there is to deliver. On the JavaScript thread.
pub type Take = Box<dyn Fn() -> Batch + Send + Sync>;

/// Calls one JavaScript function soon, however often it is asked to before it does. It does not keep the event loop alive unless it is
/// [held](Wake::hold).
pub enum Wake {
    /// With what there is to deliver for arguments.
    Loop(Arc<LoopHandle>),
    /// Without arguments.
    Function(ThreadsafeFunction<(), Unknown<'static>, (), Status, false, true>),
}

impl Wake {
    /// On the JavaScript thread. `engine_is_node`: other engines export libuv's names, and abort when they are called.
    pub fn new(
        env: &Env,
        function: &Wakeable<'_>,
        holds: &Unknown<'_>,
        engine_is_node: bool,
        take: Take,
    ) -> napi::Result<Self> {
        // What its last turn began, for an environment that ends by itself, as that of a Worker does; `process.exit` runs no hook of the
        // main one: see `turn`.
        env.add_env_cleanup_hook((), |()| turn::end())?;
        if let Some(libuv) = Libuv::known().filter(|_| engine_is_node) {
            return LoopHandle::open(env, function, holds, libuv, take).map(Self::Loop);
        }
        let function = function
            .build_threadsafe_function::<()>()
            .callee_handled::<false>()
            .weak::<true>()
            .build_callback(|_| Ok(()))?;
        Ok(Self::Function(function))
    }

    /// From any thread. Does nothing when the environment is ending: then nobody is there to hear.
    pub fn call(&self) {
        match self {
            Self::Loop(handle) => handle.send(),
            Self::Function(function) => {
                function.call((), ThreadsafeFunctionCallMode::NonBlocking);
            }
        }
    }

    /// Calls `ready` on the JavaScript thread whenever the descriptor has something to read, until it says otherwise or
    /// what this gives is dropped; or `refused`, once, where the loop does not take it. It keeps no event loop alive.
    /// `None` without the loop's own handles.
    #[cfg(unix)]
    pub(super) fn poll(&self, descriptor: OwnedFd, ready: Ready, refused: Refused) -> Option<Wanted> {
        match self {
            Self::Loop(handle) => Some(handle.poll(descriptor, ready, refused)),
            Self::Function(_) => None,
        }
    }

    /// Keeps the event loop alive until [`Wake::release`], however often it was asked to. On the JavaScript thread.
    pub fn hold(&self, env: &Env) {
        match self {
            // SAFETY: a handle that is open, on its own thread.
            Self::Loop(handle) => handle.with(|libuv, raw| unsafe { (libuv.reference)(raw) }),
            // SAFETY: called by JavaScript on the thread of `env`, whose threadsafe function this is. It is finalized
            // when self is dropped or the environment ends, and from then on no JavaScript calls.
            Self::Function(function) => unsafe {
                sys::napi_ref_threadsafe_function(env.raw(), function.raw());
            },
        }
    }

    /// Undoes [`Wake::hold`]. On the JavaScript thread.
    pub fn release(&self, env: &Env) {
        match self {
            // SAFETY: as in `hold`.
            Self::Loop(handle) => handle.with(|libuv, raw| unsafe { (libuv.unreference)(raw) }),
            // SAFETY: as in `hold`.
            Self::Function(function) => unsafe {
                sys::napi_unref_threadsafe_function(env.raw(), function.raw());
            },
        }
    }
}

/// A handle of libuv. It lives until its environment ends.
pub struct LoopHandle {
    libuv: &'static Libuv,
    /// Null once the handle is being closed, which its own thread alone does.
    raw: AtomicPtr<c_void>,
    /// Held by other threads while they use `raw`, and by the handle's own thread only when it closes it.
    sending: Mutex<()>,
    env: sys::napi_env,
    #[cfg(unix)]
    uv_loop: *mut c_void,
    /// The function that is called, with what is taken.
    function: sys::napi_ref,
    take: Take,
    holds: Holds,
    /// What this thread waits for beside it.
    #[cfg(unix)]
    polls: Polls,
    /// Handles of libuv that are not closed yet.
    handles: AtomicUsize,
    /// What the environment waits for before it ends.
    hook: AtomicPtr<sys::napi_async_cleanup_hook_handle__>,
}

// SAFETY: `env`, `uv_loop` and `function` are used on the JavaScript thread alone: by what libuv calls, which runs there.
unsafe impl Send for LoopHandle {}
// SAFETY: as above; `raw` and `sending` may be used from any thread.
unsafe impl Sync for LoopHandle {}

impl LoopHandle {
    fn open(
        env: &Env,
        function: &Wakeable<'_>,
        holds: &Unknown<'_>,
        libuv: &'static Libuv,
        take: Take,
    ) -> napi::Result<Arc<Self>> {
        let holds = Holds::of(env, holds)?;
        let env = env.raw();
        let (mut uv_loop, mut reference) = (ptr::null_mut(), ptr::null_mut());
        // SAFETY: JavaScript calls this on the thread of `env`; the function is a value of it, and the others are places for results.
        unsafe {
            check_status!(sys::napi_get_uv_event_loop(env, &raw mut uv_loop))?;
            check_status!(sys::napi_create_reference(env, function.value().value, 1, &raw mut reference))?;
        }
        let raw = libuv.allocate(ASYNC);
        // SAFETY: `raw` is as long as libuv says and aligned for anything, and `uv_loop` is the loop of this thread.
        if unsafe { (libuv.async_init)(uv_loop.cast(), raw, woken) } != 0 {
            // SAFETY: the block from above, which libuv did not take.
            unsafe { libuv.free(raw, ASYNC) };
            return Err(napi::Error::from_reason("the event loop takes no handle any more"));
        }
        let handle = Arc::new(Self {
            libuv,
            raw: AtomicPtr::new(raw),
            sending: Mutex::default(),
            env,
            #[cfg(unix)]
            uv_loop: uv_loop.cast(),
            function: reference,
            take,
            holds,
            #[cfg(unix)]
            polls: Polls::default(),
            handles: AtomicUsize::new(1),
            hook: AtomicPtr::default(),
        });
        let mut hook = ptr::null_mut();
        // SAFETY: `data`, the first member of every handle, is its owner's; it holds one count of ours until `closed`.
        // The hook is called once, on this thread, before its loop ends.
        unsafe {
            raw.cast::<*const Self>().write(Arc::into_raw(handle.clone()));
            (libuv.unreference)(raw);
            check_status!(sys::napi_add_async_cleanup_hook(env, Some(end), raw, &raw mut hook))?;
        }
        handle.hook.store(hook, Ordering::Relaxed);
        Ok(handle)
    }

    fn send(&self) {
        let _sending = self.sending.lock().unwrap_or_else(PoisonError::into_inner);
        self.with(|libuv, raw| {
            // SAFETY: `end` cannot close the handle meanwhile, since it takes the lock for that; sending is allowed from any thread.
            unsafe { (libuv.async_send)(raw) };
        });
    }

    /// Calls the function if there is something to deliver: on the JavaScript thread, from its event loop.
    pub(super) fn call(&self) {
        let batch = (self.take)();
        if batch.deliveries.is_empty() {
            return;
        }
        self.holds.begin();
        self.deliver(batch);
        if self.holds.see_to() {
            // SAFETY: a handle that is open, on its own thread.
            self.with(|libuv, raw| unsafe { (libuv.unreference)(raw) });
        }
    }

    /// Returns when everything that follows from it at once has run, too: what waits for the promises that it settles.
    fn deliver(&self, batch: Batch) {
        let env = self.env;
        let (mut scope, mut function, mut resource, mut result) =
            (ptr::null_mut(), ptr::null_mut(), ptr::null_mut(), ptr::null_mut());
        // SAFETY: the environment is alive, since its end closes the handles first, and this is its thread. What these calls make of an
        // environment that is ending is an error and not a call.
        unsafe {
            if sys::napi_open_handle_scope(env, &raw mut scope) != sys::Status::napi_ok {
                return;
            }
            if let Ok(arguments) = batch.into_arguments(env)
                && sys::napi_get_reference_value(env, self.function, &raw mut function) == sys::Status::napi_ok
                // Without an async context the receiver is also the async resource, on which AsyncLocalStorage keeps
                // what a host's callback enters: one of its own for each wake, and not the global object, which would
                // keep it for good.
                && sys::napi_create_object(env, &raw mut resource) == sys::Status::napi_ok
            {
                let status = sys::napi_make_callback(
                    env,
                    ptr::null_mut(),
                    resource,
                    function,
                    arguments.len(),
                    arguments.as_ptr(),
                    &raw mut result,
                );
                // The function settles promises and throws nothing itself; what it throws all the same is the host's uncaught exception.
                if status == sys::Status::napi_pending_exception
                    && sys::napi_get_and_clear_last_exception(env, &raw mut result) == sys::Status::napi_ok
                {
                    sys::napi_fatal_exception(env, result);
                }
            }
            sys::napi_close_handle_scope(env, scope);
        }
    }

    /// A handle of its thread has closed. The environment may end with the last one.
    pub(super) fn closed_one(&self) {
        if self.handles.fetch_sub(1, Ordering::Relaxed) == 1 {
            // SAFETY: on the JavaScript thread; the handle of this object counts until the environment's end has closed
            // it, and the hook is removed this once.
            unsafe {
                sys::napi_remove_async_cleanup_hook(self.hook.load(Ordering::Relaxed));
            }
        }
    }

    /// On the handle's own thread, or with `sending` held.
    fn with(&self, act: impl FnOnce(&Libuv, *mut c_void)) {
        let raw = self.raw.load(Ordering::Acquire);
        if !raw.is_null() {
            act(self.libuv, raw);
        }
    }
}

#[cfg(unix)]
impl LoopHandle {
    /// Waits for the descriptor in this loop, from now until what this gives is dropped. From any thread.
    fn poll(self: &Arc<Self>, descriptor: OwnedFd, ready: Ready, refused: Refused) -> Wanted {
        let poll = Poll::new(self.clone(), descriptor, ready, refused);
        self.changed(&poll);
        Wanted(poll)
    }

    /// What is wanted of a poll is another thing now. From any thread.
    pub(super) fn changed(&self, poll: &Arc<Poll>) {
        self.polls.changed(poll);
        self.send();
    }

    /// A poll has closed by itself. On the JavaScript thread.
    pub(super) fn forget(&self, poll: &Arc<Poll>) {
        self.polls.forget(poll);
    }

    /// A handle of this loop was opened. On the JavaScript thread.
    pub(super) fn opened(&self) {
        self.handles.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn libuv(&self) -> &'static Libuv {
        self.libuv
    }

    /// To be used on the JavaScript thread.
    pub(super) fn uv_loop(&self) -> *mut c_void {
        self.uv_loop
    }
}

/// From its event loop, on the JavaScript thread.
unsafe extern "C" fn woken(raw: *mut c_void) {
    // SAFETY: `data` of the handle, set right after it was made; it holds a count until `closed`, after which libuv does not call this.
    let handle = unsafe { &*raw.cast::<*const LoopHandle>().read() };
    #[cfg(unix)]
    handle.polls.follow();
    handle.call();
}

/// Closes the handle: on the JavaScript thread, as its environment ends.
unsafe extern "C" fn end(_hook: sys::napi_async_cleanup_hook_handle, raw: *mut c_void) {
    // SAFETY: as in `woken`: `closed` comes after this, and this only once.
    let handle = unsafe { &*raw.cast::<*const LoopHandle>().read() };
    {
        let _sending = handle.sending.lock().unwrap_or_else(PoisonError::into_inner);
        handle.raw.store(ptr::null_mut(), Ordering::Release);
    }
    // SAFETY: nobody else can reach the handle any more; the environment is alive for as long as its hooks run.
    unsafe {
        sys::napi_delete_reference(handle.env, handle.function);
        handle.holds.end(handle.env);
        (handle.libuv.close)(raw, closed);
    }
    #[cfg(unix)]
    handle.polls.end();
}

/// Frees the handle.
unsafe extern "C" fn closed(raw: *mut c_void) {
    // SAFETY: the count that `data` holds, taken back once; after this libuv does not touch the block, which was allocated by `open`.
    unsafe {
        let handle = Arc::from_raw(raw.cast::<*const LoopHandle>().read());
        handle.libuv.free(raw, ASYNC);
        handle.closed_one();
    }
}
