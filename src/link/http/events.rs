//! Server-sent events out of the bytes of a response, each within a limit.
//!
//! The rules are those of the HTML standard, 9.2.6: lines end in CR, LF or both, the stream may begin with a byte-order mark, one space
//! after the colon is dropped, fields that nobody knows are, too.

use std::collections::VecDeque;
use std::fmt;
use std::time::Duration;

/// One event that was dispatched, or an end of block that carried an id or a time alone.
#[derive(Default, PartialEq, Eq)]
pub(super) struct Event {
    /// `message` where none was given.
    pub kind: Option<String>,
    pub data: Option<Vec<u8>>,
    pub id: Option<String>,
    pub retry: Option<Duration>,
}

/// How much there is: nothing is redacted yet, and a result never is.
impl fmt::Debug for Event {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Event")
            .field("data", &self.data.as_ref().map(Vec::len))
            .field("retry", &self.retry)
            .finish_non_exhaustive()
    }
}

/// An event went over the limit. The rest of it is dropped as it comes.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TooLarge;

pub(super) struct Events {
    limit: usize,
    /// The line that has not ended.
    line: Vec<u8>,
    /// What the lines before it said.
    event: Lines,
    ready: VecDeque<Result<Event, TooLarge>>,
    after_cr: bool,
    is_first_line: bool,
    /// Of the event that is too large.
    is_skipping: bool,
}

#[derive(Default)]
struct Lines {
    kind: Option<String>,
    data: Option<Vec<u8>>,
    id: Option<String>,
    retry: Option<Duration>,
}

impl Events {
    pub(super) fn new(limit: usize) -> Self {
        Self {
            limit,
            line: Vec::new(),
            event: Lines::default(),
            ready: VecDeque::new(),
            after_cr: false,
            is_first_line: true,
            is_skipping: false,
        }
    }

    /// The next event that is whole.
    pub(super) fn next(&mut self) -> Option<Result<Event, TooLarge>> {
        self.ready.pop_front()
    }

    /// Takes in what came.
    pub(super) fn push(&mut self, mut bytes: &[u8]) {
        if self.after_cr && !bytes.is_empty() {
            self.after_cr = false;
            bytes = bytes.strip_prefix(b"\n").unwrap_or(bytes);
        }
        while let Some(end) = memchr::memchr2(b'\n', b'\r', bytes) {
            self.add(&bytes[..end]);
            self.end_line();
            let is_cr = bytes[end] == b'\r';
            bytes = &bytes[end + 1..];
            if is_cr && bytes.is_empty() {
                self.after_cr = true;
            } else if is_cr {
                bytes = bytes.strip_prefix(b"\n").unwrap_or(bytes);
            }
        }
        self.add(bytes);
    }

    fn add(&mut self, bytes: &[u8]) {
        let kept = self.line.len() + self.event.data.as_ref().map_or(0, Vec::len);
        // The field's name comes on top of what counts as the message.
        if self.is_skipping {
            // Whether the line is empty is all that still matters.
            self.line.extend(bytes.first());
            self.line.truncate(1);
        } else if kept + bytes.len() > self.limit + "data: ".len() {
            self.is_skipping = true;
            self.line = vec![b':'];
            self.event = Lines::default();
            self.ready.push_back(Err(TooLarge));
        } else {
            self.line.extend_from_slice(bytes);
        }
    }

    fn end_line(&mut self) {
        let mut line = std::mem::take(&mut self.line);
        if std::mem::take(&mut self.is_first_line) && line.starts_with(b"\xef\xbb\xbf") {
            line.drain(..3);
        }
        if line.is_empty() {
            self.end_event();
        } else if !self.is_skipping {
            self.field(&line);
        }
    }

    fn field(&mut self, line: &[u8]) {
        let colon = memchr::memchr(b':', line).unwrap_or(line.len());
        let value = line.get(colon + 1..).unwrap_or_default();
        let value = value.strip_prefix(b" ").unwrap_or(value);
        let text = || String::from_utf8_lossy(value).into_owned();
        match &line[..colon] {
            b"data" => match &mut self.event.data {
                Some(data) => {
                    data.push(b'\n');
                    data.extend_from_slice(value);
                }
                none => *none = Some(value.to_vec()),
            },
            b"event" => self.event.kind = Some(text()),
            // An id with a NUL is none.
            b"id" if !value.contains(&0) => self.event.id = Some(text()),
            b"retry" => {
                let is_number = !value.is_empty() && value.iter().all(u8::is_ascii_digit);
                let time = text().parse().ok().filter(|_| is_number);
                self.event.retry = time.map(Duration::from_millis).or(self.event.retry);
            }
            _ => {}
        }
    }

    fn end_event(&mut self) {
        let Lines { kind, data, id, retry } = std::mem::take(&mut self.event);
        if std::mem::take(&mut self.is_skipping) {
            return;
        }
        if data.is_some() || id.is_some() || retry.is_some() {
            self.ready.push_back(Ok(Event { kind, data, id, retry }));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn events(limit: usize, pieces: &[&str]) -> Vec<Result<Event, TooLarge>> {
        let mut events = Events::new(limit);
        for piece in pieces {
            events.push(piece.as_bytes());
        }
        std::iter::from_fn(|| events.next()).collect()
    }

    fn data(data: &str) -> Event {
        Event { data: Some(data.into()), ..Event::default() }
    }

    #[test]
    fn every_framing_of_the_standard_is_read_wherever_it_is_cut() {
        let text = "\u{feff}: comment\r\n\r\nevent: message\rdata:a\r\ndata: b\n\rid: 7\nretry: 30\nodd: x\r\ndata\r\n\r\n";
        let expected = vec![
            Ok(Event { kind: Some("message".into()), data: Some(b"a\nb".to_vec()), ..Event::default() }),
            Ok(Event {
                data: Some(Vec::new()),
                id: Some("7".into()),
                retry: Some(Duration::from_millis(30)),
                ..Event::default()
            }),
        ];
        assert_eq!(events(100, &[text]), expected);
        let mut bytes = Events::new(100);
        text.as_bytes().iter().for_each(|byte| bytes.push(&[*byte]));
        assert_eq!(std::iter::from_fn(|| bytes.next()).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn an_event_over_the_limit_costs_itself_alone() {
        let long = format!("data: {}", "x".repeat(50));
        assert_eq!(
            events(20, &["data: a\n\n", &long, &long, "\ndata: b\n\n", "data: c\n\n"]),
            [Ok(data("a")), Err(TooLarge), Ok(data("c"))]
        );
        let lines = "data: 0123456789\n".repeat(3);
        assert_eq!(events(20, &[&lines, "\n", "data: c\n\n"]), [Err(TooLarge), Ok(data("c"))]);
    }

    #[test]
    fn an_event_of_just_the_limit_is_read() {
        let text = "x".repeat(20);
        assert_eq!(events(20, &[&format!("data: {text}\n\n")]), [Ok(data(&text))]);
        assert_eq!(events(19, &[&format!("data: {text}\n\n")]), [Err(TooLarge)]);
    }

    #[test]
    fn what_has_not_ended_is_no_event() {
        assert_eq!(events(100, &["data: a"]), []);
        assert_eq!(events(100, &["id: 1\n\n"]).len(), 1);
        assert_eq!(events(100, &["retry: 1e3\nevent: x\n\n"]), []);
    }
}
