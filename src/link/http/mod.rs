//! A server behind a URL: streamable HTTP, through rmcp's transport.
//!
//! rmcp does what it is good at: sessions and their renewal, the headers of each revision, which request may be sent again. Bytes,
//! streams, limits, credentials and results are ours, for a result must stay the text it is and a stream must not be asked for for ever.
//!
//! - [`worker`] — rmcp's transport at work
//! - [`outgoing`], [`standin`] — what it is given of what goes out and of what comes in
//! - [`client`] — the HTTP client it works with; [`parts`] — what all of this shares
//! - [`incoming`] — what comes in, on its way past it
//! - [`stream`], [`events`], [`reconnects`] — streams of events, and when they are asked for again
//! - [`exchange`] — one request and its response
//! - [`network`], [`names`], `tls` — the way to the server; [`outage`] — when it leads nowhere
//! - [`refusal`] — what is said when something went wrong

mod client;
mod events;
mod exchange;
mod incoming;
mod names;
mod network;
mod outage;
mod outgoing;
mod parts;
mod reconnects;
mod refusal;
mod standin;
mod stream;
#[cfg(feature = "tls")]
mod tls;
mod worker;

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use futures_util::future::join_all;
use reqwest::Url;
use serde_json::Value;
use tokio::sync::OnceCell;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio_util::sync::CancellationToken;

use self::client::Client;
use self::exchange::Endpoint;
use self::network::{Network, network, place_of};
use self::outage::Outage;
use self::outgoing::Outgoing;
use self::parts::{Parts, lock};
use self::refusal::Refusals;
use super::{End, Frame, Link, Receiver, Sent, run};
use crate::error::{ErrorCode, McpError};
use crate::policy::redact::Redactor;
use crate::process::Waits;

/// One server that is reached over streamable HTTP.
#[derive(Clone)]
pub struct Remote {
    /// `http:` or `https:`, without user info and fragment; judged by whoever makes it.
    pub url: String,
    pub headers: Arc<dyn Headers>,
}

/// Without the URL, in which capabilities may stand.
impl fmt::Debug for Remote {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Remote").finish_non_exhaustive()
    }
}

/// Names and values, in the order they are sent.
pub type HeaderList = Arc<[(String, String)]>;

/// What [`Headers::headers`] gives, when it comes.
pub type HeadersComing<'a> = Pin<Box<dyn Future<Output = Result<Option<HeaderList>, McpError>> + Send + 'a>>;

/// What goes with every request besides the protocol's own headers. Whoever makes them tells the session's redactor of their values.
pub trait Headers: Send + Sync + 'static {
    /// `refused`: what this gave before, when the server answered 401 to it. A source that has nothing else to give answers `Ok(None)`;
    /// one that has already got newer ones than `refused` gives those without asking anybody: one refresh for all callers that wait.
    fn headers(&self, refused: Option<&HeaderList>, needed: Needed) -> HeadersComing<'_>;
}

/// What waits for headers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Needed {
    /// The session's request of this id.
    Request(u64),
    /// The handshake, which every request waits for.
    Handshake,
    /// What nobody waits for: a notification, a stream, the end of a session.
    Aside,
}

/// Headers that never change.
pub struct Fixed(pub HeaderList);

/// The names.
impl fmt::Debug for Fixed {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_list().entries(self.0.iter().map(|(name, _)| name)).finish()
    }
}

impl Headers for Fixed {
    fn headers(&self, refused: Option<&HeaderList>, _needed: Needed) -> HeadersComing<'_> {
        let headers = if refused.is_none() { Some(self.0.clone()) } else { None };
        Box::pin(std::future::ready(Ok(headers)))
    }
}

/// What an HTTP link is made from.
pub struct Opening<'a> {
    /// The server's name, for messages.
    pub server: String,
    pub remote: Remote,
    pub max_message_bytes: usize,
    pub redactor: Redactor,
    /// The server may ask something that the host answers.
    pub answers_input: bool,
    /// Where proxies and extra certificates are read from.
    pub env: &'a [(String, String)],
}

/// The near end of a connection to a server behind a URL.
pub struct Http {
    client: Client,
    queue: UnboundedSender<Arc<Outgoing>>,
    end: OnceCell<End>,
}

/// Makes ready to reach a server; nothing is sent yet. Must be called on the I/O thread.
pub async fn open(opening: Opening<'_>, receiver: Arc<dyn Receiver>) -> Result<Arc<Http>, McpError> {
    let url = Url::parse(&opening.remote.url).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
    let Some(url) = url else {
        let message = format!("The server {} has no URL that begins with http or https.", opening.server);
        return Err(McpError::new(ErrorCode::Config, message).with("path", "url"));
    };
    let Network { client, proxy, secrets, warning } = network(&url, opening.env).await?;
    opening.redactor.keep(&secrets);
    if let Some(warning) = warning {
        receiver.warning("WARN_MCP_EXTRA_CERTIFICATES", &warning, Vec::new());
    }
    // Its host may have a variable in it.
    let place = opening.redactor.text(&place_of(&url)).into_owned();
    let endpoint = Endpoint {
        url,
        client: Mutex::new(Some(client)),
        headers: opening.remote.headers,
        refusals: Refusals { server: opening.server, place, proxy, redactor: opening.redactor },
        sent: AtomicU64::new(0),
        received: AtomicU64::new(0),
        requests: AtomicU64::new(0),
        closing: CancellationToken::new(),
        outage: Outage::default(),
        failed_refresh: Mutex::default(),
    };
    let (queue, frames) = unbounded_channel();
    let (limit, listens_first) = (opening.max_message_bytes, opening.answers_input);
    let client = Client(Arc::new(Parts::new(endpoint, receiver.clone(), limit, listens_first)));
    run(worker::run(client.clone(), frames), receiver);
    Ok(Arc::new(Http { client, queue, end: OnceCell::new() }))
}

impl Link for Http {
    fn send(&self, frame: Frame) -> Sent {
        let outgoing = Outgoing::of(frame);
        let id = outgoing.id();
        if let Some(id) = id {
            lock(&self.client.0.requests).insert(id, outgoing.clone());
        }
        if self.queue.send(outgoing).is_ok() {
            return Sent::Taken;
        }
        if let Some(id) = id {
            lock(&self.client.0.requests).remove(&id);
        }
        Sent::Gone
    }

    fn withdraw(&self, id: u64) -> bool {
        let mut requests = lock(&self.client.0.requests);
        let is_withdrawn = requests.get(&id).is_some_and(|outgoing| outgoing.withdraw());
        if is_withdrawn {
            requests.remove(&id);
        }
        is_withdrawn
    }

    /// Ends the session on the server, too, which may take up to 3 s.
    fn close(&self, _waits: Waits) -> Pin<Box<dyn Future<Output = End> + Send + '_>> {
        Box::pin(async move {
            let end = self.end.get_or_init(async || {
                let Client(parts) = &self.client;
                parts.endpoint.closing.cancel();
                let sessions = parts.take_sessions();
                join_all(sessions.iter().map(|(session, headers)| self.client.end(session, headers))).await;
                parts.release();
                End { exit_code: None, signal: None, ended: "by-itself", survivors: Vec::new() }
            });
            end.await.clone()
        })
    }

    fn diagnostics(&self) -> Vec<(&'static str, Value)> {
        let endpoint = &self.client.0.endpoint;
        vec![
            ("bytesSent", endpoint.sent.load(Ordering::Relaxed).into()),
            ("bytesReceived", endpoint.received.load(Ordering::Relaxed).into()),
            ("httpRequests", endpoint.requests.load(Ordering::Relaxed).into()),
        ]
    }
}
