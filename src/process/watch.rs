//! How the direct child ends. Seen by `waitid(WNOWAIT)`: it stays a zombie, and its number ours, until the ladder is done
//! with its group.

#[cfg(target_os = "linux")]
use std::os::fd::OwnedFd;
use std::time::Duration;
use std::{io, thread};

use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, WaitIdStatus, waitid};
#[cfg(target_os = "linux")]
use rustix::process::{PidfdFlags, pidfd_open};
#[cfg(target_os = "linux")]
use tokio::io::{Interest, unix::AsyncFd};
use tokio::sync::watch;
use tokio::time::sleep;

use super::outcome::Exit;

/// What `kill -l` calls them. The numbers differ between systems.
const SIGNALS: [(Signal, &str); 17] = [
    (Signal::HUP, "SIGHUP"),
    (Signal::INT, "SIGINT"),
    (Signal::QUIT, "SIGQUIT"),
    (Signal::ILL, "SIGILL"),
    (Signal::TRAP, "SIGTRAP"),
    (Signal::ABORT, "SIGABRT"),
    (Signal::BUS, "SIGBUS"),
    (Signal::FPE, "SIGFPE"),
    (Signal::KILL, "SIGKILL"),
    (Signal::SEGV, "SIGSEGV"),
    (Signal::SYS, "SIGSYS"),
    (Signal::PIPE, "SIGPIPE"),
    (Signal::ALARM, "SIGALRM"),
    (Signal::TERM, "SIGTERM"),
    (Signal::XCPU, "SIGXCPU"),
    (Signal::USR1, "SIGUSR1"),
    (Signal::USR2, "SIGUSR2"),
];

impl Exit {
    /// The signal as Node names it, `SIGTERM`; `None` also for a real-time signal, which has no name.
    #[must_use]
    pub fn signal_name(&self) -> Option<&'static str> {
        let number = self.signal?;
        SIGNALS.iter().find(|(signal, _)| signal.as_raw() == number).map(|(_, name)| *name)
    }

    fn of(status: &WaitIdStatus) -> Self {
        Self { code: status.exit_status(), signal: status.terminating_signal() }
    }
}

/// The direct child of a spawn, which leads the process group of its number, until it is reaped.
pub(super) struct Leader {
    pid: Pid,
    exit: watch::Sender<Option<Exit>>,
    reaped: bool,
    sight: Sight,
}

/// What wakes us when the leader leaves.
enum Sight {
    #[cfg(target_os = "linux")]
    Pidfd(AsyncFd<OwnedFd>),
    /// Elsewhere, and where the kernel is older than 5.3 or a sandbox refuses pidfds.
    Thread(watch::Receiver<bool>),
}

/// How often it is looked for the exit where nothing tells of it any more. Not seen yet: it takes a waitid that fails for no known
/// reason, or a runtime that is being torn down.
const BLIND_LOOK: Duration = Duration::from_millis(20);

impl Leader {
    /// Watches a child that nobody else reaps. Within the runtime.
    ///
    /// Fails only where neither a pidfd nor a thread can be had; the child is still the caller's then.
    pub(super) fn adopt(pid: Pid) -> io::Result<Self> {
        #[cfg(target_os = "linux")]
        if let Ok(pidfd) = pidfd(pid) {
            return Ok(Self::seen_through(pid, Sight::Pidfd(pidfd)));
        }
        Ok(Self::seen_through(pid, Sight::Thread(waiter(pid)?)))
    }

    fn seen_through(pid: Pid, sight: Sight) -> Self {
        Self { pid, exit: watch::Sender::new(None), reaped: false, sight }
    }

    pub(super) fn pid(&self) -> Pid {
        self.pid
    }

    pub(super) fn number(&self) -> u32 {
        self.pid.as_raw_nonzero().get().unsigned_abs()
    }

    /// Tells how the leader ended, from the moment somebody here noticed.
    pub(super) fn subscribe(&self) -> watch::Receiver<Option<Exit>> {
        self.exit.subscribe()
    }

    /// How the leader ended, if it has by now.
    pub(super) fn look(&self) -> Option<Exit> {
        let known = *self.exit.borrow();
        known.or_else(|| {
            let exit = look(self.pid)?;
            self.exit.send_replace(Some(exit));
            Some(exit)
        })
    }

