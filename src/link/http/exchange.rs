//! One request and its response: headers, redirects, one new attempt with newer credentials.

use std::collections::HashMap;
use std::str::FromStr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::header::{ACCEPT, ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_TYPE, LOCATION};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use reqwest::{Client, Response, Url};
use tokio_util::sync::CancellationToken;

use super::outage::Outage;
use super::outgoing::Outgoing;
use super::refusal::Refusals;
use super::{HeaderList, Headers, Needed};
use crate::error::{ErrorCode, McpError};
use crate::link::POOL_FROM;
use crate::project::headers::is_reserved;

const REDIRECTS_MAX: usize = 10;

/// How long the body of a refusal may take.
const REFUSAL_WAIT: Duration = Duration::from_secs(2);

pub(super) const JSON: &str = "application/json";
pub(super) const EVENT_STREAM: &str = "text/event-stream";
pub(super) const SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");
const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// Where one server is, and how it is reached.
pub(super) struct Endpoint {
    pub url: Url,
    /// Until the link has closed: its connections go with it.
    pub client: Mutex<Option<Client>>,
    pub headers: Arc<dyn Headers>,
    pub refusals: Refusals,
    /// Bytes of messages, out and in.
    pub sent: AtomicU64,
    pub received: AtomicU64,
    pub requests: AtomicU64,
    /// Stops everything but the end of sessions.
    pub closing: CancellationToken,
    pub outage: Outage,
    /// The last time no newer credentials could be had.
    pub failed_refresh: Mutex<Option<FailedRefresh>>,
}

/// For which credentials newer ones were wanted, and why there are none.
pub(super) struct FailedRefresh {
    at: Instant,
    refused: HeaderList,
    error: McpError,
}

/// One request, before the headers that an endpoint adds.
pub(super) struct Request<'a> {
    pub method: Method,
    pub accept: &'static str,
    /// What rmcp says of the message: version, method, names, arguments.
    pub headers: &'a HashMap<HeaderName, HeaderValue>,
    pub session: Option<&'a str>,
    pub last_event_id: Option<&'a str>,
    /// What is sent.
    pub outgoing: Option<&'a Outgoing>,
}

impl Request<'_> {
    fn needed(&self) -> Needed {
        match self.outgoing {
            Some(outgoing) if outgoing.is_handshake() => Needed::Handshake,
            Some(outgoing) => outgoing.id().map_or(Needed::Aside, Needed::Request),
            None => Needed::Aside,
        }
    }
}

impl Endpoint {
    /// The response, whatever its status says; a 401 only after newer credentials were tried where there are any, a redirect only
    /// within the origin.
    pub(super) async fn exchange(&self, request: Request<'_>) -> Result<Response, McpError> {
        let needed = request.needed();
        let began = Instant::now();
        let mut list = self.headers.headers(None, needed).await?.unwrap_or_else(|| Arc::from([]));
        // Known to be refused: they are not sent again before newer ones were asked for.
        if self.no_newer_than(&list).is_some()
            && let Some(newer) = self.headers.headers(Some(&list), needed).await?
        {
            list = newer;
        }
        let response = self.follow(&request, &list).await?;
        if response.status() != StatusCode::UNAUTHORIZED {
            return Ok(response);
        }
        match self.newer(&list, needed, began).await {
            Ok(Some(newer)) if newer != list => list = newer,
            Ok(_) => return Ok(response),
            Err(why) => {
                let refused = self.refusals.http(response.status(), response.headers(), "");
                return Err(match why.code {
                    // Its own words, and what the server said.
                    ErrorCode::AuthRequired => {
                        let details = refused.details.into_iter().chain(why.details).collect();
                        McpError { details, ..why }
                    }
                    _ => refused.caused_by(why),
                });
            }
        }
        drop(response);
        self.follow(&request, &list).await
    }

