//! What tools a server has: pages, limits, and one malformed tool that costs itself alone.

use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::Duration;
use tokio::time::{Instant, sleep_until};

use serde_json::Value;

use super::calls::Terms;
use super::handshake::Negotiated;
use super::{Event, Shared, wire};
use crate::error::{ErrorCode, McpError};
use crate::link::POOL_FROM;
use crate::link::fields::{elements, fields, is_null, string};
use crate::policy::definition::ToolFilter;
use crate::policy::nearest::nearest;

/// How many tools a server may show. The limit applies after `tools.include` and `tools.exclude`.
pub const TOOLS_MAX: usize = 256;

/// How many pages are asked for; servers whose cursors never end exist (BR-62).
pub const PAGES_MAX: usize = 64;

/// Terms of a listing that the session itself asks for; the session's timeout bounds it as a whole.
pub(super) const LISTING: Terms = Terms::within("list", None);

/// A page is handed on as it comes up to this length: longer ones together could be too long for one string of the
/// host's (512 MiB), which the end of a listing reports and an event cannot.
const PAGE_MAX: usize = 64 << 20;

/// From the end of one listing for a told change to the start of the next: a server that tells of a change whenever it is asked for its
/// tools would be asked without end (11,000 times a second, measured).
const BETWEEN_REFRESHES: Duration = Duration::from_millis(100);

/// How many oddities of one listing are told one by one: a page may hold millions of them, and each costs a redaction and an event.
const ODDITIES_MAX: usize = 64;

/// The tools of one server.
#[derive(Default)]
pub struct Tools {
    /// A JSON array of the tools' own texts.
    pub json: String,
    pub names: HashSet<String>,
}

/// A list while its pages come in.
struct Listed {
    filter: ToolFilter,
    /// Bytes that all tools together may have: what one message may.
    bytes_max: usize,
    /// The array, but for its end, of those that were not handed on.
    json: String,
    /// Bytes of those that were.
    handed_on: usize,
    names: HashSet<String>,
    /// What `tools.include` names, the server publishes and `tools.exclude` keeps back.
    hidden: HashSet<String>,
    /// A hash of each page's tools: a page that comes again is the end of a loop. Their texts could be gigabytes.
    pages: HashSet<u64>,
    hasher: RandomState,
    oddities: Vec<(&'static str, String, Value)>,
    /// Those beyond [`ODDITIES_MAX`].
    untold: usize,
}

/// Asks for all pages, each with `given` in its `_meta`, and hands them on to `early`, but for the last, as they come.
/// What was odd and cost less than the list becomes a warning.
async fn list(
    shared: &Shared,
    terms: Terms,
    given: Option<&str>,
    early: Option<&(dyn Fn(String) + Sync)>,
) -> Result<Tools, McpError> {
    let mut listed = Listed::through(shared.filter.clone(), shared.max_message_bytes);
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
        (listed, cursor) = listed.with(page.into_string()).await?;
        if cursor.is_none() {
            return Ok(listed.finish(shared));
        }
        if let Some((early, page)) = early.and_then(|early| Some((early, listed.page()?))) {
            early(page);
        }
    }
    let message = format!("The server's list of tools did not end within {PAGES_MAX} pages.");
    Err(McpError::new(ErrorCode::TooManyPages, message).with("limit", PAGES_MAX).with("count", PAGES_MAX + 1))
}

impl Listed {
    fn through(filter: ToolFilter, bytes_max: usize) -> Self {
        Self {
            filter,
            bytes_max,
            json: "[".to_owned(),
            handed_on: 0,
            names: HashSet::new(),
            hidden: HashSet::new(),
            pages: HashSet::new(),
            hasher: RandomState::new(),
            oddities: Vec::new(),
            untold: 0,
        }
    }

