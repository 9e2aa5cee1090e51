//! What a long line holds, found piece by piece while the rest is still on its way: its bytes are in the cache then,
//! and its end costs no more than that of a short line. After it, `serde_json` took as long again as the transfer
//! (10,000 rows: 1.1 of 3.8 ms).
//!
//! It knows the one thing that long lines are, an object that is an answer and nothing else, and it is as strict as
//! JSON. Whatever else comes it [gives up](Outline::lone_result), and the line is read the slow way.

mod dense;

use std::ops::Range;

use super::envelope::{AnswerId, answer_id_text};
use super::result_text::{LONG, LongString, Seen};
use crate::words::{HIGH, repeated};

/// A line is worth an outline from this length on.
pub const OUTLINE_FROM: usize = 32 * 1024;

/// Deeper ones are given up, as are tokens outside of strings that would be longer.
const DEPTH_MAX: usize = 1024;
const TOKEN_MAX: usize = 4096;

/// The members of the line that say what it is.
const NAMES: [&[u8]; 4] = [b"id", b"method", b"error", b"result"];

/// Where a line stands after what was read of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// A value comes next,
    Value,
    /// or the end of an array that has none yet.
    FirstElement,
    Key,
    FirstKey,
    Colon,
    /// After a value in an object or array.
    After,
    InKey,
    InString,
    /// After the object that the line is.
    Done,
    /// It is not for us.
    GivenUp,
}

#[derive(Debug)]
pub struct Outline {
    state: State,
    /// Up to where the line was read.
    at: usize,
    /// The containers that are open: true for an object.
    open: Vec<bool>,
    keys: dense::Keys,
    /// Where the body of the string began that was read last or is being read, and what is in it.
    string: usize,
    is_escaped: bool,
    is_ascii: bool,
    /// Up to where the line is known to be UTF-8; `None` while all of it is ASCII.
    valid: Option<usize>,
    /// Which of [`NAMES`] the member of the line is that was begun last, and where its value begins.
    member: Option<usize>,
    value: usize,
    members: [Option<Range<usize>>; NAMES.len()],
    strings: Vec<LongString>,
}

impl Default for Outline {
    fn default() -> Self {
        Self {
            // Without the fast way every line is read the slow one.
            state: if cfg!(feature = "slow-paths") { State::GivenUp } else { State::Value },
            at: 0,
            open: Vec::new(),
            keys: dense::Keys::default(),
            string: 0,
            is_escaped: false,
            is_ascii: true,
            valid: None,
            member: None,
            value: 0,
            members: [const { None }; NAMES.len()],
            strings: Vec::new(),
        }
    }
}

impl Outline {
    /// Reads on. `line`: all that has come of it.
    pub fn read(&mut self, line: &[u8]) {
        if self.state != State::GivenUp && self.read_on(line).and_then(|()| self.validate(line)).is_none() {
            self.state = State::GivenUp;
        }
    }

    /// Whether [`Outline::lone_result`] is all there is to do with the line: it is a result, in ASCII, and nothing else.
    #[must_use]
    pub fn is_plain(&self) -> bool {
        let [_, method, error, result] = &self.members;
        self.state == State::Done
            && self.valid.is_none()
            && method.is_none()
            && error.is_none()
            && result.is_some()
    }

    /// Whether a line that has been read has no long string: somebody will take his time to parse it.
    #[must_use]
    pub fn is_dense(&self) -> bool {
        self.state == State::Done && self.strings.is_empty()
    }

    /// Whose result the whole `line` is, where that stands, and what was seen. `None` where it is something else, or may be.
    #[must_use]
    pub fn lone_result(self, line: &[u8]) -> Option<(AnswerId, Range<usize>, Seen)> {
        let [id, method, error, result] = self.members;
        let is_whole = self.state == State::Done
            && self.at == line.len()
            && self.valid.is_none_or(|valid| valid == line.len());
        if !is_whole || method.or(error).is_some() {
            return None;
        }
        let id = match id {
            Some(id) => answer_id_text(std::str::from_utf8(line.get(id)?).ok()?),
            None => AnswerId::Absent,
        };
        Some((id, result?, Seen { is_ascii: self.valid.is_none(), strings: self.strings }))
    }

