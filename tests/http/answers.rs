//! Answers that are none, too long, late, or on a stream.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use workflow_mcp::error::ErrorCode;
use workflow_mcp::policy::input::Input;
use workflow_mcp::session::calls::Terms;
use workflow_mcp::session::{Event, Owner, connect};

use crate::server::{Asked, HttpServer, Reply, Step, event, json_body, message, respond, result, stream};
use crate::{call, call_on, close, connected, connected_by, failure, outcome, plan, terms};

/// A server that answers calls of `odd` so, and others as usual.
async fn odd(answer: impl Fn(&Asked) -> Reply + Send + Sync + 'static) -> HttpServer {
    let is_odd = |asked: &Asked| asked.message()["params"]["name"] == "odd";
    HttpServer::start(move |asked| is_odd(asked).then(|| answer(asked))).await
}

#[tokio::test]
async fn an_answer_that_is_none_ends_its_call_and_nothing_else() {
    let html = [("content-type", "text/html")];
    let foreign = r#"{"jsonrpc":"2.0","id":"foreign","result":{}}"#;
    for (what, reply, code, status) in [
        ("nothing", respond(200, &[], ""), ErrorCode::InvalidMessage, 200),
        ("accepted", respond(202, &[], ""), ErrorCode::InvalidMessage, 202),
        ("a page", respond(200, &html, "<p>hi</p>"), ErrorCode::InvalidMessage, 200),
        ("half", json_body(200, r#"{"jsonrpc":"2.0","id":1,"res"#), ErrorCode::InvalidMessage, 200),
        ("another's answer", json_body(200, foreign), ErrorCode::InvalidMessage, 200),
        ("a failure", respond(503, &[("retry-after", "7")], "busy"), ErrorCode::Http, 503),
        ("a refusal", respond(403, &[("www-authenticate", "Bearer x")], ""), ErrorCode::AuthRequired, 403),
    ] {
        let server = odd(move |_| reply.clone()).await;
        let session = connected(&server).await;
        let error = outcome(call(&session, "odd", "{}")).await.unwrap_err();
        assert_eq!((error.code, error.detail("status")), (code, Some(&status.into())), "{what}: {error}");
        assert_eq!(error.server_id.as_deref(), Some("remote"));
        if status == 503 {
            assert_eq!(error.detail("retryAfter"), Some(&"7".into()));
        }
        outcome(call(&session, "echo", "{}")).await.unwrap();
        close(&session).await;
    }
}

#[tokio::test]
async fn a_connection_that_breaks_ends_its_call_alone_and_is_not_tried_again() {
    let server = odd(|_| vec![Step::Cut]).await;
    let session = connected(&server).await;
    let error = outcome(call(&session, "odd", "{}")).await.unwrap_err();
    assert_eq!(error.code, ErrorCode::Connect, "{error}");
    outcome(call(&session, "echo", "{}")).await.unwrap();
    assert_eq!(server.asked("tools/call").len(), 2);
    close(&session).await;
}

#[tokio::test]
async fn what_is_over_the_limit_ends_its_call_before_it_is_all_there() {
    let endless = "x".repeat(4_096);
    for is_stream in [false, true] {
        let text = endless.clone();
        let server = odd(move |_| {
            let steps = vec![Step::Write(format!("data: {{\"result\":\"{text}")), Step::Hold];
            if is_stream {
                stream(steps)
            } else {
                let head =
                    "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 999999\r\n\r\n";
                [vec![Step::Write(head.to_owned())], steps].concat()
            }
        })
        .await;
        let session =
            connected_by(plan(&server.url(), &[("maxMessageBytes", Input::Number(2_048.0))], &[])).await;
        let error = outcome(call(&session, "odd", "{}")).await.unwrap_err();
        assert_eq!((error.code, error.detail("limit")), (ErrorCode::MessageTooLarge, Some(&2_048.into())));
        outcome(call(&session, "echo", "{}")).await.unwrap();
        close(&session).await;
    }
}

#[tokio::test]
async fn an_error_of_json_rpc_is_told_whatever_status_and_id_it_has() {
    for (status, id, code) in [
        (200, None, ErrorCode::Rpc),
        (200, Some("null"), ErrorCode::Rpc),
        (400, Some("\"x\""), ErrorCode::Http),
    ] {
        let server = odd(move |asked| {
            let id = id.map_or_else(|| asked.id(), str::to_owned);
            let error = r#"{"code":-32000,"message":"too late","data":[1]}"#;
            json_body(status, &format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{error}}}"#))
        })
        .await;
        let session = connected(&server).await;
        let others: Vec<_> = (0..2).map(|_| call(&session, "echo", "{}")).collect();
        let error = outcome(call(&session, "odd", "{}")).await.unwrap_err();
        assert_eq!((error.code, error.detail("rpcCode")), (code, Some(&(-32000).into())), "{error}");
        assert!(error.message.contains("too late"), "{error}");
        for other in others {
            outcome(other).await.unwrap();
        }
        close(&session).await;
    }
}

fn progress(asked: &Asked, value: u32) -> Step {
    let token = &asked.message()["params"]["_meta"]["progressToken"];
    event(&format!(
        r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":{token},"progress":{value}}}}}"#
    ))
}

/// What a call hears on its way.
fn heard() -> (Arc<Mutex<Vec<String>>>, Terms) {
    let heard: Arc<Mutex<Vec<String>>> = Arc::default();
    let listener = heard.clone();
    let on_progress = Some(Arc::new(move |params| listener.lock().unwrap().push(params)) as _);
    (heard, Terms { on_progress, ..terms(Duration::from_secs(10)) })
}

#[tokio::test]
async fn progress_comes_in_order_all_of_it_and_none_after_the_answer() {
    let server = odd(|asked| {
        let mut steps: Vec<_> = (0..200).map(|value| progress(asked, value)).collect();
        steps.extend([event(&message(asked, "{}")), progress(asked, 999), Step::Hold]);
        stream(steps)
    })
    .await;
    let session = connected(&server).await;
    let (heard, terms) = heard();
    outcome(call_on(&session, "odd", "{}", terms)).await.unwrap();
    let values: Vec<_> =
        heard.lock().unwrap().iter().map(|params| params.rsplit(':').next().unwrap().to_owned()).collect();
    assert_eq!(values, (0..200).map(|value| format!("{value}}}")).collect::<Vec<_>>());
    assert_eq!(session.diagnostics()["unexpectedAnswers"], 0);
    let open = server.open();
    server.until("the stream is let go", |server| server.open() < open).await;
    assert_eq!(heard.lock().unwrap().len(), 200);
    close(&session).await;
}

#[tokio::test]
async fn a_stream_that_breaks_goes_on_where_it_was_after_the_servers_own_time() {
    let first: Arc<Mutex<Option<Asked>>> = Arc::default();
    let server = HttpServer::start(move |asked| match asked.name().as_str() {
        "tools/call" => {
            *first.lock().unwrap() = Some(asked.clone());
            let head = Step::Write("id: e1\nretry: 300\n\n".to_owned());
            Some(stream(vec![head, progress(asked, 1), Step::Cut]))
        }
        "GET" if asked.header("last-event-id") == Some("e1") => {
            let first = first.lock().unwrap().clone().unwrap();
            Some(stream(vec![
                progress(&first, 2),
                event(&message(&first, r#"{"resumed":true}"#)),
                Step::Hold,
            ]))
        }
        _ => None,
    })
    .await;
    let session = connected(&server).await;
    let (heard, terms) = heard();
    assert_eq!(outcome(call_on(&session, "odd", "{}", terms)).await.unwrap(), r#"{"resumed":true}"#);
    assert_eq!(heard.lock().unwrap().len(), 2);
    let resumed =
        server.asked("GET").into_iter().find(|asked| asked.header("last-event-id").is_some()).unwrap();
    assert!(resumed.at - server.asked("tools/call")[0].at >= Duration::from_millis(300));
    assert_eq!(resumed.header("mcp-session-id"), Some("session-1"));
    close(&session).await;
}

#[tokio::test]
async fn a_stream_without_ids_that_ends_too_soon_ends_its_call() {
    let server = odd(|_| stream(vec![event(r#"{"jsonrpc":"2.0","method":"x"}"#)])).await;
    let session = connected(&server).await;
    let error = outcome(call(&session, "odd", "{}")).await.unwrap_err();
    assert_eq!(error.code, ErrorCode::Connect);
    assert_eq!(server.asked("tools/call").len(), 1);
    close(&session).await;
}

#[tokio::test]
async fn a_stream_that_ends_at_once_is_asked_for_less_and_less_and_not_after_the_end() {
    let server = HttpServer::start(|asked| {
        let again = Step::Write("id: e1\nretry: 50\n\n".to_owned());
        (asked.name() == "GET").then(|| stream(vec![again]))
    })
    .await;
    let session = connected(&server).await;
    server.until("nobody insists for ever", |server| server.asked("GET").len() == 6).await;
    let at: Vec<_> = server.asked("GET").iter().map(|asked| asked.at).collect();
    let gaps: Vec<_> = at.windows(2).map(|pair| pair[1] - pair[0]).collect();
    // The server's arrival times: a slow machine only makes a gap longer, so each is judged by what it must be at least.
    for (gap, least) in gaps.iter().zip([100, 200, 400, 800, 1_600]) {
        assert!(*gap >= Duration::from_millis(least - 10), "{gaps:?}");
    }
    close(&session).await;
}

#[tokio::test]
async fn the_answer_to_a_call_may_come_on_the_sessions_own_stream() {
    let server = HttpServer::start(|asked| match asked.name().as_str() {
        "tools/call" => Some(vec![Step::Hold]),
        "GET" => {
            let answer = r#"{"jsonrpc":"2.0","id":2,"result":{"late":1}}"#;
            Some(stream(vec![Step::Wait(Duration::from_millis(300)), event(answer), Step::Hold]))
        }
        _ => None,
    })
    .await;
    let session = connected(&server).await;
    let (id, settled) = call(&session, "odd", "{}");
    assert_eq!(id, Some(2));
    assert_eq!(outcome((id, settled)).await.unwrap(), r#"{"late":1}"#);
    server.until("the response is waited for no longer", |server| server.open() == 1).await;
    close(&session).await;
}

#[tokio::test]
async fn a_server_of_the_older_transport_is_told_from_one_that_is_not_there() {
    for is_legacy in [true, false] {
        let server = HttpServer::start(move |asked| match asked.name().as_str() {
            "initialize" => Some(respond(405, &[], "")),
            "GET" if is_legacy => Some(stream(vec![Step::Hold])),
            _ => None,
        })
        .await;
        let error = failure(plan(&server.url(), &[], &[])).await;
        assert_eq!((error.code, error.detail("status")), (ErrorCode::Http, Some(&405.into())));
        assert_eq!(error.message.contains("HTTP+SSE"), is_legacy, "{error}");
    }
}

#[tokio::test]
async fn a_large_list_and_a_large_result_come_through_the_pool_whole() {
    let text = "ä€😀".repeat(300_000);
    let large = format!(r#"{{"content":[{{"type":"text","text":"{text}"}}]}}"#);
    let expected = large.clone();
    let server = HttpServer::modern(move |asked| match asked.name().as_str() {
        "tools/call" if asked.message()["params"]["name"] == "stream" => {
            Some(stream(vec![event(&message(asked, &large))]))
        }
        "tools/call" => Some(result(asked, &large)),
        "tools/list" => {
            let tool =
                format!(r#"{{"name":"echo","description":"{}","inputSchema":{{}}}}"#, "x".repeat(2 << 20));
            Some(result(asked, &format!(r#"{{"tools":[{tool}]}}"#)))
        }
        _ => None,
    })
    .await;
    let session = connected(&server).await;
    let arguments = format!(r#"{{"x":"{}"}}"#, "y".repeat(2 << 20));
    assert_eq!(outcome(call(&session, "echo", &arguments)).await.unwrap(), expected);
    assert_eq!(outcome(call(&session, "stream", "{}")).await.unwrap(), expected);
    assert_eq!(server.asked("tools/call")[0].header("mcp-name"), Some("echo"));
    close(&session).await;
}

/// Panics on the I/O thread, in the middle of reading from the server.
struct Faulty;

impl Owner for Faulty {
    fn heard(&self, event: Event) {
        assert!(!matches!(event, Event::Log(_)), "a fault, on purpose");
    }
}

#[tokio::test]
async fn a_panic_while_reading_settles_its_call_whatever_it_read_from() {
    for is_stream in [true, false] {
        let log = r#"{"jsonrpc":"2.0","method":"notifications/message","params":{}}"#;
        let server = odd(move |_| {
            if is_stream { stream(vec![event(log), Step::Hold]) } else { json_body(200, &format!("[{log}]")) }
        })
        .await;
        let plan = plan(&server.url(), &[("onLog", Input::Function)], &[]);
        let started = connect(plan, Arc::new(Faulty), std::future::pending()).await;
        let (session, _) = started.unwrap();
        let error = outcome(call(&session, "odd", "{}")).await.unwrap_err();
        assert_eq!(error.code, ErrorCode::Internal, "{error}");
        close(&session).await;
    }
}
