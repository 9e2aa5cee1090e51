//! What the link makes of arbitrary bytes: the same wherever the reads were cut, and for each line what a second reader says.

use std::pin::pin;
use std::sync::{Arc, LazyLock, Mutex};
use std::task::{Context, Poll, Waker};

use serde_json::Value;
use serde_json::value::RawValue;
use workflow_mcp::link::envelope::{AnswerId, Line, Message, parse, parse_outlined};
use workflow_mcp::link::outline::Outline;
use workflow_mcp::link::stdio::intake::Intake;
use workflow_mcp::link::stdio::noise::Noise;
use workflow_mcp::link::stdio::oversize::IdFinder;
use workflow_mcp::link::{Arrival, Receiver};
use workflow_mcp::policy::redact::Redactor;

use crate::script::reader::{messages, parts};

/// An id longer than this is none of ours, in a line that streams by.
const ID_MAX: usize = 32;

#[derive(Default)]
struct Arrived(Mutex<Vec<String>>);

impl Receiver for Arrived {
    fn arrived(&self, arrival: Arrival) {
        self.0.lock().unwrap().push(format!("{arrival:?}"));
    }

    fn stderr_line(&self, _line: String) {}

    fn warning(&self, _code: &'static str, _message: &str, _details: Vec<(&'static str, Value)>) {}
}

/// The first two bytes say how long a line may be and where the reads are cut; the rest is what the server writes.
pub(crate) fn check(bytes: &[u8]) {
    let [limit, cut, stream @ ..] = bytes else { return };
    let limit = usize::from(*limit) + 1;
    let cut = usize::from(*cut) + 1;
    let whole = taken_in(stream, limit, stream.len().max(1));
    let expected = expected(stream, limit);
    assert_eq!(whole.0[..], expected[..whole.0.len()]);
    assert!(whole.1 || whole.0.len() == expected.len(), "messages are missing");
    for size in [1, cut] {
        let cut = taken_in(stream, limit, size);
        // Where a breach of the limit is noticed depends on the reads, what came before it does not.
        let common = whole.0.len().min(cut.0.len());
        assert_eq!(whole.0[..common], cut.0[..common], "reads of {size}");
        if !whole.1 && !cut.1 {
            assert_eq!(whole, cut, "reads of {size}");
        }
    }
    for line in stream.split(|byte| *byte == b'\n') {
        check_line(&String::from_utf8_lossy(line));
        if let Ok(line) = std::str::from_utf8(line) {
            check_id(line);
        }
    }
}

/// What arrives where nothing breaches the protocol, line by line.
fn expected(stream: &[u8], limit: usize) -> Vec<String> {
    let mut lines = stream.split(|byte| *byte == b'\n').peekable();
    let lines = std::iter::from_fn(|| lines.next().map(|line| (line, lines.peek().is_none())));
    let arrivals = lines.flat_map(|(line, is_last)| {
        if line.len() > limit {
            // Without its newline it is not over yet.
            let id = id_of(line).filter(|_| !is_last);
            return id.map(|id| Arrival::TooLarge { id, limit }).into_iter().collect();
        }
        match parse(&String::from_utf8_lossy(line)) {
            Line::Messages(messages) => messages.into_iter().map(Arrival::Message).collect(),
            Line::Noise => Vec::new(),
        }
    });
    arrivals.map(|arrival| format!("{arrival:?}")).collect()
}

fn id_of(line: &[u8]) -> Option<String> {
    let mut finder = IdFinder::default();
    finder.feed(line);
    finder.finish()
}

