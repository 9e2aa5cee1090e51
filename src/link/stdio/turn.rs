//! What one thread sends in one turn of its event loop goes out in few writes.
//!
//! Writing a small call costs the JavaScript thread a third of all that the call does, most of it to wake the server
//! (1.2 of 3.7 us, measured with 64 calls in flight). So it says when more calls are likely to follow, and pipes keep
//! what it sends until it says that they do not. Should it be kept busy meanwhile, the pipe itself lets go: see
//! [`Pipe::run`].

use std::cell::{Cell, RefCell};
use std::process;
use std::sync::{Arc, Weak};

use super::pipe::Pipe;

thread_local! {
    static KEEPING: Keeping = const { Keeping { pipes: RefCell::new(None), process: Cell::new(0) } };
}

struct Keeping {
    /// The pipes that keep something of this turn; `None` while nothing is to be kept.
    pipes: RefCell<Option<Vec<Weak<Pipe>>>>,
    /// Whose turn it is: a fork of this process has a copy of all that is kept, and none of the threads.
    process: Cell<u32>,
}

impl Keeping {
    fn each(&self, write: impl Fn(&Pipe)) {
        for pipe in self.pipes.take().unwrap_or_default() {
            if let Some(pipe) = pipe.upgrade() {
                write(&pipe);
            }
        }
    }
}

/// The process exits in the middle of a turn: for `process.exit` Node.js runs no hook of its main environment. Where a C library does not
/// know of the thread's variables (musl), and on Windows, where by then the other threads are gone, perhaps with a lock, the pipe's own
/// thread has to be faster than the exit.
#[cfg(unix)]
impl Drop for Keeping {
    fn drop(&mut self) {
        if self.process.get() == process::id() {
            self.each(Pipe::flush_last);
        }
    }
}

/// Has pipes keep what this thread sends, until [`flush`].
pub fn gather() {
    KEEPING.with(|keeping| {
        keeping.pipes.borrow_mut().get_or_insert_default();
        keeping.process.set(process::id());
    });
}

/// Writes what was kept.
pub fn flush() {
    KEEPING.with(|keeping| keeping.each(Pipe::flush));
}

/// Writes what was kept in the last turn of an environment, whose thread may go on.
pub fn end() {
    KEEPING.with(|keeping| keeping.each(Pipe::flush_last));
}

pub(super) fn is_gathering() -> bool {
    KEEPING.with(|keeping| keeping.pipes.borrow().is_some())
}

pub(super) fn keeps(pipe: &Arc<Pipe>) {
    KEEPING.with(|keeping| {
        if let Some(keeping) = keeping.pipes.borrow_mut().as_mut() {
            keeping.push(Arc::downgrade(pipe));
        }
    });
}

#[cfg(all(test, unix, not(feature = "slow-paths")))]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

    use std::io::{ErrorKind, PipeReader, Read};
    use std::os::fd::OwnedFd;
    use std::time::{Duration, Instant};

    use super::*;
    use crate::link::{Frame, FrameKind};

    /// Nobody runs it: what is read was written by whoever sent it.
    async fn pipe() -> (Arc<Pipe>, PipeReader) {
        let (reader, writer) = std::io::pipe().unwrap();
        for end in [&OwnedFd::from(reader.try_clone().unwrap()), &OwnedFd::from(writer.try_clone().unwrap())]
        {
            rustix::io::ioctl_fionbio(end, true).unwrap();
        }
        let pipe = Arc::new(Pipe::new(OwnedFd::from(writer)).unwrap());
        // The runtime learns that it can be written when it waits for the first time.
        tokio::time::sleep(Duration::from_millis(1)).await;
        (pipe, reader)
    }

    fn send(pipe: &Arc<Pipe>, id: u64, text: &str) {
        pipe.send(Frame { kind: FrameKind::Request(id), text: text.to_owned() });
    }

    fn there_now(mut reader: &PipeReader) -> String {
        let mut bytes = vec![0; 64 * 1024];
        match reader.read(&mut bytes) {
            Ok(count) => String::from_utf8(bytes[..count].to_vec()).unwrap(),
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::WouldBlock);
                String::new()
            }
        }
    }

    #[tokio::test]
    async fn what_is_sent_in_a_turn_goes_out_at_its_end_and_then_at_once_again() {
        let ((one, from_one), (other, from_other)) = (pipe().await, pipe().await);
        gather();
        send(&one, 1, "a");
        send(&other, 2, "b");
        send(&one, 3, "c");
        assert_eq!((there_now(&from_one), there_now(&from_other)), (String::new(), String::new()));
        flush();
        assert_eq!((there_now(&from_one), there_now(&from_other)), ("a\nc\n".into(), "b\n".into()));
        send(&one, 4, "d");
        assert_eq!(there_now(&from_one), "d\n");
    }

    #[tokio::test]
    async fn a_server_has_something_to_do_before_a_long_turn_ends() {
        let (pipe, reader) = pipe().await;
        gather();
        for id in 0..100 {
            send(&pipe, id, "x");
        }
        assert!(there_now(&reader).len() >= 2 * 50);
        send(&pipe, 100, &"y".repeat(10_000));
        assert!(there_now(&reader).ends_with("y\n"), "a long frame was kept");
        flush();
        assert_eq!(pipe.bytes(), 2 * 100 + 10_001);
    }

    #[tokio::test]
    async fn what_another_thread_sends_goes_out_behind_what_was_kept() {
        let (pipe, reader) = pipe().await;
        gather();
        send(&pipe, 1, "a");
        let sends = pipe.clone();
        std::thread::spawn(move || send(&sends, 2, "b")).join().unwrap();
        assert_eq!(there_now(&reader), "a\nb\n");
        flush();
        assert_eq!(there_now(&reader), "");
    }

    #[tokio::test]
    async fn what_a_thread_keeps_goes_out_when_it_ends_in_the_middle_of_a_turn() {
        let (pipe, reader) = pipe().await;
        let sends = pipe.clone();
        let thread = std::thread::spawn(move || {
            gather();
            send(&sends, 1, "a");
            send(&sends, 2, "b");
        });
        thread.join().unwrap();
        assert_eq!(there_now(&reader), "a\nb\n");
    }

    #[tokio::test]
    async fn what_is_kept_goes_out_before_the_input_ends() {
        let (pipe, reader) = pipe().await;
        gather();
        send(&pipe, 1, "a");
        pipe.end();
        assert_eq!(there_now(&reader), "a\n");
        flush();
    }

    #[tokio::test]
    async fn what_is_kept_can_be_taken_back() {
        let (pipe, reader) = pipe().await;
        gather();
        send(&pipe, 1, "a");
        send(&pipe, 2, "b");
        assert!(pipe.withdraw(1));
        assert!(!pipe.withdraw(1), "gone already");
        flush();
        assert_eq!(there_now(&reader), "b\n");
    }

    #[tokio::test]
    async fn a_thread_that_goes_on_for_long_holds_nothing_back() {
        let (pipe, reader) = pipe().await;
        let runs = pipe.clone();
        tokio::spawn(async move { runs.run().await });
        for id in 0..3 {
            gather();
            send(&pipe, id, "a");
            // The thread is busy, and the turn does not end.
            let begun = Instant::now();
            let mut text = String::new();
            while text.is_empty() {
                assert!(begun.elapsed().as_secs() < 10, "it is still kept");
                tokio::time::sleep(Duration::from_millis(1)).await;
                text = there_now(&reader);
            }
            assert_eq!(text, "a\n");
        }
        flush();
        assert_eq!(there_now(&reader), "");
    }
}
