//! The only code that names N-API. Thin: text goes in, text comes out, nothing is decided here.
//!
//! - [`plans`] — definitions that were judged, and what is started of them
//! - [`connection`] — what JavaScript holds of one session
//! - [`project`], [`server`] — what JavaScript holds of a project and of one of its servers
//! - [`call_options`] — what a call may want
//! - [`caller`] — the short way down of a call
//! - [`headers`] — headers that a function of the host gives
//! - [`blocking`] — synchronous calls, and what would block for ever
//! - [`questions`] — what the core asks JavaScript
//! - [`dispatcher`], [`batch`] — the one way back to the JavaScript thread, one per environment, in batches
//! - [`wake`] — how that thread learns of them
//! - `holds` — what keeps its event loop alive
//! - `poll` — how it reads what a server writes, where that is faster
//! - `libuv` — the handles of its event loop that both are made of
//! - [`pieces`] — arguments with long strings
//! - [`scan`] — plain text in JSON strings
//! - [`strings`], [`unescape`], [`external`] — long strings, made off the JavaScript thread and handed over to it
//! - [`symbols`] — what the program exports beyond Node-API
//! - [`texts`] — the long texts of a tool's result, apart from its JSON
//! - [`values`] — what JavaScript values were given, from their description
//! - `panics` — panics on purpose, in a build for tests alone
//! - [`io_thread`] — the one thread on which everything native runs

#![expect(clippy::needless_pass_by_value, reason = "napi-rs gives owned arguments")]
#![expect(clippy::must_use_candidate, reason = "the callers are JavaScript")]

pub mod batch;
pub mod blocking;
pub mod call_options;
pub mod caller;
pub mod connection;
pub mod dispatcher;
pub mod external;
pub mod headers;
mod holds;
pub mod io_thread;
mod libuv;
#[cfg(feature = "panics")]
pub mod panics;
pub mod pieces;
pub mod plans;
#[cfg(unix)]
mod poll;
pub mod project;
pub mod questions;
pub mod scan;
pub mod server;
pub mod strings;
pub mod symbols;
pub mod texts;
pub mod unescape;
pub mod values;
pub mod wake;

use napi_derive::napi;

use crate::error::ErrorCode;
use crate::policy::found::path_of;
use crate::policy::nearest::nearest;

/// Every error code of the core, for the test that compares it with the JavaScript list and the type.
#[napi(catch_unwind)]
pub fn error_codes() -> Vec<&'static str> {
    ErrorCode::ALL.iter().map(|code| code.as_str()).collect()
}

/// The known name that a wrong one resembles.
#[napi(catch_unwind)]
pub fn nearest_name(name: String, known: Vec<String>) -> Option<String> {
    nearest(&name, known.iter().map(String::as_str)).map(str::to_owned)
}

/// The path of a property of what is at `outer`, as a message may show it: cut, and without a token that stands in place of the name.
#[napi(catch_unwind)]
pub fn property_path(outer: String, name: String) -> String {
    path_of(&outer, &name)
}
