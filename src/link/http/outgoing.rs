//! One message on its way out: the session's own text, and the small copy that rmcp's transport is given for it.
//!
//! The transport reads a message for its kind, its id and what the headers of 2026-07-28 repeat; what is sent is the text. So the copy
//! holds no more than that, and arguments that no typed value can hold (`1e400`, half an emoji) go out byte for byte.

use std::borrow::Cow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use rmcp::model::{
    CancelledNotification, CancelledNotificationParam, ClientCapabilities, ClientJsonRpcMessage,
    ClientNotification, ClientRequest, ClientResult, CustomNotification, CustomRequest, CustomResult,
    GetExtensions, Implementation, InitializeRequest, InitializeRequestParams, InitializedNotification,
    ProtocolVersion, RequestId, RequestMetaObject,
};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use crate::error::McpError;
use crate::link::envelope::{AnswerId, answer_id_text};
use crate::link::fields::{elements, fields, members, string};
use crate::link::{Frame, FrameKind};

/// One message on its way out. The transport carries it beside its copy and clones it for a repetition.
pub(super) struct Outgoing {
    pub kind: FrameKind,
    pub method: String,
    pub text: Bytes,
    /// Whether something of it may have reached the server.
    way: Mutex<Way>,
    /// Its answer, or its failure, has gone up. What comes later is the answer to a repetition of rmcp's own.
    is_answered: AtomicBool,
    /// Nobody waits for it any more.
    pub given_up: CancellationToken,
    /// Why the last attempt failed; rmcp decides whether there is another.
    failure: Mutex<Option<McpError>>,
}

/// How far a message has got.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Waiting,
    Written,
    /// Nothing of it is written any more, so the server need not be told.
    Withdrawn,
}

impl Outgoing {
    pub(super) fn of(frame: Frame) -> Arc<Self> {
        let method = if frame.kind == FrameKind::Answer { String::new() } else { method_of(&frame.text) };
        Self::new(frame.kind, method, Bytes::from(frame.text))
    }

    fn new(kind: FrameKind, method: String, text: Bytes) -> Arc<Self> {
        Arc::new(Self {
            kind,
            method,
            text,
            way: Mutex::new(Way::Waiting),
            is_answered: AtomicBool::new(false),
            given_up: CancellationToken::new(),
            failure: Mutex::default(),
        })
    }

    /// An `initialized` that is not sent: rmcp's worker takes whatever follows an `initialize` for one, and the answer that agreed to
    /// 2026-07-28 wants none.
    pub(super) fn unsent_initialized() -> Arc<Self> {
        Self::new(FrameKind::Notification, INITIALIZED.to_owned(), Bytes::new())
    }

    /// The id of a request.
    pub(super) fn id(&self) -> Option<u64> {
        match self.kind {
            FrameKind::Request(id) => Some(id),
            FrameKind::Notification | FrameKind::Answer => None,
        }
    }

    /// The id of the request that this gives up.
    pub(super) fn cancels(&self) -> Option<u64> {
        if self.method != CANCELLED {
            return None;
        }
        let [params] = fields(std::str::from_utf8(&self.text).ok()?, ["params"])?;
        let [id] = fields(params?.get(), ["requestId"])?;
        match answer_id_text(id?.get()) {
            AnswerId::Number(id) => Some(id),
            AnswerId::Absent | AnswerId::Foreign => None,
        }
    }

    pub(super) fn is_handshake(&self) -> bool {
        self.method == INITIALIZE || self.method == DISCOVER
    }

    /// Says that it goes out now; false when it was taken back, and must not.
    pub(super) fn goes_out(&self) -> bool {
        let mut way = self.way();
        if *way == Way::Waiting {
            *way = Way::Written;
        }
        *way == Way::Written
    }

    /// Gives it up unless something of it was written.
    pub(super) fn withdraw(&self) -> bool {
        let mut way = self.way();
        if *way == Way::Waiting {
            *way = Way::Withdrawn;
        }
        let is_withdrawn = *way == Way::Withdrawn;
        drop(way);
        if is_withdrawn {
            self.given_up.cancel();
        }
        is_withdrawn
    }

