//! A server's stderr: always drained, so that a chatty server never blocks; its tail kept; shown only redacted.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

use super::read::{LAST_READ_MAX, Read, read_now, read_some};
use crate::policy::redact::Redactor;
use crate::process::Process;
use crate::process::pipes::Output;

/// What is kept for `stderr()` and for errors.
pub const TAIL_MAX: usize = 64 * 1024;

/// A longer line is cut when it is handed to a listener.
const LINE_MAX: usize = 8 * 1024;

/// A line that is quoted in a message is cut here.
const QUOTED_MAX: usize = 200;

/// The line of a stderr that says the most, for a message of one sentence: the last one that names an error as Node and Python do, else
/// the first that misses something, else the last one. Node ends its report of a crash with its own version, npm with the path of a log,
/// env with advice, and each says what went wrong some lines above.
#[must_use]
pub fn telling_line(stderr: &str) -> Option<&str> {
    let mut lines = stderr.lines().map(str::trim).filter(|line| !line.is_empty());
    let misses = |line: &&str| {
        let line = line.to_ascii_lowercase();
        line.contains("not found") || line.contains("no such file")
    };
    let line = lines
        .clone()
        .rfind(|line| line.contains("rror:"))
        .or_else(|| lines.clone().find(misses))
        .or_else(|| lines.next_back())?;
    line.get(..line.floor_char_boundary(QUOTED_MAX))
}

/// Reads what the server writes beside the protocol.
pub struct Stderr {
    tail: Mutex<Tail>,
    redactor: Redactor,
    drained: watch::Sender<bool>,
}

#[derive(Default)]
struct Tail {
    bytes: VecDeque<u8>,
    total: u64,
}

impl Stderr {
    #[must_use]
    pub fn new(redactor: Redactor) -> Self {
        Self { tail: Mutex::default(), redactor, drained: watch::Sender::new(false) }
    }

    /// The last lines, redacted: at most `limit` bytes, and no more than [`TAIL_MAX`] of what was written.
    #[must_use]
    pub fn tail(&self, limit: usize) -> String {
        let tail = self.lock();
        let (front, back) = tail.bytes.as_slices();
        let mut bytes = [front, back].concat();
        let is_cut = tail.total > bytes.len() as u64;
        drop(tail);
        let mut is_begun = false;
        if is_cut {
            // The cut may go through a secret, half of which nothing would recognise: begin at the next whole line, if there is one.
            let newline = bytes[..bytes.len().saturating_sub(1)].iter().position(|&byte| byte == b'\n');
            is_begun = newline.is_none();
            // Else without the rest of a cut letter, which would be shown as more bytes than it has.
            let rest = || bytes.iter().take_while(|byte| **byte & 0xc0 == 0x80).count();
            let broken = newline.map_or_else(rest, |newline| newline + 1);
            bytes.drain(..broken);
        }
        let mut tail =
            self.redactor.text(String::from_utf8_lossy(&bytes).trim_end_matches('\n')).into_owned();
        if is_begun {
            // Half a secret is shorter than a whole one. After the others are replaced, or this were one more cut through them.
            tail.drain(..tail.ceil_char_boundary(self.redactor.longest().min(tail.len())));
        }
        tail.drain(..tail.ceil_char_boundary(tail.len().saturating_sub(limit)));
        tail
    }

    /// Bytes seen so far.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.lock().total
    }

    /// Resolves when everything there was to read after the server's end has been read.
    pub async fn drained(&self) {
        // The sender lives in self, so waiting cannot fail.
        let _ = self.drained.subscribe().wait_for(|drained| *drained).await;
    }

    /// Reads until the end, or until the server has left and nothing more is there (a grandchild may hold the pipe open).
    /// `on_line` gets each line, redacted; without a listener lines are not even cut out.
    pub async fn run(&self, pipe: &mut Output, process: &Process, on_line: Option<impl Fn(String) + Send>) {
        let mut lines = on_line.map(|on_line| (LineCutter::new(&self.redactor), on_line));
        let mut buffer = Vec::with_capacity(16 * 1024);
        let mut last_bytes = None;
        loop {
            buffer.clear();
            let read = match last_bytes {
                None => tokio::select! {
                    read = read_some(pipe, &mut buffer) => read,
                    _ = process.exited() => { last_bytes = Some(0); continue }
                },
                Some(bytes) if bytes > LAST_READ_MAX => Read::End,
                Some(_) => read_now(pipe, &mut buffer).await,
            };
            match read {
                Read::Some => {}
                Read::Nothing | Read::End => break,
            }
            last_bytes = last_bytes.map(|bytes| bytes + buffer.len() as u64);
            self.lock().push(&buffer);
            if let Some((cutter, on_line)) = &mut lines {
                cutter.feed(&buffer, on_line);
            }
        }
        if let Some((cutter, on_line)) = &mut lines {
            cutter.finish(on_line);
        }
        self.drained.send_replace(true);
    }

    fn lock(&self) -> MutexGuard<'_, Tail> {
        self.tail.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Tail {
    fn push(&mut self, bytes: &[u8]) {
        self.total += bytes.len() as u64;
        let kept = &bytes[bytes.len().saturating_sub(TAIL_MAX)..];
        let excess = (self.bytes.len() + kept.len()).saturating_sub(TAIL_MAX);
        self.bytes.drain(..excess);
        self.bytes.extend(kept);
    }
}

