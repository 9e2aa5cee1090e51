//! The session behind a name of a project: opened once, shared, opened again. With real server processes.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use tokio::runtime::Handle;
use workflow_mcp::error::{ErrorCode, McpError};
use workflow_mcp::policy::input::Input;
use workflow_mcp::policy::options::judge;
use workflow_mcp::policy::redact::Redactor;
use workflow_mcp::process::Command;
use workflow_mcp::session::calls::{Outcome, Settle, Terms};
use workflow_mcp::session::on_demand::{Access, OnDemand};
use workflow_mcp::session::{Asked, Event, Owner, Plan, Reason, Server, Session};

/// Long enough for a loaded machine; a test that needs it has failed.
const PATIENCE: Duration = Duration::from_secs(20);

struct Nobody;

impl Owner for Nobody {
    fn heard(&self, _: Event) {}
}

fn node() -> PathBuf {
    let path = std::env::var_os("PATH").unwrap();
    let nodes = std::env::split_paths(&path)
        .map(|folder| folder.join(format!("node{}", std::env::consts::EXE_SUFFIX)));
    nodes.into_iter().find(|node| node.is_file()).unwrap()
}

fn plan(program: PathBuf, arguments: &[&str]) -> Plan {
    let none = || Input::Object(Vec::new());
    let server = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/server.mjs");
    let arguments = arguments.iter().map(|argument| (*argument).to_owned());
    let command = Command {
        program,
        arguments: std::iter::once(server.display().to_string()).chain(arguments).collect(),
        directory: None,
        variables: Vec::new(),
    };
    Plan {
        id: "fixture".to_owned(),
        server: Server::Process(command),
        tools: workflow_mcp::policy::definition::ToolFilter::default(),
        lists_tools: false,
        timeout: PATIENCE,
        answers_input: false,
        redactor: Redactor::new(&[]),
        missing: Vec::new(),
        options: Arc::new(judge(&Input::Undefined, none, false).unwrap()),
    }
}

/// And how often a plan was asked for.
fn on_demand(program: PathBuf, arguments: &'static [&'static str]) -> (OnDemand, Arc<AtomicUsize>) {
    let attempts: Arc<AtomicUsize> = Arc::default();
    let counted = attempts.clone();
    let on_demand = OnDemand::new("fixture", Handle::current(), Arc::new(Nobody), move || {
        counted.fetch_add(1, Ordering::Relaxed);
        Ok(plan(program.clone(), arguments))
    });
    (on_demand, attempts)
}

async fn opened(on_demand: &OnDemand) -> Result<Session, McpError> {
    match on_demand.access() {
        Access::Open(session) => Ok(session),
        Access::Opening(opening) => opening.opened().await,
        Access::Failed(error) => Err(error),
    }
}

async fn call(session: &Session, tool: &str, arguments: &str) -> Outcome {
    let (sender, outcome) = tokio::sync::oneshot::channel();
    let terms = Terms::within("call", Some(PATIENCE));
    let settle = Settle::new(move |outcome| drop(sender.send(outcome)));
    let _id = session.call_tool(tool, arguments, Asked { terms, meta: None }, settle);
    outcome.await.unwrap()
}

#[tokio::test]
async fn however_many_callers_race_one_session_is_opened_and_all_share_it() {
    let (on_demand, attempts) = on_demand(node(), &[]);
    let callers = (0..50).map(|_| {
        let on_demand = on_demand.clone();
        tokio::spawn(async move { opened(&on_demand).await.unwrap() })
    });
    for caller in callers.collect::<Vec<_>>() {
        call(&caller.await.unwrap(), "echo", "{}").await.unwrap();
    }
    assert_eq!(attempts.load(Ordering::Relaxed), 1);
    on_demand.close(Reason::Closed).await;
    assert_eq!(opened(&on_demand).await.err().unwrap().code, ErrorCode::Closed);
}

