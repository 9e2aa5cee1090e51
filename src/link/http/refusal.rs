//! What went wrong on the way to a server or back, said so that somebody can mend it.

use std::error::Error;
use std::io;

use http::header::{LOCATION, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderMap, StatusCode};
use reqwest::Url;
#[cfg(feature = "tls")]
use rustls::CertificateError;
use serde_json::Value;

use super::names::Unresolved;
use super::network::{CONNECT_TIMEOUT, place_of};
use crate::error::{ErrorCode, McpError};
use crate::link::envelope::{self, Line, Message, RpcError};
use crate::policy::redact::Redactor;

/// As much of a refusal's body as is shown in `details.body`.
pub(super) const BODY_SHOWN: usize = 2 * 1024;
/// As much of one as is read: an error of JSON-RPC may stand in it, with data that lists what a server supports.
pub(super) const BODY_READ: usize = 64 * 1024;
const SAID_MAX: usize = 300;
const HEADER_MAX: usize = 1024;

/// Says what went wrong with one server.
pub(super) struct Refusals {
    /// The server's name.
    pub server: String,
    /// Its host and port, redacted.
    pub place: String,
    pub proxy: Option<String>,
    pub redactor: Redactor,
}

impl Refusals {
    /// An answer whose status is no success. `body` may be cut off.
    pub(super) fn http(&self, status: StatusCode, headers: &HeaderMap, body: &str) -> McpError {
        if matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) {
            return self.unauthorized(status, headers);
        }
        let rpc = rpc_error(body);
        let said = match &rpc {
            Some(error) => format!(": {}", self.redactor.excerpt(&error.message, SAID_MAX)),
            // Pages are for browsers.
            None if body.trim_start().starts_with('<') => String::new(),
            None => self.redactor.excerpt(body.trim(), SAID_MAX),
        };
        let said = match said.lines().next() {
            Some(line) if rpc.is_none() && !line.is_empty() => format!(": {line}"),
            _ => said,
        };
        let server = &self.server;
        let mut error =
            McpError::new(ErrorCode::Http, format!("The server {server} answered with HTTP {status}{said}."))
                .with("status", status.as_u16())
                .with("body", self.body(body));
        if let Some(rpc) = rpc {
            error = error.with("rpcCode", self.redactor.value(rpc.code));
            if let Some(data) = rpc.data {
                error = error.with("data", self.redactor.json(&data));
            }
        }
        match self.header(headers, &RETRY_AFTER) {
            Some(time) => error.with("retryAfter", time),
            None => error,
        }
    }

    fn unauthorized(&self, status: StatusCode, headers: &HeaderMap) -> McpError {
        let server = &self.server;
        let message = format!(
            "The server {server} wants credentials, or other ones (HTTP {status}); check its headers or bearerTokenEnv, and whether the token still counts."
        );
        McpError::new(ErrorCode::AuthRequired, message)
            .with("status", status.as_u16())
            .with("wwwAuthenticate", self.header(headers, &WWW_AUTHENTICATE))
    }

    /// A redirect that is not followed.
    pub(super) fn redirect(
        &self,
        from: &Url,
        status: StatusCode,
        headers: &HeaderMap,
        why: &str,
    ) -> McpError {
        let target = self.header(headers, &LOCATION);
        // Without its query, which may hold anything.
        let shown = match target.as_ref().map(|target| from.join(target)) {
            Some(Ok(url)) if url.has_host() => {
                let address = format!("{}://{}{}", url.scheme(), place_of(&url), url.path());
                self.redactor.excerpt(&address, HEADER_MAX)
            }
            Some(_) => "an address that is none".to_owned(),
            None => "nowhere (there is no Location)".to_owned(),
        };
        let server = &self.server;
        let message = format!(
            "The server {server} redirects to {shown} (HTTP {status}), {why}; if it has moved, put its new address into the configuration."
        );
        McpError::new(ErrorCode::Http, message)
            .with("status", status.as_u16())
            .with("body", "")
            .with("location", shown)
    }

    /// A server that was to be found under the older transport.
    pub(super) fn legacy_sse(&self, refused: McpError) -> McpError {
        let server = &self.server;
        let message = format!(
            "The server {server} speaks HTTP+SSE of 2024-11-05, which this client does not; most such servers offer streamable HTTP under another path, often /mcp."
        );
        McpError { message, ..refused }
    }

    /// An answer of which no message could be made.
    pub(super) fn unreadable(&self, status: StatusCode, kind: Option<&str>, body: &str) -> McpError {
        let server = &self.server;
        let what = if body.trim().is_empty() {
            "an empty body".to_owned()
        } else if kind == Some("text/html") {
            "a page for browsers (text/html); is its url that of an MCP server?".to_owned()
        } else {
            format!("{} that holds no answer", kind.map_or("a body without a type", |kind| kind))
        };
        McpError::new(
            ErrorCode::InvalidMessage,
            sentence(format!(
                "The server {server} answered with HTTP {status} and {}",
                self.redactor.excerpt(&what, SAID_MAX)
            )),
        )
        .with("status", status.as_u16())
        .with("body", self.body(body))
    }

    /// An answer in an encoding that nobody asked for.
    pub(super) fn encoded(&self, status: StatusCode, encoding: &str) -> McpError {
        let server = &self.server;
        let shown = self.redactor.excerpt(encoding, SAID_MAX);
        let message = format!(
            "The server {server} answered with HTTP {status} and a body in the encoding {shown}, which was not asked for; something on the way may have compressed it."
        );
        McpError::new(ErrorCode::InvalidMessage, message).with("status", status.as_u16()).with("body", "")
    }

    pub(super) fn too_large(&self, limit: usize) -> McpError {
        let server = &self.server;
        let message = format!(
            "The answer of the server {server} is over the limit of {limit} bytes; raise maxMessageBytes if it is legitimate."
        );
        McpError::new(ErrorCode::MessageTooLarge, message).with("limit", limit)
    }

    /// A stream or session that ended with the answer still owed.
    pub(super) fn lost(&self, what: &str) -> McpError {
        let server = &self.server;
        McpError::new(
            ErrorCode::Connect,
            format!(
                "The {what} of the server {server} ended before its answer; whether the call ran is unknown."
            ),
        )
    }

    /// No answer came at all.
    pub(super) fn network(&self, error: &reqwest::Error) -> McpError {
        let server = &self.server;
        // A variable may stand in the name of the host.
        let (place, proxy) =
            (self.redactor.text(&self.place), self.proxy.as_ref().map(|proxy| self.redactor.text(proxy)));
        let by_proxy = proxy.as_ref().map(|proxy| format!(" through the proxy {proxy}")).unwrap_or_default();
        let why = match cause_of(error) {
            Cause::Name(why) => {
                let host = proxy.as_ref().unwrap_or(&place);
                let name = host.rsplit_once(':').map_or(&**host, |(name, _)| name);
                format!("no address was found for the name {name} ({why})")
            }
            Cause::Refused => {
                format!("{} refused the connection; is the server running?", proxy.as_ref().unwrap_or(&place))
            }
            #[cfg(feature = "tls")]
            Cause::Certificate(why) => {
                format!("its certificate is not accepted: {}", distrust(&why))
            }
            #[cfg(feature = "tls")]
            Cause::Tls(rustls::Error::InvalidMessage(_)) => {
                "what answers there does not speak TLS; if it is plain HTTP, its url begins with http:"
                    .to_owned()
            }
            #[cfg(feature = "tls")]
            Cause::Tls(why) => format!("no TLS connection came about ({why})"),
            Cause::Timeout => format!("no connection came about within {} s", CONNECT_TIMEOUT.as_secs()),
            // Of a builder: nothing was sent.
            Cause::Other(why) if error.is_connect() || error.is_builder() => why,
            Cause::Other(why) => {
                format!("the connection broke before the answer, and whether the call ran is unknown ({why})")
            }
        };
        let why = self.redactor.excerpt(&why, SAID_MAX);
        let code = ErrorCode::Connect;
        McpError::new(
            code,
            sentence(format!("The server {server} at {place} could not be reached{by_proxy}: {why}")),
        )
    }

    /// The beginning of a body. Any letter of JSON may be written as an escape: then only the strings themselves tell what is in them.
    fn body(&self, body: &str) -> String {
        let plain = body.contains('\\').then(|| serde_json::from_str::<Value>(body).ok()).flatten();
        match plain {
            Some(value) => self.redactor.excerpt(&self.redactor.value(value).to_string(), BODY_SHOWN),
            None => self.redactor.excerpt(body, BODY_SHOWN),
        }
    }

    fn header(&self, headers: &HeaderMap, name: &http::HeaderName) -> Option<String> {
        let value = headers.get(name)?;
        Some(self.redactor.excerpt(&String::from_utf8_lossy(value.as_bytes()), HEADER_MAX))
    }
}