    /// Takes one page in, a large one on the pool, and gives the text of the next cursor.
    async fn with(mut self, page: String) -> Result<(Self, Option<String>), McpError> {
        let is_large = page.len() > POOL_FROM;
        let add = move || self.add(&page).map(|cursor| (self, cursor));
        if !is_large {
            return add();
        }
        match tokio::task::spawn_blocking(add).await {
            Ok(added) => added,
            Err(lost) if lost.is_panic() => std::panic::resume_unwind(lost.into_panic()),
            Err(_) => Err(McpError::new(ErrorCode::Closed, "The list of tools was given up.")),
        }
    }

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
        // A cursor is opaque: any string, the empty one too, asks for another page.
        let cursor =
            cursor.filter(|cursor| cursor.get().starts_with('"')).map(|cursor| cursor.get().to_owned());
        // The only page there is repeats none.
        let may_repeat = cursor.is_some() || !self.pages.is_empty();
        if may_repeat && !elements.is_empty() && !self.pages.insert(self.hasher.hash_one(tools.get())) {
            let message = "The server's list of tools repeats a page; what came before it is the list.";
            self.odd("WARN_MCP_REPEATED_PAGE", message, None);
            return Ok(None);
        }
        for tool in elements {
            self.add_tool(tool.get());
        }
        if self.names.len() > TOOLS_MAX {
            let count = self.names.len();
            let message = format!(
                "The server shows more than {TOOLS_MAX} tools (at least {count}); choose some with tools.include or tools.exclude."
            );
            return Err(McpError::new(ErrorCode::TooManyTools, message)
                .with("limit", TOOLS_MAX)
                .with("count", count));
        }
        if self.handed_on + self.json.len() > self.bytes_max {
            let limit = self.bytes_max;
            let message = format!(
                "The server's list of tools is over the limit of {limit} bytes; raise maxMessageBytes if it is legitimate."
            );
            return Err(McpError::new(ErrorCode::MessageTooLarge, message).with("limit", limit));
        }
        Ok(cursor)
    }

    /// What was listed since the last time, to be handed on before the end.
    fn page(&mut self) -> Option<String> {
        if !(2..=PAGE_MAX).contains(&self.json.len()) {
            return None;
        }
        self.handed_on += self.json.len();
        let mut page = std::mem::replace(&mut self.json, "[".to_owned());
        page.push(']');
        Some(page)
    }

    fn add_tool(&mut self, text: &str) {
        let Some([name, schema]) = fields(text, ["name", "inputSchema"]) else {
            self.skipped("is no object", None);
            return;
        };
        let Some(name) = name.and_then(string).filter(|name| !name.is_empty()) else {
            self.skipped("has no name", None);
            return;
        };
        let readable = schema.filter(|schema| !is_null(schema)).map(|schema| schema.get().as_bytes()[0]);
        if !matches!(readable, Some(b'{' | b't' | b'f')) {
            self.skipped("has no inputSchema that is an object or a boolean", Some(&name));
        } else if !self.filter.admits(&name) {
            if self.filter.include.iter().flatten().any(|included| *included == name) {
                self.hidden.insert(name.into_owned());
            }
        } else if self.names.insert(name.clone().into_owned()) {
            if self.json.len() > 1 {
                self.json.push(',');
            }
            self.json.push_str(text);
        } else {
            let message = "The server lists two tools of one name; the first one counts.";
            self.odd("WARN_MCP_DUPLICATE_TOOL", message, Some(&name));
        }
    }

    fn skipped(&mut self, why: &str, name: Option<&str>) {
        self.odd("WARN_MCP_TOOL_SKIPPED", &format!("A tool of the server {why}; it was left out."), name);
    }

    fn odd(&mut self, code: &'static str, message: &str, tool: Option<&str>) {
        if self.oddities.len() < ODDITIES_MAX {
            self.oddities.push((code, message.to_owned(), tool.into()));
        } else {
            self.untold += 1;
        }
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
        if self.untold > 0 {
            let message = format!("{} more of the server's tools were left out.", self.untold);
            shared.warn("WARN_MCP_TOOL_SKIPPED", &message, vec![("count", self.untold.into())]);
        }
        self.json.push(']');
        Tools { json: self.json, names: self.names }
    }
}

impl Shared {
    /// Refuses a name that the server does not publish, before anything is sent.
    pub(super) fn check_tool(&self, name: &str) -> Result<(), McpError> {
        let names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        if !self.lists_tools || names.contains(name) || self.closing.load(Ordering::Acquire) {
            return Ok(());
        }
        let nearest = nearest(name, names.iter().map(String::as_str));
        let nearest = nearest.map(|nearest| self.redactor.text(nearest).into_owned());
        let hint = nearest.as_deref().map(|nearest| format!("; did you mean {}?", wire::quoted(nearest)));
        let shown = wire::quoted(&self.redactor.excerpt(name, 100));
        let message = format!("The server {} has no tool {shown}{}", self.id, hint.as_deref().unwrap_or("."));
        let error = McpError::new(ErrorCode::ToolNotFound, message).with("tool", self.redactor.text(name));
        Err(error.with("nearest", nearest).of_server(&self.id))
    }

