//! The helper that ends the servers when the host can no longer: one `/bin/sh` for the whole process.
//!
//! It holds the reading end of a pipe whose writing end only the host has, and knows the groups that live. The end of that
//! pipe is the end of the host, however it came (exit, abort, SIGKILL); then it signals the groups. Nothing waits for it. Without it
//! servers still run: those that heed the end of their input leave anyway, and an orderly exit kills the others.

#[cfg(all(test, target_os = "linux"))]
mod tests;

use std::collections::BTreeMap;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tokio::sync::watch;
use tokio::task::spawn_blocking;
use tokio::time::{Instant, sleep};

use super::at_exit::Entry;
use super::exec::exec;
use super::watch::Leader;

/// What the guardian runs. `a 123` on its input lists a group, `d 123` takes it off, the end of its input is the end of the host.
///
/// - Service managers signal everybody in a cgroup: it outlives the signals that they send first, and so does its `sleep`.
/// - A line that is no verb and one decimal above 1 is skipped: `kill -- -1` would reach every process of the user.
/// - `kill -s KILL -- -123` is the form that dash has, too (`kill -KILL -- -123` is an error there).
/// - SIGKILL is sent again, for a process that was being forked during the first round.
/// - `/bin/sleep` by its path, since there is no PATH. Without it, or with one that knows no fractions, the rest happens sooner
///   or later.
const SCRIPT: &str = r#"
trap '' TERM INT HUP QUIT
listed=' '
while read -r verb group; do
  case $group in '' | *[!0-9]* | 0* | 1) continue ;; esac
  case $verb in
    a) listed="$listed$group " ;;
    d) case $listed in
         *" $group "*) listed="${listed%%" $group "*} ${listed#*" $group "}" ;;
       esac ;;
  esac
done
pause() { /bin/sleep "$1" || /bin/sleep 1; }
signal() { for group in $listed; do kill -s "$1" -- "-$group"; done; }
case $listed in *[0-9]*) ;; *) exit ;; esac
pause 0.3
signal TERM
pause 0.3
signal KILL
pause 0.1
signal KILL
"#;

/// How long the guardian stays when no server is left.
const LINGER: Duration = Duration::from_mins(1);

#[derive(Debug)]
pub(super) struct Guardian {
    shell: PathBuf,
    linger: Duration,
    state: Mutex<State>,
    /// How many groups are listed, for the one who sends it away.
    count: watch::Sender<usize>,
    standing: watch::Sender<Standing>,
}

#[derive(Debug, Default)]
struct State {
    /// Every group that lives, whether a guardian runs or not: a new one is told all of them. While none runs, the exit of the
    /// process has to do.
    listed: BTreeMap<i32, Option<Entry>>,
    running: Option<Running>,
    starting: bool,
    /// When a spawn last asked for one. Its group is listed only when the program runs, and the guardian must still be there then.
    wished: Option<Instant>,
}

impl State {
    /// Leaves the groups to the exit of the process as long as no guardian has them.
    fn see_to_the_exit(&mut self) {
        for (group, entry) in &mut self.listed {
            if self.running.is_some() {
                *entry = None;
            } else if entry.is_none() {
                *entry = Pid::from_raw(*group).map(Entry::of);
            }
        }
    }
}

#[derive(Debug)]
struct Running {
    pid: Pid,
    input: OwnedFd,
}

#[derive(Debug)]
enum Standing {
    Starting,
    Well,
    Failed(String),
}

/// A group that ends with the host; taken off the list when dropped, which is to be as soon as the group is gone: from then on its
/// number may be a stranger's.
#[derive(Debug)]
pub(super) enum Listing {
    Guarded {
        guardian: &'static Guardian,
        group: i32,
    },
    /// Where no guardian is wanted.
    AtExit(#[expect(dead_code, reason = "its drop is its use")] Entry),
}

impl Guardian {
    pub(super) fn of_this_host() -> &'static Self {
        static GUARDIAN: LazyLock<Guardian> = LazyLock::new(|| Guardian::new("/bin/sh", LINGER));
        &GUARDIAN
    }

    fn new(shell: impl Into<PathBuf>, linger: Duration) -> Self {
        Self {
            shell: shell.into(),
            linger,
            state: Mutex::default(),
            count: watch::Sender::new(0),
            standing: watch::Sender::new(Standing::Well),
        }
    }

    /// Sees to it that a guardian runs or is on its way. Within the runtime; waits for nothing.
    pub(super) fn begin(&'static self) {
        let mut state = self.lock();
        state.wished = Some(Instant::now());
        if state.running.is_none() && !state.starting {
            state.starting = true;
            self.standing.send_replace(Standing::Starting);
            tokio::spawn(self.run());
        }
    }

    /// Tells the guardian of a group, at once or as soon as it runs. Never blocks.
    pub(super) fn enlist(&'static self, leader: Pid) -> Listing {
        let group = leader.as_raw_pid();
        let mut state = self.lock();
        state.listed.insert(group, None);
        self.tell(&mut state, 'a', group);
        state.see_to_the_exit();
        Listing::Guarded { guardian: self, group }
    }

