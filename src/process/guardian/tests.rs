#![expect(clippy::unwrap_used, reason = "in tests")]

use std::fs;
use std::io::{Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::Child;

use tokio::time::timeout;

use super::super::handle::Process;
use super::super::outcome::{Ended, Waits};
use super::*;

const PATIENCE: Duration = Duration::from_secs(10);

fn guardian(shell: &str, linger: Duration) -> &'static Guardian {
    Box::leak(Box::new(Guardian::new(shell, linger)))
}

/// A process in a group of its own that ignores SIGTERM.
fn rude() -> Child {
    Command::new("/bin/sh")
        .args(["-c", "trap '' TERM; while :; do sleep 0.05; done"])
        .process_group(0)
        .spawn()
        .unwrap()
}

/// The number of the running guardian, as soon as there is one that `wanted` accepts.
async fn running(guardian: &Guardian, wanted: impl Fn(Pid) -> bool) -> Pid {
    let running = async {
        loop {
            let pid = guardian.lock().running.as_ref().map(|running| running.pid);
            if let Some(pid) = pid.filter(|pid| wanted(*pid)) {
                return pid;
            }
            sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(PATIENCE, running).await.unwrap()
}

/// Waits until the number is free: not even a zombie.
async fn reaped(pid: Pid) {
    let path = format!("/proc/{}", pid.as_raw_pid());
    let start = Instant::now();
    while fs::exists(&path).unwrap() {
        assert!(start.elapsed() < PATIENCE, "{path} is still there");
        sleep(Duration::from_millis(5)).await;
    }
}

/// The host dies: the input ends with the list as it is.
fn end_of_host(guardian: &Guardian) {
    guardian.lock().running = None;
}

/// How it was ended; by us, when nobody else does.
async fn signal_that_ended(mut child: Child) -> Option<i32> {
    let start = Instant::now();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status.signal();
        }
        if start.elapsed() > PATIENCE {
            child.kill().unwrap();
            child.wait().unwrap();
            return None;
        }
        sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn listed_groups_are_killed_and_groups_taken_off_the_list_are_not() {
    let guardian = guardian("/bin/sh", LINGER);
    let (listed, mut spared) = (rude(), rude());
    guardian.begin();
    let listing = guardian.enlist(Pid::from_child(&listed));
    let dropped = guardian.enlist(Pid::from_child(&spared));
    assert_eq!(guardian.warning().await, None);
    drop(dropped);
    let pid = running(guardian, |_| true).await;

    end_of_host(guardian);

    assert_eq!(signal_that_ended(listed).await, Some(Signal::KILL.as_raw()));
    reaped(pid).await;
    assert_eq!(spared.try_wait().unwrap(), None, "it was taken off the list");
    spared.kill().unwrap();
    spared.wait().unwrap();
    drop(listing);
}

/// What the script would signal, given these lines. It sends nothing: `kill` is a function that tells its arguments. A mistake in
/// the script must not be found out by a real `kill -- -1`, which ends every process of the user.
fn would_signal(lines: &str) -> Vec<String> {
    let told = format!("kill() {{ echo \"$*\"; }}\n{SCRIPT}");
    let mut shell = Command::new("/bin/sh")
        .args(["-c", &told])
        .env_clear()
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    shell.stdin.take().unwrap().write_all(lines.as_bytes()).unwrap();
    let output = shell.wait_with_output().unwrap();
    String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
}

#[test]
fn only_decimals_above_one_are_ever_signalled() {
    let refused =
        "a 0\na 1\na 00\na 01\na -1\na -7\na +7\na\na \na *\na 7 8\na 7x\na 0x7\na 07\na $(7)\nb 7\n\n7\na 7";
    assert_eq!(would_signal(refused), Vec::<String>::new());
    // The last line above has no newline: the host died in the middle of a number.
    let signals = would_signal(&format!("{refused}\na 2\na 4242\n"));
    assert_eq!(signals.len(), 9, "{signals:?}");
    assert_eq!(signals[..3], ["-s TERM -- -7", "-s TERM -- -2", "-s TERM -- -4242"]);
    assert_eq!(signals[3..6], ["-s KILL -- -7", "-s KILL -- -2", "-s KILL -- -4242"]);
    assert_eq!(signals[3..6], signals[6..]);
}

#[test]
fn a_group_taken_off_the_list_leaves_those_with_similar_numbers() {
    let signals = would_signal("a 12\na 123\na 23\na 2\nd 2\nd 23\nd 5\n");
    assert_eq!(signals[..2], ["-s TERM -- -12", "-s TERM -- -123"]);
    assert_eq!(signals.len(), 6, "{signals:?}");
    assert_eq!(would_signal("a 12\nd 12\n"), Vec::<String>::new());
}

#[tokio::test]
async fn it_outlives_the_signals_that_service_managers_send_to_everybody() {
    let guardian = guardian("/bin/sh", LINGER);
    let listed = rude();
    guardian.begin();
    let listing = guardian.enlist(Pid::from_child(&listed));
    let pid = running(guardian, |_| true).await;
    // Its traps are set when it has read a line; its input is then empty.
    let start = Instant::now();
    while rustix::io::ioctl_fionread(&guardian.lock().running.as_ref().unwrap().input).unwrap() > 0 {
        assert!(start.elapsed() < PATIENCE);
        sleep(Duration::from_millis(5)).await;
    }
    for signal in [Signal::TERM, Signal::INT, Signal::HUP, Signal::QUIT] {
        kill_process(pid, signal).unwrap();
    }
    end_of_host(guardian);
    assert_eq!(signal_that_ended(listed).await, Some(Signal::KILL.as_raw()));
    reaped(pid).await;
    drop(listing);
}

#[tokio::test]
async fn it_leaves_when_no_server_was_listed_for_a_while_and_comes_back() {
    let guardian = guardian("/bin/sh", Duration::from_millis(200));
    guardian.begin();
    let first = running(guardian, |_| true).await;
    let listing = guardian.enlist(Pid::from_raw(2_000_000_001).unwrap());
    sleep(Duration::from_millis(500)).await;
    assert!(fs::exists(format!("/proc/{}", first.as_raw_pid())).unwrap(), "something is listed");
    drop(listing);
    reaped(first).await;
    assert_eq!(guardian.warning().await, None, "it was sent away, it did not fail");

    guardian.begin();
    running(guardian, |pid| pid != first).await;
}

#[tokio::test]
async fn it_does_not_leave_while_a_program_that_it_is_to_guard_is_being_started() {
    let guardian = guardian("/bin/sh", LINGER);
    guardian.begin();
    let pid = running(guardian, |_| true).await;
    // Its time is up in the moment between the wish and the group.
    guardian.send_away(pid);
    assert_eq!(running(guardian, |_| true).await, pid);
    let listing = guardian.enlist(Pid::from_raw(2_000_000_001).unwrap());
    assert_eq!(left_to_the_exit(guardian), 0);
    drop(listing);
    guardian.lock().wished = None;
    guardian.send_away(pid);
    reaped(pid).await;
}

#[tokio::test]
async fn an_empty_group_is_off_the_list_while_those_outside_of_it_still_have_time() {
    let guardian = guardian("/bin/sh", LINGER);
    let script = "setsid sh -c 'echo; exec sleep 300' & read line";
    #[expect(clippy::zombie_processes, reason = "the ladder reaps it")]
    let mut child = Command::new("/bin/sh")
        .args(["-c", script])
        .process_group(0)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdout.take().unwrap().read_exact(&mut [0]).unwrap();
    let leader = Pid::from_child(&child);
    let listing = guardian.enlist(leader);
    let process = Process::supervise(Leader::adopt(leader).unwrap(), listing);
    process.survey().await;
    drop(child.stdin.take());
    let wait = Duration::from_secs(2);
    let stopped = process.stop(Waits { end_of_input: wait, terminate: wait });
    let unlisted = async {
        while !guardian.lock().listed.is_empty() {
            sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::select! {
        biased;
        outcome = stopped => panic!("it was on the list until the end: {outcome:?}"),
        () = unlisted => {}
    }
    let outcome = process.stop(Waits { end_of_input: wait, terminate: wait }).await;
    assert_eq!((outcome.ended, outcome.survivors), (Ended::Terminate, vec![]));
}

#[tokio::test]
async fn one_that_died_is_replaced_at_the_next_spawn_and_told_every_living_group() {
    let guardian = guardian("/bin/sh", LINGER);
    let listed = rude();
    guardian.begin();
    let listing = guardian.enlist(Pid::from_child(&listed));
    let first = running(guardian, |_| true).await;
    kill_process(first, Signal::KILL).unwrap();
    reaped(first).await;
    assert!(guardian.warning().await.unwrap().contains("ended unexpectedly"));

    guardian.begin();
    let second = running(guardian, |pid| pid != first).await;
    assert_eq!(guardian.warning().await, None);
    end_of_host(guardian);
    assert_eq!(signal_that_ended(listed).await, Some(Signal::KILL.as_raw()));
    reaped(second).await;
    drop(listing);
}

#[tokio::test]
async fn one_that_reads_no_more_is_replaced_and_ends_no_server() {
    let guardian = guardian("/bin/sh", LINGER);
    let mut listed = rude();
    guardian.begin();
    let listing = guardian.enlist(Pid::from_child(&listed));
    let first = running(guardian, |_| true).await;
    kill_process(first, Signal::STOP).unwrap();
    let other = Pid::from_raw(2_000_000_001).unwrap();
    while guardian.lock().running.is_some() {
        drop(guardian.enlist(other));
    }
    reaped(first).await;
    assert_eq!(listed.try_wait().unwrap(), None);
    drop(listing);
    listed.kill().unwrap();
    listed.wait().unwrap();
}

/// How many of the listed groups the exit of the process would end.
fn left_to_the_exit(guardian: &Guardian) -> usize {
    guardian.lock().listed.values().flatten().count()
}

#[tokio::test]
async fn the_exit_of_the_process_has_the_groups_exactly_while_no_guardian_has_them() {
    let failed = guardian("/no/such/shell", LINGER);
    failed.begin();
    failed.warning().await.unwrap();
    let listing = failed.enlist(Pid::from_raw(2_000_000_001).unwrap());
    assert_eq!(left_to_the_exit(failed), 1);
    drop(listing);
    assert_eq!(left_to_the_exit(failed), 0);

    let guardian = guardian("/bin/sh", LINGER);
    let listing = guardian.enlist(Pid::from_raw(2_000_000_002).unwrap());
    assert_eq!(left_to_the_exit(guardian), 1, "none has been started");
    guardian.begin();
    let pid = running(guardian, |_| true).await;
    assert_eq!(left_to_the_exit(guardian), 0);
    kill_process(pid, Signal::KILL).unwrap();
    reaped(pid).await;
    assert_eq!(left_to_the_exit(guardian), 1);
    drop(listing);
}

#[tokio::test]
async fn one_that_cannot_start_is_a_warning_and_not_an_error() {
    let guardian = guardian("/no/such/shell", LINGER);
    guardian.begin();
    let listing = guardian.enlist(Pid::from_raw(2_000_000_001).unwrap());
    let warning = guardian.warning().await.unwrap();
    assert!(warning.contains("/no/such/shell") && warning.contains("could not be started"), "{warning}");
    drop(listing);
}
