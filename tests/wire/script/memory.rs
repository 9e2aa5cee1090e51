//! A link without a process: the client's own framing over bytes that the script writes, and frames kept for the script to read.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard};
use std::time::Duration;

use serde_json::Value;
use tokio::sync::OnceCell;
use workflow_mcp::error::{ErrorCode, McpError};
use workflow_mcp::link::stdio::intake::Intake;
use workflow_mcp::link::stdio::noise::Noise;
use workflow_mcp::link::{Arrival, End, Frame, FrameKind, Gone, Link, Receiver, Sent};
use workflow_mcp::policy::redact::Redactor;
use workflow_mcp::process::Waits;

/// The near end: where frames go.
pub(crate) struct Memory {
    state: Mutex<State>,
    noise: Arc<Noise>,
    end: OnceCell<End>,
}

#[derive(Default)]
struct State {
    /// What the server has read, in order.
    read: Vec<Frame>,
    /// What it has not, as it does not read now.
    queue: VecDeque<Frame>,
    is_deaf: bool,
    is_gone: bool,
}

impl Memory {
    pub(crate) fn new() -> Arc<Self> {
        // Made once: it costs more than the rest of a short script.
        static NO_SECRETS: LazyLock<Redactor> = LazyLock::new(|| Redactor::new(&[]));
        let noise = Arc::new(Noise::new(NO_SECRETS.clone()));
        Arc::new(Self { state: Mutex::default(), noise, end: OnceCell::new() })
    }

    /// The frames that the server has read from the `from`th on.
    pub(crate) fn read_from(&self, from: usize) -> Vec<(FrameKind, String)> {
        self.lock().read[from..].iter().map(|frame| (frame.kind, frame.text.clone())).collect()
    }

    pub(crate) fn set_deaf(&self, is_deaf: bool) {
        let mut state = self.lock();
        state.is_deaf = is_deaf;
        if !is_deaf {
            let queued = std::mem::take(&mut state.queue);
            state.read.extend(queued);
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }
}

impl Link for Memory {
    fn send(&self, frame: Frame) -> Sent {
        let mut state = self.lock();
        if state.is_gone {
            return Sent::Gone;
        }
        if state.is_deaf {
            state.queue.push_back(frame);
        } else {
            state.read.push(frame);
        }
        Sent::Taken
    }

    fn withdraw(&self, id: u64) -> bool {
        let mut state = self.lock();
        let at = state.queue.iter().position(|frame| frame.kind == FrameKind::Request(id));
        at.is_some_and(|at| state.queue.remove(at).is_some())
    }

    fn close(&self, waits: Waits) -> Pin<Box<dyn Future<Output = End> + Send + '_>> {
        Box::pin(async move {
            let end = self.end.get_or_init(async || {
                self.lock().is_gone = true;
                tokio::time::sleep(waits.end_of_input).await;
                End { exit_code: Some(0), signal: None, ended: "end-of-input", survivors: Vec::new() }
            });
            end.await.clone()
        })
    }

    fn skipped(&self) -> Vec<String> {
        self.noise.samples()
    }

    fn diagnostics(&self) -> Vec<(&'static str, Value)> {
        vec![("skippedLines", self.noise.count().into())]
    }
}

/// The far end: what the server writes.
pub(crate) struct Server {
    intake: Intake,
    receiver: Arc<dyn Receiver>,
    limit: usize,
    /// All that was written.
    pub(crate) written: Vec<u8>,
    /// Reads of at most this many bytes.
    pub(crate) read_size: usize,
    pub(crate) is_gone: bool,
}

impl Server {
    pub(crate) fn new(link: &Memory, receiver: Arc<dyn Receiver>, limit: usize) -> Self {
        let intake = Intake::new("script".to_owned(), limit, link.noise.clone());
        Self { intake, receiver, limit, written: Vec::new(), read_size: usize::MAX, is_gone: false }
    }

    /// Whether the next byte begins a line.
    pub(crate) fn is_at_start(&self) -> bool {
        !self.is_gone && self.written.last().is_none_or(|byte| *byte == b'\n')
    }

    pub(crate) async fn write(&mut self, bytes: &[u8]) {
        for part in bytes.chunks(self.read_size) {
            if self.is_gone {
                return;
            }
            self.written.extend_from_slice(part);
            self.intake.space().extend_from_slice(part);
            let held = self.intake.length();
            assert!(held <= self.limit + part.len(), "{held} bytes are held of a limit of {}", self.limit);
            if let Err(error) = self.intake.deliver(&*self.receiver).await {
                self.gone(Gone { error, protocol_error: true });
            }
        }
    }

    /// Its output ends, as it does when a process leaves.
    pub(crate) async fn leave(&mut self) {
        if !self.is_gone {
            self.intake.finish(&*self.receiver).await;
            let error = McpError::new(ErrorCode::Exited, "The server script exited with code 0.");
            self.gone(Gone { error, protocol_error: false });
        }
    }

    fn gone(&mut self, gone: Gone) {
        self.is_gone = true;
        self.receiver.arrived(Arrival::Gone(gone));
    }
}

/// How long a server may take to leave: less than the session pauses before it does something again.
pub(crate) const LEAVES_WITHIN: Duration = Duration::from_millis(500);
