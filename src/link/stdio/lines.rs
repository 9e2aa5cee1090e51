//! Bytes in, bounded lines out.

use std::fmt;

use memchr::memchr;
use tokio::runtime::Handle;

use super::ahead::Ahead;
use super::oversize::IdFinder;
use crate::link::outline::{OUTLINE_FROM, Outline};
use crate::spare;

/// What one newline completed.
pub enum Chunk {
    /// One line without its newline. May be blank.
    Line(Vec<u8>),
    /// A long one, and what was seen of it while it came.
    Long(Vec<u8>, Box<Outline>),
    /// A line over the limit went by; `id` is what it answers, when that could be found.
    TooLarge { id: Option<String> },
}

impl fmt::Debug for Chunk {
    /// How much there is: nothing is redacted yet.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Long(line, _) => write!(formatter, "Long({} bytes)", line.len()),
            Self::Line(line) => write!(formatter, "Line({} bytes)", line.len()),
            Self::TooLarge { id } => write!(formatter, "TooLarge {{ with id: {} }}", id.is_some()),
        }
    }
}

/// How many times the limit a line may run on before it is given up: then its sender does not speak in lines at all.
const GIVE_UP_FACTOR: usize = 4;

/// Reading space asked for at a time: what a Linux pipe holds.
const READ_SIZE: usize = 64 * 1024;

/// A buffer that grew for one large line is given back after it.
const KEEP_CAPACITY: usize = 1024 * 1024;

/// A line that needs so much room gets [`ROOM`].
const LARGE: usize = 1024 * 1024;

/// Room, without pages, so that a large line neither moves nor fills the allocator's own memory, of which the system sees
/// nothing again: glibc puts there what is no larger than the largest that was freed (200 results of 9 MB ended at 234 MB
/// instead of 127), up to 32 MB. What a line did not need is given back with its end.
const ROOM: usize = if cfg!(target_os = "linux") { 33 * 1024 * 1024 } else { 2 * LARGE };

/// A longer line takes the buffer along. A shorter one is copied: the buffer is there for the next, which otherwise
/// begins with fresh memory, and of this size its pages cost more than the copy (100 KB: 10 of 120 us).
const HAND_OVER_FROM: usize = 256 * 1024;

/// Splits a stream into lines of at most `limit` bytes. What is over it is discarded as it streams by.
pub struct Lines {
    limit: usize,
    /// Works on the buffer, and is to be stopped before that goes.
    ahead: Ahead,
    buffer: Vec<u8>,
    /// Where the next line begins in `buffer`.
    start: usize,
    /// Up to where `buffer` was searched for a newline.
    searched: usize,
    /// Of the line that is coming, once it is long.
    outline: Outline,
    skipping: Option<Skipping>,
    /// Room that the last line needed which took the buffer along: the next one may be like it.
    likely: usize,
}

#[derive(Default)]
struct Skipping {
    finder: IdFinder,
    length: usize,
}

impl Lines {
    #[must_use]
    pub fn new(limit: usize) -> Self {
        Self {
            limit,
            ahead: Ahead::default(),
            buffer: Vec::new(),
            start: 0,
            searched: 0,
            outline: Outline::default(),
            skipping: None,
            likely: 0,
        }
    }

    /// Where the next bytes are to be appended, with room reserved.
    pub fn space(&mut self) -> &mut Vec<u8> {
        if self.start > 0 {
            self.buffer.drain(..self.start);
            self.searched -= self.start;
            self.start = 0;
            if self.buffer.is_empty() && self.buffer.capacity() > KEEP_CAPACITY {
                self.let_go();
            }
        }
        let wanted = self.buffer.len() + READ_SIZE;
        if self.buffer.capacity() < wanted {
            self.ahead.stop();
            self.grow(wanted);
        }
        self.ahead.follow(&self.buffer, self.likely);
        &mut self.buffer
    }

    /// Makes room for so much, and for what a long line probably needs: each time that it grows is another start with
    /// fresh memory.
    fn grow(&mut self, wanted: usize) {
        let length = self.buffer.len();
        let likely = self.likely.max(wanted);
        if length >= OUTLINE_FROM
            && let Some(mut roomy) = spare::take(likely)
        {
            roomy.extend_from_slice(&self.buffer);
            self.let_go();
            self.ahead = Ahead::of_used(&roomy);
            self.buffer = roomy;
            return;
        }
        let is_large = length >= HAND_OVER_FROM && likely.max(2 * length) >= LARGE;
        let room = likely.max(ROOM).max(2 * length);
        if is_large && self.buffer.try_reserve_exact(room - length).is_ok() {
            return;
        }
        // Where the system has no such room to promise, nor twice what there is (`ulimit -v`), a line still gets what it
        // needs now: if even that is not there, it ends the whole process.
        if self.buffer.try_reserve(READ_SIZE).is_err() {
            spare::clear();
            self.buffer.reserve_exact(READ_SIZE);
        }
    }

