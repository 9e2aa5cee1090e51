#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use serde_json::value::RawValue;

use super::*;
use crate::link::fields::fields;

/// What is found in a line that comes in such pieces.
fn outlined(line: &[u8], piece: usize) -> Option<(AnswerId, Range<usize>, Seen)> {
    let mut outline = Outline::default();
    for end in (piece..line.len()).step_by(piece) {
        outline.read(&line[..end]);
    }
    outline.read(line);
    outline.lone_result(line)
}

/// An outline says what `serde_json` says, or nothing; wherever the line was cut. Gives whether it says something.
fn agrees(line: &[u8]) -> bool {
    let found = outlined(line, usize::MAX);
    for piece in [1, 2, 3, 7, 64, 65] {
        assert_eq!(outlined(line, piece), found, "in pieces of {piece}: {}", String::from_utf8_lossy(line));
    }
    let Some((id, part, seen)) = found else { return false };
    let line = std::str::from_utf8(line).unwrap();
    let [read, method, error, result] = fields(line, ["id", "method", "error", "result"]).unwrap();
    assert!(method.is_none() && error.is_none(), "{line}");
    assert_eq!((&line[part], id), (result.unwrap().get(), crate::link::envelope::answer_id(read)), "{line}");
    assert_eq!(seen.is_ascii, line.is_ascii(), "{line}");
    for string in seen.strings {
        let body = &line[string.body.clone()];
        assert!(serde_json::from_str::<&RawValue>(&line[string.body.start - 1..=string.body.end]).is_ok());
        assert_eq!(string.is_plain, body.is_ascii() && !body.contains('\\'));
    }
    true
}

