//! One message from a server: only what says whose it is is decoded; results and params stay the text that came.
//!
//! rmcp's typed decoding costs 42 times as much, loses fields and hangs on odd input (measured before this was built), and
//! `JSON.parse` accepts what serde's typed values refuse, so a result must not be decoded here at all.

use std::fmt;

use serde_json::value::RawValue;

use super::fields::{elements, fields, is_null, string};
use super::outline::{OUTLINE_FROM, Outline};
use super::result_text::ResultText;
use crate::json::with_whole_characters;

/// An id in an answer, leniently: the text of a number matches that number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AnswerId {
    Number(u64),
    /// `null`, or none at all.
    Absent,
    /// An id this client never gives out.
    Foreign,
}

/// An error object, as far as it could be read.
#[derive(Clone, PartialEq)]
pub struct RpcError {
    /// The `code` as it was written: a number, else whatever stood there.
    pub code: serde_json::Value,
    pub message: String,
    /// The text of `data`.
    pub data: Option<String>,
}

/// One message, classified.
#[derive(Clone, PartialEq)]
pub enum Message {
    /// The text of `result`.
    Result {
        id: AnswerId,
        result: ResultText,
    },
    Error {
        id: AnswerId,
        error: RpcError,
    },
    /// A request of the server; the id's text goes back as it came.
    Request {
        id: String,
        method: String,
        /// The text of `params`, `{}` when there are none.
        params: String,
    },
    /// The text of `params`, `{}` when there are none.
    Notification {
        method: String,
        params: String,
    },
}

/// What a server wrote is not redacted yet, and a result never is: these show how much there is.
impl fmt::Debug for RpcError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let data = self.data.as_ref().map_or(0, String::len);
        write!(formatter, "RpcError {{ message: {} bytes, data: {data} bytes }}", self.message.len())
    }
}

impl fmt::Debug for Message {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Result { id, result } => {
                write!(formatter, "Result {{ {id:?}, {} bytes }}", result.len())
            }
            Self::Error { id, error } => write!(formatter, "Error {{ {id:?}, {error:?} }}"),
            Self::Request { method, .. } => write!(formatter, "Request {{ method: {} bytes }}", method.len()),
            Self::Notification { method, params } => {
                write!(formatter, "Notification {{ method: {} bytes, {} bytes }}", method.len(), params.len())
            }
        }
    }
}

/// What one line held.
#[derive(Debug, PartialEq)]
pub enum Line {
    Messages(Vec<Message>),
    /// Not a message of the protocol. Never answered: a server that answers answers would loop (BR-26).
    Noise,
}

/// Reads one line. A batch (legal in 2025-03-26) gives several messages; elements of it that are no messages are left out.
#[must_use]
pub fn parse(line: &str) -> Line {
    let line = line.trim_matches(is_json_space);
    let messages = if line.starts_with('[') {
        elements(line)
            .map(|batch| batch.iter().filter_map(|element| message(element.get())).collect())
            .unwrap_or_default()
    } else {
        Vec::from_iter(message(line))
    };
    if messages.is_empty() { Line::Noise } else { Line::Messages(messages) }
}

