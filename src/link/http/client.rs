//! The HTTP client that rmcp's transport works with. What comes in goes to the session as it is; the transport gets a stand-in.

use std::sync::Arc;
use std::time::Duration;
use std::{error, fmt};

use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use http::{Method, StatusCode};
use reqwest::Response;
use rmcp::model::ClientJsonRpcMessage;
use rmcp::transport::streamable_http_client::{
    SseError, StreamableHttpClient, StreamableHttpError, StreamableHttpPostResponse,
};
use sse_stream::Sse;

use super::exchange::{
    EVENT_STREAM, JSON, Request, SESSION_ID, Unread, beginning, body, encoding, media_type,
};
use super::outgoing::{INITIALIZE, INITIALIZED, Outgoing, carried};
use super::parts::{Headers, Parts, lock};
use super::refusal::{BODY_READ, misplaced};
use super::stream::{Streaming, listen};
use crate::error::McpError;
use crate::link::{Arrival, FrameKind, Gone};

/// How long a server may take to take in what has no answer, and to end a session.
const NOTICE_WAIT: Duration = Duration::from_secs(5);
pub(super) const DELETE_WAIT: Duration = Duration::from_secs(3);

/// How long the first calls wait for the server's own stream where the host answers questions: the official JavaScript server drops a
/// question for which there is no stream yet, and the call that asked it never ends (conformance, elicitation). Some servers send the
/// head of a stream with its first event only.
const LISTEN_WAIT: Duration = Duration::from_secs(1);

/// How long a server is waited for that might be one of the older transport.
const LEGACY_WAIT: Duration = Duration::from_secs(3);

type Outcome<T> = Result<T, StreamableHttpError<Failed>>;

/// The request failed; why is kept in its [`Outgoing`].
#[derive(Debug)]
pub(super) struct Failed;

impl fmt::Display for Failed {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("the request failed")
    }
}

impl error::Error for Failed {}

/// Clones are handles of one client.
#[derive(Clone)]
pub(super) struct Client(pub(super) Arc<Parts>);

impl Client {
    /// One request of the session, and what rmcp gets for it.
    async fn request(
        &self,
        outgoing: Arc<Outgoing>,
        id: u64,
        session: Option<Arc<str>>,
        headers: Headers,
    ) -> Outcome<StreamableHttpPostResponse> {
        let parts = &self.0;
        // The handshake, the first one or a later one, waits for nobody: those in flight may be waiting for it.
        let place =
            if outgoing.is_handshake() { None } else { parts.in_flight.clone().acquire_owned().await.ok() };
        if session.is_some() && !outgoing.is_handshake() {
            let listened = tokio::time::timeout(LISTEN_WAIT, parts.listened.cancelled()).await;
            if listened.is_err() {
                parts.listened.cancel();
            }
        }
        let request = Request {
            method: Method::POST,
            accept: "application/json, text/event-stream",
            headers: &headers,
            session: session.as_deref(),
            last_event_id: None,
            outgoing: Some(&outgoing),
        };
        let failed = |error| {
            outgoing.failed(error);
            Err(StreamableHttpError::Client(Failed))
        };
        let mut response = match parts.endpoint.exchange(request).await {
            Ok(response) => response,
            Err(error) => return failed(error),
        };
        let given = self.session_of(&outgoing, &response, &headers);
        let (status, kind) = (response.status(), media_type(&response));
        if !status.is_success() {
            let error = self.refused(&outgoing, &mut response).await;
            if status == StatusCode::NOT_FOUND && session.is_some() {
                lock(&parts.sessions).remove(session.as_deref().unwrap_or_default());
                outgoing.failed(error);
                return Err(StreamableHttpError::SessionExpired);
            }
            if self.are_headers_outdated(&outgoing, &error) {
                return Ok(StreamableHttpPostResponse::Json(self.outdated(&outgoing, id, error), None));
            }
            return failed(error);
        }
        if let Some(encoding) = encoding(&response) {
            return failed(parts.endpoint.refusals.encoded(status, &encoding));
        }
        if kind.as_deref() == Some(EVENT_STREAM) {
            let streaming = Streaming::new(self.clone(), response, outgoing, id, session, headers, place);
            return Ok(StreamableHttpPostResponse::Sse(streaming.into_events(), given));
        }
        match body(&mut response, parts.limit, &parts.endpoint.received).await {
            Ok(body) => {
                // What is shown of it if it turns out to be none; the text itself goes up.
                let seen = body[..body.len().min(BODY_READ)].to_vec();
                match self.take(Some((&outgoing, id)), body).await {
                    Some(Ok(standin)) => Ok(StreamableHttpPostResponse::Json(standin, given)),
                    Some(Err(Failed)) => Err(StreamableHttpError::Client(Failed)),
                    None => {
                        let seen = String::from_utf8_lossy(&seen);
                        failed(parts.endpoint.refusals.unreadable(status, kind.as_deref(), &seen))
                    }
                }
            }
            Err(Unread::TooLarge) => failed(parts.endpoint.refusals.too_large(parts.limit)),
            Err(Unread::Broken(error)) => failed(parts.endpoint.refusals.network(&error)),
        }
    }

