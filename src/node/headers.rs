//! Headers that a function of the host gives: asked when there are none, and again when the server refused the last ones. One ask serves
//! everybody who waits, those who come meanwhile too; after one that failed the next request asks again (BR-82).

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::json;
use tokio::sync::watch;

use super::blocking::BlockingCalls;
use super::questions::{Answer, Questions};
use super::values;
use crate::error::{ErrorCode, McpError};
use crate::link::http::{HeaderList, Headers, HeadersComing, Needed};
use crate::policy::found::Found;
use crate::policy::redact::Redactor;
use crate::project::headers::judge;

type Asked = Option<Result<HeaderList, McpError>>;

/// The headers of one server. They outlive its sessions.
pub struct FunctionHeaders(Arc<Inner>);

struct Inner {
    server: String,
    /// Of the project, whose listener is asked.
    token: i64,
    redactor: Redactor,
    questions: Arc<Questions>,
    blocking: Arc<BlockingCalls>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    known: Option<HeaderList>,
    /// The server answered 401 to the known ones.
    are_refused: bool,
    /// Also one that has failed, until somebody has heard of it: who is refused in that moment belongs to those who waited.
    asking: Option<watch::Receiver<Asked>>,
    /// What waits for the answer.
    waiting: Vec<Needed>,
    /// Nobody on the way to the server can read them.
    is_private: bool,
}

impl FunctionHeaders {
    #[must_use]
    pub fn new(server: &str, token: i64, questions: Arc<Questions>, blocking: Arc<BlockingCalls>) -> Self {
        let (server, redactor, state) = (server.to_owned(), Redactor::new(&[]), Mutex::default());
        Self(Arc::new(Inner { server, token, redactor, questions, blocking, state }))
    }

    /// What is told of every header that may not be shown.
    #[must_use]
    pub fn redactor(&self) -> Redactor {
        self.0.redactor.clone()
    }

    /// Says where they will be sent.
    pub fn sent_privately(&self, is_private: bool) {
        self.0.lock().is_private = is_private;
    }

    /// Whether the next request would have to ask.
    #[must_use]
    pub fn are_missing(&self) -> bool {
        let state = self.0.lock();
        state.known.is_none() || state.are_refused
    }

    /// What waits for the function.
    #[must_use]
    pub fn waiting(&self) -> Vec<Needed> {
        self.0.lock().waiting.clone()
    }
}

impl Headers for FunctionHeaders {
    fn headers(&self, refused: Option<&HeaderList>, needed: Needed) -> HeadersComing<'_> {
        let mut asked = {
            let mut state = self.0.lock();
            state.are_refused |= refused.is_some() && refused == state.known.as_ref();
            if let Some(known) = state.known.as_ref().filter(|_| !state.are_refused) {
                return Box::pin(std::future::ready(Ok(Some(known.clone()))));
            }
            state.waiting.push(needed);
            match &state.asking {
                Some(asking) => asking.clone(),
                None => self.0.ask(&mut state),
            }
        };
        // A synchronous call that waits for this blocks the thread that would answer.
        self.0.blocking.would_block(needed);
        let inner = self.0.clone();
        Box::pin(async move {
            match asked.wait_for(Option::is_some).await.map(|asked| asked.clone()) {
                Ok(Some(outcome)) => {
                    inner.heard(&asked);
                    outcome.map(Some)
                }
                Ok(None) | Err(_) => {
                    Err(McpError::new(ErrorCode::Closed, "The host that gives the headers is gone."))
                }
            }
        })
    }
}

impl Inner {
    fn ask(self: &Arc<Self>, state: &mut State) -> watch::Receiver<Asked> {
        let (sender, asked) = watch::channel(None);
        state.asking = Some(asked.clone());
        let inner = self.clone();
        let event = json!({ "headersOf": self.server });
        self.questions.ask(self.token, event, move |question, answer| {
            let outcome = inner.take(question, answer);
            sender.send_replace(Some(outcome));
            // The state's own alone: whoever waited has given up.
            if sender.receiver_count() <= 1 {
                inner.heard(&sender.subscribe());
            }
        });
        asked
    }

    fn take(&self, question: i64, answer: Answer) -> Result<HeaderList, McpError> {
        let mut state = self.lock();
        state.waiting.clear();
        let list = self.read(question, answer, state.is_private)?;
        // They came from where secrets come from, whatever their names: the redactor judges them as it does variables.
        self.redactor.learn(&list);
        let list: HeaderList = list.into();
        state.known = Some(list.clone());
        state.are_refused = false;
        state.asking = None;
        Ok(list)
    }

    /// Somebody knows what came of it: the next one asks again.
    fn heard(&self, asked: &watch::Receiver<Asked>) {
        self.lock().asking.take_if(|asking| asking.same_channel(asked));
    }

    fn read(
        &self,
        question: i64,
        answer: Answer,
        is_private: bool,
    ) -> Result<Vec<(String, String)>, McpError> {
        let server = &self.server;
        let Some(answer) = answer else {
            let message = format!(
                "The function that gives the headers of the server {server} failed; its cause is what it rejected with."
            );
            // The cause is a value of JavaScript, which lib/project.js has kept under this number.
            return Err(McpError::new(ErrorCode::AuthRequired, message)
                .with("question", question)
                .of_server(server));
        };
        let answer = values::read(&answer);
        let found = Found::outermost(ErrorCode::Config, "headers()", &answer);
        let refused = |error: McpError| {
            let message = format!(
                "What the headers function of the server {server} gave cannot be sent: {}",
                error.message
            );
            McpError { message, ..error }.of_server(server)
        };
        let entries = found.entries("an object of strings").map_err(refused)?;
        let mut list = Vec::with_capacity(entries.len());
        for (name, value) in entries {
            list.push((name.to_owned(), value.text("a string").map_err(refused)?.to_owned()));
        }
        judge(&list, is_private).map_err(|fault| {
            let error = McpError::new(ErrorCode::Config, format!("{fault}."));
            refused(error.with("path", "headers()").with("reason", fault))
        })?;
        Ok(list)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
