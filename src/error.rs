//! Errors are values with fields until one JavaScript function makes the `McpError` of them.
//!
//! Whoever makes an error of text that came from or is about a server passes that text through
//! [`crate::policy::redact::Redactor`] first: nothing is redacted later.

use std::fmt;

use serde_json::{Map, Value};

/// Declares the codes once, so that the enum, its texts and the list that tests compare cannot differ.
macro_rules! error_codes {
    ($($variant:ident => $text:literal,)*) => {
        /// What went wrong, by what the caller can do about it. The texts are the `code` of an `McpError`.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum ErrorCode { $($variant,)* }

        impl ErrorCode {
            /// Every code, in the order of the union in `index.d.ts`.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// The code as JavaScript sees it.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text,)* }
            }
        }
    };
}

error_codes! {
    InvalidDefinition => "ERR_MCP_INVALID_DEFINITION",
    CapabilityInDefinition => "ERR_MCP_CAPABILITY_IN_DEFINITION",
    EnvNotAllowed => "ERR_MCP_ENV_NOT_ALLOWED",
    TooManyServers => "ERR_MCP_TOO_MANY_SERVERS",
    TooManyTools => "ERR_MCP_TOO_MANY_TOOLS",
    TooManyPages => "ERR_MCP_TOO_MANY_PAGES",
    Spawn => "ERR_MCP_SPAWN",
    Handshake => "ERR_MCP_HANDSHAKE",
    ProtocolVersion => "ERR_MCP_PROTOCOL_VERSION",
    Timeout => "ERR_MCP_TIMEOUT",
    Exited => "ERR_MCP_EXITED",
    Closed => "ERR_MCP_CLOSED",
    ToolNotFound => "ERR_MCP_TOOL_NOT_FOUND",
    Rpc => "ERR_MCP_RPC",
    InvalidMessage => "ERR_MCP_INVALID_MESSAGE",
    MessageTooLarge => "ERR_MCP_MESSAGE_TOO_LARGE",
    InputRequired => "ERR_MCP_INPUT_REQUIRED",
    InvalidArgument => "ERR_MCP_INVALID_ARGUMENT",
    Config => "ERR_MCP_CONFIG",
    ServerNotFound => "ERR_MCP_SERVER_NOT_FOUND",
    ServerHasNoUrl => "ERR_MCP_SERVER_HAS_NO_URL",
    Http => "ERR_MCP_HTTP",
    AuthRequired => "ERR_MCP_AUTH_REQUIRED",
    Connect => "ERR_MCP_CONNECT",
    WouldBlock => "ERR_MCP_WOULD_BLOCK",
    NativeLoad => "ERR_MCP_NATIVE_LOAD",
    Internal => "ERR_MCP_INTERNAL",
}

/// One failure: a code, a sentence for people, fields for programs.
#[derive(Debug, Clone, PartialEq)]
pub struct McpError {
    pub code: ErrorCode,
    /// One readable sentence that names the place and the cure. Never holds a secret.
    pub message: String,
    /// The definition's `id`, once it is known.
    pub server_id: Option<String>,
    /// The fields that `index.d.ts` lists for the code.
    pub details: Vec<(&'static str, Value)>,
    pub cause: Option<Box<McpError>>,
}

impl McpError {
    #[must_use]
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), server_id: None, details: Vec::new(), cause: None }
    }

    /// Adds one field of `details`.
    #[must_use]
    pub fn with(mut self, key: &'static str, value: impl Into<Value>) -> Self {
        self.details.push((key, value.into()));
        self
    }

    /// Says whose failure it is; an id that is already there stays.
    #[must_use]
    pub fn of_server(mut self, id: &str) -> Self {
        self.server_id.get_or_insert_with(|| id.to_owned());
        self
    }

    #[must_use]
    pub fn caused_by(mut self, cause: McpError) -> Self {
        self.cause = Some(Box::new(cause));
        self
    }

    /// The value of one field of `details`.
    #[must_use]
    pub fn detail(&self, key: &str) -> Option<&Value> {
        self.details.iter().find(|(name, _)| *name == key).map(|(_, value)| value)
    }

    /// What the JavaScript side makes its `McpError` from.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let mut json = Map::new();
        json.insert("code".into(), self.code.as_str().into());
        json.insert("message".into(), self.message.as_str().into());
        if let Some(id) = &self.server_id {
            json.insert("serverId".into(), id.as_str().into());
        }
        let details = self.details.iter().map(|(key, value)| ((*key).to_owned(), value.clone()));
        json.insert("details".into(), Value::Object(details.collect()));
        if let Some(cause) = &self.cause {
            json.insert("cause".into(), cause.to_json());
        }
        Value::Object(json)
    }
}

impl fmt::Display for McpError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}", self.code.as_str(), self.message)
    }
}

impl std::error::Error for McpError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.cause.as_deref().map(|cause| cause as _)
    }
}
