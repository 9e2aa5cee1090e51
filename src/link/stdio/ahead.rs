//! Memory for the rest of a long line, made ready on the pool while what has come is being read.
//!
//! Half of what reading a long line takes is the system's work of giving fresh pages to where it is read to: 1.6 us each
//! here, and up to 10 where the machine is a virtual one that has to ask its host for them.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use tokio::runtime::Handle;

use super::pages;

/// What goes on after so much is a long line.
const FROM: usize = 256 * 1024;

/// As much again as has come of a line may be made ready, and no more than this.
const AHEAD_MAX: usize = 4 * 1024 * 1024;

/// What is made ready at a time. Whoever needs the buffer itself waits for so much (0.2 ms here), for after that the
/// memory may be somebody else's. Without this work that thread would wait for all pages of the line.
const STEP: usize = 512 * 1024;

/// Time between two steps for whoever maps or unmaps memory, as V8's collections do on the host's thread: Linux lets one
/// step follow the other past them for 4 ms. With steps of 64 KB and no time between, the longest stall of the event loop
/// while 10 MB texts come was 3.7 to 4.0 ms, so it is 1.9, and without this work 1.6.
const PAUSE: Duration = Duration::from_micros(50);

/// One buffer at a time in the whole process: the pool's few threads have servers to start, too.
static IS_AT_WORK: AtomicBool = AtomicBool::new(false);

/// Goes ahead of whoever reads into a buffer.
#[derive(Default)]
pub(super) struct Ahead {
    work: Option<Arc<Work>>,
}

/// The work on one buffer, in addresses: what stands there is nobody's business here.
struct Work {
    begin: usize,
    end: usize,
    /// Where the line probably ends; it goes on where something was read beyond.
    likely: usize,
    /// Up to where something has been read.
    read: AtomicUsize,
    /// Up to where there are pages.
    ready: AtomicUsize,
    is_idle: AtomicBool,
    is_over: AtomicBool,
    /// Held while pages are made ready.
    step: Mutex<()>,
}

impl Ahead {
    /// Nothing to do: the buffer was used before, and has its pages, but for some of its end perhaps.
    pub(super) fn of_used(buffer: &Vec<u8>) -> Self {
        let work = Work::new(buffer, 0);
        work.ready.store(work.end, Ordering::Relaxed);
        Self { work: Some(Arc::new(work)) }
    }

    /// Tells what has been read, where there is room for more, and how much room of it is `likely` to be needed.
    pub(super) fn follow(&mut self, buffer: &Vec<u8>, likely: usize) {
        if buffer.len() < FROM || cfg!(feature = "slow-paths") || cfg!(not(target_os = "linux")) {
            return;
        }
        let work = self.work.get_or_insert_with(|| Arc::new(Work::new(buffer, likely)));
        work.read.store(work.begin + buffer.len(), Ordering::Relaxed);
        if work.is_idle.load(Ordering::Acquire)
            && work.next().is_some()
            && let Ok(runtime) = Handle::try_current()
            && !IS_AT_WORK.swap(true, Ordering::Relaxed)
        {
            work.is_idle.store(false, Ordering::Relaxed);
            let work = work.clone();
            drop(runtime.spawn_blocking(move || {
                work.run();
                IS_AT_WORK.store(false, Ordering::Relaxed);
            }));
        }
    }

    /// Leaves the buffer, which is about to move or to become somebody else's.
    pub(super) fn stop(&mut self) {
        if let Some(work) = self.work.take() {
            work.is_over.store(true, Ordering::Relaxed);
            drop(work.step());
        }
    }
}

impl Drop for Ahead {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Work {
    fn new(buffer: &Vec<u8>, likely: usize) -> Self {
        let begin = buffer.as_ptr().expose_provenance();
        Self {
            begin,
            end: begin + buffer.capacity(),
            likely: begin + likely,
            read: AtomicUsize::new(begin),
            ready: AtomicUsize::new(begin),
            is_idle: AtomicBool::new(true),
            is_over: AtomicBool::new(false),
            step: Mutex::default(),
        }
    }

