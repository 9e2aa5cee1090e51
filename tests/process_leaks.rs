//! A long life: nothing grows. Alone in its file, because it counts what the whole process holds.
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "in tests")]
#![cfg(target_os = "linux")] // They look at /proc.

#[expect(dead_code, reason = "each test file takes what it needs")]
mod support;

use std::fs;
use std::path::PathBuf;

use support::{Lines, sh, started, waits};
use workflow_mcp::process::{Command, Spawned, spawn};

fn descriptors() -> usize {
    fs::read_dir("/proc/self/fd").unwrap().count()
}

/// Children of this process, zombies included.
fn children() -> Vec<String> {
    let own = std::process::id().to_string();
    fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .filter_map(|entry| fs::read_to_string(entry.path().join("stat")).ok())
        .filter(|stat| stat.rsplit_once(')').unwrap().1.split_ascii_whitespace().nth(1) == Some(&own))
        .collect()
}

/// One server, ended in one of the four ways a session ends one, or not started at all.
async fn cycle(round: usize) {
    match round % 5 {
        0 => {
            let Spawned { process, stdin, .. } = started(sh("cat")).await;
            drop(stdin);
            process.stop(waits(10_000, 10_000)).await;
        }
        1 => {
            let Spawned { process, .. } = started(sh("exec sleep 300")).await;
            process.stop(waits(0, 10_000)).await;
        }
        2 => {
            let Spawned { process, stdout, .. } = started(sh("trap '' TERM; echo; exec sleep 300")).await;
            Lines::of(stdout).next().await;
            process.stop(waits(0, 0)).await;
        }
        3 => {
            let Spawned { process, .. } = started(sh("kill -s KILL $$")).await;
            process.exited().await;
            process.stop(waits(10_000, 10_000)).await;
        }
        _ => {
            let program = PathBuf::from("/no/such/program");
            let command = Command { program, arguments: vec![], directory: None, variables: vec![] };
            spawn(command, false).await.unwrap_err();
        }
    }
}

#[tokio::test]
async fn two_hundred_servers_leave_no_descriptor_and_no_zombie() {
    for round in 0..10 {
        cycle(round).await;
    }
    let before = descriptors();
    for round in 0..200 {
        cycle(round).await;
    }
    assert_eq!(children(), Vec::<String>::new());
    assert!(descriptors() <= before, "{} descriptors, {before} before", descriptors());
}