/// The refusal of what may be no server at all: the path of a URL is easily written wrong.
pub(super) fn misplaced(refused: McpError) -> McpError {
    let said = refused.message.strip_suffix('.').unwrap_or(&refused.message);
    let message = format!("{said}; is the path of its url right? Most servers are to be found under /mcp.");
    McpError { message, ..refused }
}

/// With its end, unless it has one.
fn sentence(text: String) -> String {
    if text.ends_with('?') { text } else { text + "." }
}

/// What is wrong with a certificate, and what helps.
#[cfg(feature = "tls")]
fn distrust(why: &CertificateError) -> String {
    let extra = "for a private authority, or one that signed itself, name its file in NODE_EXTRA_CA_CERTS";
    match why {
        CertificateError::UnknownIssuer => format!("nobody who is trusted here has signed it; {extra}"),
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            format!(
                "{why}; write one of its names into the url, or issue one for the name there (in subjectAltName)"
            )
        }
        CertificateError::Expired
        | CertificateError::ExpiredContext { .. }
        | CertificateError::NotValidYet
        | CertificateError::NotValidYetContext { .. } => {
            format!("{why}; renew it, or set the clock of this system")
        }
        // `openssl req -x509` makes such ones. OpenSSL, and so Node, accept them; webpki does not (RFC 5280, 4.2.1.9).
        CertificateError::Other(other) if other.to_string() == "CaUsedAsEndEntity" => {
            "it is that of an authority (CA:TRUE), which cannot be a server's own; issue one with basicConstraints=CA:FALSE".to_owned()
        }
        _ => format!("{why}; {extra}"),
    }
}

