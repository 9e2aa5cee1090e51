//! What rmcp's transport is given in place of an answer. It reads an answer for three things alone: the version that `initialize` agreed
//! on, the schemas of the tools, and that there was one; the answer itself goes past it, as the text that came.

use rmcp::model::{
    CustomResult, InitializeResult, JsonObject, ListToolsResult, ProtocolVersion, RequestId,
    ServerCapabilities, ServerJsonRpcMessage, ServerResult, Tool,
};
use serde_json::Value;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::Arc;

use super::outgoing::{DEPTH_MAX, lenient};
use crate::link::fields::{elements, fields, string};

/// There was an answer, or a failure that was told.
pub(super) fn answered(id: u64) -> ServerJsonRpcMessage {
    ServerJsonRpcMessage::response(ServerResult::CustomResult(CustomResult(Value::Null)), request_id(id))
}

/// The version that `initialize` was answered with; `None` where there is none to be read.
pub(super) fn version(result: &str) -> Option<ProtocolVersion> {
    let [version] = fields(result, ["protocolVersion"])?;
    serde_json::from_str(version?.get()).ok()
}

pub(super) fn initialized(id: u64, version: ProtocolVersion) -> ServerJsonRpcMessage {
    let result = InitializeResult::new(ServerCapabilities::default()).with_protocol_version(version);
    ServerJsonRpcMessage::response(ServerResult::InitializeResult(result), request_id(id))
}

/// A list of tools, each reduced to its name and schema. Its place in the server's own list is its title: so it is known which ones rmcp
/// drops for their annotations.
pub(super) fn listed(id: u64, result: &str) -> ServerJsonRpcMessage {
    let tools = fields(result, ["tools"]).and_then(|[tools]| elements(tools?.get())).unwrap_or_default();
    let mut seen = HashSet::new();
    let tools = tools.iter().enumerate().filter_map(|(place, tool)| {
        let [name, schema] = fields(tool.get(), ["name", "inputSchema"])?;
        let name = string(name?)?.into_owned();
        // The first of two tools of one name counts.
        let is_first = seen.insert(name.clone());
        is_first.then(|| Tool::new(name, "", Arc::new(schema_of(schema))).with_title(place.to_string()))
    });
    let result = ListToolsResult::with_all_items(tools.collect());
    ServerJsonRpcMessage::response(ServerResult::ListToolsResult(result), request_id(id))
}

fn schema_of(schema: Option<&RawValue>) -> JsonObject {
    match schema.map(|schema| lenient(schema, true, DEPTH_MAX)) {
        Some(Value::Object(schema)) => schema,
        _ => JsonObject::new(),
    }
}

/// The result without the tools that rmcp dropped, and their names; `None` when it dropped none. `kept` is what came back for
/// [`listed`].
pub(super) fn without_dropped(result: &str, kept: &ListToolsResult) -> Option<(String, Vec<String>)> {
    let [tools] = fields(result, ["tools"])?;
    let tools = tools?;
    let kept: HashSet<usize> =
        kept.tools.iter().filter_map(|tool| tool.title.as_deref()?.parse().ok()).collect();
    let mut names = HashSet::new();
    let mut dropped = Vec::new();
    let mut texts = Vec::new();
    for (place, tool) in elements(tools.get())?.into_iter().enumerate() {
        let name = fields(tool.get(), ["name"]).and_then(|[name]| string(name?)).map(Cow::into_owned);
        match name {
            Some(name) if names.insert(name.clone()) && !kept.contains(&place) => dropped.push(name),
            // Not given to rmcp, or kept: the session judges it.
            _ => texts.push(tool.get()),
        }
    }
    if dropped.is_empty() {
        return None;
    }
    // The raw value is a part of the result's own text.
    let start = tools.get().as_ptr().addr() - result.as_ptr().addr();
    let (before, after) = (result.get(..start)?, result.get(start + tools.get().len()..)?);
    Some((format!("{before}[{}]{after}", texts.join(",")), dropped))
}

fn request_id(id: u64) -> RequestId {
    RequestId::Number(id.cast_signed())
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    const TOOLS: &str = r#"{"x":1e400,"tools":[{"name":"a","inputSchema":{"properties":{"n":{"type":"number","x-mcp-header":"N"}}}},
        7,{"name":"b","inputSchema":true},{"name":"b"},{"name":"c","inputSchema":{"default":"\ud83d"}}],"nextCursor":"2"}"#;

    fn list() -> ListToolsResult {
        let ServerJsonRpcMessage::Response(response) = listed(1, TOOLS) else { panic!("no response") };
        let ServerResult::ListToolsResult(list) = response.result else { panic!("no list") };
        list
    }

    #[test]
    fn every_tool_that_has_a_name_is_given_once() {
        let places: Vec<_> =
            list().tools.into_iter().map(|tool| (tool.name.into_owned(), tool.title.unwrap())).collect();
        let places: Vec<_> = places.iter().map(|(name, place)| (name.as_str(), place.as_str())).collect();
        assert_eq!(places, [("a", "0"), ("b", "2"), ("c", "4")]);
    }

    #[test]
    fn what_was_dropped_is_cut_out_of_the_servers_own_text() {
        let mut kept = list();
        assert_eq!(without_dropped(TOOLS, &kept), None);
        kept.tools.remove(0);
        let (text, dropped) = without_dropped(TOOLS, &kept).unwrap();
        assert_eq!(dropped, ["a"]);
        let expected = r#"{"x":1e400,"tools":[7,{"name":"b","inputSchema":true},{"name":"b"},{"name":"c","inputSchema":{"default":"\ud83d"}}],"nextCursor":"2"}"#;
        assert_eq!(text, expected);
    }
}
