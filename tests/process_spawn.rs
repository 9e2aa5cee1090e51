//! What a child is given, what it is not, and why one does not start.
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "in tests")]
#![cfg(target_os = "linux")] // They look at /proc.

#[expect(dead_code, reason = "each test file takes what it needs")]
mod support;

use std::fs::{self, Permissions};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use rustix::fs::OFlags;
use rustix::io::FdFlags;
use support::{Lines, PATIENCE, sh, started, waits};
use tokio::time::{Instant, sleep};
use workflow_mcp::process::{Command, Ended, SpawnError, Spawned, What, spawn};

/// A folder of this test's own.
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    folder
}

fn file(path: &Path, content: &str, mode: u32) {
    fs::write(path, content).unwrap();
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

async fn refusal(program: &Path, directory: Option<&Path>) -> SpawnError {
    let command = Command {
        program: program.to_owned(),
        arguments: vec!["an-argument".into()],
        directory: directory.map(Path::to_owned),
        variables: vec![("SOME_NAME".into(), "some-value".into())],
    };
    let error = spawn(command, false).await.unwrap_err();
    let shown = format!("{error} {error:?}");
    assert!(!shown.contains("an-argument") && !shown.contains("some-value"), "{shown}");
    error
}

fn kind(error: &SpawnError) -> (What, &Path, Option<i32>) {
    (error.what, &error.path, error.errno)
}

const ENOENT: Option<i32> = Some(rustix::io::Errno::NOENT.raw_os_error());
const EACCES: Option<i32> = Some(rustix::io::Errno::ACCESS.raw_os_error());
const ENOTDIR: Option<i32> = Some(rustix::io::Errno::NOTDIR.raw_os_error());
const ENOEXEC: Option<i32> = Some(rustix::io::Errno::NOEXEC.raw_os_error());

#[tokio::test]
async fn a_missing_command_a_missing_directory_and_a_missing_interpreter_are_told_apart() {
    let folder = folder("told-apart");
    let missing = folder.join("missing");

    let error = refusal(&missing, Some(&folder)).await;
    assert_eq!(kind(&error), (What::Command, &*missing, ENOENT));
    assert_eq!(error.to_string(), format!("The command {} was not found", missing.display()));

    let error = refusal(Path::new("/bin/sh"), Some(&missing)).await;
    assert_eq!(kind(&error), (What::Cwd, &*missing, ENOENT));
    assert_eq!(error.to_string(), format!("The working directory {} does not exist", missing.display()));

    let script = folder.join("script");
    file(&script, "#! /no/such/python3 -u\nprint()\n", 0o755);
    let error = refusal(&script, None).await;
    assert_eq!(kind(&error), (What::Interpreter, Path::new("/no/such/python3"), ENOENT));
    assert!(error.to_string().starts_with(&script.display().to_string()), "{error}");

    file(&script, "#!/bin/sh\r\necho\r\n", 0o755);
    let error = refusal(&script, None).await;
    assert_eq!(kind(&error), (What::Interpreter, Path::new("/bin/sh\r"), ENOENT));
    assert!(error.to_string().contains(r"/bin/sh\r"), "{error}");
    assert!(error.to_string().contains("line ends of Windows"), "{error}");
}

#[tokio::test]
async fn what_is_there_but_cannot_be_used_is_told_from_what_is_missing() {
    let folder = folder("not-usable");
    let plain = folder.join("plain");
    file(&plain, "#!/bin/sh\n", 0o644);

    let error = refusal(&plain, None).await;
    assert_eq!(kind(&error), (What::Command, &*plain, EACCES));
    assert!(error.to_string().contains("may not be executed"), "{error}");

    let error = refusal(&folder, None).await;
    assert_eq!(kind(&error), (What::Command, &*folder, EACCES));
    assert!(error.to_string().contains("is a directory"), "{error}");

    let error = refusal(Path::new("/bin/sh"), Some(&plain)).await;
    assert_eq!(kind(&error), (What::Cwd, &*plain, ENOTDIR));
    assert!(error.to_string().contains("is not a directory"), "{error}");

    file(&plain, "no program\n", 0o755);
    let error = refusal(&plain, None).await;
    assert_eq!(kind(&error), (What::Command, &*plain, ENOEXEC));
    assert!(error.to_string().contains("no #! line"), "{error}");
}

#[tokio::test]
async fn an_argument_with_nul_is_refused_without_a_number() {
    let mut command = sh("exit");
    command.arguments.push("a\0b".into());
    let error = spawn(command, false).await.unwrap_err();
    assert_eq!((error.errno, error.what), (None, What::Command));
}

#[tokio::test]
async fn a_server_gets_its_variables_and_nothing_else() {
    let command = Command {
        program: PathBuf::from("/usr/bin/env"),
        arguments: vec![],
        directory: None,
        variables: vec![("NAME".into(), "värde ✓".into()), ("EMPTY".into(), String::new())],
    };
    let Spawned { process, stdout, .. } = started(command).await;
    let mut variables = Lines::of(stdout).rest().await;
    variables.sort();
    assert_eq!(variables, ["EMPTY=", "NAME=värde ✓"]);
    process.stop(waits(0, 0)).await;
}

#[tokio::test]
async fn a_server_starts_in_its_directory_and_leads_its_own_group() {
    let folder = folder("cwd");
    let mut command = sh("pwd; ps -o pgid= -p $$");
    command.directory = Some(folder.clone());
    let Spawned { process, stdout, .. } = started(command).await;
    let mut lines = Lines::of(stdout);
    assert_eq!(lines.next().await.unwrap(), folder.display().to_string());
    assert_eq!(lines.next().await.unwrap().trim(), process.pid().to_string());
    process.stop(waits(0, 0)).await;
}

#[tokio::test]
async fn our_pipe_ends_are_non_blocking_and_close_on_exec_and_those_of_the_server_block() {
    let script = "python3 -c 'import os; print([os.get_blocking(n) for n in (0, 1)])'";
    let Spawned { process, stdin, stdout, stderr } = started(sh(script)).await;
    for end in [&stdin, &stdout, &stderr] {
        assert!(rustix::fs::fcntl_getfl(end).unwrap().contains(OFlags::NONBLOCK));
        assert!(rustix::io::fcntl_getfd(end).unwrap().contains(FdFlags::CLOEXEC));
    }
    assert_eq!(Lines::of(stdout).next().await.unwrap(), "[True, True]");
    process.stop(waits(0, 0)).await;
}

#[tokio::test]
async fn a_server_inherits_no_descriptor_of_the_host_or_of_another_server() {
    let first = started(sh("cat; exit 9")).await;
    let file = folder("inherits").join("of-the-host");
    let host = fs::File::create(&file).unwrap();
    // What this test process got from its own parent is not ours to close, so: is one of these there?
    let ours = [first.stdin.as_fd(), first.stdout.as_fd(), first.stderr.as_fd(), host.as_fd()].map(|end| {
        let link = format!("/proc/self/fd/{}", end.as_raw_fd());
        fs::read_link(link).unwrap().into_os_string().into_string().unwrap()
    });
    let second = started(sh("for end in /proc/$$/fd/*; do readlink $end; done")).await;
    let mut child = std::process::Command::new("/bin/sleep").arg("30").stdout(Stdio::null()).spawn().unwrap();
    let held = Lines::of(second.stdout).rest().await;
    assert!(held.iter().any(|link| link.starts_with("pipe:")), "{held:?}");
    for end in &ours {
        assert!(!held.contains(end), "{end} is in {held:?}");
    }

    drop(first.stdin);
    let outcome = first.process.stop(waits(10_000, 10_000)).await;
    assert_eq!((outcome.ended, outcome.exit.unwrap().code), (Ended::EndOfInput, Some(9)));
    second.process.stop(waits(0, 0)).await;
    child.kill().unwrap();
    child.wait().unwrap();
}

#[tokio::test]
async fn a_spawn_whose_caller_is_dropped_leaves_no_process() {
    for delay in [0, 1, 3, 10] {
        let folder = folder(&format!("dropped-{delay}"));
        let mut command = sh("trap '' TERM; echo $$ > new; mv new pid; while :; do sleep 0.05; done");
        command.directory = Some(folder.clone());
        tokio::select! {
            biased;
            spawned = spawn(command, false) => drop(spawned),
            () = sleep(Duration::from_millis(delay)) => {}
        }
        let deadline = Instant::now() + PATIENCE;
        let pid = loop {
            if let Ok(pid) = fs::read_to_string(folder.join("pid")) {
                break pid.trim().parse().unwrap();
            }
            assert!(Instant::now() < deadline, "the server never came up");
            sleep(Duration::from_millis(5)).await;
        };
        assert!(support::reaped(pid).await, "{pid} outlived its caller");
    }
}