/// The error of JSON-RPC in a body, whatever its id.
pub(super) fn rpc_error(body: &str) -> Option<RpcError> {
    let Line::Messages(messages) = envelope::parse(body) else { return None };
    messages.into_iter().find_map(|message| match message {
        Message::Error { error, .. } => Some(error),
        _ => None,
    })
}

enum Cause {
    Name(String),
    Refused,
    #[cfg(feature = "tls")]
    Certificate(CertificateError),
    #[cfg(feature = "tls")]
    Tls(rustls::Error),
    Timeout,
    Other(String),
}

fn cause_of(error: &reqwest::Error) -> Cause {
    let mut last: &(dyn Error + 'static) = error;
    let mut next: Option<&(dyn Error + 'static)> = error.source();
    while let Some(source) = next {
        if let Some(Unresolved(why)) = source.downcast_ref::<Unresolved>() {
            return Cause::Name(why.to_string());
        }
        #[cfg(feature = "tls")]
        if let Some(why) = source.downcast_ref::<rustls::Error>() {
            return match why {
                rustls::Error::InvalidCertificate(why) => Cause::Certificate(why.clone()),
                why => Cause::Tls(why.clone()),
            };
        }
        let io = source.downcast_ref::<io::Error>();
        if io.is_some_and(|io| io.kind() == io::ErrorKind::ConnectionRefused) {
            return Cause::Refused;
        }
        last = source;
        // An io::Error that wraps another error is its own source's wrapper: look inside.
        next = io
            .and_then(io::Error::get_ref)
            .map(|inner| inner as &(dyn Error + 'static))
            .or_else(|| source.source());
    }
    if error.is_timeout() {
        return Cause::Timeout;
    }
    // reqwest's own errors say the URL, with all that stands in its query.
    let is_ours = last.downcast_ref::<reqwest::Error>().is_some();
    Cause::Other(if is_ours { "nothing more is known".to_owned() } else { last.to_string() })
}
