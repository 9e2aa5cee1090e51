//! What JavaScript holds of the dispatcher of its environment: the main thread or a Worker (lib/dispatcher.js).

use std::sync::Arc;

use napi::Env;
use napi::bindgen_prelude::{Function, Unknown};
use napi_derive::napi;

use super::Dispatcher;
use crate::link::stdio::turn;
use crate::node::batch::Batch;
use crate::node::questions::Questions;

/// One environment's dispatcher, as JavaScript holds it. Everything comes back through `deliver`.
#[napi]
pub struct DispatcherHandle {
    pub(in crate::node) dispatcher: Arc<Dispatcher>,
    pub(in crate::node) questions: Arc<Questions>,
}

#[napi]
impl DispatcherHandle {
    /// `deliver` is called with what there is to deliver, `4 * token + kind, text, …` or one array of that, or with
    /// nothing when it is to be taken. `holds`: see src/node/holds.rs. `engineIsNode`: not Bun and not Deno, which have
    /// some of what Node.js exports beside Node-API, and work differently.
    #[napi(constructor)]
    pub fn new(
        env: Env,
        #[napi(ts_arg_type = "(...batch: unknown[]) => void")] deliver: Function<'_, (), Unknown<'static>>,
        #[napi(ts_arg_type = "Int32Array")] holds: Unknown<'_>,
        engine_is_node: bool,
    ) -> napi::Result<Self> {
        let dispatcher = Dispatcher::new(&env, &deliver, &holds, engine_is_node)?;
        Ok(Self { questions: Arc::new(Questions::new(dispatcher.clone())), dispatcher })
    }

    /// What there is to deliver: `[4 * token + kind, text, …]`.
    #[napi(catch_unwind, ts_return_type = "unknown[]")]
    pub fn take(&self) -> Batch {
        self.dispatcher.take()
    }

    /// Answers a question that came as an event; no answer says that the host's function failed.
    #[napi(catch_unwind)]
    pub fn answer(&self, question: i64, answer: Option<String>) {
        self.questions.answered(question, answer);
    }

    /// Keeps the event loop alive until `release`, however often it was called.
    #[napi(catch_unwind)]
    pub fn hold(&self, env: Env) {
        self.dispatcher.hold(&env);
    }

    #[napi(catch_unwind)]
    pub fn release(&self, env: Env) {
        self.dispatcher.release(&env);
    }

    /// Keeps the calls that are begun until `flush`, to write them together.
    #[napi(catch_unwind)]
    pub fn gather(&self) {
        turn::gather();
    }

    /// Writes the calls that were kept.
    #[napi(catch_unwind)]
    pub fn flush(&self) {
        turn::flush();
    }

    /// Delivers nothing until `resume`, so that the event loop can turn.
    #[napi(catch_unwind)]
    pub fn rest(&self) {
        self.dispatcher.rest();
    }

    #[napi(catch_unwind)]
    pub fn resume(&self) {
        self.dispatcher.resume();
    }
}