/// All arrivals, whether the protocol was breached, and how many lines were noise.
fn taken_in(stream: &[u8], limit: usize, read: usize) -> (Vec<String>, bool, u64) {
    static NO_SECRETS: LazyLock<Redactor> = LazyLock::new(|| Redactor::new(&[]));
    let noise = Arc::new(Noise::new(NO_SECRETS.clone()));
    let mut intake = Intake::new("s".to_owned(), limit, noise.clone());
    let arrived = Arrived::default();
    let mut is_breached = false;
    for part in stream.chunks(read) {
        intake.space().extend_from_slice(part);
        assert!(intake.length() <= limit + part.len());
        if now(intake.deliver(&arrived)).is_err() {
            is_breached = true;
            break;
        }
    }
    if !is_breached {
        now(intake.finish(&arrived));
    }
    assert!(noise.samples().iter().map(String::len).sum::<usize>() <= 8 * 256);
    (arrived.0.into_inner().unwrap(), is_breached, noise.count())
}

/// Short lines are read at once.
fn now<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("a short line went to the pool"),
    }
}

/// An envelope says what the JSON says.
fn check_line(line: &str) {
    let line = line.trim_matches([' ', '\t', '\r', '\n', '\u{feff}']);
    let parsed = parse(line);
    check_outline(line, &parsed);
    if let Line::Messages(messages) = &parsed {
        for message in messages {
            let text = match message {
                Message::Result { result, .. } => &**result,
                Message::Notification { params, .. } => params,
                _ => continue,
            };
            assert!(serde_json::from_str::<&RawValue>(text).is_ok(), "no JSON came of it: {line}");
        }
    }
    let Ok(Value::Object(object)) = serde_json::from_str(line) else { return };
    let present = |name: &str| object.get(name).filter(|value| !value.is_null());
    let written = &messages(line)[0];
    let id = match written.number() {
        Some(number) => AnswerId::Number(number),
        None if written.is_without_id() => AnswerId::Absent,
        None => AnswerId::Foreign,
    };
    match parsed {
        Line::Noise => assert!(
            present("method").is_some_and(|method| !method.is_string())
                || (present("method").is_none()
                    && present("error").is_none()
                    && !object.contains_key("result")),
            "it was skipped: {line}"
        ),
        Line::Messages(messages) => match messages.as_slice() {
            [Message::Result { id: read, result }] => {
                assert_eq!((serde_json::from_str(result).ok().as_ref(), read), (object.get("result"), &id));
            }
            [Message::Error { id: read, .. }] => {
                assert!(present("error").is_some() && *read == id, "{line}");
            }
            [Message::Request { method, .. }] => {
                assert!(present("method").unwrap() == method && present("id").is_some(), "{line}");
            }
            [Message::Notification { method, .. }] => {
                assert!(present("method").unwrap() == method && present("id").is_none(), "{line}");
            }
            several => panic!("{line} is {} messages", several.len()),
        },
    }
}

/// A line that is read while it comes, as long ones are, is read as any other.
fn check_outline(line: &str, parsed: &Line) {
    let mut outline = Outline::default();
    outline.read(&line.as_bytes()[..line.len() / 2]);
    outline.read(line.as_bytes());
    let outlined = parse_outlined(line.as_bytes().to_vec(), outline).map_or(Line::Noise, Line::Messages);
    assert_eq!(outlined, *parsed, "{line}");
}

/// The id of a line that is thrown away as it streams by is the id that it has.
fn check_id(line: &str) {
    let line = line.trim_matches([' ', '\t', '\r', '\u{feff}']);
    let is_object = line.starts_with('{') && serde_json::from_str::<&RawValue>(line).is_ok();
    // Nobody writes `id` with an escape.
    let is_plain = |(key, _): &(Option<&str>, &str)| key.is_some_and(|key| !key.contains('\\'));
    if !is_object || !parts(line).iter().all(is_plain) {
        return;
    }
    let messages = messages(line);
    let id = messages[0].id.filter(|id| !id.starts_with(['{', '[']) && id.len() < ID_MAX);
    let asks = messages[0].method.is_some_and(|method| method != "null");
    assert_eq!(id_of(line.as_bytes()).as_deref(), id.filter(|_| !asks), "{line}");
}
