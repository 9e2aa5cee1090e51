//! Everybody the ladder reaches: the process group that a server leads.

use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};

#[cfg(target_os = "linux")]
use super::proc;

/// The process group of one number.
///
/// Whose number is it? While the leader is not reaped, ours. Afterwards it stays taken for as long as the group has a
/// member (POSIX, `fork`: a new process ID matches no active process group ID). So after the reaping a signal is sent only
/// right after [`Group::lives`] said yes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Group(Pid);

impl Group {
    pub(super) fn led_by(leader: Pid) -> Self {
        Self(leader)
    }

    #[cfg(target_os = "linux")]
    pub(super) fn number(self) -> i32 {
        self.0.as_raw_pid()
    }

    /// To every member. ESRCH and EPERM are no failure here: `lives` says what is left.
    pub(super) fn signal(self, signal: Signal) {
        let _ = kill_process_group(self.0, signal);
    }

    /// Whether anybody but zombies is left. Meant for the time after the leader was reaped.
    pub(super) async fn lives(self) -> bool {
        match test_kill_process_group(self.0) {
            Err(Errno::SRCH) => false,
            // What macOS says of a group of zombies. Elsewhere it is a member that changed its user.
            Err(Errno::PERM) if cfg!(target_os = "macos") => false,
            // Where PID 1 does not reap, zombies answer `kill(-pgid, 0)` for ever: look at them.
            _ => !self.members().await.is_empty(),
        }
    }

    /// The pids of the members that are no zombies; the group's own number where the system cannot list them.
    #[cfg_attr(not(target_os = "linux"), expect(clippy::unused_async, reason = "only /proc takes its time"))]
    pub(super) async fn members(self) -> Vec<u32> {
        let number = self.0.as_raw_pid();
        #[cfg(target_os = "linux")]
        if let Some(Some(members)) = proc::on_the_pool(move || members_in_proc(number)).await {
            return members;
        }
        vec![number.unsigned_abs()]
    }
}

#[cfg(target_os = "linux")]
fn members_in_proc(group: i32) -> Option<Vec<u32>> {
    let everybody = proc::everybody()?.into_iter();
    let members = everybody.filter(|(_, stat)| stat.group == group && stat.lives());
    Some(members.map(|(pid, _)| pid.unsigned_abs()).collect())
}