fn answer(result: &str) -> Vec<u8> {
    format!(r#"{{"jsonrpc":"2.0","result":{result},"id":7}}"#).into_bytes()
}

#[test]
fn a_result_is_found_wherever_it_stands() {
    for line in [
        r#"{"id":7,"result":{}}"#,
        "\t{ \"result\" : [ 1 , { \"id\" : 8 } , [ ] , \"x\" ] , \"id\" : 7 } \r",
        r#"{"result":1,"id":"7","result":{"last":"counts"}}"#,
        r#"{"id":null,"result":null}"#,
        r#"{"result":"only"}"#,
        r#"{"id":7,"x":{"method":1,"error":2},"result":-0.5e+7}"#,
    ] {
        assert!(agrees(line.as_bytes()), "{line}");
    }
}

#[test]
fn what_is_something_else_is_left_to_others() {
    for line in [
        r#"{"id":7}"#,
        r#"{"id":7,"method":null,"result":{}}"#,
        r#"{"id":7,"error":null,"result":{}}"#,
        r#"{"id":7,"resul\u0074":{}}"#,
        r#"[{"id":7,"result":{}}]"#,
        "\u{feff}{\"id\":7,\"result\":{}}",
        r#"{"id":7,"result":{}}{}"#,
        r#"{"id":7,"result":{}"#,
        r#""result""#,
        "",
    ] {
        assert!(!agrees(line.as_bytes()), "{line}");
    }
    assert!(!agrees(&answer(&format!("{}{}", "[".repeat(DEPTH_MAX), "]".repeat(DEPTH_MAX)))));
    assert!(agrees(&answer(&format!("{}{}", "[".repeat(DEPTH_MAX - 2), "]".repeat(DEPTH_MAX - 2)))));
    assert!(!agrees(&answer(&"1".repeat(TOKEN_MAX))));
}

#[test]
fn it_is_as_strict_as_json() {
    for good in [
        "0",
        "-0",
        "10",
        "1.5",
        "-1.25e10",
        "1E+2",
        "1e-2",
        "1e999",
        "true",
        "false",
        "null",
        "[]",
        "{}",
        "[1,2]",
        r#""""#,
        r#""\"\\\/\b\f\n\r\t\u0000\uD83D\ude00\ud800""#,
        "\"\u{7f}é完😀\"",
        r#"{"":{"a":[]}}"#,
    ] {
        assert!(agrees(&answer(good)), "{good}");
    }
    for bad in [
        "",
        "01",
        "-",
        "1.",
        ".5",
        "+1",
        "1e",
        "1e+",
        "0x1",
        "1_0",
        "NaN",
        "tru",
        "True",
        "nullx",
        "[",
        "]",
        "[,]",
        "[1,]",
        "[1 2]",
        "{,}",
        r#"{"a"}"#,
        r#"{"a":}"#,
        r#"{"a":1,}"#,
        r#"{"a" 1}"#,
        r"{a:1}",
        r#"{"a":1 "b":2}"#,
        "{1:2}",
        "[}",
        "{]",
        "[1}",
        r#"{"a":1]"#,
        r#""\x""#,
        r#""\u12g4""#,
        r#""\u123""#,
        "\"\t\"",
        "\"\0\"",
        "\"\x1f\"",
        "'a'",
        "1//",
        r#""a"b"#,
        "\u{a0}1",
    ] {
        let line = answer(bad);
        assert!(serde_json::from_slice::<&RawValue>(&line).is_err(), "{bad}");
        assert!(!agrees(&line), "{bad}");
    }
    for bytes in
        [&b"\"\xff\""[..], b"\"\xc3\"", b"\"\xe5\xae\"", b"\"\xed\xa0\x80\"", b"\"\xc0\x80\"", b"\xc3\xa9"]
    {
        let line = [br#"{"id":7,"result":"#, bytes, b"}"].concat();
        assert!(!agrees(&line), "{bytes:?}");
    }
}

/// Rows with the same keys, one of which is damaged: what was known of the rows before must not hide it.
#[test]
fn it_agrees_with_another_parser_on_rows_that_are_alike_but_for_one() {
    const ODD: &[u8] = b"\"\\{}[],:x0-. \t\n\0\x80\xc3\xff";
    let mut random = Random(7);
    let (mut accepted, mut refused) = (0, 0);
    for round in 0..2_000 {
        let count = 2 + random.below(3);
        let rows = (0..count).map(|_| random.row(round % 3)).collect::<Vec<_>>().join(",");
        let mut line = answer(&format!(r#"{{"é":[{rows}],"rows":[{rows}],"more":{{"rows":[[{rows}]]}}}}"#));
        if round % 2 == 0 {
            line = String::from_utf8(line).unwrap().replace('é', "e").into_bytes();
        }
        assert!(agrees(&line), "{rows}");
        let at = random.below(line.len());
        match random.below(3) {
            0 => line[at] = ODD[random.below(ODD.len())],
            1 => line.insert(at, ODD[random.below(ODD.len())]),
            _ => drop(line.remove(at)),
        }
        *if agrees(&line) { &mut accepted } else { &mut refused } += 1;
    }
    assert!(accepted > 200 && refused > 200, "{accepted} {refused}");
}

/// A text that is JSON, then with something in it changed: what is accepted is what `serde_json` accepts.
#[test]
fn it_agrees_with_another_parser_on_whatever_comes() {
    const ODD: &[u8] = b"\"\\{}[],:x0-. \t\n\0\x80\xc3\xff";
    let mut random = Random(1);
    let (mut accepted, mut refused) = (0, 0);
    for _ in 0..4_000 {
        let mut result = String::new();
        random.value(&mut result, 4);
        let mut line = answer(&result);
        assert!(agrees(&line), "{result}");
        for _ in 0..=random.below(2) {
            let at = random.below(line.len());
            match random.below(3) {
                0 => line[at] = ODD[random.below(ODD.len())],
                1 => line.insert(at, ODD[random.below(ODD.len())]),
                _ => drop(line.remove(at)),
            }
        }
        *if agrees(&line) { &mut accepted } else { &mut refused } += 1;
    }
    assert!(accepted > 200 && refused > 200, "{accepted} {refused}");
}

#[test]
fn long_strings_are_told_of() {
    let plain = "a".repeat(LONG);
    let result = format!(r#"{{"a":"{plain}","b":["{plain}\n","{plain}é","short"]}}"#);
    let line = answer(&result);
    assert!(agrees(&line));
    let (_, part, seen) = outlined(&line, 1000).unwrap();
    assert_eq!(&line[part], result.as_bytes());
    let found: Vec<_> = seen.strings.iter().map(|string| (string.body.len(), string.is_plain)).collect();
    assert_eq!(found, [(LONG, true), (LONG + 2, false), (LONG + 2, false)]);
}

#[test]
fn a_plain_run_ends_where_it_ends() {
    for length in (0..80).chain(120..200) {
        for end in [b'"', b'\\', 0, 0x1f, 0x20, 0x7f, b'!', b'#', b'[', b']'] {
            for high in [None, Some(0), Some(length / 2), Some(length + 1)] {
                let mut text = vec![b'~'; length];
                text.extend([end, b'"', b'"', 0x80, b'"', b' ', b' ', b' ', b' ']);
                if let Some(high) = high {
                    text[high] = 0xe5;
                }
                let expected = text.iter().position(|byte| special(*byte) != 0).unwrap_or(text.len());
                assert_eq!(plain_length(&text), (expected, text[..expected].is_ascii()), "{text:?}");
            }
        }
    }
}

/// A generator of numbers (xorshift) and of JSON.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 33).unwrap() % limit
    }

    /// With other values and the same keys, but for one of them now and then, with or without space.
    fn row(&mut self, kind: usize) -> String {
        const NUMBERS: [&str; 8] =
            ["0", "-7", "1234", "12345", "3.25", "-0.123456789012345678", "123456789012345678901.5", "1e5"];
        let number = NUMBERS[self.below(NUMBERS.len())];
        let name = "n".repeat(self.below(20));
        let key = if self.below(5) == 0 { "other" } else { "a key of 12" };
        let odd = ["fifteen letters", "sixteen letters.", "é", "\\u0061"][kind];
        let row = format!(
            r#"{{"id":{number},"{key}":"{name}","{odd}":[{number},{{}},[]],"in":{{"a":true,"b":{{"c":null}}}},"d":false}}"#
        );
        match self.below(3) {
            0 => row.replace(':', ": ").replace(',', ", "),
            _ => row,
        }
    }

    fn space(&mut self, text: &mut String) {
        text.push_str(["", "", "", " ", "\t", "\r", "  "][self.below(7)]);
    }

    fn string(&mut self, text: &mut String) {
        const PIECES: [&str; 10] = [
            "",
            "a",
            "result",
            "plain text",
            "\\n",
            "\\\"",
            "\\u00e9",
            "\\ud800",
            "é",
            "完😀 and more than eight",
        ];
        text.push('"');
        for _ in 0..self.below(4) {
            text.push_str(PIECES[self.below(PIECES.len())]);
            if self.below(8) == 0 {
                text.push_str(&"x".repeat(self.below(150)));
            }
        }
        text.push('"');
    }

    fn value(&mut self, text: &mut String, depth: usize) {
        const PLAIN: [&str; 9] =
            ["0", "-12", "3.25", "1e9", "-0.5E-3", "true", "false", "null", "12345678901234567890"];
        self.space(text);
        match self.below(if depth == 0 { 6 } else { 12 }) {
            0..3 => text.push_str(PLAIN[self.below(PLAIN.len())]),
            3..6 => self.string(text),
            kind => {
                let is_object = kind < 9;
                text.push(if is_object { '{' } else { '[' });
                self.space(text);
                for index in 0..self.below(4) {
                    if index > 0 {
                        text.push(',');
                    }
                    self.space(text);
                    if is_object {
                        self.string(text);
                        self.space(text);
                        text.push(':');
                    }
                    self.value(text, depth - 1);
                }
                text.push(if is_object { '}' } else { ']' });
            }
        }
        self.space(text);
    }
}

#[test]
fn only_a_result_in_ascii_needs_no_more_than_its_outline() {
    let is_plain = |line: &str| {
        let mut outline = Outline::default();
        outline.read(line.as_bytes());
        outline.is_plain()
    };
    assert!(is_plain(r#"{"jsonrpc":"2.0","id":1,"result":{"a":[1,"b"]}}"#));
    for line in [
        r#"{"jsonrpc":"2.0","method":"a","params":{}}"#,
        r#"{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"a"}}"#,
        r#"{"jsonrpc":"2.0","id":1,"result":{},"error":{}}"#,
        r#"{"jsonrpc":"2.0","id":1}"#,
        r#"{"jsonrpc":"2.0","id":1,"result":{"a":"é"}}"#,
        r#"{"jsonrpc":"2.0","id":1,"result":{"#,
    ] {
        assert!(!is_plain(line), "{line}");
    }
}