    /// Lists again, after the listing under way: what is listed is what may be called.
    pub(super) async fn list_again(&self, terms: Terms, meta: Option<&str>) -> Result<String, McpError> {
        let timeout = terms.timeout.unwrap_or(self.timeout);
        let total = terms.total.filter(|total| *total < timeout);
        let (time, bound) = total.map_or((timeout, "timeout"), |total| (total, "maxTotalTimeout"));
        let begun = terms.begun.unwrap_or_else(Instant::now);
        let each = Terms { timeout: None, total: None, begun: None, ..terms };
        // Waiting for the listing under way counts too: that one may have a longer deadline.
        let listing = async {
            let _one_at_a_time = self.listing.lock().await;
            self.list(each, meta).await.map(|tools| self.set_tools(tools))
        };
        let listed = tokio::time::timeout(time.saturating_sub(begun.elapsed()), listing).await;
        let listed = listed.unwrap_or_else(|_| Err(self.timed_out("list", time, "list its tools", bound)));
        listed.map_err(|error| error.of_server(&self.id))
    }

    /// The whole list.
    pub(super) async fn list(&self, terms: Terms, meta: Option<&str>) -> Result<Tools, McpError> {
        self.list_if_offered(terms, meta, None).await
    }

    /// The last page of the list at the start; those before it go to the owner as they come. Later lists do not: one
    /// that the host has not taken in yet is replaced by the next, and pages would pile up.
    pub(super) async fn list_at_start(&self) -> Result<Tools, McpError> {
        let early = |page| self.owner.heard(Event::ToolsPage(page));
        self.list_if_offered(LISTING, None, Some(&early)).await
    }

    async fn list_if_offered(
        &self,
        terms: Terms,
        meta: Option<&str>,
        early: Option<&(dyn Fn(String) + Sync)>,
    ) -> Result<Tools, McpError> {
        if self.negotiated.get().is_some_and(Negotiated::offers_tools) {
            list(self, terms, meta, early).await
        } else if let Some(gone) = self.calls.gone() {
            Err(gone)
        } else {
            Ok(Tools { json: "[]".to_owned(), names: HashSet::new() })
        }
    }

    pub(super) fn set_tools(&self, tools: Tools) -> String {
        *self.names.lock().unwrap_or_else(PoisonError::into_inner) = tools.names;
        tools.json
    }

    /// When tools may be listed for a told change.
    fn next_refresh(&self) -> Instant {
        let refreshed = *self.refreshed.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        refreshed.map_or(now, |last| now.max(last + BETWEEN_REFRESHES))
    }

    /// The server says that its tools changed. Before the handshake is done there is no list yet that could be old, and
    /// a session that keeps none has nothing to renew: what headers need of the schemas is learnt when a call is
    /// refused for them.
    pub(super) fn refresh(self: &Arc<Self>) {
        if !self.lists_tools
            || self.negotiated.get().is_none()
            || self.refresh_wanted.swap(true, Ordering::AcqRel)
        {
            return;
        }
        let shared = self.clone();
        self.runtime.spawn(async move {
            // Wait for the listing under way: a change that is told while it runs may not be in it.
            drop(shared.listing.lock().await);
            // Until then further changes are told in vain: they will be in this list.
            tokio::select! {
                () = sleep_until(shared.next_refresh()) => {}
                _ = shared.until_closed() => return,
            }
            shared.refresh_wanted.store(false, Ordering::Release);
            if shared.closing.load(Ordering::Acquire) {
                return;
            }
            let listed = shared.list_again(LISTING, None).await;
            *shared.refreshed.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
            match listed {
                Ok(tools) => shared.owner.heard(Event::ToolsChanged(tools)),
                Err(error) if shared.closing.load(Ordering::Acquire) => drop(error),
                Err(error) => {
                    let message = format!(
                        "The server's tools changed and could not be listed; the old list stays. {}",
                        error.message
                    );
                    shared.warn("WARN_MCP_TOOLS_NOT_REFRESHED", &message, vec![("error", error.to_json())]);
                }
            }
        });
    }
}

#[cfg(test)]
mod tests;
