//! rmcp's transport at work for one link: frames go in as copies; what comes out of it are its own words, for everything else went past.

use std::sync::Arc;
use std::time::Duration;

use rmcp::model::{JsonRpcMessage, RequestId, ServerJsonRpcMessage, ServerResult};
use rmcp::transport::Transport;
use rmcp::transport::common::client_side_sse::NeverRetry;
use rmcp::transport::streamable_http_client::{
    StreamableHttpClientTransport, StreamableHttpClientTransportConfig, StreamableHttpError,
};
use tokio::sync::mpsc::UnboundedReceiver;

use super::client::{Client, Failed};
use super::incoming::off_thread;
use super::outgoing::{DISCOVER, INITIALIZE, Outgoing, copy};
use super::parts::lock;
use crate::link::{Arrival, Gone, fault};

/// Messages between the link and rmcp's worker; more wait in their tasks.
const QUEUE: usize = 1024;

/// How long the requests of a session that the server forgot may go on before they are given up, and how long opening a new one may take.
const RECOVERY: Duration = Duration::from_secs(5);

/// Carries messages until the link closes or rmcp's worker is at its end.
pub(super) async fn run(client: Client, mut queue: UnboundedReceiver<Arc<Outgoing>>) {
    let mut worker: Option<Worker> = None;
    loop {
        tokio::select! {
            biased;
            () = client.0.endpoint.closing.cancelled() => return,
            said = next(&mut worker) => {
                if let Some(message) = said {
                    hear(&client, &mut worker, message).await;
                } else if worker.take().is_some_and(|worker| worker.is_connected) {
                    client.0.arrived(Arrival::Gone(client.gone()));
                    return;
                }
            },
            outgoing = queue.recv() => {
                let Some(outgoing) = outgoing else { return };
                // Another handshake is another connection: rmcp's worker takes its first message for the only one.
                if outgoing.is_handshake() {
                    client.0.set_modern(outgoing.method == DISCOVER);
                    worker = Some(Worker::new(client.clone(), outgoing.method == INITIALIZE));
                }
                match &mut worker {
                    Some(worker) => worker.send(&client, outgoing).await,
                    None => client.fail(&outgoing, client.gone().error),
                }
            }
        }
    }
}

/// rmcp's worker with its transport.
struct Worker {
    transport: StreamableHttpClientTransport<Client>,
    began_with_initialize: bool,
    /// The handshake has been answered.
    is_connected: bool,
}

impl Worker {
    fn new(client: Client, began_with_initialize: bool) -> Self {
        let mut config = StreamableHttpClientTransportConfig::with_uri(client.0.endpoint.url.as_str())
            // Not its to bound: those in flight are counted where streams are counted, too.
            .max_concurrent_requests(usize::MAX)
            .control_request_timeout(RECOVERY)
            .session_recovery_timeout(RECOVERY)
            .reinit_on_expired_session(true);
        config.channel_buffer_capacity = QUEUE;
        config.retry_config = Arc::new(NeverRetry::default());
        let transport = StreamableHttpClientTransport::with_client(client, config);
        Self { transport, began_with_initialize, is_connected: false }
    }

    /// Hands a message to rmcp in the order of the calls; a task waits for what becomes of it.
    async fn send(&mut self, client: &Client, outgoing: Arc<Outgoing>) {
        if let Some(id) = outgoing.cancels() {
            client.give_up(id);
        }
        let (copied, modern) = (outgoing.clone(), client.0.is_modern());
        let length = if modern { outgoing.text.len() } else { 0 };
        let Some(copy) = off_thread(length, move || copy(&copied, modern)).await else { return };
        let sending = self.transport.send(copy);
        let client = client.clone();
        tokio::spawn(async move {
            if let Err(error) = sending.await {
                client.unsent(&outgoing, &error);
            }
        });
    }
}

/// What rmcp says; nothing for as long as there is no worker.
async fn next(worker: &mut Option<Worker>) -> Option<ServerJsonRpcMessage> {
    match worker {
        Some(worker) => worker.transport.receive().await,
        None => std::future::pending().await,
    }
}

/// What comes out of rmcp: stand-ins, and errors of its own.
async fn hear(client: &Client, worker: &mut Option<Worker>, message: ServerJsonRpcMessage) {
    let Some(worker) = worker else { return };
    if !std::mem::replace(&mut worker.is_connected, true)
        && worker.began_with_initialize
        && client.0.is_modern()
    {
        worker.send(client, Outgoing::unsent_initialized()).await;
    }
    match message {
        JsonRpcMessage::Response(response) => {
            if let (ServerResult::ListToolsResult(kept), RequestId::Number(id)) =
                (response.result, response.id)
            {
                client.listed(id.cast_unsigned(), kept).await;
            }
        }
        // The session was lost and opened anew, and what was in flight may have run.
        JsonRpcMessage::Error(error) => {
            let id = match error.id {
                Some(RequestId::Number(id)) => id.cast_unsigned(),
                _ => return,
            };
            let outgoing = lock(&client.0.requests).get(&id).cloned();
            if let Some(outgoing) = outgoing {
                client.fail(&outgoing, client.0.endpoint.refusals.lost("session"));
            }
        }
        JsonRpcMessage::Request(_) | JsonRpcMessage::Notification(_) => {}
    }
}

impl Client {
    /// A request that nobody waits for any more.
    fn give_up(&self, id: u64) {
        lock(&self.0.lists).remove(&id);
        if let Some(outgoing) = lock(&self.0.requests).remove(&id) {
            outgoing.answered();
            outgoing.given_up.cancel();
        }
    }

    /// A message that rmcp could not get through.
    fn unsent(&self, outgoing: &Outgoing, error: &StreamableHttpError<Failed>) {
        if self.0.endpoint.closing.is_cancelled() || outgoing.given_up.is_cancelled() {
            return;
        }
        let refusals = &self.0.endpoint.refusals;
        let error = match (outgoing.take_failure(), error) {
            (Some(failure), _) => failure,
            (None, StreamableHttpError::TransportChannelClosed) => self.gone().error,
            (
                None,
                StreamableHttpError::SessionExpired
                | StreamableHttpError::SessionRecoveryTimeout
                | StreamableHttpError::ReinitializationFailed(_),
            ) => refusals.lost("session"),
            (None, _) => fault(),
        };
        self.fail(outgoing, error);
    }

    /// Why nothing can be sent any more.
    fn gone(&self) -> Gone {
        Gone { error: self.0.broken().unwrap_or_else(fault), protocol_error: false }
    }
}
