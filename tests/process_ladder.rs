//! Each rung of the stop ladder, with real children.
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "in tests")]
#![cfg(target_os = "linux")] // They look at /proc.

mod support;

use std::time::Duration;

use support::{Lines, Seen, sh, started, waits};
use workflow_mcp::process::{Ended, Exit, Outcome, Spawned};

/// Starts the script, waits until it wrote the pids of everybody it started, ends its input and stops it.
/// Returns how it ended, what it wrote since, and checks that nobody is left.
async fn stopped(script: &str, others: usize, waits: workflow_mcp::process::Waits) -> (Outcome, Vec<String>) {
    let Spawned { process, stdin, stdout, .. } = started(sh(script)).await;
    let leader = Seen::alive(process.pid()).unwrap();
    let mut lines = Lines::of(stdout);
    assert_eq!(lines.next().await.unwrap(), "ready");
    let mut everybody = vec![leader];
    for _ in 0..others {
        everybody.push(lines.process().await);
    }
    process.survey().await;
    drop(stdin);
    let outcome = process.stop(waits).await;
    assert_eq!(outcome.survivors, Vec::<u32>::new());
    for one in everybody {
        assert!(!one.lives(), "{one:?} outlived the stop");
    }
    assert_eq!(process.exit(), outcome.exit);
    (outcome, lines.rest().await)
}

fn code(code: i32) -> Exit {
    Exit { code: Some(code), signal: None }
}

#[tokio::test]
async fn a_server_that_leaves_at_the_end_of_its_input_sees_no_signal() {
    let script = "trap 'echo TERM' TERM; echo ready; cat; echo EOF; sleep 0.3; exit 3";
    let (outcome, log) = stopped(script, 0, waits(10_000, 10_000)).await;
    assert_eq!((outcome.ended, outcome.exit), (Ended::EndOfInput, Some(code(3))));
    assert_eq!(log, ["EOF"]);
}

#[tokio::test]
async fn a_server_that_ignores_the_end_of_its_input_is_terminated() {
    let script = "trap 'echo TERM; exit 4' TERM; echo ready; cat; echo EOF; while :; do sleep 0.05; done";
    let (outcome, log) = stopped(script, 0, waits(1_000, 10_000)).await;
    assert_eq!((outcome.ended, outcome.exit), (Ended::Terminate, Some(code(4))));
    assert_eq!(log, ["EOF", "TERM"]);
}

#[tokio::test]
async fn a_server_that_ignores_sigterm_too_is_killed() {
    let script = "trap 'echo TERM' TERM; echo ready; cat; echo EOF; while :; do sleep 0.05; done";
    let (outcome, log) = stopped(script, 0, waits(1_000, 1_000)).await;
    assert_eq!(outcome.ended, Ended::Kill);
    assert_eq!(outcome.exit.unwrap().signal_name(), Some("SIGKILL"));
    assert_eq!(log, ["EOF", "TERM"]);
}

#[tokio::test]
async fn the_server_behind_a_wrapper_that_waits_ends_with_it() {
    // Not the shell but the child reads the pipe, as under npx.
    let script = "echo ready; sh -c 'echo $$; exec cat'; exit 5";
    let (outcome, _) = stopped(script, 1, waits(10_000, 10_000)).await;
    assert_eq!((outcome.ended, outcome.exit), (Ended::EndOfInput, Some(code(5))));
}

#[tokio::test]
async fn a_process_in_its_own_session_that_heeds_the_end_of_input_has_the_whole_wait_for_it() {
    // The client of a container runtime: nothing but the end of the input reaches what does the work.
    let script = "echo ready; setsid sh -c 'echo $$; cat; sleep 0.3; echo stopped'; exit 0";
    let (outcome, log) = stopped(script, 1, waits(10_000, 10_000)).await;
    assert_eq!((outcome.ended, outcome.exit), (Ended::EndOfInput, Some(code(0))));
    assert_eq!(log, ["stopped"]);
}

