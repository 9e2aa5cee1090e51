//! Streams of events: the answer to one request, and what a server says by itself. Both are asked for again where they end too soon.
//!
//! rmcp's own reconnects are not used (`common/client_side_sse.rs`): they begin to count anew at each stream that opens, so that a server
//! which ends each at once is asked every second for ever; they use a `retry` once; and none after a stream that broke.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::{BoxStream, unfold};
use http::{Method, StatusCode};
use reqwest::Response;
use rmcp::model::ServerJsonRpcMessage;
use rmcp::transport::streamable_http_client::SseError;
use sse_stream::Sse;
use tokio::sync::OwnedSemaphorePermit;

use super::client::Client;
use super::events::{Event, Events, TooLarge};
use super::exchange::{EVENT_STREAM, Request, media_type};
use super::outgoing::Outgoing;
use super::parts::Headers;
use super::reconnects::Reconnects;
use super::standin;
use crate::error::McpError;
use crate::link::fault;

/// How long the rest of a stream is read after its answer, so that its connection can be used again; rmcp waits for no longer, either.
const DRAIN: Duration = Duration::from_millis(50);

/// One stream, over all the responses that carry it.
struct Reading {
    client: Client,
    session: Option<Arc<str>>,
    headers: Headers,
    response: Option<Response>,
    events: Events,
    last_event_id: Option<String>,
    reconnects: Reconnects,
}

/// What a stream brought.
enum Brought {
    Event(Event),
    TooLarge,
    /// The response is at its end, one way or the other.
    Ended,
}

impl Reading {
    fn new(client: Client, session: Option<Arc<str>>, headers: Headers, response: Option<Response>) -> Self {
        let events = Events::new(client.0.limit);
        Self {
            client,
            session,
            headers,
            response,
            events,
            last_event_id: None,
            reconnects: Reconnects::new(),
        }
    }

    async fn next(&mut self) -> Brought {
        loop {
            match self.events.next() {
                Some(Ok(event)) => {
                    if let Some(id) = &event.id {
                        self.last_event_id = Some(id.clone()).filter(|id| !id.is_empty());
                    }
                    if let Some(time) = event.retry {
                        self.reconnects.asked(time);
                    }
                    // Servers of the older transport have events of other kinds.
                    if matches!(event.kind.as_deref(), None | Some("" | "message")) {
                        return Brought::Event(event);
                    }
                }
                Some(Err(TooLarge)) => return Brought::TooLarge,
                None => {
                    let Some(response) = &mut self.response else { return Brought::Ended };
                    if let Ok(Some(chunk)) = response.chunk().await {
                        let received = &self.client.0.endpoint.received;
                        received.fetch_add(chunk.len() as u64, std::sync::atomic::Ordering::Relaxed);
                        self.events.push(&chunk);
                    } else {
                        self.response = None;
                        // What had not ended is no event.
                        self.events = Events::new(self.client.0.limit);
                    }
                }
            }
        }
    }

    /// Asks for the stream, from where it broke off. An error is final.
    async fn open(&mut self) -> Result<Opened, McpError> {
        let request = Request {
            method: Method::GET,
            accept: EVENT_STREAM,
            headers: &self.headers,
            session: self.session.as_deref(),
            last_event_id: self.last_event_id.as_deref(),
            outgoing: None,
        };
        let endpoint = &self.client.0.endpoint;
        // Where nobody answers, the next attempt may fare better.
        let Ok(response) = endpoint.exchange(request).await else { return Ok(Opened::NotNow) };
        let status = response.status();
        if status.is_success() && media_type(&response).as_deref() == Some(EVENT_STREAM) {
            self.response = Some(response);
            self.reconnects.opened();
            return Ok(Opened::Yes);
        }
        let is_temporary = status == StatusCode::TOO_MANY_REQUESTS
            || (status.is_server_error() && status != StatusCode::NOT_IMPLEMENTED);
        if is_temporary {
            return Ok(Opened::NotNow);
        }
        Err(endpoint.refusals.http(status, response.headers(), ""))
    }

    /// Waits as long as it takes, and asks again. False when it was asked often enough, or is refused.
    async fn reopen(&mut self) -> bool {
        while let Some(gap) = self.reconnects.gap() {
            tokio::time::sleep(gap).await;
            match self.open().await {
                Ok(Opened::Yes) => return true,
                Ok(Opened::NotNow) => {}
                Err(_) => return false,
            }
        }
        false
    }
}

enum Opened {
    Yes,
    NotNow,
}

