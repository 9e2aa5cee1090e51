//! Calling a tool, as a function of its own.
//!
//! A method costs what finds and checks its receiver and guards what its arguments borrow, and a string is asked for
//! twice, for its length first: together an eighth of what a small call costs the JavaScript thread (measured with 64
//! in flight).

#![expect(unsafe_code, reason = "napi-rs asks for the length of every string, and gives the memory zeroed")]

use std::mem::MaybeUninit;
use std::slice;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use napi::bindgen_prelude::{FnArgs, FromNapiValue, Function, FunctionCallContext, check_status};
use napi::{Env, sys};

use super::call_options::{self, CallOptions};
use super::dispatcher::Dispatcher;
use crate::error::{ErrorCode, McpError};
use crate::session::calls::{OnProgress, Settle, Terms};
use crate::session::{Asked, Session};

/// What a call begins from. It keeps neither the connection nor its server.
pub(super) struct Caller {
    pub session: Arc<OnceLock<Session>>,
    /// Of a call that names none.
    pub timeout: Duration,
    pub dispatcher: Arc<Dispatcher>,
}

/// `(token, name, arguments, options?) => id`.
pub type CallTool<'a> = Function<'a, FnArgs<(i64, String, String, Option<CallOptions>)>, i64>;

impl Caller {
    pub(super) fn function<'a>(self: &Arc<Self>, env: &'a Env) -> napi::Result<CallTool<'a>> {
        // V8 gives functions back late, with its old space: of 1,000 connections that were closed these held 10 MB.
        let (caller, dispatcher) = (Arc::downgrade(self), self.dispatcher.clone());
        env.create_function_from_closure("callTool", move |call: FunctionCallContext<'_>| {
            let token = call.get(0)?;
            let Some(caller) = caller.upgrade() else { return Ok(refused(answer(&dispatcher, token, true))) };
            let options = if call.length() > 3 { call.get(3)? } else { None };
            let (Given(name), Given(arguments)) = (call.get(1)?, call.get(2)?);
            Ok(caller.call_tool(token, &name, arguments, options))
        })
    }

    pub(super) fn call_tool(
        &self,
        token: i64,
        name: &str,
        arguments: String,
        options: Option<CallOptions>,
    ) -> i64 {
        let settle = self.answer(token, true);
        let Some(session) = self.session.get() else { return refused(settle) };
        let (terms, meta) = self.terms("call", token, options);
        call_id(session.call_tool(name, arguments, Asked { terms, meta: meta.as_deref() }, settle))
    }

    pub(super) fn answer(&self, token: i64, is_tool_result: bool) -> Settle {
        answer(&self.dispatcher, token, is_tool_result)
    }

    pub(super) fn terms(
        &self,
        phase: &'static str,
        token: i64,
        options: Option<CallOptions>,
    ) -> (Terms, Option<String>) {
        let on_progress = || {
            let dispatcher = self.dispatcher.clone();
            Arc::new(move |params| dispatcher.progressed(token, params)) as OnProgress
        };
        call_options::terms(options, phase, self.timeout, on_progress)
    }
}

fn answer(dispatcher: &Arc<Dispatcher>, token: i64, is_tool_result: bool) -> Settle {
    let dispatcher = dispatcher.clone();
    Settle::new(move |outcome| dispatcher.answered(token, outcome, is_tool_result))
}

pub(super) fn refused(settle: Settle) -> i64 {
    settle.with(Err(McpError::new(ErrorCode::Closed, "The connection has not been established.")));
    -1
}

pub(super) fn call_id(id: Option<u64>) -> i64 {
    id.and_then(|id| i64::try_from(id).ok()).unwrap_or(-1)
}

/// Bytes that a string is first given room for, on the stack.
const ROOM: usize = 1024;

/// The longest letter in UTF-8: with less room left, a string may have been cut.
const LETTER: usize = 4;

/// A string of JavaScript, mostly a short one.
struct Given(String);

impl FromNapiValue for Given {
    unsafe fn from_napi_value(env: sys::napi_env, value: sys::napi_value) -> napi::Result<Self> {
        let mut room = MaybeUninit::<[u8; ROOM]>::uninit();
        let mut length = 0;
        // SAFETY: napi calls this with a live `env` on its own thread and a value of it; not more than the room is
        // written, its end included.
        check_status!(unsafe {
            sys::napi_get_value_string_utf8(env, value, room.as_mut_ptr().cast(), ROOM, &raw mut length)
        })?;
        if length + LETTER >= ROOM {
            // SAFETY: as the caller promised.
            return unsafe { String::from_napi_value(env, value) }.map(Self);
        }
        // SAFETY: so many bytes were written.
        let bytes = unsafe { slice::from_raw_parts(room.as_ptr().cast::<u8>(), length) };
        // The engine writes whole letters; whether it has is soon seen.
        Ok(Self(match str::from_utf8(bytes) {
            Ok(text) => text.to_owned(),
            Err(_) => String::from_utf8_lossy(bytes).into_owned(),
        }))
    }
}