#[tokio::test]
async fn a_session_that_was_lost_is_opened_again_at_once() {
    let (on_demand, attempts) = on_demand(node(), &[]);
    let first = opened(&on_demand).await.unwrap();
    assert_eq!(call(&first, "leave", r#"{"how":"0"}"#).await.unwrap_err().code, ErrorCode::Exited);
    assert!(first.is_gone());
    let second = opened(&on_demand).await.unwrap();
    call(&second, "echo", "{}").await.unwrap();
    assert_eq!(attempts.load(Ordering::Relaxed), 2);
    on_demand.close(Reason::Closed).await;
    assert!(first.has_ended() && second.has_ended(), "the close waits for both");
}

#[tokio::test]
async fn a_server_that_refuses_is_asked_once_at_a_time_and_seldom() {
    let (on_demand, attempts) = on_demand(PathBuf::from("/nowhere/node"), &[]);
    let begun = Instant::now();
    let callers = (0..50).map(|_| {
        let on_demand = on_demand.clone();
        tokio::spawn(async move {
            let mut refusals = 0;
            while begun.elapsed() < Duration::from_secs(2) {
                assert_eq!(opened(&on_demand).await.err().unwrap().code, ErrorCode::Spawn);
                refusals += 1;
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            refusals
        })
    });
    for caller in callers.collect::<Vec<_>>() {
        assert!(caller.await.unwrap() > 6, "callers are answered, and do not wait for an attempt");
    }
    // Gaps of 100, 200, 400 and 800 ms: attempts at 0, 100, 300, 700 and 1,500 ms at the earliest.
    let attempts = attempts.load(Ordering::Relaxed);
    assert!((2..=5).contains(&attempts), "{attempts} attempts");
}

#[tokio::test]
async fn a_close_ends_an_opening_and_its_callers() {
    let (on_demand, _) = on_demand(node(), &["--silent"]);
    let Access::Opening(opening) = on_demand.access() else { panic!("it was there before") };
    let waiting = tokio::spawn(opening.opened());
    tokio::time::timeout(PATIENCE, on_demand.close(Reason::Closed)).await.unwrap();
    assert_eq!(waiting.await.unwrap().err().unwrap().code, ErrorCode::Closed);
}

#[tokio::test]
async fn an_opening_goes_on_without_the_caller_that_began_it() {
    let (on_demand, attempts) = on_demand(node(), &[]);
    let Access::Opening(first) = on_demand.access() else { panic!("it was there before") };
    drop(first);
    opened(&on_demand).await.unwrap();
    assert_eq!(attempts.load(Ordering::Relaxed), 1);
    on_demand.close(Reason::Closed).await;
}

#[tokio::test]
async fn everybody_who_closes_waits_until_nothing_is_left() {
    let (on_demand, _) = on_demand(node(), &["--ignore-end"]);
    let session = opened(&on_demand).await.unwrap();
    drop(on_demand.close(Reason::Closed));
    tokio::time::timeout(PATIENCE, on_demand.close(Reason::Closed)).await.unwrap();
    assert!(session.has_ended());
}

/// Panics at what it hears first.
#[derive(Default)]
struct Faulty(AtomicUsize);

impl Owner for Faulty {
    fn heard(&self, _: Event) {
        assert!(self.0.fetch_add(1, Ordering::Relaxed) > 0, "a fault on purpose");
    }
}

#[tokio::test]
async fn an_opening_that_is_lost_by_a_fault_is_the_error_of_its_callers_and_not_of_later_ones() {
    let on_demand = OnDemand::new("fixture", Handle::current(), Arc::new(Faulty::default()), || {
        let plan = plan(node(), &[]);
        let mut options = (*plan.options).clone();
        options.listens.warning = true;
        Ok(Plan { missing: vec!["UNSET".to_owned()], options: Arc::new(options), ..plan })
    });
    assert_eq!(opened(&on_demand).await.err().unwrap().code, ErrorCode::Internal);
    let session = opened(&on_demand).await.unwrap();
    call(&session, "echo", "{}").await.unwrap();
    on_demand.close(Reason::Closed).await;
}
