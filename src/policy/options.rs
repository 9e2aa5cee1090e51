//! What may be asked: the options of a connect.

use std::collections::HashSet;
use std::fmt;
use std::ops::RangeInclusive;
use std::time::Duration;

use super::found::Found;
use super::input::Input;
use crate::error::{ErrorCode, McpError};

#[cfg(test)]
mod tests;

/// The properties in the order of `index.d.ts`, which is the order of judging.
const KNOWN: [&str; 13] = [
    "allowedInheritedEnvKeys",
    "env",
    "signal",
    "connectTimeout",
    "protocol",
    "maxMessageBytes",
    "shutdown",
    "guardian",
    "onStderr",
    "onLog",
    "onToolsChanged",
    "onWarning",
    "onClose",
];

const DEFAULT_MESSAGE_BYTES: usize = 64 << 20;

/// The upper end is 512 MiB: V8 (`buffer.constants.MAX_STRING_LENGTH`) makes no longer string of a message.
const MESSAGE_BYTES: RangeInclusive<u32> = 1024..=512 << 20;

/// The upper end is that of `setTimeout`.
const CONNECT_TIMEOUT_MS: RangeInclusive<u32> = 1..=i32::MAX.unsigned_abs();

/// One step of a close may take as long as a call.
const SHUTDOWN_MS: RangeInclusive<u32> = 0..=300_000;

const PROTOCOLS: [&str; 8] =
    ["auto", "legacy", "modern", "2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"];

/// The options of a connect, checked and complete.
#[derive(Clone, PartialEq, Eq)]
pub struct Options {
    /// The names a definition may inherit. Each stands here once.
    pub allowed_inherited_env_keys: Vec<String>,
    /// Where the base environment and inherited values are read from: `options.env`, else the host's own. Names that
    /// no definition could use (`ProgramFiles(x86)`) are here too.
    pub env: Vec<(String, String)>,
    /// One deadline over spawn, handshake and listing; none stands for the definition's `timeout`.
    pub connect_timeout: Option<Duration>,
    pub protocol: Protocol,
    /// The longest message accepted from a server, in bytes.
    pub max_message_bytes: usize,
    pub shutdown: Shutdown,
    /// Whether servers are stopped when the host dies hard.
    pub guardian: bool,
    /// Whether a group resolves although some of its servers failed.
    pub partial: bool,
    pub listens: Listens,
}

impl Options {
    /// Everything else as it is by default.
    #[must_use]
    pub fn with(allowed_inherited_env_keys: Vec<String>, env: Vec<(String, String)>) -> Self {
        Self {
            allowed_inherited_env_keys,
            env,
            connect_timeout: None,
            protocol: Protocol::Auto,
            max_message_bytes: DEFAULT_MESSAGE_BYTES,
            shutdown: Shutdown::default(),
            guardian: true,
            partial: false,
            listens: Listens::default(),
        }
    }
}

/// Names only: values may be secret.
impl fmt::Debug for Options {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let env: Vec<&str> = self.env.iter().map(|(name, _)| name.as_str()).collect();
        formatter
            .debug_struct("Options")
            .field("allowed_inherited_env_keys", &self.allowed_inherited_env_keys)
            .field("env", &env)
            .field("connect_timeout", &self.connect_timeout)
            .field("protocol", &self.protocol)
            .field("max_message_bytes", &self.max_message_bytes)
            .field("shutdown", &self.shutdown)
            .field("guardian", &self.guardian)
            .field("partial", &self.partial)
            .field("listens", &self.listens)
            .finish()
    }
}

/// Which revisions of the protocol are tried.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Protocol {
    /// `initialize` first, `server/discover` where the server is modern-only.
    Auto,
    /// `initialize` only.
    Legacy,
    /// `server/discover` only.
    Modern,
    /// Exactly this revision.
    Version(&'static str),
}

/// How long a server may take to leave before the next step of a close.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shutdown {
    /// After the end of its input.
    pub end_of_input: Duration,
    /// After SIGTERM.
    pub terminate: Duration,
}

impl Default for Shutdown {
    fn default() -> Self {
        Self { end_of_input: Duration::from_secs(2), terminate: Duration::from_secs(2) }
    }
}

/// Which callbacks were given, of those that cost something: nothing is made for one that was not. Changes of tools and the end of a
/// connection are delivered in any case.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Listens {
    pub stderr: bool,
    pub log: bool,
    pub warning: bool,
}

