//! Hands long strings over to JavaScript without a copy: 10 MB cost its thread 0.4 us instead of 11 ms (measured; 1 MB
//! with CJK 8 ms as UTF-8).
//!
//! External strings are part of Node-API 10, and Node.js exports the calls since 18.18 and 20.4, so they are looked up
//! at run time. Where they are missing, and where an engine refuses them (`copied`: Electron, whose V8 keeps all that
//! it points to in a sandbox), a string is copied, which from these forms is still faster than from UTF-8.

#![expect(unsafe_code, reason = "napi-rs has external strings only where Node-API 10 is certain")]

use std::ffi::{c_char, c_void};
use std::mem::transmute;
use std::ptr;
use std::sync::OnceLock;

use napi::sys;

use super::strings::JsString;
use super::symbols;

/// V8's own limit on 64 bits: beyond it, it would give no string and keep ours for ever.
const LENGTH_MAX: usize = (1 << 29) - 24;

/// Collecting a string of 20 bytes that holds 9 MB seems not worth it, unless V8 knows of them: 200 of these grew a
/// process to 1.8 GB. Told of all of it, V8 marks and compacts the whole heap after every 64 MB, for such strings are
/// not young ones to it: that is after every second result of 30 MB. Told of half, the 200 end at 196 MB instead of
/// 131, and the longest stall in a row of 10 MB results is 1.9 ms instead of 3.8 (measured).
const REPORTED_ONE_OF: usize = 2;

/// Copying so little costs less than fresh pages for the next, which wait until this string is collected (100 KB: 25
/// page faults a call). It is what V8 has room for in its young generation. Of an empty string it would keep nothing,
/// and free it while Node says that it was taken.
const COPIED_MAX: usize = 120 * 1024;

impl JsString {
    /// A JavaScript string; `None` if it is longer than one can be. On the thread of `env`.
    ///
    /// # Safety
    ///
    /// `env` is alive and this is its thread.
    pub unsafe fn into_js(self, env: sys::napi_env, may_be_external: bool) -> Option<sys::napi_value> {
        if self.length() > LENGTH_MAX {
            return None;
        }
        // SAFETY: as asked for above.
        unsafe {
            match External::known().filter(|_| may_be_external && self.text_size() > COPIED_MAX) {
                Some(external) => self.into_external(env, external),
                None => self.copied(env),
            }
        }
    }

    unsafe fn copied(&self, env: sys::napi_env) -> Option<sys::napi_value> {
        let mut value = ptr::null_mut();
        // SAFETY: `env` is alive and on this thread; pointer and length are those of one slice, which is copied;
        // `value` is a place for the result.
        let status = unsafe {
            match self {
                Self::Latin1 { bytes, part } => {
                    let text = &bytes[part.clone()];
                    sys::napi_create_string_latin1(
                        env,
                        text.as_ptr().cast(),
                        text.len().cast_signed(),
                        &raw mut value,
                    )
                }
                Self::Utf16(units) => sys::napi_create_string_utf16(
                    env,
                    units.as_ptr(),
                    units.len().cast_signed(),
                    &raw mut value,
                ),
            }
        };
        (status == sys::Status::napi_ok).then_some(value)
    }

    unsafe fn into_external(self, env: sys::napi_env, external: &External) -> Option<sys::napi_value> {
        let size = self.size();
        // The string's memory belongs to the box, and the box to the finalizer.
        let owner = Box::into_raw(Box::new(Lent { string: self, reported: 0 }));
        let (mut value, mut is_copied) = (ptr::null_mut(), false);
        // SAFETY: `owner` is a box just leaked, that nobody else has. Its text neither moves nor changes until the
        // finalizer takes it back, which the engine calls once: when the string is collected, or here if it made a
        // copy.
        let status = unsafe {
            match &(*owner).string {
                Self::Latin1 { bytes, part } => {
                    let text = bytes[part.clone()].as_ptr().cast_mut().cast();
                    (external.latin1)(
                        env,
                        text,
                        part.len(),
                        Some(give_back),
                        owner.cast(),
                        &raw mut value,
                        &raw mut is_copied,
                    )
                }
                Self::Utf16(units) => {
                    let text = units.as_ptr().cast_mut();
                    (external.utf16)(
                        env,
                        text,
                        units.len(),
                        Some(give_back),
                        owner.cast(),
                        &raw mut value,
                        &raw mut is_copied,
                    )
                }
            }
        };
        // Whether the finalizer was called before a failure nobody says: memory that is lost is better than memory that is freed twice.
        if status != sys::Status::napi_ok {
            return None;
        }
        if !is_copied {
            // SAFETY: the string that holds `owner` is alive, in the handle scope of the caller.
            unsafe { (*owner).reported = report(env, size / REPORTED_ONE_OF) };
        }
        Some(value)
    }
}

/// What an external string points into.
struct Lent {
    string: JsString,
    /// What V8 was told of.
    reported: i64,
}

/// Takes back what a string had. Called by the garbage collector, on the JavaScript thread, or with a null `env` as its environment ends.
unsafe extern "C" fn give_back(env: sys::napi_env, _text: *mut c_void, owner: *mut c_void) {
    // SAFETY: `owner` is the box that `into_external` leaked; the engine calls this once.
    let lent = unsafe { Box::from_raw(owner.cast::<Lent>()) };
    if lent.reported > 0 && !env.is_null() {
        let mut total = 0;
        // SAFETY: an environment that is not null is alive, and this is its thread. This call is allowed while garbage is collected.
        unsafe { sys::napi_adjust_external_memory(env, -lent.reported, &raw mut total) };
    }
    // Giving 10 MB back to the system takes a millisecond, and the collector waits for it wherever it is done.
    lent.string.keep();
}

unsafe fn report(env: sys::napi_env, size: usize) -> i64 {
    let size = i64::try_from(size).unwrap_or(i64::MAX);
    let mut total = 0;
    // SAFETY: `env` is alive and on this thread, as the caller was promised.
    let status = unsafe { sys::napi_adjust_external_memory(env, size, &raw mut total) };
    if status == sys::Status::napi_ok { size } else { 0 }
}

type CreateExternal<Unit> = unsafe extern "C" fn(
    env: sys::napi_env,
    text: *mut Unit,
    length: usize,
    finalize: sys::napi_finalize,
    hint: *mut c_void,
    result: *mut sys::napi_value,
    copied: *mut bool,
) -> sys::napi_status;

/// What Node-API 10 has, and Node.js for some time longer.
struct External {
    latin1: CreateExternal<c_char>,
    utf16: CreateExternal<u16>,
}

impl External {
    fn known() -> Option<&'static Self> {
        static KNOWN: OnceLock<Option<External>> = OnceLock::new();
        KNOWN.get_or_init(Self::look_up).as_ref()
    }

    fn look_up() -> Option<Self> {
        let latin1 = symbols::find(c"node_api_create_external_string_latin1")?.as_ptr();
        let utf16 = symbols::find(c"node_api_create_external_string_utf16")?.as_ptr();
        // SAFETY: the functions of these names have these types wherever there is Node-API (js_native_api.h).
        unsafe {
            Some(Self {
                latin1: transmute::<*mut c_void, CreateExternal<c_char>>(latin1),
                utf16: transmute::<*mut c_void, CreateExternal<u16>>(utf16),
            })
        }
    }
}