    /// The server forgot the session and gives no other one, at least not in this way: after an update it may speak
    /// another revision. Whoever wants it is to begin from the beginning.
    fn not_renewed(&self, outgoing: &Outgoing) {
        let error = outgoing.take_failure().unwrap_or_else(|| self.0.endpoint.refusals.lost("session"));
        self.0.arrived(Arrival::Gone(Gone { error, protocol_error: false }));
    }

    /// What `initialize` gives out.
    fn session_of(&self, outgoing: &Outgoing, response: &Response, headers: &Headers) -> Option<String> {
        let session = response.headers().get(SESSION_ID)?.to_str().ok().filter(|id| !id.is_empty())?;
        if outgoing.method == INITIALIZE {
            lock(&self.0.sessions).insert(session.to_owned(), headers.clone());
        }
        Some(session.to_owned())
    }

    async fn refused(&self, outgoing: &Outgoing, response: &mut Response) -> McpError {
        let endpoint = &self.0.endpoint;
        let refusals = &endpoint.refusals;
        let body = beginning(response, BODY_READ, &endpoint.received).await;
        let error = refusals.http(response.status(), response.headers(), &body);
        let may_be_misplaced = outgoing.method == INITIALIZE
            && matches!(response.status(), StatusCode::NOT_FOUND | StatusCode::METHOD_NOT_ALLOWED)
            && error.detail("rpcCode").is_none();
        if !may_be_misplaced {
            return error;
        }
        if tokio::time::timeout(LEGACY_WAIT, self.is_legacy()).await.unwrap_or(false) {
            return refusals.legacy_sse(error);
        }
        misplaced(error)
    }

    /// Whether a stream is to be had without a session, as from servers of the older transport (2024-11-05, HTTP with SSE).
    async fn is_legacy(&self) -> bool {
        let request = Request {
            method: Method::GET,
            accept: EVENT_STREAM,
            headers: &Headers::new(),
            session: None,
            last_event_id: None,
            outgoing: None,
        };
        let response = self.0.endpoint.exchange(request).await;
        response.is_ok_and(|response| {
            response.status().is_success() && media_type(&response).as_deref() == Some(EVENT_STREAM)
        })
    }