    fn run(&self) {
        loop {
            thread::sleep(PAUSE);
            let _step = self.step();
            if self.is_over.load(Ordering::Relaxed) {
                return;
            }
            let Some(next) = self.next() else {
                self.is_idle.store(true, Ordering::Release);
                return;
            };
            // Not idle: it is not to be tried again.
            if !pages::populate(next, STEP) {
                return;
            }
            self.ready.store(next + STEP, Ordering::Relaxed);
        }
    }

    /// Where to go on, if there is enough to do.
    fn next(&self) -> Option<usize> {
        let read = self.read.load(Ordering::Relaxed);
        let end = if read < self.likely { self.likely.min(self.end) } else { self.end };
        let goal = (read + AHEAD_MAX.min(read - self.begin)).min(end);
        let ready = self.ready.load(Ordering::Relaxed);
        // Not where the reader is just now.
        let next = if ready > read { ready } else { read + STEP };
        (next + STEP <= goal).then_some(next)
    }

    fn step(&self) -> MutexGuard<'_, ()> {
        self.step.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(all(test, target_os = "linux", not(feature = "slow-paths")))]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    /// What is ready in the end. Others may be at work, too.
    async fn ready(ahead: &mut Ahead, buffer: &Vec<u8>, likely: usize, expected: usize) -> usize {
        let is_ready = async {
            loop {
                ahead.follow(buffer, likely);
                tokio::time::sleep(Duration::from_millis(1)).await;
                let work = ahead.work.as_ref().unwrap();
                let ready = work.ready.load(Ordering::Relaxed) - work.begin;
                if ready >= expected && work.is_idle.load(Ordering::Acquire) {
                    return ready;
                }
            }
        };
        tokio::time::timeout(Duration::from_secs(10), is_ready).await.unwrap()
    }

    #[tokio::test]
    async fn as_much_again_as_has_come_is_made_ready_and_no_more_than_there_is_room_for() {
        let mut buffer = Vec::<u8>::with_capacity(32 * STEP);
        // Before Linux 5.14 nothing is made ready.
        if !pages::populate(buffer.as_ptr().expose_provenance(), 1) {
            return;
        }
        let mut ahead = Ahead::default();
        buffer.resize(FROM - 1, b'x');
        ahead.follow(&buffer, 0);
        assert!(ahead.work.is_none(), "it is no long line yet");
        for (read, ready) in [(4, 8), (7, 14), (20, 28), (32, 28)] {
            buffer.resize(read * STEP, b'x');
            assert_eq!(self::ready(&mut ahead, &buffer, 0, ready * STEP).await, ready * STEP);
        }
        assert!(buffer.iter().all(|byte| *byte == b'x'));
        ahead.stop();
        assert!(ahead.work.is_none());

        for (read, ready) in [(8, 12), (11, 12), (13, 21)] {
            buffer.resize(read * STEP, b'x');
            let likely = 12 * STEP;
            let ready_now = self::ready(&mut ahead, &buffer, likely, ready * STEP).await;
            assert_eq!(ready_now, ready * STEP, "no more than it will probably need");
        }
    }

    #[tokio::test]
    async fn what_is_stopped_makes_nothing_ready_any_more() {
        let buffer = vec![b'x'; 8 * STEP];
        let work = Work::new(&buffer, 0);
        work.read.store(work.begin + 4 * STEP, Ordering::Relaxed);
        work.is_over.store(true, Ordering::Relaxed);
        work.run();
        assert_eq!(work.ready.load(Ordering::Relaxed), work.begin);
    }

    #[test]
    fn without_a_runtime_nothing_happens() {
        let mut ahead = Ahead::default();
        ahead.follow(&vec![b'x'; 8 * STEP], 0);
        ahead.stop();
    }
}
