//! What is left of the servers when their host is killed: nothing. The host here is this test program, started a second time.
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "in tests")]
#![cfg(target_os = "linux")] // They look at /proc.

#[expect(dead_code, reason = "each test file takes what it needs")]
mod support;

use std::io::{BufRead, BufReader, Lines, Write};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::{env, io};

use support::{Seen, sh};
use workflow_mcp::process::{Spawned, spawn};

/// For the host: the script of its server, and whether it wants a guardian.
const SCRIPT: &str = "HOST_SCRIPT";
const GUARDIAN: &str = "HOST_GUARDIAN";

#[tokio::test]
#[ignore = "not a test: the host that the tests of this file start and kill"]
async fn host() {
    let script = env::var(SCRIPT).unwrap();
    let mut held = Vec::new();
    for _ in 0..2 {
        let spawned = spawn(sh(&script), env::var_os(GUARDIAN).is_some()).await.unwrap();
        let mut lines = support::Lines::of(spawned.stdout.try_clone().unwrap());
        // The server has set its traps; its helper, if it has one, is running.
        let helper = lines.next().await.unwrap();
        assert_eq!(spawned.process.guardian_warning().await, None);
        say(&format!("server {}", spawned.process.pid()));
        say(&format!("helper {helper}"));
        held.push(spawned);
    }
    say("up");
    let order = told().await;
    if order.as_deref() == Some("exit") {
        std::process::exit(0);
    }
    if order.is_some() {
        for Spawned { process, stdin, .. } in held {
            drop(stdin);
            process.stop(support::waits(100, 100)).await;
        }
        say("stopped");
        told().await;
    }
}

/// Waits for a line from the test, or the end of them.
async fn told() -> Option<String> {
    tokio::task::spawn_blocking(|| io::stdin().lock().lines().next().map(Result::unwrap)).await.unwrap()
}

fn say(line: &str) {
    // The test harness writes to the same stream, so this begins a line of its own.
    io::stdout().write_all(format!("\n=> {line}\n").as_bytes()).unwrap();
}

struct Host {
    child: Child,
    says: Lines<BufReader<ChildStdout>>,
    servers: Vec<Seen>,
    helpers: Vec<Seen>,
}

impl Host {
    fn start(script: &str, guardian: bool) -> Self {
        let mut command = Command::new(env::current_exe().unwrap());
        command.args(["--exact", "host", "--ignored", "--nocapture"]).env(SCRIPT, script);
        if guardian {
            command.env(GUARDIAN, "1");
        }
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let says = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut host = Self { child, says, servers: Vec::new(), helpers: Vec::new() };
        loop {
            let line = host.hear();
            let number = |text: &str| Seen::alive(text.parse().unwrap()).unwrap();
            match line.split_once(' ') {
                Some(("server", pid)) => host.servers.push(number(pid)),
                Some(("helper", pid)) => host.helpers.push(number(pid)),
                _ => return host,
            }
        }
    }

    /// The next line that the host says to us.
    fn hear(&mut self) -> String {
        let mut says = self.says.by_ref().map(Result::unwrap);
        says.find_map(|line| line.strip_prefix("=> ").map(str::to_owned)).expect("the host ended")
    }

    /// The guardians among its children, by the name they have in a list of processes.
    fn guardians(&self) -> Vec<Seen> {
        let list =
            Command::new("ps").args(["-o", "pid=,args=", "--ppid", &self.child.id().to_string()]).output();
        let list = String::from_utf8(list.unwrap().stdout).unwrap();
        let all: Vec<u32> = list
            .split_terminator('\n')
            .filter_map(|line| line.trim_start().split_once(' ').map(|(pid, _)| pid.parse()))
            .filter_map(Result::ok)
            .collect();
        let named = |pid: &u32| {
            let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            line.ends_with(b"\0workflow-mcp-guardian\0")
        };
        all.into_iter().filter(named).filter_map(Seen::alive).collect()
    }

    fn kill(mut self) -> (Vec<Seen>, Vec<Seen>) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        (self.servers, self.helpers)
    }
}

/// Ignores the end of its input and SIGTERM, and so does its helper.
const RUDE: &str =
    "trap '' TERM; sh -c 'echo $$; while :; do sleep 0.05; done' & while :; do sleep 0.05; done";

#[tokio::test]
async fn servers_and_their_helpers_end_with_a_killed_host_and_so_does_the_guardian() {
    let host = Host::start(RUDE, true);
    let guardians = host.guardians();
    assert_eq!(guardians.len(), 1, "one for two servers");
    let environment = std::fs::read(format!("/proc/{}/environ", guardians[0].pid)).unwrap();
    assert!(environment.is_empty(), "it got variables");
    let directory = std::fs::read_link(format!("/proc/{}/cwd", guardians[0].pid)).unwrap();
    assert_eq!(directory.to_str(), Some("/"));

    let (servers, helpers) = host.kill();
    assert_eq!((servers.len(), helpers.len()), (2, 2));
    for one in servers.into_iter().chain(helpers).chain(guardians) {
        assert!(one.gone().await, "{one:?} outlived its host");
    }
}

#[tokio::test]
async fn without_a_guardian_rude_servers_and_their_helpers_still_end_with_the_exit_of_their_host() {
    let mut host = Host::start(RUDE, false);
    assert_eq!(host.guardians(), []);
    host.child.stdin.take().unwrap().write_all(b"exit\n").unwrap();
    assert!(host.child.wait().unwrap().success());
    assert_eq!((host.servers.len(), host.helpers.len()), (2, 2));
    for one in host.servers.into_iter().chain(host.helpers) {
        assert!(one.gone().await, "{one:?} outlived its host");
    }
}

#[tokio::test]
async fn without_a_guardian_a_rude_server_outlives_a_killed_host() {
    // The reason for the guardian. Should this fail one day, the guardian can go.
    let host = Host::start(RUDE, false);
    assert_eq!(host.guardians(), []);
    let (servers, helpers) = host.kill();
    tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    for server in &servers {
        assert!(server.lives());
        let group = rustix::process::Pid::from_raw(i32::try_from(server.pid).unwrap()).unwrap();
        rustix::process::kill_process_group(group, rustix::process::Signal::KILL).unwrap();
    }
    for one in servers.into_iter().chain(helpers) {
        assert!(one.gone().await);
    }
}

#[tokio::test]
async fn the_guardian_leaves_without_a_signal_when_the_servers_left_before_the_host() {
    let mut host = Host::start(RUDE, true);
    let guardians = host.guardians();
    host.child.stdin.as_mut().unwrap().write_all(b"stop\n").unwrap();
    assert_eq!(host.hear(), "stopped");
    for server in &host.servers {
        assert!(!server.lives());
    }
    assert!(guardians[0].lives(), "it waits for the next server");
    host.kill();
    assert!(guardians[0].gone().await);
}
