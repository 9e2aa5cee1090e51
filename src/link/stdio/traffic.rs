//! What goes over a server's pipes, and by that whether calls come one at a time.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use serde_json::Value;

use crate::link::envelope::{AnswerId, Message};
use crate::link::result_text::ResultText;
use crate::link::{Arrival, HostLoop, Receiver};

/// A longer message, by more than one read, is not for the host's thread, which would be kept from what it is there for. Read there, a call is
/// faster by a fifth with 20 KB of text, by an eighth with 100 KB and by a twelfth with 128 KB (measured).
pub const LENT_MAX: usize = 128 * 1024;

/// Of a result that is longer, it depends on what is in there.
const SHORT: usize = 8 * 1024;

/// Of such a result one byte in so many is looked at, in pieces of so many; and it is plain text if at most one in so
/// many of these is something else.
const LOOKED_AT_ONE_IN: usize = 16;
const PIECE: usize = 64;
const OTHER_ONE_IN: usize = 64;

/// How many requests in a row have to be alone before the next is expected to be.
const LONE_FROM: u32 = 4;

/// The same after loans that were hardly worth their cost, each time twice as many, up to so many.
const LONE_MAX: u32 = 256;

/// A loan that so many answers came of was worth it. It costs about as much as four wakes of a thread.
const WORTH_IT: u64 = 16;

/// Counters of one server.
pub struct Traffic {
    received: AtomicU64,
    /// The id of the request that was sent last, and of the one that was answered last.
    asked: AtomicU64,
    answered: AtomicU64,
    /// The id of the last request that was answered while it was the last one.
    heard: AtomicU64,
    /// Its answer has come since this was looked at.
    has_answer: AtomicBool,
    /// How many requests in a row were sent when everything before them was answered, by what is soon read.
    lone: AtomicU32,
    lone_from: AtomicU32,
}

impl Default for Traffic {
    fn default() -> Self {
        Self {
            received: AtomicU64::new(0),
            asked: AtomicU64::new(0),
            answered: AtomicU64::new(0),
            heard: AtomicU64::new(0),
            has_answer: AtomicBool::new(false),
            lone: AtomicU32::new(0),
            lone_from: AtomicU32::new(LONE_FROM),
        }
    }
}

impl Traffic {
    /// A request is about to be sent. False when it is not alone: another may be under way.
    pub fn asked(&self, id: u64) -> bool {
        let is_alone = self.asked.swap(id, Ordering::Relaxed) == self.answered.load(Ordering::Relaxed);
        if is_alone {
            self.lone.fetch_add(1, Ordering::Relaxed);
        } else {
            self.begin_anew();
        }
        is_alone
    }

    /// So many bytes were read, and so many are held of what they belong to.
    pub fn received(&self, bytes: usize, held: usize) {
        self.received.fetch_add(bytes as u64, Ordering::Relaxed);
        if held > LENT_MAX {
            self.begin_anew();
        }
    }

    fn begin_anew(&self) {
        self.lone.store(0, Ordering::Relaxed);
    }

    /// All bytes that were read.
    pub fn total(&self) -> u64 {
        self.received.load(Ordering::Relaxed)
    }

    /// Whether the next request is likely to be alone, and its answer to be soon read.
    pub fn is_sequential(&self) -> bool {
        self.lone.load(Ordering::Relaxed) >= self.lone_from.load(Ordering::Relaxed)
    }

    /// Whether the request that was sent last has been answered since this was asked: once for each, whatever a server says.
    pub fn has_answer(&self) -> bool {
        self.has_answer.swap(false, Ordering::Relaxed)
    }

    fn answered(&self, id: u64) {
        self.answered.store(id, Ordering::Relaxed);
        if id == self.asked.load(Ordering::Relaxed) && self.heard.swap(id, Ordering::Relaxed) != id {
            self.has_answer.store(true, Ordering::Relaxed);
        }
    }

    /// What [`is_sequential`](Self::is_sequential) foretold has held for so many answers. Where it does not hold for long
    /// it takes more to say it again, so that changing patterns do not pay for each change.
    pub fn held_for(&self, answers: u64) {
        let lone_from = self.lone_from.load(Ordering::Relaxed);
        let next = if answers >= WORTH_IT { LONE_FROM } else { (lone_from * 2).min(LONE_MAX) };
        self.lone_from.store(next, Ordering::Relaxed);
        self.begin_anew();
    }
}

/// Notes the answers on their way to the receiver.
pub struct Noted {
    pub receiver: Arc<dyn Receiver>,
    pub traffic: Arc<Traffic>,
}

impl Receiver for Noted {
    fn arrived(&self, arrival: Arrival) {
        if let Arrival::Message(Message::Result { id, .. } | Message::Error { id, .. }) = &arrival {
            if let Arrival::Message(Message::Result { result, .. }) = &arrival
                && result.len() > SHORT
                && !is_plain_text(result)
            {
                self.traffic.begin_anew();
            }
            if let AnswerId::Number(id) = id {
                // Before the caller learns of it, who may send the next.
                self.traffic.answered(*id);
            }
        }
        self.receiver.arrived(arrival);
    }

