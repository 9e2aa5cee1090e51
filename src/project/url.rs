//! Where a server is: what may stand in `url`, and what of it is secret.

use std::fmt;

use ::url::{Host, Position, Url};

use crate::policy::capability::{name_is_capability, value_format};

/// A URL that can be asked.
#[derive(PartialEq, Eq)]
pub(super) struct Address {
    /// As it is sent.
    pub url: String,
    /// `https://host:port`, a default port left out.
    pub origin: String,
    /// Nobody on the way can read what is sent: TLS, or this machine itself.
    pub is_private: bool,
}

/// Without the URL: a capability may stand in it, and a variable in the name of its host.
impl fmt::Debug for Address {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Address").field("is_private", &self.is_private).finish_non_exhaustive()
    }
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
    // A star is a letter of a host to the URL standard, and would match nothing.
    let is_bare = is_bare && !text.contains('*');
    is_bare.then(|| url.origin().ascii_serialization())
}

/// The parts of a URL that say of themselves that they are capabilities, name and value. Placeholders are none.
pub(super) fn capabilities(text: &str) -> Vec<(String, String)> {
    let mut found = parts(text);
    found.retain(|(name, value)| {
        !value.is_empty()
            && !value.contains("${")
            && (name_is_capability(name) || value_format(value).is_some())
    });
    found
}

/// The parts of a URL that may be capabilities: long, of letters and digits by turns. Servers that know their users by the URL alone put
/// such a thing into its path (`/s/MjY4…/mcp`). The id of a workspace looks the same, so nobody is warned of them; but not to show one
/// costs little.
pub(super) fn unguessable(text: &str) -> Vec<(String, String)> {
    const SHORTEST: usize = 20;
    const TURNS: usize = 4;
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b"-_=".contains(&byte);
    let mut found = parts(text);
    found.retain(|(_, value)| {
        let bytes = value.as_bytes();
        let turns = bytes.windows(2).filter(|pair| pair[0].is_ascii_digit() != pair[1].is_ascii_digit());
        bytes.len() >= SHORTEST && turns.count() >= TURNS && bytes.iter().copied().all(is_part)
    });
    found
}

/// The parts of the query by their names, and those of the path.
fn parts(text: &str) -> Vec<(String, String)> {
    let Ok(url) = Url::parse(text) else { return Vec::new() };
    let pairs = url.query_pairs().map(|(name, value)| (name.into_owned(), value.into_owned()));
    let segments = url.path_segments().into_iter().flatten();
    pairs.chain(segments.map(|segment| ("url".to_owned(), segment.to_owned()))).collect()
}

/// How a variable's value reads where it is different in a URL that was read: in a host (small letters, ASCII), a path and a query, each
/// with escapes for what it may not hold.
pub(super) fn as_sent(value: &str) -> Vec<String> {
    let host = Url::parse(&format!("http://{value}/")).ok().and_then(|url| url.host_str().map(str::to_owned));
    let path = Url::parse(&format!("http://a/{value}"))
        .ok()
        .map(|url| url[Position::BeforePath..Position::AfterPath].trim_start_matches('/').to_owned());
    let query = Url::parse(&format!("http://a/?{value}")).ok().and_then(|url| url.query().map(str::to_owned));
    let mut forms: Vec<_> = [host, path, query].into_iter().flatten().collect();
    forms.retain(|form| form != value && !form.is_empty());
    forms
}

fn is_private(url: &Url) -> bool {
    url.scheme() == "https" || is_this_machine(url)
}

/// Whether a URL leads to this machine itself.
#[must_use]
pub fn is_this_machine(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => is_localhost(name),
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}

/// Names of this machine (RFC 6761, 6.3).
#[must_use]
pub fn is_localhost(name: &str) -> bool {
    name == "localhost" || name.ends_with(".localhost")
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
    fn an_origin_is_one_and_no_pattern() {
        assert_eq!(origin("HTTPS://Mcp.Example.com:443/").as_deref(), Some("https://mcp.example.com"));
        for text in
            ["https://*.example.com", "https://a.example/x", "https://me@a.example", "a.example", "ws://a"]
        {
            assert_eq!(origin(text), None, "{text}");
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
    fn debug_output_shows_nothing_of_a_url() {
        let shown = format!("{:?}", judge("https://c4n4ry.example/c4n4ry?key=c4n4ry"));
        assert_eq!(shown, "Ok(Address { is_private: true, .. })");
    }

    #[test]
    fn secrets_in_the_query_are_found_by_name_and_by_value() {
        let found = capabilities(
            "https://a.example/mcp?exaApiKey=abc%2Fdef&region=eu&x=ghp_k3Jx9QmZ2vLw8RtY5bNc7HdF4sGp6TaE1uXo",
        );
        let names: Vec<_> = found.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["exaApiKey", "x"]);
        assert_eq!(found[0].1, "abc/def");
        let token = "ghp_k3Jx9QmZ2vLw8RtY5bNc7HdF4sGp6TaE1uXo";
        assert_eq!(
            capabilities(&format!("https://a.example/{token}/mcp")),
            [("url".to_owned(), token.to_owned())]
        );
        assert_eq!(capabilities("https://a.example/mcp?api_key=${KEY}"), []);
    }

    #[test]
    fn what_nobody_made_up_may_be_a_secret() {
        let found =
            unguessable("https://a.example/api/s/MjY4YzQtNGQ3Mi00OTQx2bXf8A/web-search-for-everybody/v1.2");
        assert_eq!(found, [("url".to_owned(), "MjY4YzQtNGQ3Mi00OTQx2bXf8A".to_owned())]);
        assert_eq!(
            unguessable("https://a.example/mcp?tools=web_search_exa,crawling&region=ap-southeast-2"),
            []
        );
    }
}