#[tokio::test]
async fn a_helper_in_the_background_is_terminated_although_the_leader_left_politely() {
    // Again and again: a helper that dies of SIGTERM at once is gone before the first look after it.
    for _ in 0..20 {
        let script = "echo ready; sleep 300 & echo $!; cat";
        let (outcome, _) = stopped(script, 1, waits(10_000, 10_000)).await;
        assert_eq!((outcome.ended, outcome.exit), (Ended::Terminate, Some(code(0))));
    }
}

#[tokio::test]
async fn a_grandchild_that_ignores_sigterm_is_killed_although_the_leader_left_politely() {
    let script = r#"echo ready; sh -c 'trap "" TERM; echo $$; while :; do sleep 0.05; done' & cat"#;
    let (outcome, _) = stopped(script, 1, waits(10_000, 300)).await;
    assert_eq!((outcome.ended, outcome.exit), (Ended::Kill, Some(code(0))));
}

#[tokio::test]
async fn a_grandchild_that_lost_its_first_thread_is_still_found_and_killed() {
    let script = r#"echo ready; python3 -c '
import ctypes, os, signal, threading, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
def serve():
    while True:
        # Only when the first thread is gone does /proc call the process a zombie.
        if open("/proc/self/stat").read().rsplit(")", 1)[1].split()[0] == "Z":
            print(os.getpid(), flush=True)
            time.sleep(300)
        time.sleep(0.01)
threading.Thread(target=serve).start()
ctypes.CDLL(None).pthread_exit(None)
' & cat"#;
    let Spawned { process, stdin, stdout, .. } = started(sh(script)).await;
    let mut lines = Lines::of(stdout);
    assert_eq!(lines.next().await.unwrap(), "ready");
    let headless: u32 = lines.next().await.unwrap().parse().unwrap();
    drop(stdin);
    let outcome = process.stop(waits(10_000, 300)).await;
    assert_eq!((outcome.ended, outcome.survivors), (Ended::Kill, vec![]));
    assert_eq!(lines.rest().await, Vec::<String>::new(), "the pipe of {headless} is closed");
}

#[tokio::test]
async fn a_server_that_was_dead_before_the_stop_ended_by_itself() {
    let Spawned { process, .. } = started(sh("exit 6")).await;
    assert_eq!(process.exited().await.code, Some(6));
    let outcome = process.stop(waits(10_000, 10_000)).await;
    assert_eq!(outcome, Outcome { exit: Some(code(6)), ended: Ended::ByItself, survivors: vec![] });
}

#[tokio::test]
async fn a_helper_of_a_server_that_was_dead_before_the_stop_ends_too() {
    let script =
        r#"sh -c 'trap "" TERM; echo $$; while :; do sleep 0.05; done' & sleep 0.2; kill -s KILL $$"#;
    let Spawned { process, stdout, .. } = started(sh(script)).await;
    let helper = Lines::of(stdout).process().await;
    assert_eq!(process.exited().await.signal_name(), Some("SIGKILL"));
    assert!(helper.lives());
    let outcome = process.stop(waits(10_000, 300)).await;
    assert_eq!((outcome.ended, outcome.survivors), (Ended::Kill, vec![]));
    assert!(!helper.lives());
}

#[tokio::test]
async fn a_helper_ends_although_the_host_reaped_the_leader_before_us() {
    let script = r#"sh -c 'trap "" TERM; echo $$; while :; do sleep 0.05; done' &"#;
    let Spawned { process, stdout, .. } = started(sh(script)).await;
    let helper = Lines::of(stdout).process().await;
    let leader = rustix::process::Pid::from_raw(i32::try_from(process.pid()).unwrap()).unwrap();
    rustix::process::waitpid(Some(leader), rustix::process::WaitOptions::empty()).unwrap();
    let outcome = process.stop(waits(10_000, 300)).await;
    assert_eq!((outcome.ended, outcome.survivors), (Ended::Kill, vec![]));
    assert!(!helper.lives());
}

