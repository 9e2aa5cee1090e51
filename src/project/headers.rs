//! Which headers may go with every request.

use crate::policy::capability::{name_is_capability, value_format};

/// Headers that say what the protocol or the connection says; a project's own would break either.
const RESERVED: [&str; 13] = [
    "accept",
    "connection",
    "content-encoding",
    "content-length",
    "content-type",
    "expect",
    "host",
    "keep-alive",
    "last-event-id",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];
const RESERVED_PREFIX: &str = "mcp-";

/// Why a header cannot be sent, to follow its place in a sentence. Nothing of the value is quoted.
pub(super) fn fault(name: &str, value: &str) -> Option<&'static str> {
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    if name.is_empty() || !name.bytes().all(is_token) {
        Some("has a name that no header can have; allowed are letters, digits and -")
    } else if is_reserved(name) {
        Some("is set by the protocol itself; leave it out")
    } else if value
        .bytes()
        .any(|byte| byte == b'\n' || byte == b'\r' || byte == 0x7f || (byte < b' ' && byte != b'\t'))
    {
        Some(
            "has a value with a line break or another control character in it; read from a file, a value often ends in one",
        )
    } else {
        None
    }
}

/// Whether a header is none of a project's.
#[must_use]
pub fn is_reserved(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    RESERVED.contains(&name.as_str()) || name.starts_with(RESERVED_PREFIX)
}

/// Whether a header grants access to something.
#[must_use]
pub fn is_capability(name: &str, value: &str) -> bool {
    name_is_capability(name) || value_format(value).is_some()
}

/// Judges headers that the host's function gave; the fault names the header and quotes no value. `is_private`: nobody on the way can
/// read them.
pub fn judge(headers: &[(String, String)], is_private: bool) -> Result<(), String> {
    for (at, (name, value)) in headers.iter().enumerate() {
        let shown = serde_json::Value::from(crate::policy::found::shown(name));
        if let Some(fault) = fault(name, value) {
            return Err(format!("the header {shown} {fault}"));
        }
        if headers[..at].iter().any(|(earlier, _)| earlier.eq_ignore_ascii_case(name)) {
            return Err(format!("the header {shown} is there twice"));
        }
        if !is_private && is_capability(name, value) {
            return Err(format!(
                "the header {shown} may hold a secret, which goes over https or to this machine only"
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_a_token_and_a_value_without_line_breaks() {
        for (name, value) in [
            ("X-Api-Key", "abc"),
            ("authorization", "Bearer a b\tc"),
            ("x", ""),
            ("X-ü".trim_end_matches('ü'), "ü"),
        ] {
            assert_eq!(fault(name, value), None, "{name}");
        }
        for (name, value) in [
            ("", "x"),
            ("a b", "x"),
            ("a:", "x"),
            ("ü", "x"),
            ("a", "x\n"),
            ("a", "x\r\nHost: other"),
            ("a", "\0"),
            ("Content-Type", "text/html"),
            ("MCP-Session-Id", "1"),
            ("host", "other"),
        ] {
            assert!(fault(name, value).is_some(), "{name}: {value}");
        }
    }

    #[test]
    fn what_grants_access_does_not_go_over_the_wire_in_clear() {
        let header = |name: &str, value: &str| [(name.to_owned(), value.to_owned())];
        assert!(judge(&header("Authorization", "Basic eDp5"), false).is_err());
        assert!(judge(&header("X-Api-Key", "abc"), false).is_err());
        assert!(judge(&header("X-Trace", "abc"), false).is_ok());
        assert!(judge(&header("Authorization", "Bearer abc"), true).is_ok());
        let twice = [header("A", "1"), header("a", "2")].concat();
        assert!(judge(&twice, true).is_err_and(|fault| fault.contains("twice")));
    }
}
