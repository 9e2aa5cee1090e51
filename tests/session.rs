//! One session over a real server process, through the core alone: no N-API is compiled in.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::oneshot;
use workflow_mcp::error::{ErrorCode, McpError};
use workflow_mcp::link::result_text::ResultText;
use workflow_mcp::policy::definition::judge_one;
use workflow_mcp::policy::input::Input;
use workflow_mcp::policy::options::judge;
use workflow_mcp::policy::platform::Platform;
use workflow_mcp::session::calls::{Outcome, Settle, Terms};
use workflow_mcp::session::{Asked, Event, Owner, Plan, Reason, Server, Session, Welcome, connect};

/// Long enough for a loaded machine; a test that needs it has failed.
const PATIENCE: Duration = Duration::from_secs(20);

#[derive(Default)]
struct Heard(Mutex<Vec<String>>);

impl Owner for Heard {
    fn heard(&self, event: Event) {
        let told = match &event {
            Event::InputRequired(question) => question.request.clone(),
            event => format!("{event:?}"),
        };
        self.0.lock().unwrap().push(told);
        if let Event::InputRequired(question) = event {
            question.answer(Ok(r#"{"action":"accept"}"#.to_owned()));
        }
    }
}

fn node() -> PathBuf {
    let path = std::env::var_os("PATH").unwrap();
    std::env::split_paths(&path)
        .map(|folder| folder.join(format!("node{}", std::env::consts::EXE_SUFFIX)))
        .find(|node| node.is_file())
        .unwrap()
}

fn object(members: &[(&str, Input)]) -> Input {
    Input::Object(members.iter().map(|(key, value)| ((*key).to_owned(), value.clone())).collect())
}

/// The fixture server with these switches.
fn plan(switches: &[&str], options: &[(&str, Input)]) -> Plan {
    let options = judge(&object(options), || object(&[]), false).unwrap();
    let server = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/server.mjs");
    let mut command = vec![node().display().to_string(), server.display().to_string()];
    command.extend(switches.iter().map(|switch| (*switch).to_owned()));
    let command = Input::List(command.into_iter().map(Input::String).collect());
    let definition = object(&[("id", Input::String("fixture".into())), ("command", command)]);
    let definition = judge_one(&definition, &options, Platform::HOST).unwrap();
    Plan::of(definition, Arc::new(options), None)
}

async fn connected(switches: &[&str]) -> (Session, String, Arc<Heard>) {
    let heard = Arc::new(Heard::default());
    let started = connect(plan(switches, &[]), heard.clone(), std::future::pending()).await;
    let (session, Welcome(welcome)) = started.unwrap();
    (session, welcome, heard)
}

fn terms(timeout: Duration) -> Terms {
    Terms::within("call", Some(timeout))
}

/// Calls a tool; the id, and the outcome to wait for.
fn call(
    session: &Session,
    name: &str,
    arguments: &str,
    timeout: Duration,
) -> (Option<u64>, oneshot::Receiver<Outcome>) {
    let (sender, outcome) = oneshot::channel();
    let settle = Settle::new(|outcome| drop(sender.send(outcome)));
    (session.call_tool(name, arguments, Asked { terms: terms(timeout), meta: None }, settle), outcome)
}

async fn outcome(call: (Option<u64>, oneshot::Receiver<Outcome>)) -> Result<String, McpError> {
    tokio::time::timeout(PATIENCE, call.1).await.unwrap().unwrap().map(ResultText::into_string)
}

async fn failure(switches: &[&str], options: &[(&str, Input)]) -> McpError {
    let heard = Arc::new(Heard::default());
    match connect(plan(switches, options), heard, std::future::pending()).await {
        Ok(_) => panic!("it connected"),
        Err(error) => error,
    }
}

#[tokio::test]
async fn a_session_lists_calls_and_closes() {
    let (session, welcome, heard) = connected(&[]).await;
    assert!(welcome.contains(r#""protocolVersion":"2025-11-25""#), "{welcome}");
    assert!(welcome.contains(r#""name":"echo""#), "{welcome}");
    let text =
        outcome(call(&session, "result", r#"{"text":"{\"b\":1e400,\"a\":-0}"}"#, PATIENCE)).await.unwrap();
    assert_eq!(text, r#"{"b":1e400,"a":-0}"#);
    session.close(Reason::Closed);
    let info = tokio::time::timeout(PATIENCE, session.closed()).await.unwrap();
    assert_eq!((info.reason, info.end.ended, info.end.exit_code), (Reason::Closed, "end-of-input", Some(0)));
    assert_eq!(heard.0.lock().unwrap().len(), 1, "closed once, and nothing else");
    let error = outcome(call(&session, "echo", "{}", PATIENCE)).await.unwrap_err();
    assert_eq!((error.code, error.server_id.as_deref()), (ErrorCode::Closed, Some("fixture")));
}

#[tokio::test]
async fn a_call_given_up_is_told_once_and_its_late_answer_ignored() {
    let folder = std::env::temp_dir().join(format!("workflow-mcp-session-{}", std::process::id()));
    let log = folder.display().to_string();
    let (session, _, _) = connected(&["--log", &log]).await;
    let (id, mut settled) = call(&session, "sleep", r#"{"ms":100}"#, PATIENCE);
    assert!(session.cancel(id.unwrap()));
    assert!(!session.cancel(id.unwrap()), "it cannot be given up twice");
    // A call that is answered after the late answer shows that the session lives on.
    outcome(call(&session, "sleep", r#"{"ms":300}"#, PATIENCE)).await.unwrap();
    assert!(settled.try_recv().is_err(), "nobody settles a call that was given up");
    assert_eq!(session.diagnostics()["unexpectedAnswers"], 1);
    session.close(Reason::Closed);
    session.closed().await;
    let lines = std::fs::read_to_string(&folder).unwrap();
    std::fs::remove_file(&folder).unwrap();
    let told: Vec<_> = lines.lines().filter(|line| line.contains("notifications/cancelled")).collect();
    let expected = format!(
        r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{}}}}}"#,
        id.unwrap()
    );
    assert_eq!(told, [expected]);
}

#[tokio::test]
async fn a_server_that_dies_rejects_every_pending_call_with_how_it_died() {
    let (session, _, _) = connected(&[]).await;
    let pending: Vec<_> = (0..3).map(|_| call(&session, "silent", "{}", PATIENCE)).collect();
    let leaving = call(&session, "leave", r#"{"how":"9","stderr":"out of luck"}"#, PATIENCE);
    for call in pending.into_iter().chain([leaving]) {
        let error = outcome(call).await.unwrap_err();
        assert_eq!((error.code, error.detail("exitCode")), (ErrorCode::Exited, Some(&9.into())));
        assert_eq!(error.detail("stderr"), Some(&"out of luck".into()));
    }
    assert_eq!(session.closed().await.reason, Reason::Exited);
}

/// Panics on the I/O thread, in the middle of reading from the server.
struct Faulty;

impl Owner for Faulty {
    fn heard(&self, event: Event) {
        assert!(!matches!(event, Event::Log(_)), "a fault, on purpose");
    }
}

#[tokio::test]
async fn a_panic_while_reading_settles_every_call_and_harms_no_other_session() {
    let (other, _, _) = connected(&[]).await;
    let options = [("onLog", Input::Function)];
    let (session, _) = connect(plan(&[], &options), Arc::new(Faulty), std::future::pending()).await.unwrap();
    let pending = call(&session, "silent", "{}", PATIENCE);
    let fatal = call(&session, "say", r#"{"log":[{"level":"info","data":"x"}]}"#, PATIENCE);
    for error in [outcome(pending).await.unwrap_err(), outcome(fatal).await.unwrap_err()] {
        assert_eq!((error.code, error.server_id.as_deref()), (ErrorCode::Internal, Some("fixture")));
    }
    let info = tokio::time::timeout(PATIENCE, session.closed()).await.unwrap();
    assert_eq!(info.end.survivors, Vec::<u32>::new());
    outcome(call(&other, "echo", "{}", PATIENCE)).await.unwrap();
    other.close(Reason::Closed);
    other.closed().await;
}

#[tokio::test]
async fn a_server_that_reads_no_more_holds_up_neither_calls_nor_the_close() {
    let (session, _, _) = connected(&["--ignore-end"]).await;
    outcome(call(&session, "deafen", "{}", PATIENCE)).await.unwrap();
    let large = format!(r#"{{"text":"{}"}}"#, "x".repeat(1 << 20));
    let calls: Vec<_> = (0..4).map(|_| call(&session, "echo", &large, Duration::from_millis(300))).collect();
    for call in calls {
        assert_eq!(outcome(call).await.unwrap_err().code, ErrorCode::Timeout);
    }
    session.close(Reason::Closed);
    let info = tokio::time::timeout(PATIENCE, session.closed()).await.unwrap();
    assert_eq!(info.end.ended, "terminate");
}

#[tokio::test]
async fn a_start_that_is_stopped_leaves_nothing() {
    let heard = Arc::new(Heard::default());
    let stopped = tokio::time::sleep(Duration::from_millis(100));
    let outcome = connect(plan(&["--silent"], &[]), heard.clone(), stopped).await;
    assert_eq!(outcome.err().unwrap().code, ErrorCode::Closed);
    assert!(heard.0.lock().unwrap().is_empty(), "a session that never was has no end");
}

#[tokio::test]
async fn a_failed_start_says_why() {
    let error = failure(&["--exit-at", "initialize:7", "--stderr", "missing module foo"], &[]).await;
    assert_eq!((error.code, error.detail("exitCode")), (ErrorCode::Handshake, Some(&7.into())));
    assert!(error.message.contains("missing module foo"), "{}", error.message);

    let timeout = [("connectTimeout", Input::Number(300.0))];
    let error = failure(&["--silent", "--noise", "Listening on 8080"], &timeout).await;
    assert_eq!((error.code, error.detail("phase")), (ErrorCode::Timeout, Some(&"connect".into())));
    assert!(error.message.contains("Listening on 8080"), "{}", error.message);

    let error = failure(&["--protocol", "1999-01-01"], &[]).await;
    assert_eq!(
        (error.code, error.detail("answered")),
        (ErrorCode::ProtocolVersion, Some(&"1999-01-01".into()))
    );

    let error = failure(&["--tools", "300"], &[]).await;
    assert_eq!((error.code, error.detail("count")), (ErrorCode::TooManyTools, Some(&300.into())));
}

#[tokio::test]
async fn a_helper_may_still_write_while_it_cleans_up_after_its_server() {
    let cleaned = std::env::temp_dir().join(format!("workflow-mcp-cleaned-{}", std::process::id()));
    let helper = format!(
        "trap 'echo bye; echo bye >&2; echo done > {}; exit' TERM; while :; do sleep 0.05; done",
        cleaned.display()
    );
    let mut plan = plan(&[], &[]);
    let script = r#"sh -c "$0" & exec "$@""#.to_owned();
    let Server::Process(command) = &mut plan.server else { unreachable!() };
    let server = std::mem::replace(&mut command.program, "/bin/sh".into()).display().to_string();
    command.arguments.splice(..0, ["-c".into(), script, helper, server]);
    let (session, _) = connect(plan, Arc::new(Heard::default()), std::future::pending()).await.unwrap();
    session.close(Reason::Closed);
    let info = tokio::time::timeout(PATIENCE, session.closed()).await.unwrap();
    assert_eq!(info.end.ended, "terminate");
    assert_eq!(std::fs::read_to_string(&cleaned).unwrap(), "done\n");
    std::fs::remove_file(&cleaned).unwrap();
}

#[tokio::test]
async fn a_session_is_closed_and_dropped_on_a_thread_without_a_runtime() {
    // As the garbage collector does it on the host's JavaScript thread, where a panic would end the process (BR-85).
    let (session, _, _) = connected(&[]).await;
    let (id, settled) = call(&session, "silent", "{}", PATIENCE);
    let watched = session.clone();
    let dropped = std::thread::spawn(move || {
        session.close(Reason::Aborted);
        drop(session);
    });
    assert!(dropped.join().is_ok(), "it panicked");
    assert_eq!(outcome((id, settled)).await.unwrap_err().code, ErrorCode::Closed);
    assert_eq!(watched.closed().await.reason, Reason::Aborted);
    assert!(std::thread::spawn(move || drop(watched)).join().is_ok(), "it panicked");
}

#[tokio::test]
async fn a_command_that_echoes_is_told_from_a_server() {
    let mut plan = plan(&[], &[]);
    let Server::Process(command) = &mut plan.server else { unreachable!() };
    (command.program, command.arguments) = ("/bin/cat".into(), Vec::new());
    let error = connect(plan, Arc::new(Heard::default()), std::future::pending()).await.err().unwrap();
    assert_eq!(error.code, ErrorCode::Handshake);
    assert!(error.message.contains("sends back what it is sent"), "{}", error.message);
}

#[tokio::test]
async fn a_server_that_speaks_2026_07_28_alone_is_found_out_on_the_same_process() {
    let (session, welcome, _) = connected(&["--modern"]).await;
    assert!(welcome.contains(r#""protocolVersion":"2026-07-28""#), "{welcome}");
    outcome(call(&session, "echo", "{}", PATIENCE)).await.unwrap();
    session.close(Reason::Closed);
    session.closed().await;
}

/// What the fixture wrote down of what it was sent, once a line of it holds `text`.
async fn logged(log: &Path, text: &str) -> String {
    let start = std::time::Instant::now();
    loop {
        let lines = std::fs::read_to_string(log).unwrap_or_default();
        if let Some(line) = lines.lines().find(|line| line.contains(text)) {
            return line.to_owned();
        }
        assert!(start.elapsed() < PATIENCE, "{text} was not sent");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn at_the_start_pages_come_before_the_last_and_a_later_list_comes_whole() {
    let (session, welcome, heard) = connected(&["--tools", "5", "--page-size", "2"]).await;
    let pages: Vec<_> = heard.0.lock().unwrap().drain(..).collect();
    assert_eq!(pages.len(), 2, "{pages:?}");
    assert!(pages.iter().all(|page| page.starts_with("ToolsPage(")), "{pages:?}");
    assert_eq!(welcome.matches(r#""name":"t"#).count(), 1, "{welcome}");
    let (sender, listed) = std::sync::mpsc::channel();
    let settle = Settle::new(move |outcome| sender.send(outcome).unwrap());
    let asked = Asked { terms: terms(PATIENCE), meta: None };
    let _listing = session.list_tools(asked, settle);
    let outcome = tokio::task::spawn_blocking(move || listed.recv_timeout(PATIENCE).unwrap()).await.unwrap();
    assert_eq!(outcome.unwrap().into_string().matches(r#""name":"t"#).count(), 5);
    assert!(heard.0.lock().unwrap().is_empty());
    session.close(Reason::Closed);
    session.closed().await;
}

#[tokio::test]
async fn a_question_of_the_server_is_the_hosts_to_answer_where_it_said_so() {
    const QUESTION: &str = r#"{"lines":["{\"jsonrpc\":\"2.0\",\"id\":\"q\",\"method\":\"elicitation/create\",\"params\":{\"m\":1e400}}"]}"#;
    for answers_input in [true, false] {
        let name = format!("workflow-mcp-input-{answers_input}-{}", std::process::id());
        let log = std::env::temp_dir().join(name);
        let mut plan = plan(&["--log", &log.display().to_string()], &[]);
        plan.answers_input = answers_input;
        let heard = Arc::new(Heard::default());
        let (session, _) = connect(plan, heard.clone(), std::future::pending()).await.unwrap();
        let declared = logged(&log, r#""method":"initialize""#).await.contains(r#""elicitation":{}"#);
        assert_eq!(declared, answers_input);
        let pending = call(&session, "raw", QUESTION, PATIENCE);
        if answers_input {
            let start = std::time::Instant::now();
            while heard.0.lock().unwrap().is_empty() && start.elapsed() < PATIENCE {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            let question = r#"{"method":"elicitation/create","params":{"m":1e400}}"#;
            assert_eq!(*heard.0.lock().unwrap(), [question]);
        }
        let expected = if answers_input {
            r#"{"jsonrpc":"2.0","id":"q","result":{"action":"accept"}}"#
        } else {
            r#"{"jsonrpc":"2.0","id":"q","error":{"code":-32601,"message":"this client does not offer elicitation/create"}}"#
        };
        assert_eq!(logged(&log, r#""id":"q""#).await, expected);
        session.close(Reason::Closed);
        session.closed().await;
        drop(pending);
        assert_eq!(std::fs::read_to_string(&log).unwrap().matches(r#""id":"q""#).count(), 1);
        std::fs::remove_file(&log).unwrap();
    }
}

/// Keeps questions, and whatever else it hears.
#[derive(Default)]
struct Asks(Mutex<Vec<Event>>);

impl Owner for Asks {
    fn heard(&self, event: Event) {
        self.0.lock().unwrap().push(event);
    }
}

#[tokio::test]
async fn a_question_that_comes_again_while_the_host_has_it_is_asked_and_answered_once() {
    const QUESTION: &str =
        r#"{\"jsonrpc\":\"2.0\",\"id\":\"q\",\"method\":\"elicitation/create\",\"params\":{}}"#;
    let log = std::env::temp_dir().join(format!("workflow-mcp-asked-again-{}", std::process::id()));
    let mut plan = plan(&["--log", &log.display().to_string()], &[]);
    plan.answers_input = true;
    let asks = Arc::new(Asks::default());
    let (session, _) = connect(plan, asks.clone(), std::future::pending()).await.unwrap();
    let answer = r#"{\"jsonrpc\":\"2.0\",\"id\":$ID,\"result\":{}}"#;
    let lines = format!(r#"{{"lines":["{QUESTION}","{QUESTION}","{answer}"]}}"#);
    outcome(call(&session, "raw", &lines, PATIENCE)).await.unwrap();
    let mut asked: Vec<_> = std::mem::take(&mut *asks.0.lock().unwrap());
    assert_eq!(asked.len(), 1, "{asked:?}");
    let Some(Event::InputRequired(question)) = asked.pop() else { panic!("no question") };
    question.answer(Ok("{}".to_owned()));
    assert_eq!(logged(&log, r#""id":"q""#).await, r#"{"jsonrpc":"2.0","id":"q","result":{}}"#);
    session.close(Reason::Closed);
    session.closed().await;
    assert_eq!(std::fs::read_to_string(&log).unwrap().matches(r#""id":"q""#).count(), 1);
    std::fs::remove_file(&log).unwrap();
}

#[tokio::test]
async fn a_session_that_lists_nothing_sends_every_name_as_it_was_given() {
    let mut plan = plan(&["--list-silent"], &[]);
    plan.lists_tools = false;
    let started = connect(plan, Arc::new(Heard::default()), std::future::pending()).await;
    let (session, Welcome(welcome)) = started.unwrap();
    assert!(welcome.contains(r#""tools":[]"#), "{welcome}");
    outcome(call(&session, "echo", "{}", PATIENCE)).await.unwrap();
    let error = outcome(call(&session, "none", "{}", PATIENCE)).await.unwrap_err();
    assert_eq!((error.code, error.detail("rpcCode")), (ErrorCode::Rpc, Some(&(-32602).into())));
    session.close(Reason::Closed);
    session.closed().await;
}

#[tokio::test]
async fn a_session_that_lists_nothing_does_not_list_because_something_changed() {
    let log = std::env::temp_dir().join(format!("workflow-mcp-no-list-{}", std::process::id()));
    let mut plan = plan(&["--log", &log.display().to_string()], &[]);
    plan.lists_tools = false;
    let (session, _) = connect(plan, Arc::new(Heard::default()), std::future::pending()).await.unwrap();
    let lines = [
        r#"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}"#,
        r#"{\"jsonrpc\":\"2.0\",\"id\":$ID,\"result\":{}}"#,
    ];
    let changed = format!(r#"{{"lines":["{}"]}}"#, lines.join(r#"",""#));
    outcome(call(&session, "raw", &changed, PATIENCE)).await.unwrap();
    // What it asked for of its own accord would stand before this.
    outcome(call(&session, "echo", "{}", PATIENCE)).await.unwrap();
    session.close(Reason::Closed);
    session.closed().await;
    let asked = std::fs::read_to_string(&log).unwrap();
    assert!(asked.contains(r#""echo""#) && !asked.contains(r#""method":"tools/list""#), "{asked}");
    std::fs::remove_file(&log).unwrap();
}
