//! The one way back to the JavaScript thread: a queue per environment, which JavaScript takes in batches when it is woken.
//!
//! The event loop is held only while something is pending: an idle connection does not keep Node alive, a pending call does. napi's own
//! `async fn` costs a threadsafe function and 17 to 23 us a call; a batch costs one wake for all calls that settled meanwhile.

pub mod handle;

use std::collections::HashMap;
use std::fmt;
use std::panic;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use napi::Env;
use napi::bindgen_prelude::{Function, Unknown};
use serde_json::Value;

use super::batch::{Batch, Delivery, Text};
use super::io_thread;
#[cfg(unix)]
use super::poll::Next;
use super::wake::Wake;
use crate::error::{ErrorCode, McpError};
use crate::link::POOL_FROM;
#[cfg(unix)]
use crate::link::{HostLoop, Source, Watch};
use crate::session::calls::Outcome;

/// Lines, log messages and warnings of one connection that may wait for a busy JavaScript thread; what comes on top is dropped (BR-35).
const CHATTER_MAX: usize = 4_096;

/// Bytes of them that may wait: one log message may be as long as the longest message.
const CHATTER_BYTES_MAX: usize = 16 * 1024 * 1024;

/// One environment's queue.
pub struct Dispatcher {
    queue: Arc<Mutex<Queue>>,
    wake: Wake,
    engine_is_node: bool,
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
    /// The JavaScript thread is at it, and delivers what comes without being woken.
    gathering: bool,
}

impl Dispatcher {
    /// `deliver` is called on the JavaScript thread when there is something to deliver: with that, or to [take](Dispatcher::take) it.
    pub fn new(
        env: &Env,
        deliver: &Function<'_, (), Unknown<'static>>,
        holds: &Unknown<'_>,
        engine_is_node: bool,
    ) -> napi::Result<Arc<Self>> {
        let queue = Arc::<Mutex<Queue>>::default();
        let waiting = queue.clone();
        let take = Box::new(move || take(&waiting, engine_is_node));
        let wake = Wake::new(env, deliver, holds, engine_is_node, take)?;
        Ok(Arc::new(Self { queue, wake, engine_is_node }))
    }

    /// Settles the operation of a token, in its place among the events.
    pub fn settled(&self, token: i64, outcome: Outcome) {
        self.settle(token, outcome, false);
    }

    /// Settles the call of a token. A long result is got ready on the pool, and later events may overtake it.
    pub fn answered(self: Arc<Self>, token: i64, outcome: Outcome, is_tool_result: bool) {
        let is_long = matches!(&outcome, Ok(text) if text.len() > POOL_FROM && !text.is_plain());
        match (outcome, is_long.then(io_thread::handle)) {
            (Ok(text), Some(Ok(runtime))) => {
                drop(runtime.spawn_blocking(move || {
                    // The call is no longer anybody else's: a panic here, which is a fault of ours, must still settle it (BR-85).
                    let text = panic::catch_unwind(|| Text::new(text, is_tool_result));
                    let delivery =
                        text.map_or_else(|_| failed(token, &lost()), |text| Delivery::Result { token, text });
                    self.push(|queue| queue.settle(token, delivery));
                }));
            }
            (outcome, _) => self.settle(token, outcome, is_tool_result),
        }
    }

    fn settle(&self, token: i64, outcome: Outcome, is_tool_result: bool) {
        let delivery = match outcome {
            Ok(text) => Delivery::Result { token, text: Text::new(text, is_tool_result) },
            Err(error) => failed(token, &error),
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

    /// Tells of an event: a JSON object.
    pub fn happened(&self, token: i64, event: impl fmt::Display) {
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
        self.wake.hold(env);
    }

    /// Undoes [`Dispatcher::hold`]. On the JavaScript thread.
    pub fn release(&self, env: &Env) {
        self.wake.release(env);
    }

    fn push(&self, add: impl FnOnce(&mut Queue)) {
        let mut queue = self.lock();
        let was_empty = queue.deliveries.is_empty();
        add(&mut queue);
        let wakes = was_empty && !queue.deliveries.is_empty() && !queue.resting && !queue.gathering;
        drop(queue);
        if wakes {
            self.wake.call();
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
            self.wake.call();
        }
    }

    /// Reads on the JavaScript thread, and says whether there is something to deliver then and there.
    #[cfg(unix)]
    fn gather(&self, source: &dyn Source) -> Next {
        self.lock().gathering = true;
        let goes_on = source.read();
        let mut queue = self.lock();
        queue.gathering = false;
        Next { goes_on, delivers: !queue.deliveries.is_empty() && !queue.resting }
    }

    /// What has come since the last time, unless it is to rest.
    pub fn take(&self) -> Batch {
        take(&self.queue, self.engine_is_node)
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        lock(&self.queue)
    }
}

fn take(queue: &Mutex<Queue>, engine_is_node: bool) -> Batch {
    let mut queue = lock(queue);
    let deliveries = if queue.resting { Vec::new() } else { queue.take() };
    // The engine of others may not be given any.
    Batch { deliveries, external_strings: engine_is_node }
}

fn lock(queue: &Mutex<Queue>) -> MutexGuard<'_, Queue> {
    queue.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The loop of the thread that all is delivered on.
#[cfg(unix)]
pub struct DeliveryLoop(pub Arc<Dispatcher>);

#[cfg(unix)]
impl HostLoop for DeliveryLoop {
    fn watch(&self, source: Arc<dyn Source>) -> Option<Box<dyn Watch>> {
        let descriptor = source.descriptor().ok()?;
        let dispatcher = self.0.clone();
        let unread = source.clone();
        let ready = Box::new(move || dispatcher.gather(&*source));
        let refused = Box::new(move || unread.refused());
        self.0.wake.poll(descriptor, ready, refused).map(|wanted| Box::new(wanted) as Box<dyn Watch>)
    }
}

fn failed(token: i64, error: &McpError) -> Delivery {
    Delivery::Error { token, error: error.to_json().to_string() }
}

fn lost() -> McpError {
    McpError::new(ErrorCode::Internal, "The result was lost by a fault in workflow-mcp; please report this.")
}

impl Queue {
    fn settle(&mut self, token: i64, delivery: Delivery) {
        if !self.progress.is_empty() {
            self.progress.remove(&token);
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(queue: &mut Queue) -> Vec<String> {
        let text = |delivery| match delivery {
            Delivery::Result { text: Text::Short(text), .. } => text,
            Delivery::Result { .. } => panic!("a long text"),
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
        queue.settle(2, Delivery::Result { token: 2, text: Text::Short("2: done".into()) });
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
        queue.settle(5, Delivery::Result { token: 5, text: Text::Short("third, listed".into()) });
        tools(&mut queue, "fourth");
        tools(&mut queue, "fifth");
        assert_eq!(texts(&mut queue), ["second", "third, listed", "fifth"]);
    }
}
