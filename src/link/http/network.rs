//! The way to a server: name lookup, proxy, certificates. Made for one session, from the environment that its options give.

use std::time::Duration;

use http::Uri;
use hyper_util::client::proxy::matcher::Matcher;
use reqwest::redirect::Policy;
use reqwest::{Client, Proxy, Url};

use super::names::Names;
#[cfg(feature = "tls")]
use super::tls;
use crate::error::{ErrorCode, McpError};
use crate::policy::capability::percent_decoded;
use crate::project::url::is_this_machine;

/// From the lookup of the name to the end of the TLS handshake.
pub(super) const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Node's servers and uvicorn close a connection that was idle for 5 s. A request that crosses with that is lost, and whether it ran
/// nobody knows; so ours are closed first.
const IDLE_MAX: Duration = Duration::from_secs(4);

/// A peer that vanished without a word is found out by the system while a stream is silent.
const KEEPALIVE: Duration = Duration::from_secs(30);

/// A client for one server.
pub(super) struct Network {
    pub client: Client,
    /// Host and port of the proxy that requests go through.
    pub proxy: Option<String>,
    /// Name and value of what the proxy is told and nobody else: who asks.
    pub secrets: Vec<(String, String)>,
    /// What was odd and no reason to stop.
    pub warning: Option<String>,
}

/// `env`: where proxies and the extra certificates are read from, never the process's own.
pub(super) async fn network(url: &Url, env: &[(String, String)]) -> Result<Network, McpError> {
    let proxy = proxy_of(url, env);
    let mut builder = Client::builder()
        .no_proxy()
        .redirect(Policy::none())
        .referer(false)
        .retry(reqwest::retry::never())
        .http1_only()
        .connect_timeout(CONNECT_TIMEOUT)
        .pool_idle_timeout(IDLE_MAX)
        .tcp_nodelay(true)
        .tcp_keepalive(KEEPALIVE)
        .dns_resolver(Names)
        .user_agent(concat!(env!("CARGO_PKG_NAME"), "/", env!("CARGO_PKG_VERSION")));
    let (mut shown, mut secrets) = (None, Vec::new());
    let mut needs_certificates = url.scheme() == "https";
    if let Some((variable, address)) = proxy {
        let address = proxy_address(address);
        let proxy = address.as_ref().and_then(|address| Proxy::all(address.as_str()).ok());
        let (Some(address), Some(proxy)) = (address, proxy) else {
            let message = format!(
                "The proxy that {variable} names has no address that can be used; allowed is http://host:port or https://host:port."
            );
            return Err(McpError::new(ErrorCode::Connect, message));
        };
        needs_certificates |= address.scheme() == "https";
        shown = Some(place_of(&address));
        secrets = user_info(variable, &address);
        builder = builder.proxy(proxy);
    }
    #[cfg(feature = "tls")]
    let (builder, warning) = {
        let (config, warning) =
            tls::config(needs_certificates, variable(env, &["NODE_EXTRA_CA_CERTS"])).await?;
        (builder.tls_backend_preconfigured(config), warning)
    };
    #[cfg(not(feature = "tls"))]
    let warning = if needs_certificates {
        let message =
            "This build of workflow-mcp has no TLS, and the server's URL or its proxy begins with https.";
        return Err(McpError::new(ErrorCode::Connect, message));
    } else {
        None
    };
    let client = builder.build().map_err(|error| {
        McpError::new(ErrorCode::Internal, format!("No HTTP client could be made: {error}."))
    })?;
    Ok(Network { client, proxy: shown, secrets, warning })
}

/// A proxy's address where it says who asks, by the name of the variable that has it. Without a password the user is what grants access.
fn user_info(variable: &str, address: &Url) -> Vec<(String, String)> {
    let secrets = match (address.username(), address.password()) {
        ("", None) => Vec::new(),
        // As it is written, and as the proxy is told it.
        (user, None) => vec![user.to_owned(), percent_decoded(user)],
        (_, Some(_)) => vec![address.as_str().to_owned()],
    };
    secrets.into_iter().map(|secret| (variable.to_owned(), secret)).collect()
}

/// Host and port, for messages: a URL may carry a password or a key in its query.
pub(super) fn place_of(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    url.port_or_known_default().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
}

