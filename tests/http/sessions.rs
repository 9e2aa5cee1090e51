//! How sessions begin, are renewed, and end.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use workflow_mcp::error::ErrorCode;
use workflow_mcp::policy::input::Input;
use workflow_mcp::session::Plan;

use crate::server::{Asked, HttpServer, PATIENCE, Step, event, json_body, message, respond, stream};
use crate::{call, call_on, close, connected, connected_by, failure, outcome, plan, terms};

#[tokio::test]
async fn every_request_after_the_first_carries_the_session_and_its_revision() {
    let server = HttpServer::start(|_| None).await;
    let session = connected(&server).await;
    outcome(call(&session, "echo", "{}")).await.unwrap();
    server.until("the stream is asked for", |server| server.asked("GET").len() == 1).await;
    close(&session).await;
    let names: Vec<_> = server.all().iter().map(Asked::name).collect();
    assert_eq!(names[..2], ["initialize", "notifications/initialized"]);
    assert_eq!(names.last().unwrap(), "DELETE");
    let (first, rest) =
        server.all().split_first().map(|(first, rest)| (first.clone(), rest.to_vec())).unwrap();
    assert_eq!(first.header("mcp-session-id"), None);
    for asked in rest {
        assert_eq!(asked.header("mcp-session-id"), Some("session-1"), "{asked:?}");
        assert_eq!(asked.header("mcp-protocol-version"), Some("2025-11-25"), "{asked:?}");
    }
    server.until("no connection is left", |server| server.open() == 0).await;
}

