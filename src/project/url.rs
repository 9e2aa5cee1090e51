//! Where a server is: what may stand in `url`, and what of it is secret.

use ::url::{Host, Position, Url};

use crate::policy::capability::{name_is_capability, value_format};

/// A URL that can be asked.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Address {
    /// As it is sent.
    pub url: String,
    /// `https://host:port`, a default port left out.
    pub origin: String,
    /// Nobody on the way can read what is sent: TLS, or this machine itself.
    pub is_private: bool,
}

/// Judges a URL; the fault reads on from its path and quotes nothing of it.
pub(super) fn judge(text: &str) -> Result<Address, &'static str> {
    let url = Url::parse(text)
        .map_err(|_| "is no URL; allowed is an absolute one, such as https://mcp.example.com/mcp")?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err("has no scheme, or one that is not supported; a URL begins with https:// or http://");
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(
            "holds a user name or password, which end up in logs; send them as headers, such as { Authorization: \
             'Basic ${NAME}' }, or use bearerTokenEnv",
        );
    }
    if url.fragment().is_some() {
        return Err(
            "holds a fragment (#), which is never sent; leave it out, or write %23 where it belongs to a value",
        );
    }
    Ok(Address { origin: url.origin().ascii_serialization(), is_private: is_private(&url), url: url.into() })
}

/// The origin that a text is, in its one spelling; none where it is more than that, or none.
pub(super) fn origin(text: &str) -> Option<String> {
    let url = Url::parse(text).ok().filter(|url| matches!(url.scheme(), "http" | "https"))?;
    let is_bare =
        &url[Position::BeforePath..] == "/" && url.username().is_empty() && url.password().is_none();
    is_bare.then(|| url.origin().ascii_serialization())
}

/// The parts of a URL as written that are capabilities: name and value.
pub(super) fn capabilities(text: &str) -> Vec<(String, String)> {
    let Ok(url) = Url::parse(text) else { return Vec::new() };
    let is_capability = |name: &str, value: &str| {
        !value.is_empty()
            && !value.contains("${")
            && (name_is_capability(name) || value_format(value).is_some())
    };
    let pairs = url.query_pairs().filter(|(name, value)| is_capability(name, value));
    let mut found: Vec<_> = pairs.map(|(name, value)| (name.into_owned(), value.into_owned())).collect();
    found.extend(url.password().map(|password| ("password".to_owned(), password.to_owned())));
    found
}

fn is_private(url: &Url) -> bool {
    url.scheme() == "https"
        || match url.host() {
            Some(Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
            Some(Host::Ipv4(address)) => address.is_loopback(),
            Some(Host::Ipv6(address)) => address.is_loopback(),
            None => false,
        }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    #[test]
    fn only_absolute_http_urls_can_be_asked() {
        let address = judge("HTTPS://Mcp.Example.com:443/a?b=c").unwrap();
        assert_eq!(address.url, "https://mcp.example.com/a?b=c");
        assert_eq!(address.origin, "https://mcp.example.com");
        for (url, says) in [
            ("", "is no URL"),
            ("mcp.example.com/mcp", "is no URL"),
            ("/mcp", "is no URL"),
            ("https://", "is no URL"),
            ("ws://a.example", "scheme"),
            ("file:///etc/passwd", "scheme"),
            ("javascript:alert(1)", "scheme"),
            ("https://user:secret@a.example", "user name"),
            ("https://user@a.example", "user name"),
            ("https://a.example/#x", "fragment"),
        ] {
            let fault = judge(url).unwrap_err();
            assert!(fault.contains(says) && !fault.contains("secret"), "{url}: {fault}");
        }
    }

    #[test]
    fn plain_http_is_private_on_this_machine_alone() {
        for url in [
            "https://a.example",
            "http://localhost:1",
            "http://a.localhost",
            "http://127.0.0.1/x",
            "http://127.9.9.9",
            "http://[::1]:80",
            "http://0x7f.1",
        ] {
            assert!(judge(url).unwrap().is_private, "{url}");
        }
        for url in [
            "http://a.example",
            "http://localhost.a.example",
            "http://10.0.0.1",
            "http://[::2]",
            "http://0.0.0.0",
        ] {
            assert!(!judge(url).unwrap().is_private, "{url}");
        }
    }

    #[test]
    fn secrets_in_the_query_are_found_by_name_and_by_value() {
        let found = capabilities(
            "https://a.example/mcp?exaApiKey=abc%2Fdef&region=eu&x=ghp_k3Jx9QmZ2vLw8RtY5bNc7HdF4sGp6TaE1uXo",
        );
        let names: Vec<_> = found.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["exaApiKey", "x"]);
        assert_eq!(found[0].1, "abc/def");
        assert_eq!(capabilities("https://a.example/mcp?api_key=${KEY}"), []);
    }
}