    fn stderr_line(&self, line: String) {
        self.receiver.stderr_line(line);
    }

    fn warning(&self, code: &'static str, message: &str, details: Vec<(&'static str, Value)>) {
        self.receiver.warning(code, message, details);
    }

    fn host_loop(&self) -> Option<Arc<dyn HostLoop>> {
        self.receiver.host_loop()
    }
}

/// Whether most of a result is text that is only copied. What has structure, escapes or letters beyond ASCII keeps
/// whoever reads it: 90 KB of rows cost the host's thread a sixth more when it reads them, 100 KB of text with escapes or
/// CJK four times as much, for calls that are hardly faster (4 to 10 %).
fn is_plain_text(result: &ResultText) -> bool {
    let (line, part, _) = result.parts();
    let pieces = line.get(part).unwrap_or_default().chunks(PIECE).step_by(LOOKED_AT_ONE_IN);
    let (mut all, mut other) = (0, 0);
    for piece in pieces {
        all += piece.len();
        other += piece.iter().filter(|byte| matches!(byte, b'"' | b'\\' | 0x80..)).count();
    }
    other * OTHER_ONE_IN <= all
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Nobody;

    impl Receiver for Nobody {
        fn arrived(&self, _arrival: Arrival) {}
        fn stderr_line(&self, _line: String) {}
        fn warning(&self, _code: &'static str, _message: &str, _details: Vec<(&'static str, Value)>) {}
    }

    fn noted() -> (Noted, Arc<Traffic>) {
        let traffic = Arc::<Traffic>::default();
        (Noted { receiver: Arc::new(Nobody), traffic: traffic.clone() }, traffic)
    }

    fn answer(noted: &Noted, id: u64) {
        noted.arrived(Arrival::Message(Message::Result {
            id: AnswerId::Number(id),
            result: "{}".to_owned().into(),
        }));
    }

    fn lone_calls(noted: &Noted, ids: std::ops::Range<u64>) {
        for id in ids {
            noted.traffic.asked(id);
            answer(noted, id);
        }
    }

    #[test]
    fn calls_one_after_the_other_are_told_from_calls_at_once() {
        let (noted, traffic) = noted();
        lone_calls(&noted, 1..4);
        assert!(!traffic.is_sequential());
        assert!(traffic.asked(4));
        assert!(traffic.is_sequential());
        assert!(!traffic.asked(5));
        assert!(!traffic.is_sequential());
        answer(&noted, 4);
        assert!(!traffic.asked(6), "5 is not answered");
        answer(&noted, 5);
        answer(&noted, 6);
        assert!(traffic.asked(7));
    }

    #[test]
    fn a_request_is_answered_once_however_often_the_server_says_so() {
        let (noted, traffic) = noted();
        traffic.asked(1);
        traffic.asked(2);
        answer(&noted, 2);
        assert!(traffic.has_answer() && !traffic.has_answer());
        for id in [2, 1, 2, 7] {
            answer(&noted, id);
            assert!(!traffic.has_answer(), "{id}");
        }
        traffic.asked(3);
        answer(&noted, 3);
        assert!(traffic.has_answer());
    }

    #[test]
    fn a_long_answer_begins_the_count_anew() {
        let (noted, traffic) = noted();
        lone_calls(&noted, 1..10);
        traffic.received(1, LENT_MAX);
        assert!(traffic.is_sequential());
        traffic.received(1, LENT_MAX + 1);
        assert!(!traffic.is_sequential());
    }

    #[test]
    fn an_answer_that_takes_time_to_read_begins_it_anew_too() {
        let repeated = |text: &str, length: usize| text.repeat(length / text.len());
        for (text, length, is_soon_read) in [
            ("plain text, ", SHORT, true),
            ("plain text, ", 100_000, true),
            (r#"{"id":1,"name":"row"},"#, SHORT, true),
            (r#"{"id":1,"name":"row"},"#, SHORT * 2, false),
            (r#"{"id":1,"name":"row"},"#, 100_000, false),
            (r#"if (a) {\n  b(\"c\")\n}\n"#, 100_000, false),
            ("完了しました", 100_000, false),
        ] {
            let (noted, traffic) = noted();
            lone_calls(&noted, 1..10);
            let result = repeated(text, length).into();
            traffic.asked(10);
            noted.arrived(Arrival::Message(Message::Result { id: AnswerId::Number(10), result }));
            assert_eq!(traffic.is_sequential(), is_soon_read, "{length} bytes of {text}");
        }
    }

    #[test]
    fn what_did_not_hold_for_long_takes_more_to_be_said_again() {
        let (noted, traffic) = noted();
        lone_calls(&noted, 1..5);
        traffic.held_for(1);
        lone_calls(&noted, 5..12);
        assert!(!traffic.is_sequential());
        lone_calls(&noted, 12..13);
        assert!(traffic.is_sequential());
        traffic.held_for(WORTH_IT);
        lone_calls(&noted, 13..17);
        assert!(traffic.is_sequential());
    }
}