    fn way(&self) -> MutexGuard<'_, Way> {
        self.way.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn is_answered(&self) -> bool {
        self.is_answered.load(Ordering::Acquire)
    }

    /// True the first time.
    pub(super) fn answered(&self) -> bool {
        !self.is_answered.swap(true, Ordering::AcqRel)
    }

    pub(super) fn failed(&self, error: McpError) {
        *self.failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
    }

    pub(super) fn take_failure(&self) -> Option<McpError> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

pub(super) const INITIALIZE: &str = "initialize";
pub(super) const INITIALIZED: &str = "notifications/initialized";
pub(super) const DISCOVER: &str = "server/discover";
const CANCELLED: &str = "notifications/cancelled";

/// The copy for rmcp. `modern`: the connection speaks 2026-07-28 or later, whose headers repeat names and arguments.
pub(super) fn copy(outgoing: &Arc<Outgoing>, modern: bool) -> ClientJsonRpcMessage {
    match outgoing.kind {
        FrameKind::Request(id) => {
            let mut request = request(outgoing, modern);
            request.extensions_mut().insert(Carried(outgoing.clone()));
            ClientJsonRpcMessage::request(request, RequestId::Number(id.cast_signed()))
        }
        FrameKind::Notification => {
            let mut notification = notification(outgoing);
            notification.extensions_mut().insert(Carried(outgoing.clone()));
            ClientJsonRpcMessage::notification(notification)
        }
        FrameKind::Answer => {
            // An answer has no place to carry anything but its value.
            let text = String::from_utf8_lossy(&outgoing.text).into_owned();
            let result = ClientResult::CustomResult(CustomResult(Value::String(text)));
            ClientJsonRpcMessage::response(result, RequestId::Number(0))
        }
    }
}

/// What a message that comes back from rmcp stands for.
pub(super) fn carried(message: &ClientJsonRpcMessage) -> Option<Arc<Outgoing>> {
    match message {
        ClientJsonRpcMessage::Request(request) => {
            request.request.extensions().get::<Carried>().map(|carried| carried.0.clone())
        }
        ClientJsonRpcMessage::Notification(notification) => match &notification.notification {
            // The one that rmcp makes by itself, after it has opened a session anew.
            ClientNotification::InitializedNotification(initialized) => {
                let carried = initialized.extensions.get::<Carried>().map(|carried| carried.0.clone());
                let text = format!(r#"{{"jsonrpc":"2.0","method":"{INITIALIZED}"}}"#);
                let again =
                    || Outgoing::new(FrameKind::Notification, INITIALIZED.to_owned(), Bytes::from(text));
                Some(carried.unwrap_or_else(again))
            }
            other => other.extensions().get::<Carried>().map(|carried| carried.0.clone()),
        },
        ClientJsonRpcMessage::Response(response) => match &response.result {
            ClientResult::CustomResult(CustomResult(Value::String(text))) => {
                Some(Outgoing::new(FrameKind::Answer, String::new(), Bytes::from(text.clone())))
            }
            _ => None,
        },
        ClientJsonRpcMessage::Error(_) => None,
    }
}

#[derive(Clone)]
struct Carried(Arc<Outgoing>);

fn request(outgoing: &Outgoing, modern: bool) -> ClientRequest {
    match outgoing.method.as_str() {
        INITIALIZE => {
            let params =
                InitializeRequestParams::new(ClientCapabilities::default(), Implementation::default());
            ClientRequest::InitializeRequest(InitializeRequest::new(params))
        }
        method => {
            let params =
                modern.then(|| std::str::from_utf8(&outgoing.text).ok().and_then(repeated)).flatten();
            let mut request = CustomRequest::new(method, params);
            if method == DISCOVER {
                // The first message of a connection says what all its requests speak.
                let meta = RequestMetaObject::with_client_context(
                    ProtocolVersion::V_2026_07_28,
                    Implementation::default(),
                    ClientCapabilities::default(),
                );
                request.extensions.insert(meta);
            }
            ClientRequest::CustomRequest(request)
        }
    }
}

fn notification(outgoing: &Outgoing) -> ClientNotification {
    match outgoing.method.as_str() {
        INITIALIZED => ClientNotification::InitializedNotification(InitializedNotification {
            method: rmcp::model::InitializedNotificationMethod,
            extensions: rmcp::model::Extensions::default(),
        }),
        CANCELLED => {
            let id = outgoing.cancels().map(|id| RequestId::Number(id.cast_signed()));
            ClientNotification::CancelledNotification(CancelledNotification::new(
                CancelledNotificationParam::new(id, None),
            ))
        }
        method => ClientNotification::CustomNotification(CustomNotification::new(method, None)),
    }
}

/// The method, which the session writes before the params; `fields` would read all of a long message for it.
fn method_of(text: &str) -> String {
    let head = text.get(..text.floor_char_boundary(256)).unwrap_or(text);
    let written = head.split_once(r#""method":""#).and_then(|(before, after)| {
        let (method, _) = after.split_once('"')?;
        (!before.contains(r#""params""#) && !method.contains('\\')).then(|| method.to_owned())
    });
    written.unwrap_or_else(|| {
        let method = fields(text, ["method"]).and_then(|[method]| string(method?).map(Cow::into_owned));
        method.unwrap_or_default()
    })
}

/// Of the params what headers repeat: whom the request concerns, and the arguments that may be annotated.
fn repeated(text: &str) -> Option<Value> {
    let [params] = fields(text, ["params"])?;
    let [name, uri, task_id, arguments] = fields(params?.get(), ["name", "uri", "taskId", "arguments"])?;
    let mut repeated = Map::new();
    for (key, value) in [("name", name), ("uri", uri), ("taskId", task_id), ("arguments", arguments)] {
        if let Some(value) = value {
            repeated.insert(key.to_owned(), lenient(value, false, DEPTH_MAX));
        }
    }
    Some(Value::Object(repeated))
}

/// How deep values are looked into: nobody annotates what is deeper, and a caller's arguments may be nested without end.
pub(super) const DEPTH_MAX: usize = 64;

/// As much of a value as a typed one can hold; what it cannot is `null`. Without `arrays` those are, too: no header repeats one.
pub(super) fn lenient(raw: &RawValue, arrays: bool, depth: usize) -> Value {
    let Some(depth) = depth.checked_sub(1) else { return Value::Null };
    match raw.get().as_bytes().first() {
        Some(b'{') => {
            let members = members(raw.get())
                .unwrap_or_default()
                .into_iter()
                .filter_map(|(key, value)| Some((string(key)?.into_owned(), lenient(value, arrays, depth))));
            Value::Object(members.collect())
        }
        Some(b'[') if arrays => elements(raw.get())
            .unwrap_or_default()
            .into_iter()
            .map(|value| lenient(value, true, depth))
            .collect(),
        Some(b'[') => Value::Null,
        _ => serde_json::from_str(raw.get()).unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    fn outgoing(text: &str) -> Arc<Outgoing> {
        Outgoing::of(Frame { kind: FrameKind::Request(1), text: text.to_owned() })
    }

    #[test]
    fn the_method_is_found_without_reading_the_rest() {
        let text = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"x":"#;
        assert_eq!(outgoing(text).method, "tools/call");
        let odd = r#"{"params":{"method":"no"},"method":"a\"b"}"#;
        assert_eq!(outgoing(odd).method, "a\"b");
    }

    #[test]
    fn the_copy_repeats_what_headers_need_and_survives_what_it_cannot_hold() {
        let text = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","other":[1],
            "arguments":{"a":1e400,"b":"\ud83d","c":{"d":7,"e":[1,{}]},"f":"ü","\ud800":1}}}"#;
        let copy = copy(&outgoing(text), true);
        let value = serde_json::to_value(&copy).unwrap();
        assert_eq!(
            value["params"],
            serde_json::json!({"name": "t", "arguments": {"a": null, "b": null, "c": {"d": 7, "e": null}, "f": "ü"}})
        );
        assert_eq!(carried(&copy).unwrap().text, text.as_bytes());
    }

    #[test]
    fn a_request_is_either_written_or_withdrawn() {
        let written = outgoing("{}");
        assert!(written.goes_out() && !written.withdraw() && written.goes_out());
        let withdrawn = outgoing("{}");
        assert!(withdrawn.withdraw() && !withdrawn.goes_out() && withdrawn.given_up.is_cancelled());
    }
}
