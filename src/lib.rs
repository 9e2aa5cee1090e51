//! The Rust core of `workflow-mcp`: MCP servers for Node.js and Electron hosts.
//!
//! # Layout
//!
//! Arrows run downwards only; no two rooms import each other; a room's public face is its `mod.rs`.
//!
//! - [`node`] — the only code that names N-API: plans, connections, projects, the dispatcher, values from JavaScript
//! - [`session`] — one per server: handshake, calls (ids, deadlines, progress, cancelling), tools
//! - [`link`] — what carries messages: the envelope, `stdio` (lines in, pipe out, the server's process) and `http` (rmcp's transport)
//! - [`process`] — spawn, watch, the stop ladder, the guardian
//! - [`project`] — what a name in a script means: project files, placeholders, whom to trust
//! - [`policy`] — pure: what may be asked, what a child gets, what is secret, what may be shown
//! - [`error`] — one error, one code each
//! - [`json`] — JSON that JavaScript reads and `serde_json` does not
//! - [`spare`] — memory of large messages, kept for the next
//! - `words` — eight bytes looked at together

// A cut through a letter panics with the text around it, which may be secret: `get` it. Tests may.
#![cfg_attr(not(test), warn(clippy::string_slice))]

pub mod error;
pub mod json;
pub mod link;
#[cfg(feature = "node")]
pub mod node;
pub mod policy;
pub mod process;
pub mod project;
pub mod session;
pub mod spare;
mod words;

#[cfg(not(any(unix, windows)))]
compile_error!("workflow-mcp supervises processes on Linux, macOS and Windows");