/// JSON is UTF-8; a server that slips is read with U+FFFD in place of the bad bytes, as the official client does (BR-29).
fn decoded(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

/// Reads one line, which comes back if it is noise. The result of a long one takes over its memory: copying 10 MB costs
/// more than all the rest.
pub fn parse_owned(line: Vec<u8>) -> Result<Vec<Message>, String> {
    let mut outline = Outline::default();
    if line.len() >= OUTLINE_FROM {
        outline.read(&line);
    }
    parse_outlined(line, outline)
}

/// The same of a line that was outlined as far as there was something in it.
pub fn parse_outlined(line: Vec<u8>, outline: Outline) -> Result<Vec<Message>, String> {
    if let Some((id, part, seen)) = outline.lone_result(&line) {
        return Ok(vec![Message::Result { id, result: ResultText::Part { line, part, seen } }]);
    }
    let line = decoded(line);
    match parse(&line) {
        Line::Messages(messages) => Ok(messages),
        Line::Noise => Err(line),
    }
}

/// Space between JSON tokens, and the byte-order mark some Windows servers begin with (BR-28).
#[must_use]
pub fn is_json_space(character: char) -> bool {
    matches!(character, ' ' | '\t' | '\r' | '\n' | '\u{feff}')
}

fn message(text: &str) -> Option<Message> {
    let [id, method, params, result, error] = fields(text, ["id", "method", "params", "result", "error"])?;
    // `method: null` or `error: null` beside a result are seen in the field and mean absent.
    if let Some(method) = method.filter(|method| !is_null(method)) {
        let method = string(method)?.into_owned();
        let params = params.map_or_else(|| "{}".to_owned(), |params| params.get().to_owned());
        return Some(match id.filter(|id| !is_null(id)) {
            Some(id) => Message::Request { id: id.get().to_owned(), method, params },
            None => Message::Notification { method, params },
        });
    }
    let id = answer_id(id);
    if let Some(error) = error.filter(|error| !is_null(error)) {
        return Some(Message::Error { id, error: rpc_error(error) });
    }
    result.map(|result| Message::Result { id, result: result.get().to_owned().into() })
}

/// Reads an id of an answer.
#[must_use]
pub fn answer_id(id: Option<&RawValue>) -> AnswerId {
    id.map_or(AnswerId::Absent, |id| answer_id_text(id.get()))
}

/// Reads the text of an id: `7`, `7.0` and `"7"` all match 7.
#[must_use]
pub fn answer_id_text(text: &str) -> AnswerId {
    if text == "null" {
        return AnswerId::Absent;
    }
    let text = text.trim_matches('"');
    let whole = text.split_once('.').map_or(text, |(whole, fraction)| {
        if fraction.bytes().all(|digit| digit == b'0') { whole } else { text }
    });
    whole.parse().map_or(AnswerId::Foreign, AnswerId::Number)
}

fn rpc_error(error: &RawValue) -> RpcError {
    let members = fields(error.get(), ["code", "message", "data"]);
    let Some([code, message, data]) = members else {
        // Some servers answer with a bare string.
        let message = text(error).unwrap_or_else(|| error.get().to_owned());
        return RpcError { code: serde_json::Value::Null, message, data: None };
    };
    RpcError {
        code: code.and_then(|code| serde_json::from_str(code.get()).ok()).unwrap_or_default(),
        message: message.and_then(text).unwrap_or_default(),
        data: data.map(|data| data.get().to_owned()),
    }
}

/// A string that is only to be read by people.
fn text(raw: &RawValue) -> Option<String> {
    serde_json::from_str(&with_whole_characters(raw.get())).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(text: &str) -> Message {
        match parse(text) {
            Line::Messages(mut messages) if messages.len() == 1 => messages.remove(0),
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn a_result_keeps_its_text() {
        let text =
            r#"{"jsonrpc":"2.0","result":{"b":1e400,"a":-0,"__proto__":{"x":9007199254740993}},"id":3}"#;
        let result = r#"{"b":1e400,"a":-0,"__proto__":{"x":9007199254740993}}"#.to_owned().into();
        assert_eq!(one(text), Message::Result { id: AnswerId::Number(3), result });
    }

    #[test]
    fn a_long_line_is_read_as_any_other() {
        let long = "x".repeat(OUTLINE_FROM);
        for text in [
            r#"{"jsonrpc":"2.0","id":3,"result":{"a":[1,"\ud800*"]}}"#,
            "\u{feff} {\"result\" : \"*\" , \"id\":\"x\"}\r",
            r#"{"id":3,"result":{"*":1},"error":null,"method":null}"#,
            r#"[{"id":1,"result":{}},{"method":"*"}]"#,
            r#"{"id":1,"error":{"code":1,"message":"*"}}"#,
            r#"{"id":1,"result":"*","result":2}"#,
        ] {
            let text = text.replace('*', &long);
            assert_eq!(parse_owned(text.clone().into_bytes()).map(Line::Messages), Ok(parse(&text)));
        }
        for noise in [format!("hello {long}"), format!(r#"{{"id":"{long}"}}"#), "[1]".to_owned()] {
            assert_eq!(parse_owned(noise.clone().into_bytes()), Err(noise));
        }
    }

    #[test]
    fn odd_envelopes_are_read_for_what_they_mean() {
        let result = |id| Message::Result { id, result: "{}".to_owned().into() };
        assert_eq!(one(r#"{"id":"3","result":{}}"#), result(AnswerId::Number(3)));
        assert_eq!(one(r#"{"id":3.0,"result":{},"error":null}"#), result(AnswerId::Number(3)));
        assert_eq!(one("\u{feff}{\"id\":3,\"result\":{}}\r"), result(AnswerId::Number(3)));
        assert_eq!(one(r#"{"id":null,"result":{}}"#), result(AnswerId::Absent));
        assert_eq!(one(r#"{"id":"a","result":{}}"#), result(AnswerId::Foreign));
        assert_eq!(one(r#"{"id":-1,"result":{},"method":null}"#), result(AnswerId::Foreign));
    }

    #[test]
    fn errors_are_read_however_odd_their_code() {
        let error = |text: &str| match one(text) {
            Message::Error { error, .. } => error,
            other => panic!("{other:?}"),
        };
        assert_eq!(
            error(r#"{"id":1,"error":{"code":-32000,"message":"m","data":[1]}}"#).data.as_deref(),
            Some("[1]")
        );
        assert_eq!(error(r#"{"id":1,"error":{"code":"E","message":5},"result":{}}"#).code, "E");
        assert_eq!(error(r#"{"id":1,"error":{"code":1.5}}"#).code, 1.5);
        assert_eq!(error(r#"{"id":1,"error":"boom"}"#).message, "boom");
        assert_eq!(
            error(r#"{"id":1,"error":{"code":99999999999,"message":"big"}}"#).code,
            99_999_999_999_u64
        );
    }

    #[test]
    fn requests_and_notifications_are_told_apart() {
        let params = "{}".to_owned();
        assert_eq!(
            one(r#"{"id":"x","method":"ping"}"#),
            Message::Request { id: "\"x\"".into(), method: "ping".into(), params: params.clone() }
        );
        assert_eq!(one(r#"{"id":null,"method":"m"}"#), Message::Notification { method: "m".into(), params });
    }

    #[test]
    fn a_batch_is_several_messages() {
        let Line::Messages(messages) = parse(r#"[{"id":1,"result":{}},7,{"method":"m","params":[1]}]"#)
        else {
            panic!()
        };
        assert_eq!(messages.len(), 2);
    }

    #[test]
    fn everything_else_is_noise() {
        for text in [
            "",
            "hello",
            "7",
            "null",
            "[]",
            "[1]",
            "{}",
            r#"{"level":"info"}"#,
            r#"{"id":1}"#,
            r#"{"id":1,"result":}"#,
        ] {
            assert_eq!(parse(text), Line::Noise, "{text}");
        }
    }
}
