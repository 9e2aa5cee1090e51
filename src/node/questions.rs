//! What the core asks the host's JavaScript, and its answers. A question waits on no thread: whoever asks says what to
//! do with the answer.

use std::collections::HashMap;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::Value;

use super::dispatcher::Dispatcher;

/// The text that JavaScript gave, or nothing where its function failed.
pub type Answer = Option<String>;

type React = Box<dyn FnOnce(Answer) + Send>;

/// One environment's questions.
pub struct Questions {
    dispatcher: Arc<Dispatcher>,
    last: AtomicI64,
    open: Mutex<HashMap<i64, React>>,
}

impl Questions {
    #[must_use]
    pub fn new(dispatcher: Arc<Dispatcher>) -> Self {
        Self { dispatcher, last: AtomicI64::new(0), open: Mutex::default() }
    }

    /// Asks the listener under `token`: `event` gets the question's number. `react` is called with number and answer.
    pub fn ask(&self, token: i64, mut event: Value, react: impl FnOnce(i64, Answer) + Send + 'static) {
        let number = self.last.fetch_add(1, Ordering::Relaxed) + 1;
        event["question"] = number.into();
        self.open().insert(number, Box::new(move |answer| react(number, answer)));
        self.dispatcher.happened(token, event);
    }

    /// Takes an answer. Each question is answered once.
    pub fn answered(&self, number: i64, answer: Answer) {
        let react = self.open().remove(&number);
        if let Some(react) = react {
            react(answer);
        }
    }

    fn open(&self) -> MutexGuard<'_, HashMap<i64, React>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
