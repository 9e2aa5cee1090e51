//! The long texts of a tool's result, cut out of its JSON: they become JavaScript strings as they are, so that the JavaScript thread has
//! neither to copy nor to parse them (10 MB cost it 12 ms so, and next to nothing this way).
//!
//! What is left is the same JSON with `""` in the place of each text, and JavaScript puts the texts back. Whoever reads it gets what
//! `JSON.parse` of the whole would have given, keys in order: where that is not plain to see, nothing is cut.

use std::ops::Range;

use super::scan::{ANY, plain_length};
use super::strings::JsString;
use crate::link::result_text::{LONG, LongString, ResultText};

/// A result without its long texts.
#[derive(Debug, PartialEq, Eq)]
pub struct Cut {
    pub json: String,
    /// Each with the index of its item in `content`.
    pub texts: Vec<(u32, JsString)>,
}

/// Cuts the long texts of the items of `content` out of `result`; gives it back where there are none. `result` is valid JSON.
pub fn cut(result: ResultText) -> Result<Cut, ResultText> {
    let Some(found) = find(&result).filter(|found| !found.is_empty()) else { return Err(result) };
    let (line, part) = result.into_parts();
    let mut json = Vec::with_capacity(part.len() - found.iter().map(|text| text.body.len()).sum::<usize>());
    let mut at = part.start;
    for text in &found {
        json.extend_from_slice(&line[at..text.body.start]);
        at = text.body.end;
    }
    json.extend_from_slice(&line[at..part.end]);
    // Cut at quotes, what was UTF-8 still is.
    let json = String::from_utf8(json).unwrap_or_default();
    // The only one, as it mostly is, takes over the memory of the result.
    if let [text] = &found[..] {
        return Ok(Cut { json, texts: vec![(text.index, text.of(line, text.body.clone()))] });
    }
    let texts = found.into_iter().map(|text| {
        let body = line[text.body.clone()].to_vec();
        let whole = 0..body.len();
        (text.index, text.of(body, whole))
    });
    Ok(Cut { json, texts: texts.collect() })
}

/// A text that is to be cut out.
struct Found {
    /// Of its item in `content`.
    index: u32,
    /// Without its quotes.
    body: Range<usize>,
    is_plain: bool,
}

impl Found {
    fn of(&self, bytes: Vec<u8>, part: Range<usize>) -> JsString {
        if self.is_plain { JsString::Latin1 { bytes, part } } else { JsString::unescaped(bytes, part) }
    }
}

/// Where the long texts stand. `None` where a key is written in escapes or comes twice, for then the last one would
/// count; and where most of the result is something else, which has to be parsed anyway.
fn find(result: &ResultText) -> Option<Vec<Found>> {
    let (line, part, seen) = result.parts();
    let is_most = |length: usize| length >= part.len() / 2;
    let strings = seen.map(|seen| &*seen.strings);
    if strings.is_some_and(|strings| !is_most(strings.iter().map(|string| string.body.len()).sum())) {
        return None;
    }
    let mut reader = Reader { json: line.get(..part.end)?, at: part.start, strings };
    let mut found = None;
    loop {
        match reader.next_key(b"content")? {
            Key::End => return found,
            Key::Other => reader.skip_value()?,
            Key::Named => {
                let texts = reader.long_texts()?;
                if !is_most(texts.iter().map(|text| text.body.len()).sum()) || found.replace(texts).is_some()
                {
                    return None;
                }
            }
        }
    }
}

/// What comes next in an object.
enum Key {
    /// The key that was looked for; its value follows.
    Named,
    /// Another; its value follows.
    Other,
    End,
}

/// Goes through valid JSON once, from front to back.
struct Reader<'a> {
    json: &'a [u8],
    at: usize,
    /// The long ones, where they are known: nobody has to look for their ends again.
    strings: Option<&'a [LongString]>,
}

