//! Long strings for JavaScript. They are made off its thread, in one of the two forms in which the engine keeps strings itself, and handed
//! over without a copy: 10 MB cost the JavaScript thread 0.4 us instead of 11 ms (measured; 1 MB with CJK 8 ms as UTF-8).
//!
//! External strings are part of Node-API 10; Node.js has them from 20.4 on (18.18), so they are looked up at run time. Where they are missing, and where
//! an engine refuses them (`copied`: Electron, whose V8 keeps all it points to in its sandbox), a string is copied, which is still faster from these forms than from UTF-8.

#![expect(unsafe_code, reason = "napi-rs has external strings only where Node-API 10 is certain")]

use std::ffi::{c_char, c_void};
use std::mem::transmute;
use std::ops::Range;
use std::ptr;
use std::sync::OnceLock;

use memchr::memchr;
use napi::sys;

use super::scan::{ASCII, plain_length};
use super::{io_thread, symbols};
use crate::link::POOL_FROM;

/// V8's own limit on 64 bits: beyond it, it would give no string and keep ours for ever.
const LENGTH_MAX: usize = (1 << 29) - 24;

/// One string, in a form that the engine takes as it is.
#[derive(Debug, PartialEq, Eq)]
pub enum JsString {
    /// One byte a character, up to U+00FF: a part of `bytes`.
    Latin1 {
        bytes: Vec<u8>,
        part: Range<usize>,
    },
    Utf16(Vec<u16>),
}

impl JsString {
    /// The string itself.
    pub fn plain(text: String) -> Self {
        let part = 0..text.len();
        if text.is_ascii() {
            return Self::Latin1 { bytes: text.into_bytes(), part };
        }
        let mut units = Units::with_capacity(text.len());
        units.push_str(&text);
        units.into()
    }

    /// The string that the body of a JSON string says: a part of `bytes`, which are valid UTF-8.
    pub fn unescaped(bytes: Vec<u8>, part: Range<usize>) -> Self {
        let body = &bytes[part.clone()];
        if memchr(b'\\', body).is_none() && body.is_ascii() {
            return Self::Latin1 { bytes, part };
        }
        let mut units = Units::with_capacity(body.len());
        // Cut between characters, at quotes.
        let mut rest = std::str::from_utf8(body).unwrap_or_default();
        while !rest.is_empty() {
            let length = plain_length::<ASCII>(rest.as_bytes());
            units.push_ascii(&rest.as_bytes()[..length]);
            rest = &rest[length..];
            match rest.bytes().next() {
                Some(b'\\') => {
                    let (unit, length) = escape(rest.as_bytes());
                    units.push(unit);
                    rest = &rest[length..];
                }
                // Character by character up to the next escape: where there is one that is not ASCII there mostly are more.
                _ => {
                    let length = memchr(b'\\', rest.as_bytes()).unwrap_or(rest.len());
                    units.push_str(&rest[..length]);
                    rest = &rest[length..];
                }
            }
        }
        units.into()
    }

    fn len(&self) -> usize {
        match self {
            Self::Latin1 { part, .. } => part.len(),
            Self::Utf16(units) => units.len(),
        }
    }

    fn size(&self) -> usize {
        match self {
            Self::Latin1 { bytes, .. } => bytes.capacity(),
            Self::Utf16(units) => units.capacity() * 2,
        }
    }

    /// A JavaScript string; `None` if it is longer than one can be. On the thread of `env`.
    ///
    /// # Safety
    ///
    /// `env` is alive and this is its thread.
    pub unsafe fn into_js(self, env: sys::napi_env, may_be_external: bool) -> Option<sys::napi_value> {
        if self.len() > LENGTH_MAX {
            return None;
        }
        // SAFETY: as asked for above.
        match External::known().filter(|_| may_be_external) {
            Some(external) => unsafe { self.into_external(env, external) },
            None => unsafe { self.copied(env) },
        }
    }

    unsafe fn copied(&self, env: sys::napi_env) -> Option<sys::napi_value> {
        let mut value = ptr::null_mut();
        // SAFETY: `env` is alive and on this thread; pointer and length are those of one slice, which is copied; `value` is a place for the result.
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
        // SAFETY: `owner` is a box just leaked, that nobody else has. Its text neither moves nor changes until the finalizer takes it back,
        // which the engine calls once: when the string is collected, or here if it made a copy.
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
            // Collecting a string of 20 bytes that holds 9 MB seems not worth it, unless V8 knows of them: 200 of these grew a process to
            // 1.8 GB, and to 165 MB with this (measured).
            // SAFETY: the string that holds `owner` is alive, in the handle scope of the caller.
            unsafe { (*owner).reported = report(env, size) };
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
    // Giving 10 MB back to the system takes a millisecond.
    if lent.string.size() > POOL_FROM
        && let Ok(runtime) = io_thread::handle()
    {
        drop(runtime.spawn_blocking(move || drop(lent)));
    }
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
                latin1: transmute::<*mut c_void, _>(latin1),
                utf16: transmute::<*mut c_void, _>(utf16),
            })
        }
    }
}

/// One byte a character for as long as that can hold them.
struct Units {
    latin1: Vec<u8>,
    /// In place of `latin1`, from the first character on that is beyond U+00FF.
    utf16: Option<Vec<u16>>,
    capacity: usize,
}