#[tokio::test]
async fn a_server_that_forks_in_a_loop_leaves_no_member_of_its_group() {
    let script = "trap '' TERM; echo ready; while :; do sleep 0.02 & done";
    for _ in 0..50 {
        let Spawned { process, stdout, .. } = started(sh(script)).await;
        assert_eq!(Lines::of(stdout).next().await.unwrap(), "ready");
        let outcome = process.stop(waits(20, 20)).await;
        assert_eq!((outcome.ended, outcome.survivors), (Ended::Kill, vec![]));
        assert_eq!(support::members_of(process.pid()), Vec::<Seen>::new());
    }
}

/// Reads to the end of its input without heeding it, and SIGTERM, in a session of its own.
const RUDE_STRAY: &str = r#"setsid sh -c 'trap "" TERM; echo $$; while :; do sleep 0.05; done' &"#;

/// As a link does it: with a look at the descendants before the end of the input.
async fn surveyed_and_stopped(script: &str, waits: workflow_mcp::process::Waits) -> (Outcome, Seen) {
    let Spawned { process, stdin, stdout, .. } = started(sh(script)).await;
    let stray = Lines::of(stdout).process().await;
    assert!(!support::members_of(process.pid()).contains(&stray), "it left the group");
    process.survey().await;
    drop(stdin);
    (process.stop(waits).await, stray)
}

#[tokio::test]
async fn a_server_that_leaves_at_the_end_of_its_input_before_anybody_looks_did_not_leave_by_itself() {
    let Spawned { process, stdin, .. } = started(sh("exec cat")).await;
    process.survey().await;
    drop(stdin);
    process.exited().await;
    let outcome = process.stop(waits(10_000, 10_000)).await;
    assert_eq!((outcome.ended, outcome.exit), (Ended::EndOfInput, Some(code(0))));
}

#[tokio::test]
async fn a_descendant_that_left_the_group_is_killed_although_the_leader_left_politely() {
    let script = format!("{RUDE_STRAY} cat");
    let (outcome, stray) = surveyed_and_stopped(&script, waits(300, 300)).await;
    assert_eq!((outcome.ended, outcome.exit, outcome.survivors), (Ended::Kill, Some(code(0)), vec![]));
    assert!(!stray.lives());
}

#[tokio::test]
async fn a_descendant_that_left_the_group_is_terminated_with_a_server_that_does_not_leave() {
    let script = "setsid sh -c 'echo $$; exec sleep 300' & sleep 300";
    let (outcome, stray) = surveyed_and_stopped(script, waits(100, 10_000)).await;
    assert_eq!((outcome.ended, outcome.survivors), (Ended::Terminate, vec![]));
    assert!(!stray.lives());
}

#[tokio::test]
async fn a_descendant_that_left_the_group_and_heeds_the_end_of_input_has_the_whole_wait_for_it() {
    // The server does not wait for it.
    let script = "exec 3<&0; setsid sh -c 'trap \"kill \\$\\$\" TERM; echo $$; cat <&3; sleep 0.3' & cat";
    let (outcome, stray) = surveyed_and_stopped(script, waits(10_000, 10_000)).await;
    assert_eq!((outcome.ended, outcome.exit), (Ended::EndOfInput, Some(code(0))));
    assert!(!stray.lives());
}

#[tokio::test]
async fn what_a_descendant_outside_the_group_has_started_meanwhile_is_killed_with_it() {
    let script = r#"setsid sh -c 'trap "" TERM; echo $$; sleep 0.3; sh -c "trap \"\" TERM; echo \$\$; while :; do sleep 0.05; done"' & cat"#;
    let Spawned { process, stdin, stdout, .. } = started(sh(script)).await;
    let mut lines = Lines::of(stdout);
    let parent = lines.process().await;
    process.survey().await;
    let child = lines.process().await;
    drop(stdin);
    let outcome = process.stop(waits(100, 100)).await;
    assert_eq!((outcome.ended, outcome.survivors), (Ended::Kill, vec![]));
    assert!(!parent.lives() && !child.lives());
}

