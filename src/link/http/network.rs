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
    let mut shown = None;
    let mut needs_certificates = url.scheme() == "https";
    if let Some((variable, address)) = proxy {
        let proxy = Proxy::all(address).map_err(|_| {
            let message = format!("The proxy that {variable} names has no address that can be read.");
            McpError::new(ErrorCode::Connect, message)
        })?;
        let address = Url::parse(address).or_else(|_| Url::parse(&format!("http://{address}")));
        needs_certificates |= address.as_ref().is_ok_and(|address| address.scheme() == "https");
        shown = address.ok().map(|address| place_of(&address));
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
    Ok(Network { client, proxy: shown, warning })
}

/// Host and port, for messages: a URL may carry a password or a key in its query.
pub(super) fn place_of(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    url.port_or_known_default().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
}

/// The variable that names a proxy for this URL, and what it says.
fn proxy_of<'a>(url: &Url, env: &'a [(String, String)]) -> Option<(&'static str, &'a str)> {
    let names =
        if url.scheme() == "https" { ["https_proxy", "HTTPS_PROXY"] } else { ["http_proxy", "HTTP_PROXY"] };
    let (name, address) = names.into_iter().find_map(|name| Some((name, variable(env, &[name])?)))?;
    let exceptions = variable(env, &["no_proxy", "NO_PROXY"]).unwrap_or_default();
    let matcher = Matcher::builder().all(address).no(exceptions).build();
    // What cannot be read intercepts nothing; it is reported where it is used.
    let is_readable = Proxy::all(address).is_ok();
    let concerns = Uri::try_from(url.as_str()).is_ok_and(|uri| matcher.intercept(&uri).is_some());
    (concerns || !is_readable).then_some((name, address))
}

/// The first of these that is set to something.
fn variable<'a>(env: &'a [(String, String)], names: &[&str]) -> Option<&'a str> {
    names.iter().find_map(|name| {
        let value = env.iter().find(|(set, _)| set == name).map(|(_, value)| value.trim());
        value.filter(|value| !value.is_empty())
    })
}
