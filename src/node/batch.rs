//! What JavaScript is given by a [`Dispatcher`](super::dispatcher): `4 * token + kind, text, …`, two values a delivery.
//!
//! The text of a long result is made off the JavaScript thread, see [`strings`](super::strings); where texts were cut out of it there is
//! `[json, index, text, …]` in its place, see [`texts`](super::texts).

#![expect(unsafe_code, reason = "napi-rs has no safe form of writing an array element by element")]

use std::ptr;

use napi::bindgen_prelude::{ToNapiValue, check_status};
use napi::{Status, sys};

use super::strings::JsString;
use super::texts::{self, Cut};
use crate::error::{ErrorCode, McpError};
use crate::link::result_text::{LONG, ResultText};

/// What a batch tells. The numbers are the `kind`s that `lib/dispatcher.js` knows.
pub(super) enum Delivery {
    /// 0: the text of a result.
    Result { token: i64, text: Text },
    /// 1: a JSON description of an error.
    Error { token: i64, error: String },
    /// 2: the `params` of a progress notification.
    Progress { token: i64, params: String },
    /// 3: an event of the connection with this token; JSON.
    Event { token: i64, event: String },
}

/// The text of a result, as JavaScript gets it.
pub(super) enum Text {
    Short(String),
    Long(JsString),
    Cut(Cut),
}

impl Text {
    /// Takes about as long as reading the text does, where it is long and not known to be plain.
    pub(super) fn new(text: ResultText, is_tool_result: bool) -> Self {
        if text.len() < LONG {
            return Self::Short(text.into_string());
        }
        let text = if is_tool_result { texts::cut(text) } else { Err(text) };
        text.map_or_else(|whole| Self::Long(JsString::plain(whole)), Self::Cut)
    }
}

/// Deliveries on their way into JavaScript.
pub struct Batch {
    pub(super) deliveries: Vec<Delivery>,
    /// The engine may be given some.
    pub(super) external_strings: bool,
}

/// So many deliveries become arguments, each element of an array being a call of its own; more of them would fill the stack.
const ARGUMENTS_MAX: usize = 64;

impl Batch {
    /// The arguments of a function: the values of all deliveries, or an array of them. On the thread of `env`, which is
    /// alive, with a scope open.
    pub(super) unsafe fn into_arguments(self, env: sys::napi_env) -> napi::Result<Vec<sys::napi_value>> {
        // SAFETY: as the caller was asked for.
        unsafe {
            if self.deliveries.len() > ARGUMENTS_MAX {
                return Ok(vec![Self::to_napi_value(env, self)?]);
            }
            let mut arguments = Vec::with_capacity(self.deliveries.len() * 2);
            for delivery in self.deliveries {
                arguments.extend(delivery.into_values(env, self.external_strings)?);
            }
            Ok(arguments)
        }
    }
}

impl ToNapiValue for Batch {
    unsafe fn to_napi_value(env: sys::napi_env, batch: Self) -> napi::Result<sys::napi_value> {
        // SAFETY: napi calls this with a live `env` on its own thread.
        let array = unsafe { Elements::new(env, batch.deliveries.len() * 2) }?;
        for (index, delivery) in (0..).step_by(2).zip(batch.deliveries) {
            // SAFETY: as above.
            unsafe {
                let [code, text] = delivery.into_values(env, batch.external_strings)?;
                array.set(index, code)?;
                array.set(index + 1, text)?;
            }
        }
        Ok(array.value)
    }
}

impl Delivery {
    /// On the thread of `env`, which is alive.
    unsafe fn into_values(self, env: sys::napi_env, external: bool) -> napi::Result<[sys::napi_value; 2]> {
        let (mut kind, token, text) = match self {
            Self::Result { token, text } => (0, token, text),
            Self::Error { token, error } => (1, token, Text::Short(error)),
            Self::Progress { token, params } => (2, token, Text::Short(params)),
            Self::Event { token, event } => (3, token, Text::Short(event)),
        };
        // SAFETY: as the caller was asked for.
        let text = unsafe { text_value(env, text, external) }.or_else(|_| {
            // What cannot become a JavaScript string (V8 ends at about 512 MiB) rejects its own call only.
            kind = if kind == 0 { 1 } else { kind };
            let error = McpError::new(
                ErrorCode::MessageTooLarge,
                "The result is longer than a JavaScript string can be.",
            );
            // SAFETY: as above.
            unsafe { String::to_napi_value(env, error.to_json().to_string()) }
        })?;
        // SAFETY: as above.
        Ok([unsafe { i64::to_napi_value(env, 4 * token + kind) }?, text])
    }
}

/// On the thread of `env`, which is alive.
unsafe fn text_value(env: sys::napi_env, text: Text, external: bool) -> napi::Result<sys::napi_value> {
    let too_long = || napi::Error::from_status(Status::StringExpected);
    // SAFETY: as the caller was asked for.
    unsafe {
        match text {
            Text::Short(text) => short(env, &text),
            Text::Long(string) => string.into_js(env, external).ok_or_else(too_long),
            Text::Cut(Cut { json, texts }) => {
                let array = Elements::new(env, 1 + texts.len() * 2)?;
                array.set(0, String::to_napi_value(env, json)?)?;
                for (place, (index, string)) in (1..).step_by(2).zip(texts) {
                    array.set(place, u32::to_napi_value(env, index)?)?;
                    array.set(place + 1, string.into_js(env, external).ok_or_else(too_long)?)?;
                }
                Ok(array.value)
            }
        }
    }
}

/// On the thread of `env`, which is alive. ASCII, as most results are, needs no decoder.
unsafe fn short(env: sys::napi_env, text: &str) -> napi::Result<sys::napi_value> {
    if !text.is_ascii() {
        // SAFETY: as the caller was asked for.
        return unsafe { <&str>::to_napi_value(env, text) };
    }
    let mut value = ptr::null_mut();
    let length = text.len().cast_signed();
    // SAFETY: as above; the text is copied, and `value` is a place for the result.
    check_status!(unsafe {
        sys::napi_create_string_latin1(env, text.as_ptr().cast(), length, &raw mut value)
    })?;
    Ok(value)
}

/// A JavaScript array that is written element by element, which takes no `Env` and no lifetime.
struct Elements {
    env: sys::napi_env,
    value: sys::napi_value,
}

impl Elements {
    /// On the thread of `env`, which is alive for as long as the array is written.
    unsafe fn new(env: sys::napi_env, length: usize) -> napi::Result<Self> {
        let mut value = ptr::null_mut();
        // SAFETY: `env` is alive and on this thread; `value` is a place for the result.
        check_status!(unsafe { sys::napi_create_array_with_length(env, length, &raw mut value) })?;
        Ok(Self { env, value })
    }

    /// `element` is a value of the same `env`.
    unsafe fn set(&self, index: u32, element: sys::napi_value) -> napi::Result<()> {
        // SAFETY: as `new` was promised; `value` is the array made there.
        check_status!(unsafe { sys::napi_set_element(self.env, self.value, index, element) })
    }
}
