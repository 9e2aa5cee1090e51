//! Long strings for JavaScript, made off its thread in one of the two forms in which the engine keeps strings itself.
//! [`external`](super::external) hands them over.

use std::ops::Range;

use super::{io_thread, unescape};
use crate::link::POOL_FROM;
use crate::link::result_text::ResultText;
use crate::spare;

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
    /// The text itself.
    pub fn plain(text: ResultText) -> Self {
        let is_plain = text.is_plain();
        let (bytes, part) = text.into_parts();
        if is_plain { Self::Latin1 { bytes, part } } else { Self::of(bytes, part, unescape::Escapes::Stay) }
    }

    /// The string that the body of a JSON string says: a part of `bytes`, which are valid UTF-8.
    pub fn unescaped(bytes: Vec<u8>, part: Range<usize>) -> Self {
        Self::of(bytes, part, unescape::Escapes::Go)
    }

    fn of(mut bytes: Vec<u8>, part: Range<usize>, escapes: unescape::Escapes) -> Self {
        match unescape::in_place(&mut bytes, part, escapes) {
            Ok(part) => Self::Latin1 { bytes, part },
            Err(units) => {
                keep(bytes);
                Self::Utf16(units)
            }
        }
    }

    /// Keeps its memory for the next, or gives it back where nobody waits for that.
    pub fn keep(self) {
        match self {
            Self::Latin1 { bytes, .. } => keep(bytes),
            // Giving 10 MB back to the system takes a millisecond.
            Self::Utf16(units) if units.capacity() > POOL_FROM / 2 => {
                if let Ok(runtime) = io_thread::handle() {
                    drop(runtime.spawn_blocking(move || drop(units)));
                }
            }
            Self::Utf16(_) => {}
        }
    }

    /// Its length for JavaScript: UTF-16 units.
    pub fn length(&self) -> usize {
        match self {
            Self::Latin1 { part, .. } => part.len(),
            Self::Utf16(units) => units.len(),
        }
    }

    /// Bytes of its text.
    pub fn text_size(&self) -> usize {
        match self {
            Self::Latin1 { part, .. } => part.len(),
            Self::Utf16(units) => units.len() * 2,
        }
    }

    /// Bytes of memory.
    pub fn size(&self) -> usize {
        match self {
            Self::Latin1 { bytes, .. } => bytes.capacity(),
            Self::Utf16(units) => units.capacity() * 2,
        }
    }
}

fn keep(bytes: Vec<u8>) {
    if let Ok(runtime) = io_thread::handle() {
        spare::keep(bytes, &runtime);
    }
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
        let plain = |text: &str| JsString::plain(text.into());
        assert_eq!(plain(r#"{"a":"\n"}"#).to_text(), r#"{"a":"\n"}"#);
        assert_eq!(plain(r#"["ü\n"]"#).to_text(), r#"["ü\n"]"#);
        assert_eq!(plain(r#"["完"]"#), JsString::Utf16(r#"["完"]"#.encode_utf16().collect()));
    }
}