/// Cuts lines out of reads. A line is redacted whole, before it is shortened, so that no cut goes through a secret.
struct LineCutter<'a> {
    redactor: &'a Redactor,
    line: Vec<u8>,
}

impl<'a> LineCutter<'a> {
    fn new(redactor: &'a Redactor) -> Self {
        Self { redactor, line: Vec::new() }
    }

    fn feed(&mut self, bytes: &[u8], on_line: &impl Fn(String)) {
        for (index, piece) in bytes.split(|&byte| byte == b'\n').enumerate() {
            if index > 0 {
                self.emit(on_line);
            }
            // What can no longer be shown is dropped as it comes, but for what the redactor must see to recognise a secret.
            let room = (LINE_MAX + self.redactor.longest()).saturating_sub(self.line.len());
            self.line.extend_from_slice(&piece[..piece.len().min(room)]);
        }
    }

    fn finish(&mut self, on_line: &impl Fn(String)) {
        if !self.line.is_empty() {
            self.emit(on_line);
        }
    }

    fn emit(&mut self, on_line: &impl Fn(String)) {
        let text = String::from_utf8_lossy(&self.line);
        let shown = self.redactor.excerpt(text.trim_end_matches('\r'), LINE_MAX);
        self.line.clear();
        on_line(shown);
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    fn secret() -> Redactor {
        Redactor::new(&[("API_TOKEN".into(), "s3cr3t-value-0123456789".into())])
    }

    #[test]
    fn the_telling_line_is_the_last_that_names_an_error_and_not_what_follows_it() {
        let node = "node:internal/loader:1\n    throw err;\n\nError: Cannot find module '/x.js'\n    at load (a:1) {\n  code: 'X'\n}\n\nNode.js v20.1.0\n";
        assert_eq!(telling_line(node), Some("Error: Cannot find module '/x.js'"));
        assert_eq!(telling_line("Traceback:\nKeyError: 'TOKEN'\n"), Some("KeyError: 'TOKEN'"));
        assert_eq!(telling_line("starting\n  no token, leaving\n \n"), Some("no token, leaving"));
        assert_eq!(telling_line(" \n"), None);
        let long = "ö".repeat(150);
        assert_eq!(telling_line(&long), Some(&long[..200]));
    }

    #[test]
    fn the_tail_is_bounded_and_no_cut_leaves_a_part_of_a_secret() {
        // One line that fills the tail, with the secret wherever its beginning can be.
        for kept in 0..200_usize {
            let stderr = Stderr::new(secret());
            stderr.lock().push(&[&b"x".repeat(200)[..], b"s3cr3t-value-0123456789"].concat());
            stderr.lock().push(&b"y".repeat(TAIL_MAX - 1 - kept));
            stderr.lock().push(if kept % 2 == 0 { b"y" } else { b"\n" });
            let tail = stderr.tail(usize::MAX);
            assert!(tail.len() <= TAIL_MAX + "«API_TOKEN»".len());
            assert!(tail.ends_with('y'), "{kept}");
            assert!(tail.chars().all(|letter| "xy«API_TOKEN»".contains(letter)), "{kept}: {tail:.60}");
        }
    }

    #[test]
    fn lines_are_redacted_across_reads_and_cut_after_that() {
        let redactor = secret();
        let mut cutter = LineCutter::new(&redactor);
        let seen = RefCell::new(Vec::new());
        let on_line = |line: String| seen.borrow_mut().push(line);
        cutter.feed(b"token s3cr3t-val", &on_line);
        cutter.feed(b"ue-0123456789 end\r\n", &on_line);
        cutter.feed(&[&b"z".repeat(LINE_MAX - 5)[..], b"s3cr3t-value-0123456789"].concat(), &on_line);
        cutter.feed(&b"t".repeat(1 << 20), &on_line);
        cutter.finish(&on_line);
        let seen = seen.into_inner();
        assert_eq!(seen[0], "token «API_TOKEN» end");
        assert!(seen[1].len() <= LINE_MAX && !seen[1].contains("s3cr3t"));
    }
}