    /// Why no guardian runs, once its start has succeeded or failed; `None` if all is well.
    pub(super) async fn warning(&self) -> Option<String> {
        let mut standing = self.standing.subscribe();
        let standing = standing.wait_for(|standing| !matches!(standing, Standing::Starting)).await;
        match standing.as_deref() {
            Ok(Standing::Failed(why)) => Some(why.clone()),
            _ => None,
        }
    }

    /// One life of a guardian, from its start until it is reaped.
    async fn run(&'static self) {
        let shell = self.shell.clone();
        let started = spawn_blocking(move || start(&shell)).await.unwrap_or_else(|lost| Err(lost.into()));
        let watched = started.and_then(|(pid, input)| Ok((Leader::adopt(pid)?, input)));
        let (mut leader, input) = match watched {
            Ok(started) => started,
            Err(error) => return self.fail(&error),
        };
        let mut count = self.count.subscribe();
        self.welcome(leader.pid(), input);
        loop {
            let idle = *count.borrow_and_update() == 0;
            tokio::select! {
                _ = leader.left() => break,
                _ = count.changed() => {}
                () = sleep(self.linger), if idle => self.send_away(leader.pid()),
            }
        }
        self.bury(&mut leader);
    }

    fn welcome(&self, pid: Pid, input: OwnedFd) {
        let mut state = self.lock();
        state.starting = false;
        state.running = Some(Running { pid, input });
        self.standing.send_replace(Standing::Well);
        let listed: Vec<i32> = state.listed.keys().copied().collect();
        for group in listed {
            self.tell(&mut state, 'a', group);
        }
        state.see_to_the_exit();
    }

    fn fail(&self, error: &io::Error) {
        self.lock().starting = false;
        self.standing.send_replace(Standing::Failed(format!(
            "The guardian {} could not be started ({error}); if this process is killed, servers that ignore the end of their \
             input may stay behind",
            self.shell.display()
        )));
    }

    /// Ends the guardian's input, unless it is wanted again by now. It has nothing listed, so it just exits.
    fn send_away(&self, pid: Pid) {
        let mut state = self.lock();
        let is_wished = state.wished.is_some_and(|wished| wished.elapsed() < self.linger);
        if state.listed.is_empty() && !is_wished {
            state.running.take_if(|running| running.pid == pid);
        }
    }

    /// Reaps it under the lock, so that nobody signals its number afterwards.
    fn bury(&self, leader: &mut Leader) {
        let mut state = self.lock();
        leader.reap();
        if state.running.take_if(|running| running.pid == leader.pid()).is_some() {
            state.see_to_the_exit();
            self.standing.send_replace(Standing::Failed(
                "The guardian has ended unexpectedly; it is started again with the next server".into(),
            ));
        }
    }

    fn tell(&self, state: &mut State, verb: char, group: i32) {
        self.count.send_replace(state.listed.len());
        let Some(running) = &state.running else { return };
        // Far below PIPE_BUF: written whole or not at all.
        let line = format!("{verb} {group}\n");
        if rustix::io::write(&running.input, line.as_bytes()).is_err() {
            // Dead, or stopped with a full pipe. Its list is no longer ours: one that came back to it later could end a living
            // server, or a stranger with a used number. The next spawn starts another.
            let _ = kill_process(running.pid, Signal::KILL);
            state.running = None;
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Listing {
    pub(super) fn of(leader: Pid, guardian: Option<&'static Guardian>) -> Self {
        guardian.map_or_else(|| Self::AtExit(Entry::of(leader)), |guardian| guardian.enlist(leader))
    }

    pub(super) fn guardian(&self) -> Option<&'static Guardian> {
        match self {
            Self::Guarded { guardian, .. } => Some(guardian),
            Self::AtExit(_) => None,
        }
    }
}

impl Drop for Listing {
    fn drop(&mut self) {
        let Self::Guarded { guardian, group } = self else { return };
        // The task that would have ended the group has panicked: nobody reaps its leader now, so the number stays its own, and the end
        // of the host is the end of the group.
        if std::thread::panicking() {
            return;
        }
        let mut state = guardian.lock();
        if state.listed.remove(group).is_some() {
            guardian.tell(&mut state, 'd', *group);
            state.see_to_the_exit();
        }
    }
}

/// Blocks until the exec.
fn start(shell: &PathBuf) -> io::Result<(Pid, OwnedFd)> {
    let mut command = Command::new(shell);
    command
        // The last argument is `$0`, which says in a list of processes what this is.
        .args(["-c", SCRIPT, "workflow-mcp-guardian"])
        .env_clear()
        .current_dir("/")
        .process_group(0)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let mut child = exec(&mut command)?;
    let input = child.stdin.take().ok_or_else(|| io::Error::other("its input is missing"))?;
    let input = OwnedFd::from(input);
    rustix::io::ioctl_fionbio(&input, true)?;
    Ok((Pid::from_child(&child), input))
}