    /// Until the line ends, or a token may not be whole yet. `None`: it is no JSON, or not what is looked for.
    fn read_on(&mut self, line: &[u8]) -> Option<()> {
        loop {
            if self.state == State::After && self.open.len() > 1 {
                (self.state, self.at) =
                    dense::read_on(line, self.at, &mut self.open, &mut self.keys, self.valid.is_none());
            }
            if matches!(self.state, State::InKey | State::InString) {
                if !self.string(line)? {
                    return Some(());
                }
                continue;
            }
            let Some(&byte) = line.get(self.at) else { return Some(()) };
            if matches!(byte, b' ' | b'\t' | b'\r' | b'\n') {
                self.at += 1;
                continue;
            }
            match (self.state, byte) {
                (State::FirstKey | State::Key, b'"') => self.begin_string(State::InKey),
                (State::Colon, b':') => self.step(State::Value),
                (State::After, b',') => {
                    let in_object = *self.open.last()?;
                    self.step(if in_object { State::Key } else { State::Value });
                }
                (State::After | State::FirstKey, b'}') => self.close(true)?,
                (State::After | State::FirstElement, b']') => self.close(false)?,
                (State::Value | State::FirstElement, _) => {
                    if !self.value(line, byte)? {
                        return Some(());
                    }
                }
                _ => return None,
            }
        }
    }

    /// A value from its first byte on; false when it is not whole yet.
    fn value(&mut self, line: &[u8], byte: u8) -> Option<bool> {
        if self.open.len() == 1 {
            self.value = self.at;
        }
        match byte {
            b'{' | b'[' if self.open.len() < DEPTH_MAX => {
                self.open.push(byte == b'{');
                self.step(if byte == b'{' { State::FirstKey } else { State::FirstElement });
            }
            // The line itself is an object.
            _ if self.open.is_empty() => return None,
            b'"' => self.begin_string(State::InString),
            _ => {
                let rest = line.get(self.at..)?;
                let length = rest.iter().take(TOKEN_MAX).position(|byte| ends_token(*byte));
                let Some(length) = length else { return (rest.len() < TOKEN_MAX).then_some(false) };
                let token = &rest[..length];
                if !matches!(token, b"true" | b"false" | b"null") && !is_number(token) {
                    return None;
                }
                self.at += length;
                self.end_value();
            }
        }
        Some(true)
    }

    fn step(&mut self, state: State) {
        self.at += 1;
        self.state = state;
    }

    fn begin_string(&mut self, state: State) {
        self.step(state);
        self.string = self.at;
        self.is_escaped = false;
        self.is_ascii = true;
    }

    /// The rest of a string; false when it is not whole yet.
    fn string(&mut self, line: &[u8]) -> Option<bool> {
        loop {
            let (length, is_ascii) = plain_length(line.get(self.at..)?);
            self.at += length;
            if !is_ascii {
                self.is_ascii = false;
                self.valid.get_or_insert(self.string);
            }
            match line.get(self.at..)? {
                [b'"', ..] => break,
                [b'\\', b'u', digits @ ..] => {
                    let Some(digits) = digits.get(..4) else { return Some(false) };
                    if !digits.iter().all(u8::is_ascii_hexdigit) {
                        return None;
                    }
                    self.at += 6;
                }
                [b'\\', b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't', ..] => self.at += 2,
                [] | [b'\\'] => return Some(false),
                _ => return None,
            }
            self.is_escaped = true;
        }
        let body = self.string..self.at;
        self.at += 1;
        if self.state == State::InString {
            if body.len() >= LONG {
                self.strings.push(LongString { is_plain: self.is_ascii && !self.is_escaped, body });
            }
            self.end_value();
        } else {
            if self.open.len() == 1 {
                // It would have to be decoded to tell.
                if self.is_escaped {
                    return None;
                }
                let key = line.get(body)?;
                self.member = NAMES.iter().position(|name| *name == key);
            }
            self.state = State::Colon;
        }
        Some(true)
    }

