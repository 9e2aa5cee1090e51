//! The body of a JSON string as the engine keeps strings: one byte a character where that can hold them all, which
//! takes no other memory than the text had, else UTF-16.

use std::ops::Range;

use crate::words::{HIGH, repeated};

/// Whether the escapes of JSON are resolved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Escapes {
    Go,
    Stay,
}

/// Bytes looked at together.
const WORD: usize = 8;

/// Where the characters of `part` stand in `bytes` afterwards, one byte each; or in UTF-16, if some are beyond U+00FF.
/// `bytes` are valid UTF-8, and the escapes in `part` valid JSON.
pub fn in_place(bytes: &mut [u8], part: Range<usize>, escapes: Escapes) -> Result<Range<usize>, Vec<u16>> {
    let (start, end) = (part.start, part.end.min(bytes.len()));
    // What was read, and what is written of it: never more.
    let (mut at, mut out) = (start, start);
    loop {
        let (length, is_end) = ascii_length(&bytes[at..end], escapes);
        if at == out {
            // Nothing has to move yet.
        } else if length <= WORD {
            for offset in 0..length {
                bytes[out + offset] = bytes[at + offset];
            }
        } else {
            bytes.copy_within(at..at + length, out);
        }
        (at, out) = (at + length, out + length);
        if is_end {
            return Ok(start..out);
        }
        let (unit, length) = match bytes[at] {
            b'\\' => escape(&bytes[at..end]),
            lead @ 0xc2..=0xc3 => {
                (u16::from(lead & 3) << 6 | u16::from(bytes.get(at + 1).map_or(0, |byte| byte & 0x3f)), 2)
            }
            _ => return Err(utf16(&bytes[start..out], &bytes[at..end], escapes)),
        };
        let Ok(byte) = u8::try_from(unit) else {
            return Err(utf16(&bytes[start..out], &bytes[at..end], escapes));
        };
        bytes[out] = byte;
        (at, out) = (at + length, out + 1);
    }
}

/// UTF-16 of characters of one byte each, and of the text that comes after them.
fn utf16(latin1: &[u8], text: &[u8], escapes: Escapes) -> Vec<u16> {
    // A unit for each byte at most, and room to write a word of them.
    let mut units = vec![0; latin1.len() + text.len() + WORD];
    for (unit, byte) in units.iter_mut().zip(latin1) {
        *unit = u16::from(*byte);
    }
    let (mut at, mut out) = (0, latin1.len());
    while at < text.len() {
        if let Some(word) = text.get(at..at + WORD).and_then(|word| <[u8; WORD]>::try_from(word).ok()) {
            units[out..out + WORD].copy_from_slice(&word.map(u16::from));
            let length = ascii_in_word(word, escapes);
            (at, out) = (at + length, out + length);
            if length == WORD {
                continue;
            }
        }
        // One at least is no ASCII, or the end is near.
        loop {
            let (unit, length) = match text[at..] {
                [b'\\', ..] if escapes == Escapes::Go => escape(&text[at..]),
                [b0 @ ..0x80, ..] => (u16::from(b0), 1),
                [b0 @ 0xc0..0xe0, b1, ..] => (u16::from(b0 & 0x1f) << 6 | low(b1), 2),
                [b0 @ 0xe0..0xf0, b1, b2, ..] => (u16::from(b0) << 12 | low(b1) << 6 | low(b2), 3),
                [b0 @ 0xf0..=0xff, b1, b2, b3, ..] => {
                    let character = u32::from(b0 & 7) << 18
                        | u32::from(low(b1)) << 12
                        | u32::from(low(b2)) << 6
                        | u32::from(low(b3));
                    let mut pair = [0; 2];
                    char::from_u32(character).unwrap_or('\u{fffd}').encode_utf16(&mut pair);
                    units[out] = pair[0];
                    out += usize::from(pair[1] != 0);
                    (if pair[1] == 0 { pair[0] } else { pair[1] }, 4)
                }
                _ => (0xfffd, 1),
            };
            units[out] = unit;
            (at, out) = (at + length, out + 1);
            if text.get(at).is_none_or(u8::is_ascii) {
                break;
            }
        }
    }
    units.truncate(out);
    // CJK text needs a third of it, and is kept for as long as somebody has the string.
    units.shrink_to_fit();
    units
}

fn low(byte: u8) -> u16 {
    u16::from(byte & 0x3f)
}

/// How many bytes from the front on are ASCII and no escape, and whether that is all.
fn ascii_length(text: &[u8], escapes: Escapes) -> (usize, bool) {
    const BLOCK: usize = 64;
    let mut length = 0;
    loop {
        let near = text[length..].len().min(BLOCK);
        for word in text[length..length + near].chunks_exact(WORD) {
            let ascii = ascii_in_word(word.try_into().unwrap_or_default(), escapes);
            length += ascii;
            if ascii < WORD {
                return (length, false);
            }
        }
        if near < BLOCK {
            let ends = |byte: &u8| !byte.is_ascii() || (*byte == b'\\' && escapes == Escapes::Go);
            let rest = &text[length..];
            let end = rest.iter().position(ends);
            return (length + end.unwrap_or(rest.len()), end.is_none());
        }
        // Where so much is plain, more will be: then a block at a time, in the vectors of the processor.
        for block in text[length..].chunks_exact(BLOCK) {
            let (all, backslash) = block
                .iter()
                .fold((0, 0), |(all, found), byte| (all | byte, found | u8::from(*byte == b'\\')));
            if all >= 0x80 || (backslash != 0 && escapes == Escapes::Go) {
                break;
            }
            length += BLOCK;
        }
    }
}

/// The same of eight bytes.
fn ascii_in_word(word: [u8; WORD], escapes: Escapes) -> usize {
    let word = u64::from_le_bytes(word);
    let other = word ^ repeated(b'\\');
    // The high bit of a byte that is zero, and of bytes above such a one, which do not matter.
    let backslash = if escapes == Escapes::Go { other.wrapping_sub(repeated(1)) & !other } else { 0 };
    ((word | backslash) & HIGH).trailing_zeros() as usize / 8
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

    fn decoded(text: &str, escapes: Escapes) -> String {
        let mut bytes = format!("<{text}>").into_bytes();
        let end = bytes.len() - 1;
        match in_place(&mut bytes, 1..end, escapes) {
            Ok(part) => bytes[part].iter().copied().map(char::from).collect(),
            Err(units) => String::from_utf16_lossy(&units),
        }
    }

    /// Pieces of every kind in every order and at every place of a word.
    #[test]
    fn text_is_decoded_as_json_says_wherever_it_stands() {
        let pieces = [
            "a",
            "plain text",
            "\\n",
            "\\\\",
            "\\u00e9",
            "\\u4e2d",
            "\\ud83d\\ude00",
            "é",
            "ÿ",
            "Ā",
            "߿",
            "ࠀ",
            "完",
            "\u{ffff}",
            "😀",
            "a longer piece of text, of more than the sixty-four bytes that are looked at together, and then some",
        ];
        for first in pieces {
            for second in pieces {
                for third in pieces {
                    for before in 0..9 {
                        let text = format!("{}{first}{second}{third}", "x".repeat(before));
                        let said: String = serde_json::from_str(&format!("\"{text}\"")).unwrap_or_default();
                        assert_eq!(decoded(&text, Escapes::Go), said);
                        assert_eq!(decoded(&text, Escapes::Stay), text);
                    }
                }
            }
        }
    }
}
