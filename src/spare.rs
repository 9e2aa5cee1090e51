//! Memory of large messages, kept a moment for the next: fresh pages cost more than the copy into them, and giving them back holds up the
//! thread that collects garbage meanwhile.

use std::mem;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::runtime::Handle;

/// Less is the allocator's own business.
const FROM: usize = 512 * 1024;

/// As much may wait for use, in all: what V8 collects at a time of a series of large texts, so that the next of them need
/// no fresh pages. With half of it the peak was the same, and half of them did (200 results of 9 MB).
const BYTES_MAX: usize = 128 * 1024 * 1024;

/// So much at most is prepared before it is needed: a thousand pages, for what may not come.
const PREPARED_MAX: usize = 4 * 1024 * 1024;

/// What nobody has used for so long goes back to the system,
const KEPT: Duration = Duration::from_secs(1);
/// one after the other: a process whose memory is being unmapped waits for that when it needs some.
const STEP: Duration = Duration::from_millis(20);

static SPARE: Mutex<Spare> = Mutex::new(Spare { buffers: Vec::new(), bytes: 0, is_watched: false });

struct Spare {
    /// Each empty, with the time it was put here; the last one is the youngest.
    buffers: Vec<(Vec<u8>, Instant)>,
    bytes: usize,
    /// Somebody gives back what is not used.
    is_watched: bool,
}

/// An empty buffer with room for so many bytes, if there is one: of those that are not much too large, which the next
/// large message needs, the smallest.
#[must_use]
pub fn take(room: usize) -> Option<Vec<u8>> {
    if cfg!(feature = "slow-paths") {
        return None;
    }
    let mut spare = lock();
    let fits = room..=room.saturating_mul(2).saturating_add(FROM);
    let sizes = spare.buffers.iter().map(|(buffer, _)| buffer.capacity()).enumerate().rev();
    let (index, _) = sizes.filter(|(_, size)| fits.contains(size)).min_by_key(|(_, size)| *size)?;
    let (buffer, _) = spare.buffers.remove(index);
    spare.bytes -= buffer.capacity();
    Some(buffer)
}

/// Keeps the memory of a buffer, if it is a large one, until it is used or given back on the pool of `runtime`. What
/// would be too much goes back now: buffers come from everywhere, and only lines of a pipe are read into them.
pub fn keep(mut buffer: Vec<u8>, runtime: &Handle) {
    if buffer.capacity() < FROM || cfg!(feature = "slow-paths") {
        return;
    }
    buffer.clear();
    let mut spare = lock();
    if spare.bytes + buffer.capacity() > BYTES_MAX {
        drop(spare);
        drop(runtime.spawn_blocking(move || drop(buffer)));
        return;
    }
    spare.bytes += buffer.capacity();
    spare.buffers.push((buffer, Instant::now()));
    if !mem::replace(&mut spare.is_watched, true) {
        drop(spare);
        runtime.spawn(give_back());
    }
}

/// Gives back all at once, where the system has no memory left for whoever needs it now.
pub fn clear() {
    let unused = {
        let mut spare = lock();
        spare.bytes = 0;
        mem::take(&mut spare.buffers)
    };
    drop(unused);
}

/// Prepares an empty buffer for so many bytes on the pool, where none waits: its pages are fresh ones that somebody
/// would wait for. Worth it where more like it are likely to come, and nobody needs the processor meanwhile.
pub fn prepare(room: usize) {
    let Ok(runtime) = Handle::try_current() else { return };
    if cfg!(feature = "slow-paths") || !(FROM..=PREPARED_MAX).contains(&room) || !lock().buffers.is_empty() {
        return;
    }
    runtime.spawn_blocking(move || {
        let mut buffer = Vec::with_capacity(room);
        // Zeros the system would promise without a page for them.
        buffer.resize(room, u8::MAX);
        keep(buffer, &Handle::current());
    });
}

/// Gives back what is too old, until nothing is left.
async fn give_back() {
    let mut wait = KEPT;
    loop {
        tokio::time::sleep(wait).await;
        let unused = {
            let mut spare = lock();
            let Some((_, since)) = spare.buffers.first() else {
                spare.is_watched = false;
                return;
            };
            let left = KEPT.saturating_sub(since.elapsed());
            if !left.is_zero() {
                wait = left;
                continue;
            }
            wait = STEP;
            let (unused, _) = spare.buffers.remove(0);
            spare.bytes -= unused.capacity();
            unused
        };
        drop(tokio::task::spawn_blocking(move || drop(unused)));
    }
}

fn lock() -> MutexGuard<'static, Spare> {
    SPARE.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(all(test, not(feature = "slow-paths")))]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_large_buffer_is_used_again_or_given_back_and_one_is_prepared_where_none_waits() {
        let runtime = Handle::current();
        let large = Vec::with_capacity(FROM);
        let place = large.as_ptr();
        keep(large, &runtime);
        keep(Vec::with_capacity(FROM - 1), &runtime);
        assert!(take(FROM + 1).is_none(), "it has no room for this");
        let again = take(FROM).unwrap();
        assert!(again.is_empty());
        assert_eq!(again.as_ptr(), place);
        assert!(take(FROM).is_none());
        keep(again, &runtime);
        std::thread::sleep(KEPT);
        let steps = async {
            while lock().is_watched {
                tokio::time::sleep(STEP).await;
            }
        };
        tokio::time::timeout(KEPT * 10, steps).await.unwrap();
        assert!(take(FROM).is_none());

        for _ in 0..BYTES_MAX / FROM + 10 {
            keep(Vec::with_capacity(FROM), &runtime);
        }
        assert!(lock().bytes <= BYTES_MAX, "what nobody takes does not pile up");
        while take(FROM).is_some() {}
        assert_eq!(lock().bytes, 0);

        for size in [20, 5, 9, 5] {
            keep(Vec::with_capacity(size * FROM), &runtime);
        }
        assert!(take(FROM).is_none(), "they are for larger ones");
        for size in [5, 5, 9] {
            assert_eq!(take(4 * FROM).unwrap().capacity(), size * FROM);
        }
        assert!(take(4 * FROM).is_none());
        assert!(take(10 * FROM).is_some());

        keep(Vec::with_capacity(FROM), &runtime);
        clear();
        assert_eq!(lock().bytes, 0);
        assert!(take(FROM).is_none());

        prepare(FROM);
        let prepared = loop {
            tokio::time::sleep(STEP).await;
            if let Some(buffer) = take(FROM) {
                break buffer;
            }
        };
        assert!(prepared.is_empty());
    }
}
