//! What holds an event loop, counted in memory that JavaScript writes without a call.
//!
//! A call that is alone begins when nothing is pending and ends when nothing is: asked each time, the loop's handle is
//! referenced and unreferenced for every one, at two calls of native methods (a fifth of all instructions that such a
//! call cost the JavaScript thread). So a hold that is let go of in a delivery is seen to when all that followed from
//! the delivery has run, and the next call may have been begun.

#![expect(unsafe_code, reason = "napi-rs has no form of memory that both sides write")]

use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

use napi::bindgen_prelude::{JsValue, Unknown, check_status};
use napi::{Env, sys};

/// Places of the numbers, as lib/dispatcher.js knows them: how many holds there are, …
const COUNT: usize = 0;
/// … whether the loop is held, which it may be a little longer than there are any, …
const IS_HELD: usize = 1;
/// … and whether it is looked after by itself if there are none now.
const IS_SEEN_TO: usize = 2;

const NUMBERS: usize = 3;

/// The numbers of one environment. For its own thread.
pub(super) struct Holds {
    /// Null once the environment is ending.
    numbers: AtomicPtr<i32>,
    /// Keeps them from being collected.
    array: sys::napi_ref,
}

impl Holds {
    /// `array` is an `Int32Array` of three.
    pub(super) fn of(env: &Env, array: &Unknown<'_>) -> napi::Result<Self> {
        let (mut kind, mut length, mut numbers, mut reference) = (-1, 0, ptr::null_mut(), ptr::null_mut());
        let (env, array) = (env.raw(), array.value().value);
        // SAFETY: JavaScript calls this on the thread of `env` with a value of it; the others are places for results, or none.
        unsafe {
            check_status!(sys::napi_get_typedarray_info(
                env,
                array,
                &raw mut kind,
                &raw mut length,
                &raw mut numbers,
                ptr::null_mut(),
                ptr::null_mut(),
            ))?;
            if kind != sys::TypedarrayType::int32_array || length != NUMBERS {
                return Err(napi::Error::from_reason("holds are counted in an Int32Array of three"));
            }
            check_status!(sys::napi_create_reference(env, array, 1, &raw mut reference))?;
        }
        Ok(Self { numbers: AtomicPtr::new(numbers.cast()), array: reference })
    }

    /// Until [`Holds::see_to`], JavaScript leaves it to that to let go of the loop.
    pub(super) fn begin(&self) {
        self.with(|numbers| numbers[IS_SEEN_TO] = 1);
    }

    /// Whether the loop, which was held, is to be held no longer.
    pub(super) fn see_to(&self) -> bool {
        let mut lets_go = false;
        self.with(|numbers| {
            numbers[IS_SEEN_TO] = 0;
            lets_go = numbers[COUNT] == 0 && numbers[IS_HELD] != 0;
            if lets_go {
                numbers[IS_HELD] = 0;
            }
        });
        lets_go
    }

    /// The environment is ending.
    pub(super) fn end(&self, env: sys::napi_env) {
        if !self.numbers.swap(ptr::null_mut(), Ordering::Relaxed).is_null() {
            // SAFETY: on the thread of `env`, which is alive for as long as its hooks run; this once.
            unsafe { sys::napi_delete_reference(env, self.array) };
        }
    }

    fn with(&self, act: impl FnOnce(&mut [i32; NUMBERS])) {
        let numbers = self.numbers.load(Ordering::Relaxed).cast::<[i32; NUMBERS]>();
        // SAFETY: so many numbers, which the reference keeps where they are. No JavaScript runs meanwhile, and this
        // thread alone writes them.
        if let Some(numbers) = unsafe { numbers.as_mut() } {
            act(numbers);
        }
    }
}