    /// A message that has no answer. Not waited for, but for `initialized`: it goes before every call.
    async fn notify(
        &self,
        outgoing: Arc<Outgoing>,
        session: Option<Arc<str>>,
        headers: Headers,
    ) -> Outcome<()> {
        if outgoing.text.is_empty() {
            return Ok(());
        }
        if outgoing.method == INITIALIZED {
            if let Some(session) = &session
                && let Some(known) = lock(&self.0.sessions).get_mut(&**session)
            {
                known.clone_from(&headers);
            }
            // A server that does not answer it has taken it in all the same.
            let posted =
                tokio::time::timeout(NOTICE_WAIT, self.post(&outgoing, session.as_deref(), &headers)).await;
            return posted.unwrap_or(Ok(())).map_err(|error| {
                self.0.break_off(error);
                StreamableHttpError::Client(Failed)
            });
        }
        let waiting = self.0.waiting_notices.clone().try_acquire_owned();
        if waiting.is_err() && outgoing.kind == FrameKind::Answer {
            return Ok(());
        }
        let client = self.clone();
        tokio::spawn(async move {
            let _waiting = waiting;
            let posting = async {
                let _place = client.0.notices.acquire().await;
                let post = client.post(&outgoing, session.as_deref(), &headers);
                // Whoever sent it has no use for its failure; what is broken shows at the next call.
                let _ = tokio::time::timeout(NOTICE_WAIT, post).await;
            };
            client.0.endpoint.closing.run_until_cancelled(posting).await;
        });
        Ok(())
    }

    async fn post(
        &self,
        outgoing: &Outgoing,
        session: Option<&str>,
        headers: &Headers,
    ) -> Result<(), McpError> {
        let endpoint = &self.0.endpoint;
        let request = Request {
            method: Method::POST,
            accept: "application/json, text/event-stream",
            headers,
            session,
            last_event_id: None,
            outgoing: Some(outgoing),
        };
        let mut response = endpoint.exchange(request).await?;
        if response.status().is_success() {
            return Ok(());
        }
        let body = beginning(&mut response, BODY_READ, &endpoint.received).await;
        Err(endpoint.refusals.http(response.status(), response.headers(), &body))
    }

    /// Ends a session. What the server says to it does not matter: many do not offer it.
    pub(super) async fn end(&self, session: &str, headers: &Headers) {
        let request = Request {
            method: Method::DELETE,
            accept: JSON,
            headers,
            session: Some(session),
            last_event_id: None,
            outgoing: None,
        };
        let _ = tokio::time::timeout(DELETE_WAIT, self.0.endpoint.exchange(request)).await;
    }
}

impl StreamableHttpClient for Client {
    type Error = Failed;

    async fn post_message(
        &self,
        _url: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        _authorization: Option<String>,
        headers: Headers,
    ) -> Outcome<StreamableHttpPostResponse> {
        let Some(outgoing) = carried(&message) else { return Ok(StreamableHttpPostResponse::Accepted) };
        let given_up = outgoing.given_up.clone();
        let posting = async {
            match outgoing.id() {
                // rmcp opens a session anew with the first handshake's own message.
                Some(id) if outgoing.is_handshake() && outgoing.is_answered() => {
                    let renewed = self.request(outgoing.clone(), id, session, headers).await;
                    if renewed.is_err() {
                        self.not_renewed(&outgoing);
                    }
                    renewed
                }
                Some(id) => self.request(outgoing, id, session, headers).await,
                None => self
                    .notify(outgoing, session, headers)
                    .await
                    .map(|()| StreamableHttpPostResponse::Accepted),
            }
        };
        // rmcp's worker awaits its first posts outside its own cancellation.
        tokio::select! {
            biased;
            () = self.0.endpoint.closing.cancelled() => Err(StreamableHttpError::Client(Failed)),
            () = given_up.cancelled() => Err(StreamableHttpError::Client(Failed)),
            response = posting => response,
        }
    }

    /// Nothing: rmcp's worker leaves without it where the handshake fails in the middle. The link ends its sessions itself.
    async fn delete_session(
        &self,
        _url: Arc<str>,
        _session: Arc<str>,
        _authorization: Option<String>,
        _headers: Headers,
    ) -> Outcome<()> {
        Ok(())
    }

    /// The stream on which a server speaks by itself, for as long as rmcp keeps it.
    async fn get_stream(
        &self,
        _url: Arc<str>,
        session: Option<Arc<str>>,
        _last_event_id: Option<String>,
        _authorization: Option<String>,
        headers: Headers,
    ) -> Outcome<BoxStream<'static, Result<Sse, SseError>>> {
        let listening = listen(self.clone(), session, headers);
        Ok(futures_util::stream::once(listening).filter_map(|()| std::future::ready(None)).boxed())
    }
}