impl Units {
    fn with_capacity(capacity: usize) -> Self {
        Self { latin1: Vec::with_capacity(capacity), utf16: None, capacity }
    }

    fn push_ascii(&mut self, text: &[u8]) {
        match &mut self.utf16 {
            Some(units) => units.extend(text.iter().copied().map(u16::from)),
            None => self.latin1.extend_from_slice(text),
        }
    }

    fn push_str(&mut self, text: &str) {
        if let Some(units) = &mut self.utf16 {
            units.extend(text.encode_utf16());
        // What begins a character from U+0100 on.
        } else if text.bytes().all(|byte| byte < 0xc4) {
            self.latin1.extend(text.chars().map(|character| character as u8));
        } else {
            self.widened().extend(text.encode_utf16());
        }
    }

    fn push(&mut self, unit: u16) {
        match (&mut self.utf16, u8::try_from(unit)) {
            (Some(units), _) => units.push(unit),
            (None, Ok(byte)) => self.latin1.push(byte),
            (None, Err(_)) => self.widened().push(unit),
        }
    }

    fn widened(&mut self) -> &mut Vec<u16> {
        let (latin1, capacity) = (std::mem::take(&mut self.latin1), self.capacity);
        self.utf16.get_or_insert_with(|| {
            let mut units = Vec::with_capacity(capacity);
            units.extend(latin1.iter().copied().map(u16::from));
            units
        })
    }
}

impl From<Units> for JsString {
    fn from(units: Units) -> Self {
        match units.utf16 {
            // Reserved for one unit a byte: CJK text needs a third of it, and is kept for as long as somebody has the string.
            Some(mut utf16) => {
                utf16.shrink_to_fit();
                Self::Utf16(utf16)
            }
            None => {
                let part = 0..units.latin1.len();
                Self::Latin1 { bytes: units.latin1, part }
            }
        }
    }
}

/// The UTF-16 unit that an escape stands for, and the length of the escape, which is valid.
fn escape(text: &[u8]) -> (u16, usize) {
    let unit = match text.get(1) {
        Some(b'n') => b'\n',
        Some(b't') => b'\t',
        Some(b'r') => b'\r',
        Some(b'b') => 0x08,
        Some(b'f') => 0x0c,
        Some(b'u') => {
            let digits = text.get(2..6).and_then(|digits| std::str::from_utf8(digits).ok());
            let unit = digits.and_then(|digits| u16::from_str_radix(digits, 16).ok());
            return (unit.unwrap_or(0xfffd), 6);
        }
        Some(itself) => *itself,
        None => return (u16::from(b'\\'), 1),
    };
    (u16::from(unit), 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    impl JsString {
        /// The string as Rust has it, with U+FFFD for halves of pairs.
        pub(in crate::node) fn to_text(&self) -> String {
            match self {
                Self::Latin1 { bytes, part } => bytes[part.clone()].iter().copied().map(char::from).collect(),
                Self::Utf16(units) => String::from_utf16_lossy(units),
            }
        }
    }

    fn unescaped(body: &str) -> JsString {
        let bytes = format!("x\"{body}\"").into_bytes();
        let part = 2..bytes.len() - 1;
        JsString::unescaped(bytes, part)
    }

    fn is_latin1(string: &JsString) -> bool {
        matches!(string, JsString::Latin1 { .. })
    }

    #[test]
    fn every_escape_is_what_json_says_it_is() {
        let string = unescaped(r#"\"\\\/\b\f\n\r\t\u0041\u00e9ü"#);
        assert_eq!(string.to_text(), "\"\\/\u{8}\u{c}\n\r\tAéü");
        assert!(is_latin1(&string));
    }

    #[test]
    fn the_narrow_form_is_kept_for_as_long_as_it_holds() {
        for (body, text, narrow) in [
            ("plain", "plain", true),
            ("é ÿ", "é ÿ", true),
            ("\u{80}\u{ff}", "\u{80}\u{ff}", true),
            ("\u{100}", "\u{100}", false),
            (r"a\u0100b", "a\u{100}b", false),
            ("aé完了 z\\n", "aé完了 z\n", false),
            (r"\ud83d\ude00", "😀", false),
            ("x😀\\té", "x😀\té", false),
        ] {
            let string = unescaped(body);
            assert_eq!((string.to_text().as_str(), is_latin1(&string)), (text, narrow), "{body}");
        }
    }

    #[test]
    fn half_an_emoji_stays_half_an_emoji() {
        assert_eq!(unescaped(r"a\ud83d"), JsString::Utf16(vec![0x61, 0xd83d]));
    }

    #[test]
    fn a_text_without_escapes_is_not_copied() {
        let bytes = b"before the text after".to_vec();
        let place = bytes.as_ptr();
        let JsString::Latin1 { bytes, part } = JsString::unescaped(bytes, 11..15) else { panic!() };
        assert_eq!((bytes.as_ptr(), &bytes[part]), (place, &b"text"[..]));
    }

    #[test]
    fn json_text_keeps_its_escapes() {
        assert_eq!(JsString::plain(r#"{"a":"\n"}"#.into()).to_text(), r#"{"a":"\n"}"#);
        assert_eq!(JsString::plain(r#"["ü\n"]"#.into()).to_text(), r#"["ü\n"]"#);
        assert_eq!(
            JsString::plain(r#"["完"]"#.into()),
            JsString::Utf16(r#"["完"]"#.encode_utf16().collect())
        );
    }
}
