//! Long strings for JavaScript, made off its thread in one of the two forms in which the engine keeps strings itself.
//! [`external`](super::external) hands them over.

use std::ops::Range;

use memchr::memchr;

use super::scan::{ASCII, plain_length};

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
            rest = rest.get(length..).unwrap_or_default();
            if rest.starts_with('\\') {
                let (unit, length) = escape(rest.as_bytes());
                units.push(unit);
                rest = rest.get(length..).unwrap_or_default();
            } else {
                // Character by character up to the next escape: where there is one that is not ASCII there mostly are more.
                let length = memchr(b'\\', rest.as_bytes()).unwrap_or(rest.len());
                units.push_str(rest.get(..length).unwrap_or_default());
                rest = rest.get(length..).unwrap_or_default();
            }
        }
        units.into()
    }

    /// Its length for JavaScript: UTF-16 units.
    pub fn length(&self) -> usize {
        match self {
            Self::Latin1 { part, .. } => part.len(),
            Self::Utf16(units) => units.len(),
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
        if let Some(mut utf16) = units.utf16 {
            // Reserved for one unit a byte: CJK text needs a third of it, and is kept for as long as somebody has the string.
            utf16.shrink_to_fit();
            return Self::Utf16(utf16);
        }
        let part = 0..units.latin1.len();
        Self::Latin1 { bytes: units.latin1, part }
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