impl Reader<'_> {
    /// Reads on to the value of the next member of an object, from its `{` on. `None` where there is no object, or the
    /// key would have to be decoded to tell.
    fn next_key(&mut self, name: &[u8]) -> Option<Key> {
        let before = self.peek()?;
        if !matches!(before, b'{' | b',' | b'}') {
            return None;
        }
        self.at += 1;
        if before == b'}' {
            return Some(Key::End);
        }
        if before == b'{' && self.peek()? == b'}' {
            self.at += 1;
            return Some(Key::End);
        }
        self.peek()?;
        let key = self.string()?;
        let key = &self.json[key];
        self.peek()?;
        self.at += 1;
        (!key.contains(&b'\\')).then_some(if key == name { Key::Named } else { Key::Other })
    }

    /// The long texts of the items of an array.
    fn long_texts(&mut self) -> Option<Vec<Found>> {
        let mut texts = Vec::new();
        if self.peek()? != b'[' {
            return None;
        }
        self.at += 1;
        for index in 0.. {
            match self.peek()? {
                b']' => break,
                b'{' => {
                    let body = self.text()?;
                    if body.len() >= LONG {
                        let is_plain = self.known(body.start).is_some_and(|string| string.is_plain);
                        texts.push(Found { index, body, is_plain });
                    }
                }
                _ => self.skip_value()?,
            }
            self.at += usize::from(self.peek()? == b',');
        }
        self.at += 1;
        Some(texts)
    }

    /// The body of the string that is the `text` of an object; empty where there is none.
    fn text(&mut self) -> Option<Range<usize>> {
        let mut text = None;
        loop {
            match self.next_key(b"text")? {
                Key::End => return Some(text.unwrap_or_default()),
                Key::Named if text.is_some() => return None,
                Key::Named if self.peek()? == b'"' => text = Some(self.string()?),
                Key::Named => {
                    self.skip_value()?;
                    text = Some(Range::default());
                }
                Key::Other => self.skip_value()?,
            }
        }
    }

    /// The body of a string.
    fn string(&mut self) -> Option<Range<usize>> {
        let start = self.at + 1;
        if let Some(body) = self.known(start).map(|string| string.body.clone()) {
            self.at = body.end + 1;
            return Some(body);
        }
        self.at = start;
        loop {
            self.at += plain_length::<ANY>(self.json.get(self.at..)?);
            if *self.json.get(self.at)? == b'"' {
                break;
            }
            self.at += 2;
        }
        self.at += 1;
        Some(start..self.at - 1)
    }

    /// The long string whose body starts there.
    fn known(&self, start: usize) -> Option<&LongString> {
        let strings = self.strings?;
        strings.binary_search_by_key(&start, |string| string.body.start).ok().map(|index| &strings[index])
    }

    fn skip_value(&mut self) -> Option<()> {
        let mut depth = 0_usize;
        loop {
            match self.peek()? {
                b'"' => {
                    self.string()?;
                }
                b'{' | b'[' => {
                    depth += 1;
                    self.at += 1;
                }
                b'}' | b']' => {
                    depth -= 1;
                    self.at += 1;
                }
                b',' | b':' => self.at += 1,
                _ => {
                    let ends = |byte: &u8| matches!(byte, b',' | b'}' | b']') || byte.is_ascii_whitespace();
                    self.at += self.json[self.at..].iter().position(ends)?;
                }
            }
            if depth == 0 {
                return Some(());
            }
        }
    }

    /// The next byte that is no space.
    fn peek(&mut self) -> Option<u8> {
        self.at += self.json.get(self.at..)?.iter().position(|byte| !byte.is_ascii_whitespace())?;
        Some(self.json[self.at])
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;
    use crate::link::envelope::{Message, parse_owned};

    /// What JavaScript makes of a cut result: the texts back in their places.
    fn put_back(cut: &Cut) -> serde_json::Value {
        let mut result: serde_json::Value = serde_json::from_str(&cut.json).unwrap();
        for (index, text) in &cut.texts {
            let place = &mut result["content"][*index as usize]["text"];
            assert_eq!(*place, "", "nothing is left in the place of a text");
            *place = text.to_text().into();
        }
        result
    }

    /// The result as it comes: its long strings are known, or are not.
    fn both(json: &str) -> [ResultText; 2] {
        let line = format!(r#"{{"id":1,"result":{json}}}"#).into_bytes();
        let Ok(messages) = parse_owned(line) else { panic!("{json}") };
        let [Message::Result { result, .. }] = &messages[..] else { panic!("{json}") };
        assert_eq!(&**result, json.trim());
        [result.clone(), ResultText::from(json.to_owned())]
    }

    fn long(character: &str) -> String {
        character.repeat(LONG)
    }

    #[test]
    fn a_result_comes_back_whole_whatever_stands_around_its_texts() {
        let (a, b) = (long("a"), long(r#"\"\\\u00e9\n"#));
        for json in [
            format!(r#"{{"content":[{{"type":"text","text":"{a}"}}]}}"#),
            format!(r#"{{"content":[{{"text":"{b}","type":"text"}}],"isError":true}}"#),
            format!(
                r#" {{ "_meta" : {{ "content" : [ ] , "x":"]}}" }} , "content" : [ {{ "text" : "{a}" }} ] , "n":1.5 }} "#
            ),
            format!(
                r#"{{"content":[1,"x",[],{{}},{{"text":"{a}","annotations":{{"text":"no"}}}},{{"text":"short"}},{{"text":"{b}"}}]}}"#
            ),
            format!(
                r#"{{"content":[{{"type":"resource","resource":{{"text":"x"}},"text":"{b}"}}],"text":"y"}}"#
            ),
            format!(
                r#"{{"__proto__":{{"content":7}},"content":[{{"__proto__":{{"text":7}},"text":"{a}"}}]}}"#
            ),
        ] {
            let whole: serde_json::Value = serde_json::from_str(&json).unwrap();
            for result in both(&json) {
                let cut = cut(result).unwrap();
                assert!(cut.json.len() < 300, "{}", cut.json);
                assert_eq!(put_back(&cut), whole);
            }
        }
    }

    #[test]
    fn where_it_is_not_plain_to_see_nothing_is_cut() {
        let a = long("a");
        for json in [
            "{}".to_owned(),
            r#"{"content":[{"type":"text","text":"short"}]}"#.to_owned(),
            format!(r#"[{{"text":"{a}"}}]"#),
            format!("\"{a}\""),
            format!(r#"{{"content":"{a}"}}"#),
            format!(r#"{{"content":{{"text":"{a}"}}}}"#),
            format!(r#"{{"content":[{{"text":["{a}"]}}]}}"#),
            format!(r#"{{"content":[{{"data":"{a}"}}]}}"#),
            // The last one counts.
            format!(r#"{{"content":[{{"text":"{a}"}}],"content":[]}}"#),
            format!(r#"{{"content":[],"content":[{{"text":"{a}"}}]}}"#),
            format!(r#"{{"content":[{{"text":"{a}"}}],"c\u006fntent":[]}}"#),
            format!(r#"{{"content":[{{"text":"{a}","text":1}}]}}"#),
            format!(r#"{{"content":[{{"text":"{a}","t\u0065xt":1}}]}}"#),
            // Has to be parsed anyway.
            format!(r#"{{"content":[{{"text":"{a}"}}],"structuredContent":["{a}","{a}"]}}"#),
        ] {
            for result in both(&json) {
                assert_eq!(&*cut(result).unwrap_err(), json);
            }
        }
    }
}
