//! Arguments with long strings. `JSON.stringify` takes a millisecond for each megabyte of a string, on the JavaScript
//! thread, so JavaScript writes only what is around them, and they are written here.

use std::fmt::Write;

use super::scan::{NO_CONTROLS, plain_length};

/// The JSON text of pieces: in turns text as it is, and a string still to be written; text first and last.
pub fn joined(pieces: &[String]) -> String {
    let length: usize = pieces.iter().map(String::len).sum();
    // A sixteenth for escapes and quotes, and for what comes before and after the arguments: then it need not move.
    let mut json = String::with_capacity(length + length / 16 + 256);
    for (index, piece) in pieces.iter().enumerate() {
        if index % 2 == 0 {
            json.push_str(piece);
        } else {
            push_quoted(&mut json, piece);
        }
    }
    json
}

/// A JSON string, in the very words of `JSON.stringify`.
fn push_quoted(json: &mut String, text: &str) {
    json.push('"');
    let mut rest = text;
    loop {
        let plain = plain_length::<NO_CONTROLS>(rest.as_bytes());
        json.push_str(rest.get(..plain).unwrap_or_default());
        let Some(&byte) = rest.as_bytes().get(plain) else { break };
        match byte {
            b'"' => json.push_str("\\\""),
            b'\\' => json.push_str("\\\\"),
            b'\n' => json.push_str("\\n"),
            b'\r' => json.push_str("\\r"),
            b'\t' => json.push_str("\\t"),
            0x08 => json.push_str("\\b"),
            0x0c => json.push_str("\\f"),
            // Writing to a String cannot fail.
            control => drop(write!(json, "\\u{control:04x}")),
        }
        rest = rest.get(plain + 1..).unwrap_or_default();
    }
    json.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_written_as_json_has_them() {
        let all: String = (0..0x300).filter_map(char::from_u32).chain("完😀\u{2028}".chars()).collect();
        for start in 0..0x60 {
            let text: String = all.chars().skip(start).collect();
            let expected = serde_json::Value::from(text.as_str()).to_string();
            assert_eq!(joined(&[String::new(), text, String::new()]), expected);
        }
    }

    #[test]
    fn what_is_around_them_stays() {
        let pieces = [r#"{"a":1,"b":"#, "x\"y", r#","c":"#, "", "}"].map(str::to_owned);
        assert_eq!(joined(&pieces), r#"{"a":1,"b":"x\"y","c":""}"#);
    }
}