    /// Gives the buffer to whoever needs a large one: giving it back to the system would hold up this thread, which may
    /// be the host's.
    fn let_go(&mut self) {
        self.ahead.stop();
        let buffer = std::mem::take(&mut self.buffer);
        if let Ok(runtime) = Handle::try_current() {
            spare::keep(buffer, &runtime);
        }
    }

    /// Bytes that were not handed out yet.
    #[must_use]
    pub fn length(&self) -> usize {
        self.buffer.len() - self.start
    }

    /// Whether nothing is held but whole lines.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.skipping.is_none()
            && self.buffer.get(self.start..).is_none_or(|held| held.ends_with(b"\n") || held.is_empty())
    }

    /// Whether a line over the limit is going by.
    #[must_use]
    pub fn is_skipping(&self) -> bool {
        self.skipping.is_some()
    }

    /// Gives back what room large lines have taken. Only where nothing is held.
    pub fn shrink(&mut self) {
        if self.length() == 0 {
            self.let_go();
            (self.start, self.searched) = (0, 0);
        }
    }

    /// The next whole line; `None` when more bytes are needed.
    pub fn next_chunk(&mut self) -> Option<Chunk> {
        let end = memchr(b'\n', &self.buffer[self.searched..]).map(|offset| self.searched + offset);
        let Some(end) = end else {
            self.searched = self.buffer.len();
            if self.skipping.is_some() || self.buffer.len() - self.start > self.limit {
                self.skip_to(self.buffer.len());
            } else if self.buffer.len() - self.start >= OUTLINE_FROM {
                self.outline.read(&self.buffer[self.start..]);
            }
            return None;
        };
        let chunk = if self.skipping.is_some() || end - self.start > self.limit {
            self.skip_to(end);
            // However large the pieces are in which it comes.
            if self.is_endless() {
                return None;
            }
            let id = self.skipping.take().and_then(|skipping| skipping.finder.finish());
            Chunk::TooLarge { id }
        } else if end - self.start >= OUTLINE_FROM {
            let mut outline = Box::new(std::mem::take(&mut self.outline));
            outline.read(&self.buffer[self.start..end]);
            if end - self.start > HAND_OVER_FROM {
                let line = self.take_line(end);
                // V8 takes its time to give this one back (10,000 rows: 110 page faults a call).
                if outline.is_dense() {
                    spare::prepare(line.capacity());
                }
                return Some(Chunk::Long(line, outline));
            }
            Chunk::Long(self.buffer[self.start..end].to_vec(), outline)
        } else {
            Chunk::Line(self.buffer[self.start..end].to_vec())
        };
        self.start = end + 1;
        self.searched = self.start;
        Some(chunk)
    }

    /// Hands over the buffer itself, so that a large line is not copied.
    fn take_line(&mut self, end: usize) -> Vec<u8> {
        self.ahead.stop();
        let rest = self.buffer.split_off(end + 1);
        let mut line = std::mem::replace(&mut self.buffer, rest);
        line.truncate(end);
        line.drain(..self.start);
        self.likely = line.len() + READ_SIZE;
        // What grew by doubling, or was another's; a little more than this one needed is what the next may need.
        if line.capacity() > line.len() + line.len() / 4 {
            line.shrink_to(self.likely + self.likely / 64);
        }
        self.start = 0;
        self.searched = 0;
        line
    }

    /// What stands after the last newline when the stream has ended: an unterminated last line.
    pub fn rest(&mut self) -> Option<Vec<u8>> {
        self.ahead.stop();
        let mut rest = std::mem::take(&mut self.buffer);
        rest.drain(..self.start);
        (self.start, self.searched) = (0, 0);
        (self.skipping.is_none() && !rest.is_empty()).then_some(rest)
    }

    /// Whether the line that is being skipped has gone on too long to wait for its end.
    #[must_use]
    pub fn is_endless(&self) -> bool {
        self.skipping
            .as_ref()
            .is_some_and(|skipping| skipping.length > self.limit.saturating_mul(GIVE_UP_FACTOR))
    }

    fn skip_to(&mut self, end: usize) {
        self.outline = Outline::default();
        let skipping = self.skipping.get_or_insert_default();
        skipping.finder.feed(&self.buffer[self.start..end]);
        skipping.length += end - self.start;
        self.start = end;
        self.searched = end;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A chunk without its outline.
    #[derive(Debug, PartialEq)]
    enum Plain {
        Line(Vec<u8>),
        TooLarge { id: Option<String> },
    }

    impl From<Chunk> for Plain {
        fn from(chunk: Chunk) -> Self {
            match chunk {
                Chunk::Line(line) | Chunk::Long(line, _) => Self::Line(line),
                Chunk::TooLarge { id } => Self::TooLarge { id },
            }
        }
    }

    fn chunks(limit: usize, pieces: &[&[u8]]) -> (Vec<Plain>, Lines) {
        let mut lines = Lines::new(limit);
        let mut all = Vec::new();
        for piece in pieces {
            lines.space().extend_from_slice(piece);
            all.extend(std::iter::from_fn(|| lines.next_chunk().map(Plain::from)));
        }
        (all, lines)
    }

    fn line(text: &str) -> Plain {
        Plain::Line(text.as_bytes().to_vec())
    }

    #[test]
    fn lines_come_out_wherever_the_reads_were_cut() {
        let text = "one\ntwo \u{1f600}\r\n\nfour\n".as_bytes();
        let expected = [line("one"), line("two \u{1f600}\r"), line(""), line("four")];
        assert_eq!(chunks(100, &[text]).0, expected);
        let bytewise: Vec<&[u8]> = text.chunks(1).collect();
        assert_eq!(chunks(100, &bytewise).0, expected);
    }

    #[test]
    fn a_long_line_moves_seldom_however_long_it_gets() {
        let mut lines = Lines::new(usize::MAX);
        let piece = vec![b'x'; READ_SIZE];
        let mut capacities = Vec::new();
        for _ in 0..2 * ROOM / READ_SIZE {
            let buffer = lines.space();
            buffer.extend_from_slice(&piece);
            if capacities.last() != Some(&buffer.capacity()) {
                capacities.push(buffer.capacity());
            }
        }
        assert!(capacities.len() <= 8, "{capacities:?}");
        lines.space().push(b'\n');
        assert_eq!(
            lines.next_chunk().map(Plain::from),
            Some(Plain::Line(piece.repeat(2 * ROOM / READ_SIZE)))
        );
    }

    #[test]
    fn a_line_over_the_limit_costs_itself_alone_and_tells_its_id() {
        let long = format!("{{\"result\":\"{}\",\"id\":5}}\nnext\n", "x".repeat(50));
        let expected = [Plain::TooLarge { id: Some("5".into()) }, line("next")];
        assert_eq!(chunks(20, &[long.as_bytes()]).0, expected);
        let bytewise: Vec<&[u8]> = long.as_bytes().chunks(1).collect();
        let (all, lines) = chunks(20, &bytewise);
        assert_eq!(all, expected);
        assert!(!lines.is_endless());
    }

    #[test]
    fn what_is_left_of_a_line_over_the_limit_is_no_line_of_its_own_where_room_is_given_back() {
        let (all, mut lines) = chunks(20, &[b"{\"id\":5,\"result\":\"xxxxxxxx"]);
        assert_eq!(all, []);
        lines.shrink();
        lines.space().extend_from_slice(b"xx\"}\nnext\n");
        let all: Vec<_> = std::iter::from_fn(|| lines.next_chunk().map(Plain::from)).collect();
        assert_eq!(all, [Plain::TooLarge { id: Some("5".into()) }, line("next")]);
    }

    #[test]
    fn a_large_line_comes_whole_and_what_follows_it_too() {
        for length in [READ_SIZE * 3, HAND_OVER_FROM * 3] {
            let large = "y".repeat(length);
            let (all, mut lines) = chunks(1 << 20, &[format!("a\n{large}\nb\nc").as_bytes()]);
            assert_eq!(all, [line("a"), line(&large), line("b")]);
            assert_eq!(lines.rest(), Some(b"c".to_vec()));
        }
    }

    #[test]
    fn an_endless_line_holds_no_more_than_the_limit_and_is_noticed() {
        let mut lines = Lines::new(1000);
        for _ in 0..100 {
            lines.space().extend_from_slice(&[b'x'; 100]);
            assert!(lines.next_chunk().is_none());
            assert!(lines.buffer.len() <= 1100);
        }
        assert!(lines.is_endless());
    }

    #[test]
    fn a_line_of_more_than_four_times_the_limit_is_endless_also_where_its_end_comes_along() {
        let long = format!("{{\"id\":5,\"x\":\"{}\"}}\n", "x".repeat(500));
        let (all, lines) = chunks(100, &[long.as_bytes()]);
        assert_eq!(all, []);
        assert!(lines.is_endless());
    }

    #[test]
    fn lines_that_were_handed_out_are_held_no_more() {
        let (all, lines) = chunks(100, &["short\n".repeat(20_000).as_bytes(), b"rest"]);
        assert_eq!(all.len(), 20_000);
        assert_eq!(lines.length(), 4);
    }

    #[test]
    fn an_unterminated_last_line_is_there_for_the_asking() {
        let (all, mut lines) = chunks(100, &[b"a\nlast"]);
        assert_eq!(all, [line("a")]);
        assert_eq!(lines.rest(), Some(b"last".to_vec()));
        assert_eq!(lines.rest(), None);
    }
}