/// The stream that answers one request.
pub(super) struct Streaming {
    reading: Reading,
    outgoing: Arc<Outgoing>,
    id: u64,
    /// Among those in flight.
    place: Option<OwnedSemaphorePermit>,
    is_over: bool,
}

impl Streaming {
    pub(super) fn new(
        client: Client,
        response: Response,
        outgoing: Arc<Outgoing>,
        id: u64,
        session: Option<Arc<str>>,
        headers: Headers,
        place: Option<OwnedSemaphorePermit>,
    ) -> Self {
        let reading = Reading::new(client, session, headers, Some(response));
        Self { reading, outgoing, id, place, is_over: false }
    }

    /// What rmcp reads: the stand-in for the answer, and nothing else.
    pub(super) fn into_events(self) -> BoxStream<'static, Result<Sse, SseError>> {
        unfold(self, |mut streaming| async move {
            let standin = streaming.next().await?;
            let text = serde_json::to_string(&standin).ok()?;
            Some((Ok(Sse::default().data(text)), streaming))
        })
        .boxed()
    }

    async fn next(&mut self) -> Option<ServerJsonRpcMessage> {
        if self.is_over {
            let rest = async { while !matches!(self.reading.next().await, Brought::Ended) {} };
            let _ = tokio::time::timeout(DRAIN, rest).await;
            return None;
        }
        let given_up = self.outgoing.given_up.clone();
        let closing = self.reading.client.0.endpoint.closing.clone();
        let standin = tokio::select! {
            biased;
            // rmcp's worker reads the answer to its first message outside of its own cancellation.
            () = closing.cancelled() => None,
            () = given_up.cancelled() => Some(standin::answered(self.id)),
            standin = self.standin() => standin,
        };
        self.is_over = true;
        drop(self.place.take());
        standin
    }

    async fn standin(&mut self) -> Option<ServerJsonRpcMessage> {
        let client = self.reading.client.clone();
        let refusals = &client.0.endpoint.refusals;
        loop {
            match self.reading.next().await {
                Brought::Event(Event { data: Some(data), .. }) if !data.trim_ascii().is_empty() => {
                    self.reading.reconnects.was_fruitful();
                    match client.take(Some((&self.outgoing, self.id)), data).await {
                        Some(Ok(standin)) => return Some(standin),
                        // The handshake was refused.
                        Some(Err(_)) => return None,
                        None => {}
                    }
                }
                Brought::Event(_) => {}
                Brought::TooLarge => {
                    // Most likely it was the answer; whatever it was, the stream is not what the session can follow any more.
                    self.reading.response = None;
                    client.fail(&self.outgoing, refusals.too_large(client.0.limit));
                    return Some(standin::answered(self.id));
                }
                Brought::Ended => {
                    // Only a server that gives out ids can go on where it was (2025-11-25, transports, resumability); 2026-07-28 has
                    // no such thing.
                    let may_go_on = self.reading.last_event_id.is_some() && !client.0.is_modern();
                    if !(may_go_on && self.reading.reopen().await) {
                        client.fail(&self.outgoing, refusals.lost("response stream"));
                        return Some(standin::answered(self.id));
                    }
                }
            }
        }
    }
}

impl Drop for Streaming {
    /// A fault of ours: rmcp does not say whose stream it was that panicked, and its call must not wait for its timeout.
    fn drop(&mut self) {
        if !self.is_over && std::thread::panicking() {
            self.reading.client.fail(&self.outgoing, fault());
        }
    }
}

/// Hears what a server says by itself, until it does not want to be heard or nobody asks any more.
pub(super) async fn listen(client: Client, session: Option<Arc<str>>, headers: Headers) {
    let mut reading = Reading::new(client.clone(), session, headers, None);
    let opened = reading.open().await;
    client.0.listened.cancel();
    match opened {
        Ok(Opened::Yes) => {}
        Ok(Opened::NotNow) => {
            if !reading.reopen().await {
                return;
            }
        }
        // It is optional, and servers refuse it in many ways (BR-74).
        Err(_) => return,
    }
    loop {
        match reading.next().await {
            Brought::Event(Event { data: Some(data), .. }) if !data.trim_ascii().is_empty() => {
                reading.reconnects.was_fruitful();
                client.take(None, data).await;
            }
            // One that is too large answers nobody that could be told.
            Brought::Event(_) | Brought::TooLarge => {}
            Brought::Ended => {
                if !reading.reopen().await {
                    return;
                }
            }
        }
    }
}
