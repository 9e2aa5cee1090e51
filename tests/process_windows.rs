//! Servers in jobs, on Windows: how they start, talk and end. The servers are this test program, started a second time.
#![cfg(windows)]
#![cfg_attr(windows, expect(clippy::unwrap_used, clippy::expect_used, reason = "in tests"))]

use std::io::{self, BufRead, ErrorKind, Read, Write};
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;
use std::{env, fs, thread};

use tokio::time::timeout;
use workflow_mcp::process::pipes::{self, End, Input, Output};
use workflow_mcp::process::{Command, Ended, Spawned, Waits, What, spawn};

/// Long enough for a loaded machine; a test that needs it has failed.
const PATIENCE: Duration = Duration::from_secs(30);

/// What the program is when it is started as a server.
const ROLE: &str = "SERVER_ROLE";

#[tokio::test]
#[ignore = "not a test: what the tests of this file start"]
async fn server() {
    match env::var(ROLE).unwrap().as_str() {
        "polite" => {
            say("ready");
            for line in io::stdin().lock().lines() {
                say(&format!("got {}", line.unwrap().len()));
            }
            // Time to be asked to leave before it has.
            thread::sleep(Duration::from_secs(1));
            std::process::exit(7);
        }
        "deaf" => {
            say("ready");
            sleep_on()
        }
        "wrapper that leaves" => {
            drop(helper());
            std::process::exit(3);
        }
        "wrapper that stays" => {
            drop(helper());
            sleep_on()
        }
        "talkative" => {
            io::stdout().write_all(&b"x".repeat(300_000)).unwrap();
            std::process::exit(0);
        }
        "environment" => {
            let mut names: Vec<_> = env::vars().map(|(name, _)| name).collect();
            names.sort();
            say(&names.join(" "));
        }
        "host" => {
            let held = [spawn(role("deaf"), false).await.unwrap(), spawn(role("deaf"), true).await.unwrap()];
            for spawned in held {
                assert_eq!(spawned.process.guardian_warning().await, None);
                let mut output = Lines::of(spawned.stdout);
                assert_eq!(output.said().await, "ready");
                std::mem::forget((spawned.process, spawned.stdin, output));
            }
            say("up");
            sleep_on()
        }
        role => panic!("{role}"),
    }
}

fn sleep_on() -> ! {
    loop {
        thread::sleep(Duration::from_mins(1));
    }
}

/// Starts one that ignores everything and writes to the same stdout.
fn helper() -> std::process::Child {
    let child = std::process::Command::new(env::current_exe().unwrap())
        .args(SERVER_ARGUMENTS)
        .env(ROLE, "deaf")
        .stdin(Stdio::null())
        .spawn();
    child.unwrap()
}

fn say(line: &str) {
    // The test harness writes to the same stream, so this begins a line of its own.
    io::stdout().write_all(format!("\n=> {line}\n").as_bytes()).unwrap();
}

const SERVER_ARGUMENTS: [&str; 4] = ["--exact", "server", "--ignored", "--nocapture"];

fn role(role: &str) -> Command {
    let mut variables = vec![(ROLE.to_owned(), role.to_owned())];
    variables.extend(env::vars().filter(|(name, _)| name.eq_ignore_ascii_case("SystemRoot")));
    Command {
        program: env::current_exe().unwrap(),
        arguments: SERVER_ARGUMENTS.map(str::to_owned).into(),
        directory: None,
        variables,
    }
}

/// What a server writes.
struct Lines {
    output: Output,
    read: Vec<u8>,
}

impl Lines {
    fn of(end: End) -> Self {
        Self { output: pipes::output(end).unwrap(), read: Vec::new() }
    }

