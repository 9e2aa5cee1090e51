//! The text of what a session sends. Arguments and params stay the text that `JSON.stringify` wrote.

use std::collections::HashSet;
use std::fmt::Write;

use rmcp::model::{
    ClientCapabilities, ElicitationCapability, Implementation, InitializeRequestParams, ProtocolVersion,
    RequestMetaObject,
};
use serde::Serialize;
use serde_json::value::RawValue;

use crate::error::{ErrorCode, McpError};
use crate::link::fields::members;

/// From here on moving a text costs less than the memory for another.
const IN_PLACE_FROM: usize = 64 * 1024;

/// As much of a method that nobody offers as is repeated to the server, in bytes.
const METHOD_SHOWN: usize = 200;

/// The `_meta` of one request, before it is text.
#[derive(Clone, Copy, Default)]
pub(super) struct Meta<'a> {
    /// The JSON object the caller gave.
    pub given: Option<&'a str>,
    /// Progress is wanted, under this token.
    pub progress_token: Option<u64>,
    /// What a connection of 2026-07-28 or later puts on every request: [`modern_meta`].
    pub modern: Option<&'a str>,
}

/// The frame of a request; `params` is the text of a JSON object.
#[must_use]
pub(super) fn request(id: u64, method: &str, params: Option<&str>) -> String {
    let mut text = String::with_capacity(64 + method.len() + params.map_or(0, str::len));
    // Writing to a String cannot fail.
    let _ = write!(text, r#"{{"jsonrpc":"2.0","id":{id},"method":"#);
    push_quoted(&mut text, method);
    if let Some(params) = params {
        text.push_str(r#","params":"#);
        text.push_str(params);
    }
    text.push('}');
    text
}

/// As [`request`]. Long params are not copied once more: a fresh megabyte costs a tenth of a millisecond for its pages
/// alone, on the host's JavaScript thread.
#[must_use]
pub(super) fn request_around(id: u64, method: &str, params: Option<String>) -> String {
    match params {
        Some(params) if params.len() > IN_PLACE_FROM => {
            let head = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":{},"params":"#, quoted(method));
            around(&head, params, "}")
        }
        params => request(id, method, params.as_deref()),
    }
}

/// The text between two others, in its own memory where that has room for them.
fn around(before: &str, mut text: String, after: &str) -> String {
    text.reserve(before.len() + after.len());
    text.insert_str(0, before);
    text.push_str(after);
    text
}

/// The frame of a request under another id.
#[must_use]
pub(super) fn with_id(request: &str, id: u64, next: u64) -> String {
    request.replacen(&format!(r#""id":{id},"#), &format!(r#""id":{next},"#), 1)
}

/// The frame of a notification.
#[must_use]
pub(super) fn notification(method: &str, params: Option<&str>) -> String {
    let params = params.map(|params| format!(r#","params":{params}"#)).unwrap_or_default();
    format!(r#"{{"jsonrpc":"2.0","method":{}{params}}}"#, quoted(method))
}

/// What tells the server that nobody waits any more. No text of the host goes along (BR-39).
#[must_use]
pub(super) fn cancelled(id: u64) -> String {
    notification("notifications/cancelled", Some(&format!(r#"{{"requestId":{id}}}"#)))
}

/// The answer to a request of the server: `id` is the text of its id. Only `ping` is served here.
#[must_use]
pub(super) fn answer(id: &str, method: &str) -> String {
    if method == "ping" {
        return format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#);
    }
    let shown = method.get(..method.floor_char_boundary(METHOD_SHOWN)).unwrap_or(method);
    let message = quoted(&format!("this client does not offer {shown}"));
    format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-32601,"message":{message}}}}}"#)
}

/// What the host answers to a question of the server: the text of a result, or what went wrong.
#[must_use]
pub(super) fn answer_input(id: &str, outcome: Result<String, String>) -> String {
    match outcome {
        Ok(result) => format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#),
        Err(message) => {
            let message = quoted(&message);
            format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-32603,"message":{message}}}}}"#)
        }
    }
}

/// The params of `tools/call`; `arguments` is the text of a JSON object.
pub(super) fn tool_call(name: &str, arguments: String, meta: Meta<'_>) -> Result<String, McpError> {
    if arguments.len() > IN_PLACE_FROM {
        let meta = meta_text(meta, None)?.map(|meta| format!(r#","_meta":{meta}"#)).unwrap_or_default();
        return Ok(around(
            &format!(r#"{{"name":{},"arguments":"#, quoted(name)),
            arguments,
            &format!("{meta}}}"),
        ));
    }
    let mut text = String::with_capacity(48 + name.len() + arguments.len());
    text.push_str(r#"{"name":"#);
    push_quoted(&mut text, name);
    text.push_str(r#","arguments":"#);
    text.push_str(&arguments);
    if let Some(meta) = meta_text(meta, None)? {
        text.push_str(r#","_meta":"#);
        text.push_str(&meta);
    }
    text.push('}');
    Ok(text)
}

/// The params of any request: what was given, with the `_meta` worked in.
pub(super) fn params(given: Option<&str>, meta: Meta<'_>) -> Result<Option<String>, McpError> {
    if meta.given.is_none() && meta.progress_token.is_none() && meta.modern.is_none() {
        return Ok(given.map(str::to_owned));
    }
    let members = given.map(object).transpose()?.unwrap_or_default();
    let inner = members.iter().find(|(key, _)| key.get() == r#""_meta""#).map(|(_, value)| value.get());
    // A `meta` that holds nothing adds nothing.
    let Some(meta) = meta_text(meta, inner)? else { return Ok(given.map(str::to_owned)) };
    let kept = members.iter().filter(|(key, _)| key.get() != r#""_meta""#);
    let kept: Vec<_> = kept.map(|(key, value)| (key.get(), value.get())).collect();
    Ok(Some(join(kept.into_iter().chain([(r#""_meta""#, meta.as_str())]))))
}

/// The params of `initialize`.
pub(super) fn initialize(version: &ProtocolVersion, answers_input: bool) -> Result<String, McpError> {
    let params = InitializeRequestParams::new(capabilities(answers_input), client());
    to_text(&params.with_protocol_version(version.clone()))
}

/// Version, client and capabilities, as revisions from 2026-07-28 on want them in the `_meta` of every request.
pub(super) fn modern_meta(version: &ProtocolVersion, answers_input: bool) -> Result<String, McpError> {
    let capabilities = capabilities(answers_input);
    to_text(&RequestMetaObject::with_client_context(version.clone(), client(), capabilities))
}

/// What is not declared is not asked for.
fn capabilities(answers_input: bool) -> ClientCapabilities {
    let mut capabilities = ClientCapabilities::default();
    capabilities.elicitation = answers_input.then(ElicitationCapability::default);
    capabilities
}

/// A JSON string.
#[must_use]
pub(super) fn quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    push_quoted(&mut quoted, text);
    quoted
}

fn push_quoted(to: &mut String, text: &str) {
    // What names mostly are; the other way takes two more pieces of memory.
    if text.bytes().all(|byte| byte >= b' ' && byte != b'"' && byte != b'\\') {
        to.push('"');
        to.push_str(text);
        to.push('"');
    } else {
        to.push_str(&serde_json::Value::from(text).to_string());
    }
}

fn client() -> Implementation {
    Implementation::new(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION"))
}

/// Ours first: a caller cannot override the progress token or the version. Then the caller's, then what stood in the params.
fn meta_text(meta: Meta<'_>, inner: Option<&str>) -> Result<Option<String>, McpError> {
    if meta.given.is_none() && meta.progress_token.is_none() && meta.modern.is_none() && inner.is_none() {
        return Ok(None);
    }
    let token = meta.progress_token.map(|token| format!(r#"{{"progressToken":{token}}}"#));
    let mut all = Vec::new();
    let mut seen = HashSet::new();
    for source in [token.as_deref(), meta.modern, meta.given, inner].into_iter().flatten() {
        for (key, value) in object(source)? {
            if seen.insert(key.get()) {
                all.push((key.get(), value.get()));
            }
        }
    }
    Ok((!all.is_empty()).then(|| join(all)))
}

fn object(text: &str) -> Result<Vec<(&RawValue, &RawValue)>, McpError> {
    members(text)
        .ok_or_else(|| McpError::new(ErrorCode::InvalidArgument, "params and _meta must be JSON objects."))
}

fn join<'a>(members: impl IntoIterator<Item = (&'a str, &'a str)>) -> String {
    let members: Vec<_> = members.into_iter().map(|(key, value)| format!("{key}:{value}")).collect();
    format!("{{{}}}", members.join(","))
}

fn to_text(value: &impl Serialize) -> Result<String, McpError> {
    serde_json::to_string(value).map_err(|error| {
        McpError::new(ErrorCode::Internal, format!("A message could not be written: {error}."))
    })
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    #[test]
    fn arguments_go_out_as_they_were_written() {
        let arguments = r#"{"x":1e400,"__proto__":"\ud800"}"#.to_owned();
        let params = tool_call("a\"b", arguments, Meta::default()).unwrap();
        assert_eq!(params, r#"{"name":"a\"b","arguments":{"x":1e400,"__proto__":"\ud800"}}"#);
        let expected = r#"{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{}}"#;
        assert_eq!(request(4, "tools/call", Some("{}")), expected);
        assert_eq!(with_id(expected, 4, 5), request(5, "tools/call", Some("{}")));
    }

    #[test]
    fn long_arguments_make_the_same_text_as_short_ones() {
        let meta = Meta { given: Some(r#"{"k":1}"#), progress_token: Some(9), modern: None };
        let frame = |text: &str| {
            let params = tool_call("t", format!(r#"{{"x":"{text}"}}"#), meta).unwrap();
            request_around(4, "tools/call", Some(params))
        };
        let long = "y".repeat(IN_PLACE_FROM);
        let short = frame("*");
        assert_eq!(
            short,
            request(
                4,
                "tools/call",
                Some(r#"{"name":"t","arguments":{"x":"*"},"_meta":{"progressToken":9,"k":1}}"#)
            )
        );
        assert_eq!(frame(&long), short.replace('*', &long));
    }

    #[test]
    fn the_callers_meta_is_kept_and_ours_wins() {
        let given = r#"{"traceparent":"t","progressToken":"mine","\ud800":0.10}"#;
        let meta = Meta { given: Some(given), progress_token: Some(9), modern: None };
        let text = params(Some(r#"{"uri":"u","_meta":{"traceparent":"old","k":1}}"#), meta).unwrap().unwrap();
        let expected = r#"{"uri":"u","_meta":{"progressToken":9,"traceparent":"t","\ud800":0.10,"k":1}}"#;
        assert_eq!(text, expected);
    }

    #[test]
    fn an_empty_meta_leaves_the_params_as_they_are() {
        let meta = Meta { given: Some("{}"), ..Meta::default() };
        assert_eq!(params(Some(r#"{"uri":"u"}"#), meta).unwrap().as_deref(), Some(r#"{"uri":"u"}"#));
        assert_eq!(params(None, meta).unwrap(), None);
    }

    #[test]
    fn a_modern_request_names_version_client_and_capabilities() {
        let modern = modern_meta(&ProtocolVersion::V_2026_07_28, false).unwrap();
        let text = params(None, Meta { modern: Some(&modern), ..Meta::default() }).unwrap().unwrap();
        let params: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(params["_meta"]["io.modelcontextprotocol/protocolVersion"], "2026-07-28");
        assert_eq!(params["_meta"]["io.modelcontextprotocol/clientInfo"]["name"], "workflow-mcp");
        assert_eq!(params["_meta"]["io.modelcontextprotocol/clientCapabilities"], serde_json::json!({}));
    }

    #[test]
    fn what_is_no_object_is_refused() {
        let meta = Meta { given: Some("[]"), ..Meta::default() };
        assert_eq!(params(None, meta).unwrap_err().code, ErrorCode::InvalidArgument);
    }
}
