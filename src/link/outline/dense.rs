//! Short tokens one after the other, as structured results are made of, without a state between them: a key and a value
//! of a few bytes cost more to tell apart by states than to read. What is not short and plain is left where it stands,
//! for the slow way to read it.

use super::{DEPTH_MAX, State, specials};
use crate::words::HIGH;

/// What is short: so many times eight bytes.
const SHORT: usize = 5;

/// Keys of the objects before, by their place among the members of one: mostly the next has the same. Where a known key
/// ends need not be worked out from its bytes before the processor goes on behind it (10,000 rows: a third of all).
#[derive(Debug, Default)]
pub(super) struct Keys {
    known: [Key; 16],
    next: usize,
}

/// A key with its quotes and colon, and no space between them.
#[derive(Debug)]
struct Key {
    bytes: u128,
    mask: u128,
    length: usize,
}

impl Default for Key {
    /// Like none.
    fn default() -> Self {
        Self { bytes: 1, mask: 0, length: 0 }
    }
}

impl Keys {
    /// Where the value of the next member begins, from its key on.
    fn read(&mut self, line: &[u8], at: usize, ends_string: u64) -> Option<usize> {
        let known = self.known.get_mut(self.next);
        self.next += 1;
        let Some((known, text)) = known.zip(line.get(at..)?.first_chunk()) else {
            return key(line, at, ends_string);
        };
        let text = u128::from_le_bytes(*text);
        if text & known.mask == known.bytes {
            return Some(at + known.length);
        }
        let value = key(line, at, ends_string)?;
        let length = value - at;
        if length < size_of::<u128>() {
            let mask = (1 << (length * 8)) - 1;
            *known = Key { bytes: text & mask, mask, length };
        }
        Some(value)
    }
}

/// Reads on from where a value has ended, in a container that is no member of the line itself. Gives where it stands then.
///
/// Strings are ASCII, unless `is_ascii` is false: then the line is looked at for that elsewhere.
pub(super) fn read_on(
    line: &[u8],
    mut at: usize,
    open: &mut Vec<bool>,
    keys: &mut Keys,
    is_ascii: bool,
) -> (State, usize) {
    let ends_string = if is_ascii { HIGH } else { 0 };
    let mut in_object = open.last() == Some(&true);
    loop {
        at = skip_space(line, at);
        match line.get(at) {
            Some(b',') => {
                at = skip_space(line, at + 1);
                if in_object {
                    let Some(value) = keys.read(line, at, ends_string) else { return (State::Key, at) };
                    at = value;
                }
            }
            Some(byte) if *byte == end_of(in_object) && open.len() > 2 => {
                at += 1;
                in_object = leave(open);
                continue;
            }
            _ => return (State::After, at),
        }
        loop {
            at = skip_space(line, at);
            let Some(&byte) = line.get(at) else { return (State::Value, at) };
            let end = match byte {
                b'"' => string(line, at, ends_string),
                b'-' | b'0'..=b'9' => number(line, at),
                b'{' | b'[' if open.len() < DEPTH_MAX => {
                    // The members of objects in an object are counted as its own.
                    if !in_object {
                        keys.next = 0;
                    }
                    in_object = byte == b'{';
                    open.push(in_object);
                    at = skip_space(line, at + 1);
                    if line.get(at) == Some(&end_of(in_object)) {
                        in_object = leave(open);
                        Some(at + 1)
                    } else if in_object {
                        let Some(value) = keys.read(line, at, ends_string) else {
                            return (State::FirstKey, at);
                        };
                        at = value;
                        continue;
                    } else if line.len() == at {
                        return (State::FirstElement, at);
                    } else {
                        continue;
                    }
                }
                b't' => literal(line, at, b"true"),
                b'f' => literal(line, at, b"false"),
                b'n' => literal(line, at, b"null"),
                _ => None,
            };
            let Some(end) = end else { return (State::Value, at) };
            at = end;
            break;
        }
    }
}

fn end_of(is_object: bool) -> u8 {
    if is_object { b'}' } else { b']' }
}

/// Closes a container; whether it stands in an object.
fn leave(open: &mut Vec<bool>) -> bool {
    open.pop();
    open.last() == Some(&true)
}

fn skip_space(line: &[u8], mut at: usize) -> usize {
    while let Some(b' ' | b'\t' | b'\r' | b'\n') = line.get(at) {
        at += 1;
    }
    at
}

/// Where the value of a member begins, from its key on.
fn key(line: &[u8], at: usize, ends_string: u64) -> Option<usize> {
    if line.get(at) != Some(&b'"') {
        return None;
    }
    let end = skip_space(line, string(line, at, ends_string)?);
    (line.get(end) == Some(&b':')).then_some(end + 1)
}

/// Where a short string without escapes ends.
fn string(line: &[u8], at: usize, ends_string: u64) -> Option<usize> {
    let mut at = at + 1;
    for _ in 0..SHORT {
        let word = word(line, at)?;
        let ends = specials(word) | word & ends_string;
        if ends != 0 {
            at += ends.trailing_zeros() as usize / 8;
            return (line.get(at) == Some(&b'"')).then_some(at + 1);
        }
        at += 8;
    }
    None
}

/// Where a short number without exponent ends (RFC 8259, section 6).
fn number(line: &[u8], at: usize) -> Option<usize> {
    let whole = at + usize::from(line.get(at) == Some(&b'-'));
    let mut end = digits(line, whole)?;
    if end == whole || (end > whole + 1 && line.get(whole) == Some(&b'0')) {
        return None;
    }
    if line.get(end) == Some(&b'.') {
        let fraction = end + 1;
        end = digits(line, fraction)?;
        if end == fraction {
            return None;
        }
    }
    // Whatever else follows ends it, or is no JSON.
    (!matches!(line.get(end)?, b'e' | b'E')).then_some(end)
}

/// Where a short run of digits ends, before something else.
fn digits(line: &[u8], mut at: usize) -> Option<usize> {
    const ZEROS: u64 = u64::from_ne_bytes([b'0'; 8]);
    /// Takes what is over nine to the high bit.
    const OVER: u64 = u64::from_ne_bytes([0x80 - 10; 8]);
    // Most have few, and these the processor foretells; more it would not.
    for _ in 0..4 {
        if !line.get(at)?.is_ascii_digit() {
            return Some(at);
        }
        at += 1;
    }
    for _ in 0..SHORT {
        let value = word(line, at)? ^ ZEROS;
        // Exact up to the first that is no digit.
        let ends = (value.wrapping_add(OVER) | value) & HIGH;
        if ends != 0 {
            return Some(at + ends.trailing_zeros() as usize / 8);
        }
        at += 8;
    }
    None
}

fn literal(line: &[u8], at: usize, literal: &[u8]) -> Option<usize> {
    line.get(at..)?.starts_with(literal).then_some(at + literal.len())
}

fn word(line: &[u8], at: usize) -> Option<u64> {
    line.get(at..)?.first_chunk().map(|eight| u64::from_le_bytes(*eight))
}