    /// What was said next.
    async fn said(&mut self) -> String {
        loop {
            if let Some(end) = self.read.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.read.drain(..=end).collect();
                let line = String::from_utf8(line).unwrap();
                if let Some(said) = line.trim_end().strip_prefix("=> ") {
                    return said.to_owned();
                }
            } else {
                assert!(self.more().await, "it ended without another word");
            }
        }
    }

    /// Whether there was more before the end. Nobody who holds the other end lives on after that.
    async fn more(&mut self) -> bool {
        let more = async {
            loop {
                self.output.readable().await.unwrap();
                match self.output.try_read_buf(&mut self.read) {
                    Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                    read => return read.unwrap_or(0) > 0,
                }
            }
        };
        timeout(PATIENCE, more).await.expect("nothing was written, and somebody holds the pipe open")
    }

    async fn ended(&mut self) {
        while self.more().await {}
    }
}

async fn write(input: &Input, mut bytes: &[u8]) {
    while !bytes.is_empty() {
        timeout(PATIENCE, input.writable()).await.expect("nobody reads").unwrap();
        match input.try_write(bytes) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            written => bytes = &bytes[written.unwrap()..],
        }
    }
}

fn waits(end_of_input: u64, terminate: u64) -> Waits {
    Waits { end_of_input: Duration::from_millis(end_of_input), terminate: Duration::from_millis(terminate) }
}

#[tokio::test]
async fn a_server_answers_and_leaves_at_the_end_of_its_input() {
    let Spawned { process, stdin, stdout, .. } = spawn(role("polite"), true).await.unwrap();
    let (input, mut output) = (pipes::input(stdin).unwrap(), Lines::of(stdout));
    assert_eq!(output.said().await, "ready");
    for length in [5, 5_000_000, 0] {
        write(&input, &[&b"m".repeat(length)[..], b"\n"].concat()).await;
        assert_eq!(output.said().await, format!("got {length}"));
    }
    assert_eq!(process.exit(), None);
    drop(input);
    let outcome = process.stop(waits(30_000, 0)).await;
    assert_eq!((outcome.ended, outcome.exit.unwrap().code), (Ended::EndOfInput, Some(7)));
    assert!(outcome.survivors.is_empty());
    assert_eq!(process.exited().await.signal_name(), None);
}

#[tokio::test]
async fn one_that_had_left_by_itself_is_told_apart() {
    let Spawned { process, stdin, stdout: _stdout, .. } = spawn(role("polite"), false).await.unwrap();
    drop(stdin);
    assert_eq!(process.exited().await.code, Some(7));
    assert_eq!(process.stop(waits(30_000, 0)).await.ended, Ended::ByItself);
}

#[tokio::test]
async fn one_that_ignores_the_end_of_its_input_is_ended_together_with_its_helper() {
    let Spawned { process, stdin, stdout, .. } = spawn(role("wrapper that stays"), false).await.unwrap();
    let mut output = Lines::of(stdout);
    assert_eq!(output.said().await, "ready");
    drop(stdin);
    let outcome = process.stop(waits(100, 100)).await;
    assert_eq!((outcome.ended, outcome.exit.unwrap().code), (Ended::Kill, Some(1)));
    assert!(outcome.survivors.is_empty());
    output.ended().await;
}

#[tokio::test]
async fn a_helper_that_a_wrapper_left_behind_is_ended() {
    let Spawned { process, stdin, stdout, .. } = spawn(role("wrapper that leaves"), false).await.unwrap();
    let mut output = Lines::of(stdout);
    assert_eq!(output.said().await, "ready");
    assert_eq!(process.exited().await.code, Some(3));
    drop(stdin);
    let outcome = process.stop(waits(30_000, 100)).await;
    assert_eq!((outcome.ended, outcome.exit.unwrap().code), (Ended::Kill, Some(3)));
    output.ended().await;
}

#[tokio::test]
async fn a_process_that_nobody_holds_is_ended() {
    let Spawned { process, stdin, stdout, .. } = spawn(role("deaf"), false).await.unwrap();
    let mut output = Lines::of(stdout);
    assert_eq!(output.said().await, "ready");
    drop((process, stdin));
    output.ended().await;
}

