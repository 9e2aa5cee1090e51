//! Which revision both sides speak: `initialize` first, `server/discover` on the same process when the answer says modern-only.
//!
//! Servers that only know `initialize` are the installed base, and some die of an unknown first request (BR-22), so the probe that
//! 2026-07-28 recommends is not sent first.

use std::time::Duration;

use rmcp::model::ProtocolVersion;
use serde_json::Value;
use serde_json::value::RawValue;

use super::calls::Terms;
use super::{Shared, sentence_of, wire};
use crate::error::{ErrorCode, McpError};
use crate::link::fields::{elements, fields, is_null, string};
use crate::link::{Frame, FrameKind};
use crate::policy::options::Protocol;

/// Error codes with which a server says that it no longer knows `initialize`, or not this version: unsupported version, missing
/// capability, header mismatch, invalid request, unknown method, invalid params (2026-07-28, versioning).
const FALL_FORWARD: [i64; 6] = [-32022, -32021, -32020, -32600, -32601, -32602];

/// The connect deadline bounds the whole start; a single answer has none of its own.
const CONNECTING: Terms = Terms::within("connect", None);

/// How long a server that answered `initialize` may take for `server/discover`: it is up and answers requests.
const DISCOVER_WAIT: Duration = Duration::from_secs(5);

/// Where the server's name stands in a discover result.
const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";

/// What both sides agreed on; the texts are JSON as the server wrote it.
pub(super) struct Negotiated {
    pub version: ProtocolVersion,
    /// What every request carries, on a modern connection.
    pub modern_meta: Option<String>,
    pub server_info: Option<String>,
    pub capabilities: String,
    pub instructions: Option<String>,
}

impl Negotiated {
    /// Whether the server has tools at all (BR-20).
    pub(super) fn offers_tools(&self) -> bool {
        fields(&self.capabilities, ["tools"])
            .is_some_and(|[tools]| tools.is_some_and(|tools| !is_null(tools)))
    }

    /// Whether the server tells of changes of its tools, and only those who subscribe.
    pub(super) fn tells_changes_when_asked(&self) -> bool {
        let tools = fields(&self.capabilities, ["tools"]).and_then(|[tools]| tools);
        let told = tools.and_then(|tools| fields(tools.get(), ["listChanged"])).and_then(|[told]| told);
        self.modern_meta.is_some() && told.is_some_and(|told| told.get() == "true")
    }
}

/// Runs the handshake.
pub(super) async fn negotiate(shared: &Shared, protocol: Protocol) -> Result<Negotiated, McpError> {
    let newest = ProtocolVersion::LATEST_WITH_INITIALIZE;
    match protocol {
        Protocol::Modern => discover(shared).await.map_err(|error| not_modern(shared, error)),
        Protocol::Version(version) if version == ProtocolVersion::V_2026_07_28.as_str() => {
            discover(shared).await.map_err(|error| not_modern(shared, error))
        }
        Protocol::Version(version) => {
            let known = ProtocolVersion::KNOWN_VERSIONS.iter().find(|known| known.as_str() == version);
            let version = known.cloned().unwrap_or(newest);
            initialize(shared, &version, std::slice::from_ref(&version)).await
        }
        Protocol::Legacy => initialize(shared, &newest, ProtocolVersion::known_up_to(&newest)).await,
        Protocol::Auto => match initialize(shared, &newest, ProtocolVersion::KNOWN_VERSIONS).await {
            // The first error is the one to report: the server's answer to what most servers understand. A server that refused one
            // method and is silent to the next would otherwise end as a timeout.
            Err(error) if says_modern(&error) => {
                match tokio::time::timeout(DISCOVER_WAIT, discover(shared)).await {
                    Ok(Ok(negotiated)) => Ok(negotiated),
                    Ok(Err(_)) | Err(_) => Err(error),
                }
            }
            outcome => outcome,
        },
    }
}

async fn initialize(
    shared: &Shared,
    offered: &ProtocolVersion,
    accepted: &[ProtocolVersion],
) -> Result<Negotiated, McpError> {
    let result =
        shared.ask("initialize", Some(&wire::initialize(offered, shared.answers_input)?), CONNECTING).await;
    let result = result.map_err(|error| refused(shared, error, "initialize", offered))?;
    let names = ["protocolVersion", "serverInfo", "capabilities", "instructions"];
    let Some([version, server_info, capabilities, instructions]) = fields(&result, names) else {
        return Err(unreadable(shared, "initialize"));
    };
    let answered = version.and_then(string).ok_or_else(|| unreadable(shared, "initialize"))?;
    let Some(version) = accepted.iter().find(|known| known.as_str() == answered) else {
        return Err(version_error(shared, offered, shared.redactor.text(&answered).into()));
    };
    let modern_meta = if version.has_initialize() {
        let text = wire::notification("notifications/initialized", None);
        shared.link()?.send(Frame { kind: FrameKind::Notification, text });
        None
    } else {
        // Some servers agree to 2026-07-28 in `initialize`, which it no longer has; they mean it.
        Some(wire::modern_meta(version, shared.answers_input)?)
    };
    Ok(Negotiated {
        version: version.clone(),
        modern_meta,
        server_info: object_text(server_info),
        capabilities: object_text(capabilities).unwrap_or_else(|| "{}".to_owned()),
        instructions: string_text(instructions),
    })
}

/// A server that refuses the version and lists it among those it speaks is asked once more: it is to be asked again in one of its list
/// (2026-07-28, versioning), and this is the only one of them that both know.
async fn discover(shared: &Shared) -> Result<Negotiated, McpError> {
    match ask_to_discover(shared).await {
        Err(error) if error.code == ErrorCode::ProtocolVersion && says_modern(&error) => {
            ask_to_discover(shared).await
        }
        outcome => outcome,
    }
}

