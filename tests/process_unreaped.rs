//! Where orphans are never reaped, as in a container whose PID 1 does not. Alone in its file: this process becomes that PID 1
//! for its descendants.
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "in tests")]
#![cfg(target_os = "linux")]

#[expect(dead_code, reason = "each test file takes what it needs")]
mod support;

use rustix::process::{Pid, WaitOptions, getpid, set_child_subreaper, test_kill_process_group, waitpgid};
use support::{Lines, Seen, sh, started, waits};
use workflow_mcp::process::{Ended, Spawned};

#[tokio::test]
async fn a_group_of_zombies_is_an_empty_group() {
    set_child_subreaper(Some(getpid())).unwrap();
    // The first helper leaves before the stop, the second at SIGTERM; both become our zombies.
    let script = "sh -c 'exit 0' & echo $!; sleep 300 & echo $!; cat";
    let Spawned { process, stdin, stdout, .. } = started(sh(script)).await;
    let mut lines = Lines::of(stdout);
    let early: u32 = lines.next().await.unwrap().parse().unwrap();
    let late = lines.process().await;
    drop(stdin);

    let outcome = process.stop(waits(10_000, 10_000)).await;

    assert_eq!((outcome.exit.unwrap().code, outcome.survivors), (Some(0), vec![]));
    // Not killed: it was seen that nobody lives. Whether SIGTERM had worked before the first look is chance.
    assert_ne!(outcome.ended, Ended::Kill);
    assert!(Seen::alive(early).is_none() && !late.lives());
    let group = Pid::from_raw(i32::try_from(process.pid()).unwrap()).unwrap();
    test_kill_process_group(group).expect("the zombies answer for their group, or this test shows nothing");

    while waitpgid(group, WaitOptions::empty()).is_ok() {}
    test_kill_process_group(group).unwrap_err();
}
