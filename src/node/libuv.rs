//! libuv's handles, where the program that loaded us has them.

#![expect(unsafe_code, reason = "libuv is C")]

use std::ffi::{c_int, c_void};
use std::mem::transmute;
use std::ptr::{self, NonNull};
use std::sync::OnceLock;

use super::symbols;

/// `UV_ASYNC` and `UV_POLL` of `uv_handle_type`.
pub(super) const ASYNC: c_int = 1;
#[cfg(unix)]
pub(super) const POLL: c_int = 8;

/// `UV_READABLE` of `uv_poll_event`.
#[cfg(unix)]
pub(super) const READABLE: c_int = 1;

/// Of an event of a handle that has no arguments.
pub(super) type Callback = unsafe extern "C" fn(handle: *mut c_void);
#[cfg(unix)]
pub(super) type PollCallback = unsafe extern "C" fn(handle: *mut c_void, status: c_int, events: c_int);

type Act = unsafe extern "C" fn(handle: *mut c_void);
type HandleSize = unsafe extern "C" fn(kind: c_int) -> usize;
type AsyncInit = unsafe extern "C" fn(uv_loop: *mut c_void, handle: *mut c_void, woken: Callback) -> c_int;
type AsyncSend = unsafe extern "C" fn(handle: *mut c_void) -> c_int;
type Close = unsafe extern "C" fn(handle: *mut c_void, closed: Callback);
#[cfg(unix)]
type PollInit = unsafe extern "C" fn(uv_loop: *mut c_void, handle: *mut c_void, descriptor: c_int) -> c_int;
#[cfg(unix)]
type PollStart = unsafe extern "C" fn(handle: *mut c_void, events: c_int, ready: PollCallback) -> c_int;

/// What is used of libuv 1.x, all of which any Node.js exports for its addons.
pub(super) struct Libuv {
    handle_size: HandleSize,
    pub(super) async_init: AsyncInit,
    pub(super) async_send: AsyncSend,
    pub(super) reference: Act,
    pub(super) unreference: Act,
    pub(super) close: Close,
    #[cfg(unix)]
    pub(super) poll_init: PollInit,
    #[cfg(unix)]
    pub(super) poll_start: PollStart,
}

impl Libuv {
    pub(super) fn known() -> Option<&'static Self> {
        static KNOWN: OnceLock<Option<Libuv>> = OnceLock::new();
        KNOWN.get_or_init(Self::look_up).as_ref()
    }

    fn look_up() -> Option<Self> {
        let [handle_size, async_init, async_send, reference, unreference, close] =
            [c"uv_handle_size", c"uv_async_init", c"uv_async_send", c"uv_ref", c"uv_unref", c"uv_close"]
                .map(|name| symbols::find(name).map(NonNull::as_ptr));
        #[cfg(unix)]
        let [poll_init, poll_start] =
            [c"uv_poll_init", c"uv_poll_start"].map(|name| symbols::find(name).map(NonNull::as_ptr));
        // SAFETY: the functions of these names have these types in every libuv 1.x (uv.h), with handles as plain pointers.
        unsafe {
            Some(Self {
                handle_size: transmute::<*mut c_void, HandleSize>(handle_size?),
                async_init: transmute::<*mut c_void, AsyncInit>(async_init?),
                async_send: transmute::<*mut c_void, AsyncSend>(async_send?),
                reference: transmute::<*mut c_void, Act>(reference?),
                unreference: transmute::<*mut c_void, Act>(unreference?),
                close: transmute::<*mut c_void, Close>(close?),
                #[cfg(unix)]
                poll_init: transmute::<*mut c_void, PollInit>(poll_init?),
                #[cfg(unix)]
                poll_start: transmute::<*mut c_void, PollStart>(poll_start?),
            })
        }
    }

    /// Memory for a handle of this kind, zeroed, and aligned for whatever is in there.
    pub(super) fn allocate(&self, kind: c_int) -> *mut c_void {
        Box::into_raw(vec![0_u128; self.length(kind)].into_boxed_slice()).cast()
    }

    /// Frees what [`allocate`](Self::allocate) gave for the same kind. libuv does not know it, or has closed it.
    pub(super) unsafe fn free(&self, handle: *mut c_void, kind: c_int) {
        let block = ptr::slice_from_raw_parts_mut(handle.cast::<u128>(), self.length(kind));
        // SAFETY: the block of that length that was leaked there, as the caller says.
        drop(unsafe { Box::from_raw(block) });
    }

    /// Of the block of a handle, in its units.
    fn length(&self, kind: c_int) -> usize {
        // SAFETY: asks for a number.
        unsafe { (self.handle_size)(kind) }.div_ceil(size_of::<u128>())
    }
}