    fn close(&mut self, is_object: bool) -> Option<()> {
        if self.open.pop()? != is_object {
            return None;
        }
        self.at += 1;
        self.end_value();
        Some(())
    }

    fn end_value(&mut self) {
        self.state = if self.open.is_empty() { State::Done } else { State::After };
        if self.open.len() == 1
            && let Some(member) = self.member.take()
        {
            // The last of two equal keys counts.
            self.members[member] = Some(self.value..self.at);
        }
    }

    /// Whether what has come is UTF-8, or the beginning of it.
    fn validate(&mut self, line: &[u8]) -> Option<()> {
        let Some(valid) = &mut self.valid else { return Some(()) };
        match std::str::from_utf8(line.get(*valid..)?) {
            Ok(rest) => *valid += rest.len(),
            Err(error) if error.error_len().is_none() => *valid += error.valid_up_to(),
            Err(_) => return None,
        }
        Some(())
    }
}

fn ends_token(byte: u8) -> bool {
    matches!(byte, b',' | b'}' | b']' | b' ' | b'\t' | b'\r' | b'\n')
}

/// RFC 8259, section 6.
fn is_number(token: &[u8]) -> bool {
    let digits = |text: &[u8]| text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let text = token.strip_prefix(b"-").unwrap_or(token);
    let whole = digits(text);
    if whole == 0 || (whole > 1 && text[0] == b'0') {
        return false;
    }
    let mut text = &text[whole..];
    if let [b'.', fraction @ ..] = text {
        let length = digits(fraction);
        if length == 0 {
            return false;
        }
        text = &fraction[length..];
    }
    if let [b'e' | b'E', exponent @ ..] = text {
        let exponent = if let [b'+' | b'-', digits @ ..] = exponent { digits } else { exponent };
        return !exponent.is_empty() && digits(exponent) == exponent.len();
    }
    text.is_empty()
}

/// How many bytes come before a quote, a backslash or a control character, and whether they are ASCII.
fn plain_length(text: &[u8]) -> (usize, bool) {
    const BLOCK: usize = 64;
    let (mut length, mut high) = (0, 0);
    loop {
        // Eight bytes at a time: in source code an escape follows after ten.
        let near = text[length..].len().min(BLOCK);
        for eight in text[length..length + near].chunks_exact(8) {
            let word = u64::from_le_bytes(eight.try_into().unwrap_or_default());
            let ends = specials(word);
            if ends != 0 {
                let count = ends.trailing_zeros() / 8;
                high |= word & !(u64::MAX << (count * 8)) & HIGH;
                return (length + count as usize, high == 0);
            }
            high |= word & HIGH;
            length += 8;
        }
        if near < BLOCK {
            for byte in &text[length..] {
                if special(*byte) != 0 {
                    break;
                }
                high |= u64::from(byte & 0x80);
                length += 1;
            }
            return (length, high == 0);
        }
        // Where so much is plain, more will be: then a block at a time, in the vectors of the processor.
        for block in text[length..].chunks_exact(BLOCK) {
            let (found, all) =
                block.iter().fold((0, 0), |(found, all), byte| (found | special(*byte), all | byte));
            if found != 0 {
                break;
            }
            high |= u64::from(all & 0x80);
            length += BLOCK;
        }
    }
}

/// The high bit of the first byte that is a quote, a backslash or a control character, and perhaps of bytes above it.
fn specials(word: u64) -> u64 {
    let quote = (word ^ repeated(b'"')).wrapping_sub(repeated(1));
    let backslash = (word ^ repeated(b'\\')).wrapping_sub(repeated(1));
    let control = word.wrapping_sub(repeated(0x20));
    (quote | backslash | control) & !word & HIGH
}

/// 1 for a quote, a backslash and a control character, without a branch.
fn special(byte: u8) -> u8 {
    u8::from(byte == b'"') | u8::from(byte == b'\\') | u8::from(byte < 0x20)
}

#[cfg(all(test, not(feature = "slow-paths")))]
mod tests;