#[tokio::test]
async fn a_stop_without_a_survey_reaches_descendants_of_a_server_that_does_not_leave() {
    let script = format!("{RUDE_STRAY} sleep 300");
    let Spawned { process, stdout, .. } = started(sh(&script)).await;
    let stray = Lines::of(stdout).process().await;
    let outcome = process.stop(waits(100, 100)).await;
    assert_eq!((outcome.ended, outcome.survivors), (Ended::Kill, vec![]));
    assert!(!stray.lives());
}

#[tokio::test]
async fn a_descendant_of_a_helper_is_found_after_the_server_has_died() {
    let script = r#"sh -c 'setsid sh -c "echo \$\$; exec sleep 300" & exec sleep 300' & sleep 0.3; exit 9"#;
    let Spawned { process, stdout, .. } = started(sh(script)).await;
    let stray = Lines::of(stdout).process().await;
    assert_eq!(process.exited().await.code, Some(9));
    let outcome = process.stop(waits(100, 10_000)).await;
    assert_eq!((outcome.exit, outcome.survivors), (Some(code(9)), vec![]));
    assert!(!stray.lives());
}

#[tokio::test]
async fn other_children_of_the_host_are_no_descendants_of_a_server() {
    let mut other = std::process::Command::new("setsid").args(["sleep", "300"]).spawn().unwrap();
    let neighbour = started(sh("echo up; cat")).await;
    let (outcome, stray) = surveyed_and_stopped(&format!("{RUDE_STRAY} cat"), waits(100, 100)).await;
    assert_eq!(outcome.survivors, Vec::<u32>::new());
    assert!(!stray.lives());
    assert_eq!(other.try_wait().unwrap(), None);
    assert_eq!(neighbour.process.exit(), None);
    other.kill().unwrap();
    other.wait().unwrap();
    neighbour.process.stop(waits(0, 10_000)).await;
}

#[tokio::test]
async fn every_caller_of_stop_and_exited_gets_the_same_answer() {
    let Spawned { process, .. } = started(sh("trap '' TERM; while :; do sleep 0.05; done")).await;
    let (a, b) = (process.clone(), process.clone());
    let (first, second, exit) =
        tokio::join!(process.stop(waits(100, 100)), a.stop(waits(60_000, 60_000)), b.exited());
    assert_eq!(first, second);
    assert_eq!(first.exit, Some(exit));
    assert_eq!(process.stop(waits(60_000, 60_000)).await, first);
    assert_eq!(process.exited().await, exit);
}

#[tokio::test]
async fn the_ladder_goes_on_when_the_caller_of_stop_is_dropped() {
    let script = "trap '' TERM; echo ready; while :; do sleep 0.05; done";
    let Spawned { process, stdout, .. } = started(sh(script)).await;
    let server = Seen::alive(process.pid()).unwrap();
    assert_eq!(Lines::of(stdout).next().await.unwrap(), "ready");
    let impatient = tokio::time::timeout(Duration::from_millis(20), process.stop(waits(200, 200))).await;
    assert!(impatient.is_err());
    assert!(server.gone().await);
    assert_eq!(process.stop(waits(0, 0)).await.ended, Ended::Kill);
}

#[tokio::test]
async fn a_process_whose_last_handle_is_dropped_is_ended_and_reaped() {
    let spawned = started(sh("trap '' TERM; while :; do sleep 0.05; done")).await;
    let server = Seen::alive(spawned.process.pid()).unwrap();
    let clone = spawned.process.clone();
    drop(spawned);
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert!(server.lives(), "a clone still holds it");
    drop(clone);
    assert!(server.gone().await);
    assert!(support::reaped(server.pid).await);
}
