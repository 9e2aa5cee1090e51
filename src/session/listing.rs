//! What tools a server has: pages, limits, and one malformed tool that costs itself alone.

use std::collections::HashSet;

use serde_json::Value;

use super::calls::Terms;
use super::{Shared, wire};
use crate::error::{ErrorCode, McpError};
use crate::link::fields::{elements, fields, is_null, string};
use crate::policy::definition::ToolFilter;

/// How many tools a server may show. The limit applies after `tools.include` and `tools.exclude`.
pub const TOOLS_MAX: usize = 256;

/// How many pages are asked for; servers whose cursors never end exist (BR-62).
pub const PAGES_MAX: usize = 64;

/// The tools of one server.
#[derive(Debug, Default)]
pub struct Tools {
    /// A JSON array of the tools' own texts.
    pub json: String,
    pub names: HashSet<String>,
}

/// A list while its pages come in.
struct Listed<'a> {
    filter: &'a ToolFilter,
    texts: Vec<String>,
    names: HashSet<String>,
    /// Names of the server's tools that the filter keeps back.
    hidden: HashSet<String>,
    /// The text of each page's tools: a page that comes again is the end of a loop.
    pages: HashSet<String>,
    oddities: Vec<(&'static str, String, Value)>,
}

/// Asks for all pages, each with `given` in its `_meta`. What was odd and cost less than the list becomes a warning.
pub(super) async fn list(shared: &Shared, terms: Terms, given: Option<&str>) -> Result<Tools, McpError> {
    let mut listed = Listed {
        filter: &shared.filter,
        texts: Vec::new(),
        names: HashSet::new(),
        hidden: HashSet::new(),
        pages: HashSet::new(),
        oddities: Vec::new(),
    };
    let mut cursor: Option<String> = None;
    for _ in 0..PAGES_MAX {
        let params = cursor.map(|cursor| format!(r#"{{"cursor":{cursor}}}"#));
        let meta = wire::Meta { given, modern: shared.modern_meta(), progress_token: None };
        let params = wire::params(params.as_deref(), meta)?;
        let page = match shared.ask("tools/list", params.as_deref(), terms.clone()).await {
            Ok(page) => page,
            // The capability without the method: such a server has no tools (BR-20).
            Err(error) if error.detail("rpcCode") == Some(&(-32601).into()) => {
                return Ok(listed.finish(shared));
            }
            Err(error) => return Err(error),
        };
        cursor = listed.add(&page)?;
        if cursor.is_none() {
            return Ok(listed.finish(shared));
        }
    }
    let message = format!("The server's list of tools did not end within {PAGES_MAX} pages.");
    Err(McpError::new(ErrorCode::TooManyPages, message).with("limit", PAGES_MAX).with("count", PAGES_MAX + 1))
}

impl Listed<'_> {
    /// Takes one page in and gives the text of the next cursor.
    fn add(&mut self, page: &str) -> Result<Option<String>, McpError> {
        let unreadable = || {
            McpError::new(
                ErrorCode::InvalidMessage,
                "The server's list of tools could not be read: tools is no array.",
            )
        };
        let [tools, cursor] = fields(page, ["tools", "nextCursor"]).ok_or_else(unreadable)?;
        let tools = tools.ok_or_else(unreadable)?;
        let elements = elements(tools.get()).ok_or_else(unreadable)?;
        if !elements.is_empty() && !self.pages.insert(tools.get().to_owned()) {
            let message =
                "The server's list of tools repeats a page; what came before it is the list.".to_owned();
            self.oddities.push(("WARN_MCP_REPEATED_PAGE", message, Value::Null));
            return Ok(None);
        }
        for tool in elements {
            self.add_tool(tool.get());
        }
        if self.texts.len() > TOOLS_MAX {
            let count = self.texts.len();
            let message = format!(
                "The server shows more than {TOOLS_MAX} tools (at least {count}); choose some with tools.include or tools.exclude."
            );
            return Err(McpError::new(ErrorCode::TooManyTools, message)
                .with("limit", TOOLS_MAX)
                .with("count", count));
        }
        // A cursor is opaque: any string, the empty one too, asks for another page.
        Ok(cursor.filter(|cursor| cursor.get().starts_with('"')).map(|cursor| cursor.get().to_owned()))
    }

    fn add_tool(&mut self, text: &str) {
        let Some([name, schema]) = fields(text, ["name", "inputSchema"]) else {
            self.skipped("is no object", Value::Null);
            return;
        };
        let Some(name) = name.and_then(string).filter(|name| !name.is_empty()) else {
            self.skipped("has no name", Value::Null);
            return;
        };
        let readable = schema.filter(|schema| !is_null(schema)).map(|schema| schema.get().as_bytes()[0]);
        if !matches!(readable, Some(b'{' | b't' | b'f')) {
            self.skipped("has no inputSchema that is an object or a boolean", name.as_ref().into());
        } else if !self.filter.admits(&name) {
            self.hidden.insert(name.into_owned());
        } else if self.names.insert(name.clone().into_owned()) {
            self.texts.push(text.to_owned());
        } else {
            let message = "The server lists two tools of one name; the first one counts.".to_owned();
            self.oddities.push(("WARN_MCP_DUPLICATE_TOOL", message, name.as_ref().into()));
        }
    }

    fn skipped(&mut self, why: &str, name: Value) {
        self.oddities.push((
            "WARN_MCP_TOOL_SKIPPED",
            format!("A tool of the server {why}; it was left out."),
            name,
        ));
    }

    fn finish(mut self, shared: &Shared) -> Tools {
        for name in self.filter.include.iter().flatten() {
            if !self.names.contains(name) && !self.hidden.contains(name) {
                let message = "tools.include names a tool that the server does not publish.".to_owned();
                self.oddities.push(("WARN_MCP_UNKNOWN_TOOL", message, name.as_str().into()));
            }
        }
        for (code, message, tool) in self.oddities {
            let details = if tool.is_null() { Vec::new() } else { vec![("tool", tool)] };
            shared.warn(code, &message, details);
        }
        Tools { json: format!("[{}]", self.texts.join(",")), names: self.names }
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    fn listed(filter: &ToolFilter) -> Listed<'_> {
        Listed {
            filter,
            texts: Vec::new(),
            names: HashSet::new(),
            hidden: HashSet::new(),
            pages: HashSet::new(),
            oddities: Vec::new(),
        }
    }

    #[test]
    fn a_malformed_tool_costs_itself_alone() {
        let filter = ToolFilter::default();
        let mut list = listed(&filter);
        let page = r#"{"tools":[{"name":"a","inputSchema":{"x":1e400}},7,{"inputSchema":{}},{"name":"b"},
            {"name":"c","inputSchema":null},{"name":"d","inputSchema":true},{"name":"a","inputSchema":{}}]}"#;
        assert_eq!(list.add(page).unwrap(), None);
        assert_eq!(
            list.texts,
            [r#"{"name":"a","inputSchema":{"x":1e400}}"#, r#"{"name":"d","inputSchema":true}"#]
        );
        assert_eq!(list.oddities.len(), 5);
    }

    #[test]
    fn a_repeated_page_ends_the_list_and_a_repeated_cursor_does_not() {
        let filter = ToolFilter::default();
        let mut list = listed(&filter);
        let page =
            |name: &str| format!(r#"{{"tools":[{{"name":"{name}","inputSchema":{{}}}}],"nextCursor":""}}"#);
        assert_eq!(list.add(&page("a")).unwrap().as_deref(), Some("\"\""));
        assert_eq!(list.add(&page("b")).unwrap().as_deref(), Some("\"\""));
        assert_eq!(list.add(&page("a")).unwrap(), None);
        assert_eq!(list.texts.len(), 2);
    }

    #[test]
    fn the_limit_applies_after_the_filter_and_counts_what_was_listed() {
        let tools: Vec<_> =
            (0..300).map(|index| format!(r#"{{"name":"t{index}","inputSchema":{{}}}}"#)).collect();
        let page = format!(r#"{{"tools":[{}]}}"#, tools.join(","));
        let error = listed(&ToolFilter::default()).add(&page).unwrap_err();
        assert_eq!((error.code, error.detail("count")), (ErrorCode::TooManyTools, Some(&300.into())));
        let filter = ToolFilter { include: Some(vec!["t299".into()]), exclude: None };
        let mut list = listed(&filter);
        list.add(&page).unwrap();
        assert_eq!(list.texts.len(), 1);
    }
}
