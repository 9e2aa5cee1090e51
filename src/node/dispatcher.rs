//! The one way back to the JavaScript thread: a weak threadsafe function per environment that delivers batches.
//!
//! Weak, and referenced only while something is pending: an idle connection does not keep Node alive, a pending call does. napi's own
//! `async fn` costs a threadsafe function and 17 to 23 us a call; a batch costs one wake for all calls that settled meanwhile.
//! A batch is `[kind, token, text, …]`, three elements a delivery.

#![expect(
    unsafe_code,
    reason = "napi-rs has no safe form of ref/unref without &mut, nor of writing a batch item by item"
)]

use std::collections::HashMap;
use std::ptr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use napi::bindgen_prelude::{Function, ToNapiValue, Unknown, check_status};
use napi::threadsafe_function::{ThreadsafeFunction, ThreadsafeFunctionCallMode};
use napi::{Env, Status, sys};
use serde_json::Value;

use crate::error::{ErrorCode, McpError};
use crate::session::calls::Outcome;

/// Lines, log messages and warnings of one connection that may wait for a busy JavaScript thread; what comes on top is dropped (BR-35).
const CHATTER_MAX: usize = 4_096;

/// Bytes of them that may wait: one log message may be as long as the longest message.
const CHATTER_BYTES_MAX: usize = 16 * 1024 * 1024;

/// What a batch tells. The numbers are the `kind`s that `lib/host.js` knows.
enum Delivery {
    /// 0: the text of a result.
    Result { token: i64, text: String },
    /// 1: a JSON description of an error.
    Error { token: i64, error: String },
    /// 2: the `params` of a progress notification.
    Progress { token: i64, params: String },
    /// 3: an event of the connection with this token; JSON.
    Event { token: i64, event: String },
}

type Wake = ThreadsafeFunction<(), Unknown<'static>, Batch, Status, false, true>;

/// One environment's queue.
pub struct Dispatcher {
    queue: Mutex<Queue>,
    wake: Wake,
}

/// The chatter of one connection that waits.
#[derive(Default)]
struct Chatter {
    count: usize,
    bytes: usize,
}

#[derive(Default)]
struct Queue {
    deliveries: Vec<Delivery>,
    /// Where the progress of a call stands while it is undelivered: only its latest form counts.
    progress: HashMap<i64, usize>,
    /// The same of the tools of a connection.
    tools: HashMap<i64, usize>,
    /// By connection: a flood of one must not cost another its warnings.
    chatter: HashMap<i64, Chatter>,
    /// Nothing is delivered until [`Dispatcher::resume`].
    resting: bool,
    /// What keeps the event loop alive: pending calls and connections that were asked to.
    holds: usize,
}

