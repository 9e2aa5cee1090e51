//! Finds whose answer an over-long line is, while it streams by and is thrown away.
//!
//! A tokenizer of constant size: it knows whether it is inside a string and how deep, and keeps the value of `id` at depth 1,
//! wherever it stands (the official SDK writes it last). Text in the content that looks like an id is at another depth
//! or inside a string.

/// Longer ids than this are none of ours.
const ID_MAX: usize = 32;

/// Bytes of a key that are kept: enough to tell `id` and `method` from everything else.
const KEY_MAX: usize = 7;

#[derive(Debug, Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "independent facts of a tokenizer, not the states of one machine"
)]
pub struct IdFinder {
    depth: usize,
    in_string: bool,
    escaped: bool,
    /// Outside of strings at depth 1: what comes next is a value, not a key.
    in_value: bool,
    key: Vec<u8>,
    value: Vec<u8>,
    id: Option<String>,
    /// It has a `method`: a request of the server, whose id is its own.
    asks: bool,
    broken: bool,
    started: bool,
}

impl IdFinder {
    /// Reads on.
    pub fn feed(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            if self.in_string { self.string_byte(byte) } else { self.byte(byte) }
        }
    }

    /// The text of the id, if the line was one whole object that had one.
    #[must_use]
    pub fn finish(self) -> Option<String> {
        if self.broken || self.asks || self.in_string || self.depth != 0 { None } else { self.id }
    }

    fn string_byte(&mut self, byte: u8) {
        let ends = byte == b'"' && !self.escaped;
        self.escaped = byte == b'\\' && !self.escaped;
        self.in_string = !ends;
        if self.depth == 1 {
            self.keep(byte, ends);
        }
    }

    fn keep(&mut self, byte: u8, ends: bool) {
        if self.in_value {
            if self.value.len() < ID_MAX {
                self.value.push(byte);
            }
        } else if !ends && self.key.len() < KEY_MAX {
            self.key.push(byte);
        }
    }

    fn byte(&mut self, byte: u8) {
        match byte {
            b'"' => {
                self.in_string = true;
                if self.depth == 1 && self.in_value {
                    self.keep(byte, false);
                } else if self.depth == 1 {
                    self.key.clear();
                }
            }
            b'{' | b'[' => {
                // A line that is no object, or has something after it, answers nobody.
                self.broken |= self.depth == 0 && (self.started || byte == b'[');
                self.started = true;
                self.depth += 1;
            }
            b'}' | b']' => {
                if self.depth == 1 {
                    self.end_member();
                }
                self.broken |= self.depth == 0;
                self.depth = self.depth.saturating_sub(1);
            }
            b',' if self.depth == 1 => self.end_member(),
            b':' if self.depth == 1 => self.in_value = true,
            b' ' | b'\t' | b'\r' => {}
            _ if self.depth == 1 && self.in_value => self.keep(byte, false),
            _ if self.depth == 0 => self.broken |= !matches!(byte, 0xef | 0xbb | 0xbf),
            _ => {}
        }
    }

    fn end_member(&mut self) {
        // The last of two equal members counts, as everywhere.
        match self.key.as_slice() {
            b"id" if self.in_value => {
                let is_whole = !self.value.is_empty() && self.value.len() < ID_MAX;
                self.id = String::from_utf8(std::mem::take(&mut self.value)).ok().filter(|_| is_whole);
            }
            b"method" if self.in_value => self.asks = self.value != b"null",
            _ => {}
        }
        self.in_value = false;
        self.key.clear();
        self.value.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id_of(line: &str) -> Option<String> {
        let whole = {
            let mut finder = IdFinder::default();
            finder.feed(line.as_bytes());
            finder.finish()
        };
        let mut bytewise = IdFinder::default();
        line.bytes().for_each(|byte| bytewise.feed(&[byte]));
        assert_eq!(bytewise.finish(), whole, "split points must not matter: {line}");
        whole
    }

    #[test]
    fn the_id_is_found_wherever_it_stands() {
        for line in [
            r#"{"id":7,"result":{"x":1}}"#,
            r#"{"jsonrpc":"2.0","id": 7 ,"result":{}}"#,
            r#"{"result":{"id":9,"text":"\"id\":8,\\"},"jsonrpc":"2.0","id":7}"#,
            "\u{feff}{\"result\":[1,{\"id\":1}],\"id\":7}\r",
        ] {
            assert_eq!(id_of(line).as_deref(), Some("7"), "{line}");
        }
        assert_eq!(id_of(r#"{"id":7,"method":null,"result":{}}"#).as_deref(), Some("7"));
        assert_eq!(id_of(r#"{"id":"7","result":{}}"#).as_deref(), Some("\"7\""));
        assert_eq!(id_of(r#"{"id":1,"method":"m","result":{},"method":null,"id":7}"#).as_deref(), Some("7"));
    }

    #[test]
    fn what_only_looks_like_an_id_is_none() {
        for line in [
            r#"{"result":{"id":7}}"#,
            r#"{"result":"\"id\":7"}"#,
            r#"{"idx":7}"#,
            r#"[{"id":7}]"#,
            r#"{"id":7"#,
            r#"{"id":7}}"#,
            r#"{"id":7}{"id":7}"#,
            r#"junk {"id":7}"#,
            r#"{"id":{"a":1}}"#,
            r#"{"id":7,"id":{"a":1}}"#,
            r#"{"a":"id","b":7}"#,
            r#"{"id":7,"method":"sampling/createMessage"}"#,
            r#"{"method":"x","id":7}"#,
        ] {
            assert_eq!(id_of(line), None, "{line}");
        }
    }
}
