//! Where a JSON string is plain text, eight bytes at a time: in source code an escape follows after ten bytes, and a
//! search of `memchr` costs as much as these ten.

use memchr::memchr2;

use crate::words::{HIGH, repeated};

/// What ends plain text besides a quote and a backslash: nothing,
pub const ANY: u8 = 0;
/// a control character, which JSON has as an escape only.
pub const NO_CONTROLS: u8 = 1;

/// Where so many bytes are plain, more will be: then `memchr` is four times as fast.
const LONG_RUN: usize = 64;

/// How many bytes from the front on are plain text.
pub fn plain_length<const KIND: u8>(text: &[u8]) -> usize {
    // The high bit of each byte that is less than `limit`, and of bytes above such a one, which do not matter.
    let less = |word: u64, limit: u8| word.wrapping_sub(repeated(limit)) & !word & HIGH;
    let mut length = 0;
    for eight in text.chunks_exact(8) {
        let word = u64::from_le_bytes(eight.try_into().unwrap_or_default());
        let also = match KIND {
            NO_CONTROLS => less(word, 0x20),
            _ => 0,
        };
        let ends = less(word ^ repeated(b'"'), 1) | less(word ^ repeated(b'\\'), 1) | also;
        if ends != 0 {
            return length + ends.trailing_zeros() as usize / 8;
        }
        length += 8;
        if KIND == ANY && length == LONG_RUN {
            return length + memchr2(b'"', b'\\', &text[length..]).unwrap_or(text.len() - length);
        }
    }
    let rest = &text[length..];
    length + rest.iter().position(|byte| ends::<KIND>(*byte)).unwrap_or(rest.len())
}

const fn ends<const KIND: u8>(byte: u8) -> bool {
    let also = match KIND {
        NO_CONTROLS => byte < 0x20,
        _ => false,
    };
    byte == b'"' || byte == b'\\' || also
}

#[cfg(test)]
mod tests {
    use super::*;

    fn agrees<const KIND: u8>(text: &[u8]) {
        let expected = text.iter().position(|byte| ends::<KIND>(*byte)).unwrap_or(text.len());
        assert_eq!(plain_length::<KIND>(text), expected, "{text:?}");
    }

    #[test]
    fn eight_at_a_time_finds_what_one_at_a_time_does() {
        for length in (0..40).chain(60..84) {
            for end in 0..=255 {
                for after in [0x00, 0x21, b'"', b'#', b'[', b'\\', b']', 0x7f, 0x80, 0xff] {
                    let mut text = b"a~ !#[]\x7f".repeat(11);
                    text.truncate(length);
                    text.extend([end, after, after, b'"']);
                    agrees::<ANY>(&text);
                    agrees::<NO_CONTROLS>(&text);
                }
            }
        }
    }
}