impl Dispatcher {
    /// `deliver` is called on the JavaScript thread with each batch.
    pub fn new(deliver: &Function<'_, Batch, Unknown<'static>>) -> napi::Result<Arc<Self>> {
        // The queue is needed by the callback and the callback by the queue's owner.
        let slot: Arc<Mutex<Option<std::sync::Weak<Self>>>> = Arc::default();
        let owner = slot.clone();
        let wake = deliver
            .build_threadsafe_function::<()>()
            .callee_handled::<false>()
            .weak::<true>()
            .build_callback(move |_| {
                let dispatcher = owner
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .as_ref()
                    .and_then(std::sync::Weak::upgrade);
                Ok(Batch(dispatcher.map(|dispatcher| dispatcher.take()).unwrap_or_default()))
            })?;
        let dispatcher = Arc::new(Self { queue: Mutex::default(), wake });
        *slot.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::downgrade(&dispatcher));
        Ok(dispatcher)
    }

    /// Settles the call of a token.
    pub fn settled(&self, token: i64, outcome: Outcome) {
        let delivery = match outcome {
            Ok(text) => Delivery::Result { token, text },
            Err(error) => Delivery::Error { token, error: error.to_json().to_string() },
        };
        self.push(|queue| queue.settle(token, delivery));
    }

    /// Reports progress; what the JavaScript thread has not taken yet is replaced, so that nothing piles up.
    pub fn progressed(&self, token: i64, params: String) {
        self.push(|queue| {
            put_latest(
                &mut queue.deliveries,
                &mut queue.progress,
                token,
                Delivery::Progress { token, params },
            );
        });
    }

    /// Tells of a new list of tools, in place of one that was not taken yet.
    pub fn tools_changed(&self, token: i64, event: &Value) {
        let event = event.to_string();
        self.push(|queue| {
            put_latest(&mut queue.deliveries, &mut queue.tools, token, Delivery::Event { token, event });
        });
    }

    /// Tells of an event.
    pub fn happened(&self, token: i64, event: &Value) {
        let event = event.to_string();
        self.push(|queue| queue.deliveries.push(Delivery::Event { token, event }));
    }

    /// Tells of one of any number of events; false when so many wait that this one was dropped.
    pub fn chattered(&self, token: i64, event: &Value) -> bool {
        let event = event.to_string();
        let mut is_taken = true;
        self.push(|queue| {
            let chatter = queue.chatter.entry(token).or_default();
            is_taken = chatter.count < CHATTER_MAX && chatter.bytes < CHATTER_BYTES_MAX;
            if is_taken {
                chatter.count += 1;
                chatter.bytes += event.len();
                queue.deliveries.push(Delivery::Event { token, event });
            }
        });
        is_taken
    }

    /// Keeps the event loop alive until [`Dispatcher::release`]. On the JavaScript thread.
    pub fn hold(&self, env: &Env) {
        let mut queue = self.lock();
        queue.holds += 1;
        if queue.holds == 1 {
            // SAFETY: called by JavaScript on the thread of `env`, whose threadsafe function this is. It is finalized when self is dropped or
            // the environment ends, and from then on no JavaScript calls.
            unsafe { sys::napi_ref_threadsafe_function(env.raw(), self.wake.raw()) };
        }
    }

    /// Undoes one [`Dispatcher::hold`]. On the JavaScript thread.
    pub fn release(&self, env: &Env) {
        let mut queue = self.lock();
        queue.holds = queue.holds.saturating_sub(1);
        if queue.holds == 0 {
            // SAFETY: as in `hold`.
            unsafe { sys::napi_unref_threadsafe_function(env.raw(), self.wake.raw()) };
        }
    }

    fn push(&self, add: impl FnOnce(&mut Queue)) {
        let mut queue = self.lock();
        let was_empty = queue.deliveries.is_empty();
        add(&mut queue);
        let wakes = was_empty && !queue.deliveries.is_empty() && !queue.resting;
        drop(queue);
        if wakes {
            self.wake();
        }
    }

    /// Holds deliveries back until [`Dispatcher::resume`], so that the event loop can turn.
    ///
    /// A threadsafe function calls JavaScript up to 1,000 times in a row while more is waiting, and runs no timer and no other I/O in
    /// between. What arrives while JavaScript is busy is waiting, so a few callers that work a millisecond on each result held everything
    /// else up for as long as they went on.
    pub fn rest(&self) {
        self.lock().resting = true;
    }

    pub fn resume(&self) {
        let mut queue = self.lock();
        queue.resting = false;
        let wakes = !queue.deliveries.is_empty();
        drop(queue);
        if wakes {
            self.wake();
        }
    }

    fn wake(&self) {
        // Refused only when the environment is ending: then nobody is there to hear.
        self.wake.call((), ThreadsafeFunctionCallMode::NonBlocking);
    }

    fn take(&self) -> Vec<Delivery> {
        let mut queue = self.lock();
        if queue.resting { Vec::new() } else { queue.take() }
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Queue {
    fn settle(&mut self, token: i64, delivery: Delivery) {
        self.progress.remove(&token);
        // The result may be that of a listing. A list that is newer must not take the place of one that stands before it.
        self.tools.clear();
        self.deliveries.push(delivery);
    }

    fn take(&mut self) -> Vec<Delivery> {
        self.progress.clear();
        self.tools.clear();
        self.chatter.clear();
        std::mem::take(&mut self.deliveries)
    }
}

/// Puts a delivery in the place of the one of its token that still waits, else at the end.
fn put_latest(
    deliveries: &mut Vec<Delivery>,
    latest: &mut HashMap<i64, usize>,
    token: i64,
    delivery: Delivery,
) {
    let index = *latest.entry(token).or_insert(deliveries.len());
    match deliveries.get_mut(index) {
        Some(waiting) => *waiting = delivery,
        None => deliveries.push(delivery),
    }
}

/// Deliveries on their way into JavaScript.
#[derive(Default)]
pub struct Batch(Vec<Delivery>);

impl ToNapiValue for Batch {
    unsafe fn to_napi_value(env: sys::napi_env, batch: Self) -> napi::Result<sys::napi_value> {
        let mut array = ptr::null_mut();
        // SAFETY: napi calls this with a live `env` on its own thread; `array` is a valid place for the result.
        check_status!(unsafe { sys::napi_create_array_with_length(env, batch.0.len() * 3, &raw mut array) })?;
        for (index, delivery) in (0..).step_by(3).zip(batch.0) {
            let (mut kind, token, text) = match delivery {
                Delivery::Result { token, text } => (0, token, text),
                Delivery::Error { token, error } => (1, token, error),
                Delivery::Progress { token, params } => (2, token, params),
                Delivery::Event { token, event } => (3, token, event),
            };
            // SAFETY: as above.
            let text = unsafe { String::to_napi_value(env, text) }.or_else(|_| {
                // What cannot become a JavaScript string (V8 ends at about 512 MiB) rejects its own call only.
                kind = if kind == 0 { 1 } else { kind };
                let error = McpError::new(
                    ErrorCode::MessageTooLarge,
                    "The result is longer than a JavaScript string can be.",
                );
                // SAFETY: as above.
                unsafe { String::to_napi_value(env, error.to_json().to_string()) }
            })?;
            // SAFETY: as above; `array` is the array made here.
            unsafe {
                check_status!(sys::napi_set_element(env, array, index, u32::to_napi_value(env, kind)?))?;
                check_status!(sys::napi_set_element(env, array, index + 1, i64::to_napi_value(env, token)?))?;
                check_status!(sys::napi_set_element(env, array, index + 2, text))?;
            }
        }
        Ok(array)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(queue: &mut Queue) -> Vec<String> {
        let text = |delivery| match delivery {
            Delivery::Result { text, .. } => text,
            Delivery::Error { error, .. } => error,
            Delivery::Progress { params, .. } => params,
            Delivery::Event { event, .. } => event,
        };
        queue.take().into_iter().map(text).collect()
    }

    fn tools(queue: &mut Queue, event: &str) {
        let delivery = Delivery::Event { token: 1, event: event.into() };
        put_latest(&mut queue.deliveries, &mut queue.tools, 1, delivery);
    }

    fn progress(queue: &mut Queue, token: i64, params: &str) {
        let delivery = Delivery::Progress { token, params: params.into() };
        put_latest(&mut queue.deliveries, &mut queue.progress, token, delivery);
    }

    #[test]
    fn only_the_latest_progress_of_each_call_waits_and_none_follows_its_result() {
        let mut queue = Queue::default();
        progress(&mut queue, 2, "2: 1");
        progress(&mut queue, 3, "3: 1");
        progress(&mut queue, 2, "2: 2");
        queue.settle(2, Delivery::Result { token: 2, text: "2: done".into() });
        progress(&mut queue, 3, "3: 2");
        assert_eq!(texts(&mut queue), ["2: 2", "3: 2", "2: done"]);
        progress(&mut queue, 3, "3: 3");
        assert_eq!(texts(&mut queue), ["3: 3"]);
    }

    #[test]
    fn a_newer_list_of_tools_never_comes_before_the_result_of_an_older_listing() {
        let mut queue = Queue::default();
        tools(&mut queue, "first");
        tools(&mut queue, "second");
        queue.settle(5, Delivery::Result { token: 5, text: "third, listed".into() });
        tools(&mut queue, "fourth");
        tools(&mut queue, "fifth");
        assert_eq!(texts(&mut queue), ["second", "third, listed", "fifth"]);
    }
}
