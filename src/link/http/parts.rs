//! What the parts of one link share: the way to the server, who hears what comes, and what is under way.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use http::{HeaderName, HeaderValue};
use serde_json::Value;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use super::exchange::Endpoint;
use super::outgoing::Outgoing;
use crate::error::McpError;
use crate::link::{Arrival, Receiver};

/// What rmcp says of a message: version, method, names, arguments.
pub(super) type Headers = HashMap<HeaderName, HeaderValue>;

/// Requests under way with one server, streams of answers included; more wait for their turn. Each is a socket, of which many systems
/// give a process 1,024.
const IN_FLIGHT_MAX: usize = 256;

/// Answers, cancellations and the like under way at one time.
const NOTICES_MAX: usize = 8;
/// And waiting: a server decides how many answers it asks for, so beyond these there are none.
const NOTICES_WAITING_MAX: usize = 256;

pub(super) struct Parts {
    pub endpoint: Endpoint,
    /// Until the link has closed: the session holds the link.
    receiver: Mutex<Option<Arc<dyn Receiver>>>,
    /// The longest message taken in, in bytes.
    pub limit: usize,
    /// Requests that are neither answered nor given up, by id.
    pub requests: Mutex<HashMap<u64, Arc<Outgoing>>>,
    /// Lists of tools that wait for rmcp to say which tools have headers that can be sent.
    pub lists: Mutex<HashMap<u64, String>>,
    /// Sessions that the server gave out and that were not ended, with the headers their end needs.
    pub sessions: Mutex<HashMap<String, Headers>>,
    /// The connection speaks 2026-07-28 or later.
    is_modern: AtomicBool,
    /// Why the session cannot go on: what `initialized` was refused with.
    broken: Mutex<Option<McpError>>,
    /// Cancelled when the server's own stream has been opened or refused, or was waited for in vain.
    pub listened: CancellationToken,
    pub in_flight: Arc<Semaphore>,
    /// Messages that have no answer.
    pub notices: Semaphore,
    pub waiting_notices: Arc<Semaphore>,
}

impl Parts {
    /// `listens_first`: the server may ask something that the host answers.
    pub(super) fn new(
        endpoint: Endpoint,
        receiver: Arc<dyn Receiver>,
        limit: usize,
        listens_first: bool,
    ) -> Self {
        let listened = CancellationToken::new();
        if !listens_first {
            listened.cancel();
        }
        Self {
            endpoint,
            receiver: Mutex::new(Some(receiver)),
            limit,
            requests: Mutex::default(),
            lists: Mutex::default(),
            sessions: Mutex::default(),
            is_modern: AtomicBool::new(false),
            broken: Mutex::default(),
            listened,
            in_flight: Arc::new(Semaphore::new(IN_FLIGHT_MAX)),
            notices: Semaphore::new(NOTICES_MAX),
            waiting_notices: Arc::new(Semaphore::new(NOTICES_WAITING_MAX)),
        }
    }

    /// Tells the session, one arrival after the other.
    pub(super) fn arrived(&self, arrival: Arrival) {
        let receiver = lock(&self.receiver).clone();
        if let Some(receiver) = receiver {
            receiver.arrived(arrival);
        }
    }

    pub(super) fn warn(&self, code: &'static str, message: &str, details: Vec<(&'static str, Value)>) {
        let receiver = lock(&self.receiver).clone();
        if let Some(receiver) = receiver {
            receiver.warning(code, message, details);
        }
    }

    /// Lets go of everything but what counts.
    pub(super) fn release(&self) {
        drop(lock(&self.endpoint.client).take());
        drop(lock(&self.receiver).take());
        lock(&self.requests).clear();
        lock(&self.lists).clear();
    }

    pub(super) fn is_modern(&self) -> bool {
        self.is_modern.load(Ordering::Acquire)
    }

    pub(super) fn set_modern(&self, is_modern: bool) {
        self.is_modern.store(is_modern, Ordering::Release);
    }

    pub(super) fn broken(&self) -> Option<McpError> {
        lock(&self.broken).clone()
    }

    /// The handshake broke in the middle.
    pub(super) fn break_off(&self, error: McpError) {
        *lock(&self.broken) = Some(error);
    }

    /// The sessions to be ended.
    pub(super) fn take_sessions(&self) -> Vec<(String, Headers)> {
        lock(&self.sessions).drain().collect()
    }
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