#[tokio::test]
async fn the_servers_of_a_host_that_is_killed_end_with_it() {
    let mut host = std::process::Command::new(env::current_exe().unwrap())
        .args(SERVER_ARGUMENTS)
        .env(ROLE, "host")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = io::BufReader::new(host.stdout.take().unwrap());
    let mut line = String::new();
    while line.trim_end() != "=> up" {
        line.clear();
        assert!(lines.read_line(&mut line).unwrap() > 0, "the host ended early");
    }
    host.kill().unwrap();
    host.wait().unwrap();
    // They have inherited the host's stdout, whose end is therefore theirs.
    let end = tokio::task::spawn_blocking(move || lines.read_to_end(&mut Vec::new()));
    timeout(PATIENCE, end).await.expect("a server has outlived its host").unwrap().unwrap();
}

#[tokio::test]
async fn the_last_words_of_a_server_can_be_read_after_it_has_left() {
    let Spawned { process, stdin: _stdin, stdout, .. } = spawn(role("talkative"), false).await.unwrap();
    let output = pipes::output(stdout).unwrap();
    let mut read = Vec::new();
    // The pipe holds 64 KiB: read until it has left, then what is still there.
    loop {
        tokio::select! {
            _ = process.exited() => break,
            ready = output.readable() => {
                ready.unwrap();
                let _ = output.try_read_buf(&mut read);
            }
        }
    }
    while pipes::output_now(&output, &mut read).await.is_ok_and(|count| count > 0) {}
    assert!(read.ends_with(&b"x".repeat(300_000)), "{} bytes", read.len());
}

#[tokio::test]
async fn that_nobody_reads_its_input_any_more_is_noticed_without_a_write() {
    let Spawned { process, stdin, stdout, .. } = spawn(role("polite"), false).await.unwrap();
    let (input, mut output) = (pipes::input(stdin).unwrap(), Lines::of(stdout));
    assert_eq!(output.said().await, "ready");
    let early = timeout(Duration::from_millis(300), pipes::unread(&input)).await;
    assert!(early.is_err(), "it still reads");
    write(&input, b"m\n").await;
    assert_eq!(output.said().await, "got 1");
    process.stop(waits(0, 0)).await;
    timeout(PATIENCE, pipes::unread(&input)).await.expect("nobody noticed");
}

#[tokio::test]
async fn a_server_has_the_variables_it_was_given_and_no_others() {
    let Spawned { process: _process, stdin: _stdin, stdout, .. } =
        spawn(role("environment"), false).await.unwrap();
    let said = Lines::of(stdout).said().await;
    // The system adds SystemDrive where it is missing, and Wine its own.
    let given = [ROLE, "SystemRoot", "SystemDrive"];
    let unknown: Vec<_> = said
        .split(' ')
        .filter(|name| {
            !given.iter().any(|given| name.eq_ignore_ascii_case(given)) && !name.starts_with("WINE")
        })
        .collect();
    assert_eq!(unknown, Vec::<&str>::new());
}

#[tokio::test]
async fn what_is_missing_is_named() {
    let missing = Command { program: PathBuf::from(r"C:\no\such\program.exe"), ..role("polite") };
    let error = spawn(missing, false).await.unwrap_err();
    assert_eq!(
        (error.what, error.to_string().as_str()),
        (What::Command, r"The command C:\no\such\program.exe was not found")
    );

    let nowhere = Command { directory: Some(PathBuf::from(r"C:\no\such\folder")), ..role("polite") };
    let error = spawn(nowhere, false).await.unwrap_err();
    assert_eq!((error.what, error.path), (What::Cwd, PathBuf::from(r"C:\no\such\folder")));
}

#[tokio::test]
async fn a_batch_file_is_a_server_like_any_other() {
    let script = env::temp_dir().join(format!("workflow mcp {}.cmd", std::process::id()));
    fs::write(&script, "@echo =^> [%~1] [%~2]\r\n").unwrap();
    let command =
        Command { program: script.clone(), arguments: vec!["a b".into(), "c".into()], ..role("polite") };
    let Spawned { process: _process, stdin: _stdin, stdout, .. } = spawn(command, false).await.unwrap();
    let said = Lines::of(stdout).said().await;
    fs::remove_file(script).unwrap();
    assert_eq!(said, "[a b] [c]");
}