    /// Newer headers than those that were refused. A failure counts for all who had sent theirs before it: callers that
    /// are refused together are one refresh, whatever comes of it.
    async fn newer(
        &self,
        refused: &HeaderList,
        needed: Needed,
        began: Instant,
    ) -> Result<Option<HeaderList>, McpError> {
        if let Some((at, error)) = self.no_newer_than(refused)
            && at >= began
        {
            return Err(error);
        }
        let outcome = self.headers.headers(Some(refused), needed).await;
        if let Err(error) = &outcome {
            let failed = FailedRefresh { at: Instant::now(), refused: refused.clone(), error: error.clone() };
            *self.failed_refresh.lock().unwrap_or_else(PoisonError::into_inner) = Some(failed);
        }
        outcome
    }

    /// When and why newer headers than these could not be had the last time.
    fn no_newer_than(&self, refused: &HeaderList) -> Option<(Instant, McpError)> {
        let failed = self.failed_refresh.lock().unwrap_or_else(PoisonError::into_inner);
        let failed = failed.as_ref().filter(|failed| failed.refused == *refused)?;
        Some((failed.at, failed.error.clone()))
    }

    async fn follow(&self, request: &Request<'_>, list: &HeaderList) -> Result<Response, McpError> {
        let headers = self.headers_of(request, list)?;
        let mut url = self.url.clone();
        let mut redirected = StatusCode::PERMANENT_REDIRECT;
        for _ in 0..=REDIRECTS_MAX {
            let body = request.outgoing.map(|outgoing| outgoing.text.clone()).unwrap_or_default();
            if request.outgoing.is_some_and(|outgoing| !outgoing.goes_out()) {
                return Err(McpError::new(ErrorCode::Closed, "The call was given up."));
            }
            let response = self.send(&url, request.method.clone(), headers.clone(), body).await?;
            let status = response.status();
            if !status.is_redirection() || status == StatusCode::NOT_MODIFIED {
                return Ok(response);
            }
            let refused = |why| Err(self.refusals.redirect(&url, status, response.headers(), why));
            if !matches!(status, StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT) {
                return refused("which may turn a call into something else and is not followed");
            }
            let Some(target) = response.headers().get(LOCATION) else {
                return refused("which cannot be followed");
            };
            match target.to_str().ok().and_then(|target| url.join(target).ok()) {
                Some(target) if target.origin() == self.url.origin() => url = target,
                _ => {
                    return refused(
                        "which is another origin and is not followed: headers go to the configured one only",
                    );
                }
            }
            redirected = status;
        }
        let server = &self.refusals.server;
        let message = format!("The server {server} redirected more than {REDIRECTS_MAX} times.");
        Err(McpError::new(ErrorCode::Http, message).with("status", redirected.as_u16()).with("body", ""))
    }

    async fn send(
        &self,
        url: &Url,
        method: Method,
        headers: HeaderMap,
        body: Bytes,
    ) -> Result<Response, McpError> {
        let client = self.client.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let Some(client) = client else {
            return Err(McpError::new(ErrorCode::Closed, "The connection is closed."));
        };
        let request = client.request(method.clone(), url.clone()).headers(headers);
        if method != Method::POST {
            self.requests.fetch_add(1, Ordering::Relaxed);
            return request.send().await.map_err(|error| self.refusals.network(&error));
        }
        let attempt = self.outage.attempt()?;
        self.requests.fetch_add(1, Ordering::Relaxed);
        self.sent.fetch_add(body.len() as u64, Ordering::Relaxed);
        match request.body(body).send().await {
            Ok(response) => {
                attempt.reached();
                Ok(response)
            }
            Err(error) => {
                let told = self.refusals.network(&error);
                if error.is_connect() {
                    attempt.failed(&told);
                }
                Err(told)
            }
        }
    }