    /// How the leader ended, once it has. Can be dropped and called again.
    pub(super) async fn left(&mut self) -> Exit {
        loop {
            if let Some(exit) = self.look() {
                return exit;
            }
            match &mut self.sight {
                #[cfg(target_os = "linux")]
                Sight::Pidfd(pidfd) => {
                    // A readiness that `look` does not confirm was stale: forget it, or this loop would spin.
                    match pidfd.readable().await {
                        Ok(mut ready) if look(self.pid).is_none() => ready.clear_ready(),
                        Ok(_) => {}
                        Err(_) => sleep(BLIND_LOOK).await,
                    }
                }
                Sight::Thread(left) => {
                    // An error means that the thread is gone, which it is only after the exit.
                    let _ = left.wait_for(|left| *left).await;
                    if look(self.pid).is_none() {
                        sleep(BLIND_LOOK).await;
                    }
                }
            }
        }
    }

    /// Whether the number of the leader, and of the group it leads, cannot be somebody else's: it runs, or is a zombie that
    /// neither we nor a host that waits for all children has reaped.
    pub(super) fn holds_number(&self) -> bool {
        !self.reaped && look(self.pid) != Some(Exit::default())
    }

    /// Gives the number back to the system, once the leader has left. Later calls do nothing.
    pub(super) fn reap(&mut self) {
        if self.look().is_some() && !self.reaped {
            self.reaped = true;
            // ECHILD, where the host reaped it or ignores SIGCHLD, comes to the same.
            let _ = waitid(WaitId::Pid(self.pid), WaitIdOptions::EXITED | WaitIdOptions::NOHANG);
        }
    }
}

fn look(pid: Pid) -> Option<Exit> {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
    match waitid(WaitId::Pid(pid), options) {
        Ok(status) => status.as_ref().map(Exit::of),
        Err(Errno::CHILD) => Some(Exit::default()),
        Err(_) => None,
    }
}

/// Readable once the child has left.
#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "tokio asks for the promise that the descriptor stays open")]
fn pidfd(pid: Pid) -> io::Result<AsyncFd<OwnedFd>> {
    let pidfd = pidfd_open(pid, PidfdFlags::empty())?;
    // SAFETY: an `OwnedFd` is open for as long as it lives, and this one is neither replaced nor taken out of the `AsyncFd`.
    unsafe { AsyncFd::register_with_interest(pidfd, Interest::READABLE) }.map_err(io::Error::from)
}

fn waiter(pid: Pid) -> io::Result<watch::Receiver<bool>> {
    let (leave, left) = watch::channel(false);
    thread::Builder::new().name("workflow-mcp-wait".into()).spawn(move || {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        while let Err(Errno::INTR) = waitid(WaitId::Pid(pid), options) {}
        leave.send_replace(true);
    })?;
    Ok(left)
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test that cannot start its child has failed")]

    use std::process::{Child, Command};

    use super::*;

    fn sh(script: &str) -> Child {
        Command::new("/bin/sh").args(["-c", script]).spawn().unwrap()
    }

    #[expect(clippy::zombie_processes, reason = "the leader reaps it")]
    async fn exit_through(sight: impl FnOnce(Pid) -> Leader, script: &str) -> Exit {
        let child = sh(script);
        let mut leader = sight(Pid::from_child(&child));
        let mut told = leader.subscribe();
        let exit = leader.left().await;
        assert_eq!(*told.borrow_and_update(), Some(exit));
        leader.reap();
        assert_eq!(look(leader.pid()), Some(Exit::default()), "reaped: no child of ours any more");
        exit
    }

    #[tokio::test]
    async fn an_exit_code_and_a_signal_are_told_apart() {
        for sight in [
            |pid| Leader::adopt(pid).unwrap(),
            |pid| Leader::seen_through(pid, Sight::Thread(waiter(pid).unwrap())),
        ] {
            assert_eq!(exit_through(sight, "exit 7").await, Exit { code: Some(7), signal: None });
            let killed = exit_through(sight, "kill -s KILL $$").await;
            assert_eq!((killed.code, killed.signal_name()), (None, Some("SIGKILL")));
            let late = exit_through(sight, "sleep 0.2; kill -s TERM $$").await;
            assert_eq!(late.signal_name(), Some("SIGTERM"));
        }
    }

    #[tokio::test]
    async fn a_status_that_somebody_else_took_is_an_exit_without_code_or_signal() {
        let mut child = sh("exit 7");
        let mut leader = Leader::adopt(Pid::from_child(&child)).unwrap();
        child.wait().unwrap();
        assert_eq!(leader.left().await, Exit::default());
        leader.reap();
    }
}