/// The variable that names a proxy for this URL, and what it says.
fn proxy_of<'a>(url: &Url, env: &'a [(String, String)]) -> Option<(&'static str, &'a str)> {
    // To a proxy "this machine" is itself, and it would be sent in clear what may stay on this one.
    if is_this_machine(url) {
        return None;
    }
    let names =
        if url.scheme() == "https" { ["https_proxy", "HTTPS_PROXY"] } else { ["http_proxy", "HTTP_PROXY"] };
    let (name, address) = names.into_iter().find_map(|name| Some((name, variable(env, &[name])?)))?;
    let exceptions = variable(env, &["no_proxy", "NO_PROXY"]).unwrap_or_default();
    (!is_excepted(url, exceptions)).then_some((name, address))
}

/// Where a proxy is; one without a scheme is spoken to by `http`.
fn proxy_address(text: &str) -> Option<Url> {
    let url = if text.contains("://") { Url::parse(text) } else { Url::parse(&format!("http://{text}")) };
    url.ok().filter(|url| matches!(url.scheme(), "http" | "https"))
}

/// Whether `NO_PROXY` speaks of this URL: a list of hosts, networks, endings of names, each also with a port, or `*`.
fn is_excepted(url: &Url, exceptions: &str) -> bool {
    let entries: Vec<_> =
        exceptions.split([',', ' ']).filter_map(|entry| without_port(entry.trim(), url)).collect();
    if entries.contains(&"*") {
        return true;
    }
    // What hyper's matcher intercepts is not excepted, whatever the proxy is.
    let matcher = Matcher::builder().all("http://proxy").no(entries.join(",")).build();
    Uri::try_from(url.as_str()).is_ok_and(|uri| matcher.intercept(&uri).is_none())
}

/// An entry as hyper's matcher reads it: `.example.com` for `*.example.com`, and no port. `None` for one about another port.
fn without_port<'e>(entry: &'e str, url: &Url) -> Option<&'e str> {
    let host = match entry.rsplit_once(':') {
        // More colons are an IPv6 address, which has a port only behind brackets.
        Some((host, port)) if !host.contains(':') || host.ends_with(']') => {
            (port.parse().ok() == url.port_or_known_default()).then_some(host)?
        }
        _ => entry,
    };
    let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    Some(host.strip_prefix('*').filter(|rest| rest.starts_with('.')).unwrap_or(host))
}

/// The first of these that is set to something.
fn variable<'a>(env: &'a [(String, String)], names: &[&str]) -> Option<&'a str> {
    names.iter().find_map(|name| {
        let value = env.iter().find(|(set, _)| set == name).map(|(_, value)| value.trim());
        value.filter(|value| !value.is_empty())
    })
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    #[test]
    fn no_proxy_is_read_in_the_forms_that_people_write() {
        for (exceptions, url, expected) in [
            ("*", "http://10.0.0.1", true),
            ("*", "http://[2001:db8::1]/", true),
            ("a.example,10.0.0.0/8", "http://10.1.2.3", true),
            ("10.0.0.1:8080", "http://10.0.0.1:8080", true),
            ("10.0.0.1:8080", "http://10.0.0.1", false),
            ("mcp.example:443", "https://mcp.example", true),
            ("mcp.example:80", "https://mcp.example", false),
            ("*.example", "https://mcp.example", true),
            (".example", "https://mcp.example", true),
            ("*.example", "https://mcpexample", false),
            ("a.example b.example", "http://b.example", true),
            ("2001:db8::1", "http://[2001:db8::1]:80/", true),
            ("[2001:db8::1]:81", "http://[2001:db8::1]:81/", true),
            ("[2001:db8::1]:81", "http://[2001:db8::1]/", false),
            ("MCP.Example", "http://mcp.example", true),
            ("mcp.example:x, ,:", "http://mcp.example", false),
            ("", "http://mcp.example", false),
        ] {
            assert_eq!(is_excepted(&Url::parse(url).unwrap(), exceptions), expected, "{exceptions} {url}");
        }
    }

    #[test]
    fn a_proxy_is_an_http_address() {
        for (text, expected) in [
            ("proxy:3128", Some("http://proxy:3128/")),
            ("me:pass@proxy:3128", Some("http://me:pass@proxy:3128/")),
            ("https://proxy", Some("https://proxy/")),
            ("socks5://proxy:1080", None),
            ("ftp://proxy", None),
            ("ht!tp://::::", None),
            ("%%%", None),
        ] {
            assert_eq!(proxy_address(text).as_ref().map(Url::as_str), expected, "{text}");
        }
    }
}