    /// The project's own headers first: the protocol's are not theirs to change.
    fn headers_of(&self, request: &Request<'_>, list: &HeaderList) -> Result<HeaderMap, McpError> {
        let mut headers = HeaderMap::new();
        for (name, value) in list.iter() {
            let (name, value) = self.checked(name, value)?;
            headers.append(name, value);
        }
        headers.insert(ACCEPT, HeaderValue::from_static(request.accept));
        // Without this header every encoding is welcome (RFC 9110, 12.5.3).
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        if request.outgoing.is_some() {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static(JSON));
        }
        headers.extend(request.headers.iter().map(|(name, value)| (name.clone(), value.clone())));
        for (name, value) in [(SESSION_ID, request.session), (LAST_EVENT_ID, request.last_event_id)] {
            if let Some(value) = value.and_then(|value| HeaderValue::from_bytes(value.as_bytes()).ok()) {
                headers.insert(name, value);
            }
        }
        Ok(headers)
    }

    fn checked(&self, name: &str, value: &str) -> Result<(HeaderName, HeaderValue), McpError> {
        let server = &self.refusals.server;
        let refused = |why: &str| {
            let shown = self.refusals.redactor.excerpt(name, 100);
            McpError::new(ErrorCode::Config, format!("The header {shown} of the server {server} {why}."))
                .with("path", "headers")
        };
        let parsed = HeaderName::from_str(name).map_err(|_| refused("has a name that no header can have"))?;
        if is_reserved(parsed.as_str()) {
            return Err(refused("is the protocol's own and cannot be set"));
        }
        let mut value = HeaderValue::from_bytes(value.as_bytes()).map_err(|_| {
            refused("has a value that no header can have: a line break or another control character")
        })?;
        value.set_sensitive(true);
        Ok((parsed, value))
    }
}

/// The media type, without its parameters.
pub(super) fn media_type(response: &Response) -> Option<String> {
    let value = response.headers().get(CONTENT_TYPE)?.to_str().ok()?;
    let kind = value.split(';').next().unwrap_or_default().trim();
    (!kind.is_empty()).then(|| kind.to_ascii_lowercase())
}

/// How a body is encoded, where it is although that was not asked for.
pub(super) fn encoding(response: &Response) -> Option<String> {
    let value = response.headers().get(CONTENT_ENCODING)?;
    let encoding = String::from_utf8_lossy(value.as_bytes()).trim().to_ascii_lowercase();
    (!matches!(encoding.as_str(), "" | "identity")).then_some(encoding)
}

/// Why a body was not taken in whole.
pub(super) enum Unread {
    TooLarge,
    Broken(reqwest::Error),
}

/// The whole body, up to `limit` bytes.
pub(super) async fn body(
    response: &mut Response,
    limit: usize,
    received: &AtomicU64,
) -> Result<Vec<u8>, Unread> {
    let expected = usize::try_from(response.content_length().unwrap_or(0)).unwrap_or(usize::MAX);
    // What a server promises is not set aside before it comes.
    let mut body = Vec::with_capacity(expected.min(limit).min(POOL_FROM));
    while let Some(chunk) = response.chunk().await.map_err(Unread::Broken)? {
        received.fetch_add(chunk.len() as u64, Ordering::Relaxed);
        if chunk.len() > limit - body.len() {
            return Err(Unread::TooLarge);
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

/// What is there of a refusal's body, up to `limit` bytes. The status says enough: nobody waits long for a body that does not come
/// (BR-75).
pub(super) async fn beginning(response: &mut Response, limit: usize, received: &AtomicU64) -> String {
    let mut bytes = Vec::new();
    let reading = async {
        while bytes.len() < limit
            && let Ok(Some(chunk)) = response.chunk().await
        {
            received.fetch_add(chunk.len() as u64, Ordering::Relaxed);
            bytes.extend_from_slice(&chunk[..chunk.len().min(limit - bytes.len())]);
        }
    };
    let _ = tokio::time::timeout(REFUSAL_WAIT, reading).await;
    String::from_utf8_lossy(&bytes).into_owned()
}
