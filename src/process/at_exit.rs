//! SIGKILL to the groups that no guardian knows, when the process exits: from libc's `atexit`. A process that is killed, or aborts,
//! does not come here.

use std::io;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicUsize, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, getpid, kill_process_group};

/// Room for far more servers than a host has; those beyond it are not covered.
const SLOTS: usize = 512;

/// The groups, 0 where free. The handler runs while other threads go on: no lock that one of them may hold, no allocation.
static GROUPS: [AtomicI32; SLOTS] = [const { AtomicI32::new(0) }; SLOTS];

/// A fork of this process that exits runs the handler, too: the servers are not its own.
static HOST: AtomicI32 = AtomicI32::new(0);

/// How many programs are being started. Between its birth and its entry nobody would end a child.
static BIRTHS: AtomicUsize = AtomicUsize::new(0);

/// Whether the process is on its way out: then nothing is started any more.
static EXITING: AtomicBool = AtomicBool::new(false);

/// How long the exit waits for the births. One takes some milliseconds; the bound is for a program on a disk that does not answer.
const BIRTHS_TAKE: Duration = Duration::from_millis(500);

static REGISTERED: LazyLock<bool> = LazyLock::new(register);

/// A start that is under way. Kept until the child is entered here or told to the guardian: the exit of the process waits for that.
#[derive(Debug)]
pub(super) struct Birth(());

impl Birth {
    /// Fails once the process is exiting.
    pub(super) fn announce() -> io::Result<Self> {
        LazyLock::force(&REGISTERED);
        // First counted, then looked; the exit does it the other way round. So one of the two sees the other.
        BIRTHS.fetch_add(1, Ordering::SeqCst);
        let birth = Self(());
        if EXITING.load(Ordering::SeqCst) {
            return Err(io::Error::other("the process is exiting"));
        }
        Ok(birth)
    }
}

impl Drop for Birth {
    fn drop(&mut self) {
        BIRTHS.fetch_sub(1, Ordering::SeqCst);
    }
}

/// A group that ends with the process; taken off when dropped.
#[derive(Debug)]
pub(super) struct Entry(Option<&'static AtomicI32>);

impl Entry {
    pub(super) fn of(leader: Pid) -> Self {
        let group = leader.as_raw_pid();
        let free =
            |slot: &&AtomicI32| slot.compare_exchange(0, group, Ordering::AcqRel, Ordering::Relaxed).is_ok();
        Self(LazyLock::force(&REGISTERED).then(|| GROUPS.iter().find(free)).flatten())
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        if let Some(slot) = self.0 {
            slot.store(0, Ordering::Release);
        }
    }
}

#[expect(unsafe_code, reason = "libc's atexit has no safe form")]
fn register() -> bool {
    HOST.store(getpid().as_raw_pid(), Ordering::Release);
    // SAFETY: the handler neither unwinds nor touches anything but statics, which outlive it: libc runs it at the exit of the process,
    // or before this library is unloaded.
    unsafe { libc::atexit(kill_all) == 0 }
}

extern "C" fn kill_all() {
    if HOST.load(Ordering::Acquire) != getpid().as_raw_pid() {
        return;
    }
    EXITING.store(true, Ordering::SeqCst);
    let patience = Instant::now() + BIRTHS_TAKE;
    while BIRTHS.load(Ordering::SeqCst) > 0 && Instant::now() < patience {
        sleep(Duration::from_millis(1));
    }
    for slot in &GROUPS {
        // 0 and 1 would be this group, and everybody.
        if let Some(group) = Pid::from_raw(slot.load(Ordering::Acquire)).filter(|group| !group.is_init()) {
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}