async fn ask_to_discover(shared: &Shared) -> Result<Negotiated, McpError> {
    let version = ProtocolVersion::V_2026_07_28;
    let modern_meta = wire::modern_meta(&version, shared.answers_input)?;
    let params = wire::params(None, wire::Meta { modern: Some(&modern_meta), ..wire::Meta::default() })?;
    let result = shared.ask("server/discover", params.as_deref(), CONNECTING).await;
    let result = result.map_err(|error| refused(shared, error, "server/discover", &version))?;
    let names = ["supportedVersions", "serverInfo", "capabilities", "instructions", "_meta"];
    let Some([supported, server_info, capabilities, instructions, meta]) = fields(&result, names) else {
        return Err(unreadable(shared, "server/discover"));
    };
    // Servers that leave the list out speak what they were asked in; read leniently.
    if let Some(supported) = supported.filter(|supported| !is_null(supported)) {
        let versions = elements(supported.get()).unwrap_or_default();
        if !versions.iter().any(|known| string(known).as_deref() == Some(version.as_str())) {
            return Err(version_error(shared, &version, shared.redactor.json(supported.get())));
        }
    }
    let in_meta = meta.and_then(|meta| fields(meta.get(), [SERVER_INFO])).and_then(|[info]| info);
    Ok(Negotiated {
        version,
        modern_meta: Some(modern_meta),
        server_info: object_text(in_meta.or(server_info)),
        capabilities: object_text(capabilities).unwrap_or_else(|| "{}".to_owned()),
        instructions: string_text(instructions),
    })
}

/// What an error answer to the first request means. Its code and data are those of the `ERR_MCP_RPC`, which becomes the cause; a refusal
/// over HTTP stays what it is, unless it says what the server speaks.
fn refused(shared: &Shared, error: McpError, method: &str, offered: &ProtocolVersion) -> McpError {
    let supported = error.detail("data").and_then(|data| data.get("supported")).cloned();
    if let Some(supported) = supported.filter(|_| error.detail("rpcCode").is_some()) {
        return version_error(shared, offered, supported).caused_by(error);
    }
    if error.code != ErrorCode::Rpc {
        return error;
    }
    let rpc_code = error.detail("rpcCode").cloned().unwrap_or_default();
    let message = format!("The server {} refused {method}: {}", shared.id, sentence_of(&shared.id, &error));
    McpError::new(ErrorCode::Handshake, message).with("rpcCode", rpc_code).caused_by(error)
}

/// A server that does not know the method does not speak the revision that was asked for.
fn not_modern(shared: &Shared, error: McpError) -> McpError {
    if !matches!(error.code, ErrorCode::Handshake | ErrorCode::Http)
        || error.detail("rpcCode") != Some(&(-32601).into())
    {
        return error;
    }
    let version = ProtocolVersion::V_2026_07_28;
    let message = format!(
        "The server {} does not speak protocol version {version}, which the option `protocol` asks for: it does not know server/discover.",
        shared.id
    );
    let refused = McpError::new(ErrorCode::ProtocolVersion, message);
    let refused = refused.with("offered", version.as_str()).with("answered", Value::Null);
    McpError { cause: error.cause, ..refused }
}

/// Whether an answer to `initialize` is worth a `server/discover`.
fn says_modern(error: &McpError) -> bool {
    // Over HTTP the answer may be the body of a refusal (2026-07-28, streamable HTTP, backward compatibility).
    let is_answer = |error: &&McpError| error.detail("rpcCode").is_some();
    let cause = error.cause.as_deref().filter(is_answer);
    let Some(cause) = cause.or_else(|| Some(error).filter(is_answer)) else { return false };
    // A server that lists what it speaks is believed.
    if let Some(supported) =
        cause.detail("data").and_then(|data| data.get("supported")).and_then(Value::as_array)
    {
        return supported.iter().any(|version| version == ProtocolVersion::LATEST.as_str());
    }
    let code = cause.detail("rpcCode").and_then(Value::as_i64);
    code.is_some_and(|code| FALL_FORWARD.contains(&code))
        || cause.message.contains(ProtocolVersion::LATEST.as_str())
}

/// `answered` without secrets.
fn version_error(shared: &Shared, offered: &ProtocolVersion, answered: Value) -> McpError {
    let versions = answered.as_array().map_or(std::slice::from_ref(&answered), Vec::as_slice);
    let shown: Vec<_> = versions.iter().filter_map(Value::as_str).collect();
    let shown = shown.join(", ");
    let message = format!(
        "The server {} speaks protocol version {}, this client offered {offered}; see the option `protocol`.",
        shared.id,
        shown.get(..shown.floor_char_boundary(100)).unwrap_or_default()
    );
    McpError::new(ErrorCode::ProtocolVersion, message)
        .with("offered", offered.as_str())
        .with("answered", answered)
}

fn unreadable(shared: &Shared, method: &str) -> McpError {
    let message = format!("The answer of the server {} to {method} could not be read.", shared.id);
    McpError::new(ErrorCode::Handshake, message)
}

fn object_text(raw: Option<&RawValue>) -> Option<String> {
    raw.map(RawValue::get).filter(|text| text.starts_with('{')).map(str::to_owned)
}

fn string_text(raw: Option<&RawValue>) -> Option<String> {
    raw.map(RawValue::get).filter(|text| text.starts_with('"')).map(str::to_owned)
}
