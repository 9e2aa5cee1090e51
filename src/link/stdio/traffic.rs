//! What goes over a server's pipes, and by that whether calls come one at a time.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use serde_json::Value;

use crate::link::envelope::{AnswerId, Message};
use crate::link::{Arrival, HostLoop, Receiver};

/// A read of more is not short: the host's thread would be kept reading what another can.
pub const SHORT: usize = 8 * 1024;

/// How many requests in a row have to be alone before the next is expected to be.
const LONE_FROM: u32 = 4;

/// The same after loans that were hardly worth their cost, each time twice as many, up to so many.
const LONE_MAX: u32 = 256;

/// A loan that so many reads came of was worth it. It costs about as much as four wakes of a thread.
const WORTH_IT: u64 = 16;

/// Counters of one server.
pub struct Traffic {
    received: AtomicU64,
    /// The id of the request that was sent last, and of the one that was answered last.
    asked: AtomicU64,
    answered: AtomicU64,
    /// An answer has come since this was looked at.
    has_answer: AtomicBool,
    /// How many requests in a row were sent when everything before them was answered, with a short answer.
    lone: AtomicU32,
    lone_from: AtomicU32,
}

impl Default for Traffic {
    fn default() -> Self {
        Self {
            received: AtomicU64::new(0),
            asked: AtomicU64::new(0),
            answered: AtomicU64::new(0),
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
            self.lone.store(0, Ordering::Relaxed);
        }
        is_alone
    }

    /// So many bytes were read.
    pub fn received(&self, bytes: usize) {
        self.received.fetch_add(bytes as u64, Ordering::Relaxed);
        if bytes > SHORT {
            self.lone.store(0, Ordering::Relaxed);
        }
    }

    /// All bytes that were read.
    pub fn total(&self) -> u64 {
        self.received.load(Ordering::Relaxed)
    }

    /// Whether the next request is likely to be alone, and its answer to be short.
    pub fn is_sequential(&self) -> bool {
        self.lone.load(Ordering::Relaxed) >= self.lone_from.load(Ordering::Relaxed)
    }

    /// Whether an answer has come since the last time.
    pub fn has_answer(&self) -> bool {
        self.has_answer.swap(false, Ordering::Relaxed)
    }

    /// What [`is_sequential`](Self::is_sequential) foretold has held for so many reads. Where it does not hold for long
    /// it takes more to say it again, so that changing patterns do not pay for each change.
    pub fn held_for(&self, reads: u64) {
        let lone_from = self.lone_from.load(Ordering::Relaxed);
        let next = if reads >= WORTH_IT { LONE_FROM } else { (lone_from * 2).min(LONE_MAX) };
        self.lone_from.store(next, Ordering::Relaxed);
        self.lone.store(0, Ordering::Relaxed);
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
            self.traffic.has_answer.store(true, Ordering::Relaxed);
            if let AnswerId::Number(id) = id {
                // Before the caller learns of it, who may send the next.
                self.traffic.answered.store(*id, Ordering::Relaxed);
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
    fn a_long_answer_begins_the_count_anew() {
        let (noted, traffic) = noted();
        lone_calls(&noted, 1..10);
        assert!(traffic.is_sequential());
        traffic.received(SHORT + 1);
        assert!(!traffic.is_sequential());
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