#[tokio::test]
async fn arguments_and_results_pass_byte_for_byte() {
    let odd = r#"{"b":1e400,"a":"\ud83d","__proto__":{"x":123456789012345678901234567890}}"#;
    let server = HttpServer::start(move |asked| {
        asked.body.contains("tools/call").then(|| {
            json_body(
                200,
                &format!(
                    r#"{{"jsonrpc":"2.0","result":{odd},"id":{}}}"#,
                    if asked.body.contains("\"id\":2") { 2 } else { 0 }
                ),
            )
        })
    })
    .await;
    let session = connected(&server).await;
    assert_eq!(outcome(call(&session, "echo", odd)).await.unwrap(), odd);
    let sent = server.all().into_iter().find(|asked| asked.body.contains("tools/call")).unwrap();
    assert!(sent.body.contains(&format!(r#""arguments":{odd}"#)), "{}", sent.body);
    close(&session).await;
}

#[tokio::test]
async fn a_forgotten_session_is_renewed_once_for_all_who_find_it_gone() {
    let server = HttpServer::start(|_| None).await;
    let session = connected(&server).await;
    outcome(call(&session, "echo", "{}")).await.unwrap();
    server.forget();
    let calls: Vec<_> = (0..5).map(|_| call(&session, "echo", "{}")).collect();
    for call in calls {
        outcome(call).await.unwrap();
    }
    assert_eq!(server.asked("initialize").len(), 2);
    assert!(server.asked("tools/call").len() <= 11);
    assert_eq!(server.asked("tools/call").last().unwrap().header("mcp-session-id"), Some("session-2"));
    assert_eq!(session.diagnostics()["unexpectedAnswers"], 0);
    close(&session).await;
    assert_eq!(server.asked("DELETE").len(), 1);
}

#[tokio::test]
async fn what_may_have_run_is_not_sent_again_when_its_session_is_lost() {
    let server = HttpServer::start(|asked| match asked.message()["params"]["name"].as_str() {
        Some("slow") => {
            Some(stream(vec![event(r#"{"jsonrpc":"2.0","method":"notifications/none"}"#), Step::Hold]))
        }
        _ => None,
    })
    .await;
    let session = connected(&server).await;
    let slow = call(&session, "slow", "{}");
    server.until("the slow call is there", |server| server.asked("tools/call").len() == 1).await;
    server.forget();
    outcome(call(&session, "echo", "{}")).await.unwrap();
    let error = outcome(slow).await.unwrap_err();
    assert_eq!(error.code, ErrorCode::Connect, "{error}");
    let slow = server.asked("tools/call").iter().filter(|asked| asked.body.contains("slow")).count();
    assert_eq!(slow, 1);
    close(&session).await;
}

#[tokio::test]
async fn a_404_that_stays_is_told_after_one_more_attempt() {
    let server =
        HttpServer::start(|asked| (asked.name() == "tools/call").then(|| respond(404, &[], "gone"))).await;
    let session = connected(&server).await;
    let error = outcome(call(&session, "echo", "{}")).await.unwrap_err();
    assert_eq!((error.code, error.detail("status")), (ErrorCode::Http, Some(&404.into())));
    assert_eq!((server.asked("tools/call").len(), server.asked("initialize").len()), (2, 2));
    close(&session).await;
}

#[tokio::test]
async fn closing_is_bounded_whatever_the_server_does_and_nothing_comes_after() {
    let server = HttpServer::start(|asked| match asked.name().as_str() {
        "DELETE" | "tools/call" => Some(vec![Step::Hold]),
        "GET" => Some(stream(vec![Step::Hold])),
        _ => None,
    })
    .await;
    let session = connected(&server).await;
    let waiting = call(&session, "echo", "{}");
    server.until("all is under way", |server| server.all().len() == 4).await;
    close(&session).await;
    assert_eq!(outcome(waiting).await.unwrap_err().code, ErrorCode::Closed);
    server.until("no connection is left", |server| server.open() == 0).await;
    assert_eq!(server.all().last().unwrap().name(), "DELETE");
}

#[tokio::test]
async fn a_handshake_that_never_comes_about_is_left_in_time() {
    let server = HttpServer::start(|asked| (asked.name() == "initialize").then(|| vec![Step::Hold])).await;
    let error = failure(plan(&server.url(), &[("connectTimeout", Input::Number(200.0))], &[])).await;
    assert_eq!((error.code, error.detail("phase")), (ErrorCode::Timeout, Some(&"connect".into())));
    server.until("no connection is left", |server| server.open() == 0).await;
    assert!(server.asked("notifications/cancelled").is_empty(), "initialize is never cancelled");
}

#[tokio::test]
async fn a_session_whose_handshake_breaks_in_the_middle_is_ended_too() {
    let server = HttpServer::start(|asked| {
        (asked.name() == "notifications/initialized").then(|| respond(500, &[], "no memory"))
    })
    .await;
    let session = connected(&server).await;
    let error = outcome(call(&session, "echo", "{}")).await.unwrap_err();
    let cause = error.cause.as_deref().unwrap_or(&error);
    assert_eq!((cause.code, cause.detail("status")), (ErrorCode::Http, Some(&500.into())));
    tokio::time::timeout(PATIENCE, session.closed()).await.unwrap();
    assert_eq!(server.asked("DELETE").len(), 1);
}

#[tokio::test]
async fn a_call_given_up_lets_go_of_its_response_and_the_server_is_told() {
    for modern in [false, true] {
        let answer = |asked: &Asked| (asked.name() == "tools/call").then(|| vec![Step::Hold]);
        let server = if modern { HttpServer::modern(answer).await } else { HttpServer::start(answer).await };
        let session = connected(&server).await;
        let (id, settled) = call(&session, "echo", "{}");
        server.until("the call is there", |server| server.asked("tools/call").len() == 1).await;
        let open = server.open();
        assert!(session.cancel(id.unwrap()));
        server.until("its connection is gone", |server| server.open() < open).await;
        drop(settled);
        if modern {
            outcome(call_on(&session, "none", "{}", terms(Duration::from_millis(300)))).await.unwrap_err();
        } else {
            server.until("it is told", |server| server.asked("notifications/cancelled").len() == 1).await;
            let told = server.asked("notifications/cancelled").remove(0);
            assert_eq!(told.message()["params"]["requestId"], id.unwrap());
        }
        close(&session).await;
        assert_eq!(server.asked("notifications/cancelled").len(), usize::from(!modern));
    }
}

#[tokio::test]
async fn a_call_that_waits_for_its_turn_is_taken_back_without_a_word() {
    let server = HttpServer::start(|asked| (asked.name() == "tools/call").then(|| vec![Step::Hold])).await;
    let session = connected(&server).await;
    let calls: Vec<_> = (0..300).map(|_| call(&session, "echo", "{}")).collect();
    server.until("as many as may are under way", |server| server.asked("tools/call").len() == 256).await;
    let (last, _) = calls.last().unwrap();
    assert!(session.cancel(last.unwrap()));
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!(server.asked("tools/call").len(), 256);
    assert!(server.asked("notifications/cancelled").is_empty());
    close(&session).await;
    for (_, settled) in calls.into_iter().take(299) {
        assert_eq!(settled.await.unwrap().unwrap_err().code, ErrorCode::Closed);
    }
}

#[tokio::test]
async fn the_answer_to_initialize_may_come_on_a_stream_after_other_messages() {
    let server = HttpServer::start(|asked| {
        (asked.name() == "initialize").then(|| {
            let welcome = message(asked, r#"{"protocolVersion":"2025-06-18","capabilities":{}}"#);
            stream(vec![
                event(r#"{"jsonrpc":"2.0","method":"notifications/message","params":{}}"#),
                event(&welcome),
                Step::Hold,
            ])
        })
    })
    .await;
    let session = connected_by(plan(&server.url(), &[], &[])).await;
    outcome(call(&session, "echo", "{}")).await.unwrap();
    assert_eq!(server.asked("tools/call")[0].header("mcp-protocol-version"), Some("2025-06-18"));
    close(&session).await;
}

#[tokio::test]
async fn a_server_that_is_down_is_tried_by_few_and_found_again() {
    let server = HttpServer::start(|_| None).await;
    let session = connected(&server).await;
    outcome(call(&session, "echo", "{}")).await.unwrap();
    server.stop().await;
    let before = session.diagnostics()["httpRequests"].as_u64().unwrap();
    let until = Instant::now() + Duration::from_secs(1);
    let callers = (0..50).map(|_| {
        let session = session.clone();
        tokio::spawn(async move {
            let mut refused = 0;
            while Instant::now() < until {
                let error = outcome(call(&session, "echo", "{}")).await.unwrap_err();
                assert_eq!(error.code, ErrorCode::Connect, "{error}");
                refused += 1;
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            refused
        })
    });
    let mut refused = 0;
    for caller in callers.collect::<Vec<_>>() {
        refused += caller.await.unwrap();
    }
    let tried = session.diagnostics()["httpRequests"].as_u64().unwrap() - before;
    // All of the first round may be on their way before one of them has failed; from then on gaps of 100, 200, 400 ms.
    assert!(tried <= 60 && refused > 100, "{tried} of {refused}");
    server.start_again().await;
    let start = Instant::now();
    while outcome(call(&session, "echo", "{}")).await.is_err() {
        assert!(start.elapsed() < PATIENCE, "it is back, and nobody noticed");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    close(&session).await;
}

#[tokio::test]
async fn thousands_of_callers_wait_their_turn() {
    let server = HttpServer::start(|_| None).await;
    let session = connected(&server).await;
    let calls: Vec<_> =
        (0..2_000).map(|index| call(&session, "echo", &format!(r#"{{"i":{index}}}"#))).collect();
    for (index, call) in calls.into_iter().enumerate() {
        let result = outcome(call).await.unwrap();
        assert!(result.contains(&format!(r#""i":{index}}}"#)), "{result}");
    }
    assert_eq!(session.diagnostics()["unexpectedAnswers"], 0);
    close(&session).await;
}

#[tokio::test]
async fn where_the_host_answers_questions_calls_wait_for_the_stream_that_brings_them() {
    let server = HttpServer::start(|asked| match asked.name().as_str() {
        "GET" => Some([vec![Step::Wait(Duration::from_millis(200))], stream(vec![Step::Hold])].concat()),
        _ => None,
    })
    .await;
    let mut plan = plan(&server.url(), &[], &[]);
    plan.answers_input = true;
    let session = connected_by(plan).await;
    outcome(call(&session, "echo", "{}")).await.unwrap();
    let waited = server.asked("tools/call")[0].at - server.asked("GET")[0].at;
    assert!(waited >= Duration::from_millis(200), "{waited:?}");
    close(&session).await;
}

#[tokio::test]
async fn a_stream_whose_head_does_not_come_is_waited_for_once() {
    let server = HttpServer::start(|asked| (asked.name() == "GET").then(|| vec![Step::Hold])).await;
    let session = connected_by(Plan { answers_input: true, ..plan(&server.url(), &[], &[]) }).await;
    // A second for each of them would be more than there is.
    let calls = async {
        for _ in 0..40 {
            outcome(call(&session, "echo", "{}")).await.unwrap();
        }
    };
    tokio::time::timeout(3 * PATIENCE, calls).await.unwrap();
    close(&session).await;
}

#[tokio::test]
async fn a_session_that_cannot_be_renewed_is_over_and_the_next_one_begins_from_the_beginning() {
    // A server of sessions that is updated to one of 2026-07-28 alone.
    for status in [200, 400] {
        let updated = Arc::new(AtomicBool::new(false));
        let is_updated = updated.clone();
        let server = HttpServer::start(move |asked| {
            if !is_updated.load(Ordering::SeqCst) {
                return None;
            }
            match asked.name().as_str() {
                "initialize" => {
                    let error = r#"{"code":-32022,"message":"old","data":{"supported":["2026-07-28"]}}"#;
                    let body = format!(r#"{{"jsonrpc":"2.0","id":{},"error":{error}}}"#, asked.id());
                    Some(json_body(status, &body))
                }
                "server/discover" => {
                    let welcome = r#"{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{}}}"#;
                    Some(json_body(200, &message(asked, welcome)))
                }
                _ => None,
            }
        })
        .await;
        let session = connected(&server).await;
        outcome(call(&session, "echo", "{}")).await.unwrap();
        server.forget();
        updated.store(true, Ordering::SeqCst);
        let error = outcome(call(&session, "echo", "{}")).await.unwrap_err();
        assert!(matches!(error.code, ErrorCode::Http | ErrorCode::Connect), "{error}");
        assert!(session.is_gone());
        tokio::time::timeout(PATIENCE, session.closed()).await.unwrap();
        let session = connected(&server).await;
        outcome(call(&session, "echo", "{}")).await.unwrap();
        close(&session).await;
    }
}