/// Reads the options of one call; `undefined` is none of them. With `group`, `partial` is known too.
///
/// `host_env` gives the host's own environment (`process.env`), and is asked only where `options.env` is absent.
/// The first bad option in the order of `index.d.ts` is `ERR_MCP_INVALID_ARGUMENT`, unknown ones come before all.
pub fn judge(input: &Input, host_env: impl FnOnce() -> Input, group: bool) -> Result<Options, McpError> {
    let none = Input::Object(Vec::new());
    let given = if matches!(input, Input::Undefined) { &none } else { input };
    let options = Found::outermost(ErrorCode::InvalidArgument, "options", given);
    let known = if group { [&KNOWN[..], &["partial"]].concat() } else { KNOWN.to_vec() };
    options.has_only(&known, "an object")?;
    let listens = |name| options.property(name).function();
    let flag = |name, default| options.property(name).given().map_or(Ok(default), |flag| flag.boolean());

    let allowed_inherited_env_keys = allowed_keys(options.property("allowedInheritedEnvKeys"))?;
    let env = match options.property("env").given() {
        Some(env) => variables(&env)?,
        None => variables(&Found::outermost(ErrorCode::InvalidArgument, "process.env", &host_env()))?,
    };
    signal(&options.property("signal"))?;
    let connect_timeout = options.property("connectTimeout").given();
    let connect_timeout = connect_timeout.map(|it| milliseconds(&it, CONNECT_TIMEOUT_MS)).transpose()?;
    let protocol = options.property("protocol").given().map_or(Ok(Protocol::Auto), |it| protocol(&it))?;
    let max_message_bytes = options.property("maxMessageBytes").given();
    let max_message_bytes = max_message_bytes.map_or(Ok(DEFAULT_MESSAGE_BYTES), |it| {
        it.integer(MESSAGE_BYTES, "bytes").map(|bytes| bytes as usize)
    })?;
    let shutdown = options.property("shutdown").given().map(|it| shutdown(&it)).transpose()?;
    let guardian = flag("guardian", true)?;
    let stderr = listens("onStderr")?;
    let log = listens("onLog")?;
    listens("onToolsChanged")?;
    let warning = listens("onWarning")?;
    listens("onClose")?;
    Ok(Options {
        allowed_inherited_env_keys,
        env,
        connect_timeout,
        protocol,
        max_message_bytes,
        shutdown: shutdown.unwrap_or_default(),
        guardian,
        listens: Listens { stderr, log, warning },
        partial: flag("partial", false)?,
    })
}

/// A name that no variable can have would never allow anything, so it is a slip. A repeated one changes nothing.
pub(crate) fn allowed_keys(found: Found<'_>) -> Result<Vec<String>, McpError> {
    let mut keys: Vec<String> = Vec::new();
    let mut seen = HashSet::new();
    let Some(found) = found.given() else { return Ok(keys) };
    for element in found.elements("an array of names of variables")? {
        let name = element.variable_name()?;
        if seen.insert(name) {
            keys.push(name.to_owned());
        }
    }
    Ok(keys)
}

pub(crate) fn variables(found: &Found<'_>) -> Result<Vec<(String, String)>, McpError> {
    let Input::Object(entries) = found.value else {
        return Err(found.wrong("an object that holds variables, as process.env does"));
    };
    let given = entries.iter().filter(|(_, value)| !matches!(value, Input::Undefined));
    // A path is made for the one that is refused: a host has dozens of variables, and each start reads them.
    let variable = |(name, value): &(String, Input)| match value {
        Input::String(text) if !text.contains('\0') => Ok((name.clone(), text.clone())),
        _ => Ok((name.clone(), found.property(name).text("a string")?.to_owned())),
    };
    given.map(variable).collect()
}

/// How a signal is read depends on the host's realm, so here it only must not be something else.
fn signal(found: &Found<'_>) -> Result<(), McpError> {
    match found.value {
        Input::Undefined | Input::Object(_) => Ok(()),
        Input::Other(kind) if kind.ends_with("AbortSignal") => Ok(()),
        _ => Err(found.wrong("an AbortSignal")),
    }
}

pub(crate) fn protocol(found: &Found<'_>) -> Result<Protocol, McpError> {
    Ok(match found.word(&PROTOCOLS)? {
        "auto" => Protocol::Auto,
        "legacy" => Protocol::Legacy,
        "modern" => Protocol::Modern,
        version => Protocol::Version(version),
    })
}

fn shutdown(found: &Found<'_>) -> Result<Shutdown, McpError> {
    found.has_only(&["endOfInput", "terminate"], "an object with endOfInput and terminate")?;
    let step =
        |name, default| found.property(name).given().map_or(Ok(default), |it| milliseconds(&it, SHUTDOWN_MS));
    let default = Shutdown::default();
    Ok(Shutdown {
        end_of_input: step("endOfInput", default.end_of_input)?,
        terminate: step("terminate", default.terminate)?,
    })
}

fn milliseconds(found: &Found<'_>, range: RangeInclusive<u32>) -> Result<Duration, McpError> {
    found.integer(range, "milliseconds").map(|ms| Duration::from_millis(ms.into()))
}
