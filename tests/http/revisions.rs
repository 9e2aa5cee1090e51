//! Revision 2026-07-28: how it is found out, what its headers say, and what it has no more.

use workflow_mcp::error::ErrorCode;
use workflow_mcp::policy::input::Input;

use crate::server::{Asked, HttpServer, json_body, respond, result};
use crate::{call, close, connected, connected_by, failure, outcome, plan};

#[tokio::test]
async fn a_modern_server_is_found_out_over_a_new_connection_and_has_no_session() {
    let server = HttpServer::modern(|_| None).await;
    let session = connected(&server).await;
    let result = outcome(call(&session, "echo", r#"{"x":1}"#)).await.unwrap();
    assert!(result.contains(r#""io.modelcontextprotocol/protocolVersion":"2026-07-28""#), "{result}");
    let call = server.asked("tools/call").remove(0);
    for (name, value) in
        [("mcp-method", "tools/call"), ("mcp-name", "echo"), ("mcp-protocol-version", "2026-07-28")]
    {
        assert_eq!(call.header(name), Some(value));
    }
    assert_eq!(call.header("mcp-session-id"), None);
    close(&session).await;
    assert!(server.asked("GET").is_empty() && server.asked("DELETE").is_empty());
}

#[tokio::test]
async fn a_modern_server_refuses_whoever_insists_on_an_older_revision_and_says_what_it_speaks() {
    let server = HttpServer::modern(|_| None).await;
    let legacy = [("protocol", Input::String("legacy".to_owned()))];
    let error = failure(plan(&server.url(), &legacy, &[])).await;
    assert_eq!(error.code, ErrorCode::ProtocolVersion, "{error}");
    assert_eq!(error.cause.unwrap().detail("status"), Some(&400.into()));
    assert_eq!(server.all().len(), 1);
}

#[tokio::test]
async fn a_server_that_agrees_to_2026_07_28_in_initialize_is_sent_no_initialized() {
    let server = HttpServer::start(|asked| {
        (asked.name() == "initialize")
            .then(|| result(asked, r#"{"protocolVersion":"2026-07-28","capabilities":{"tools":{}}}"#))
    })
    .await;
    let session = connected(&server).await;
    outcome(call(&session, "echo", "{}")).await.unwrap();
    close(&session).await;
    let names: Vec<_> = server.all().iter().map(Asked::name).collect();
    assert_eq!(names, ["initialize", "tools/list", "tools/call"]);
    assert_eq!(server.asked("tools/call")[0].header("mcp-name"), Some("echo"));
}

#[tokio::test]
async fn tools_whose_annotations_no_header_can_be_made_of_are_left_out_and_others_have_headers() {
    const TOOLS: &str = r#"{"tools":[{"name":"bad","inputSchema":{"properties":{"n":{"type":"number","x-mcp-header":"N"}}}},
        {"name":"echo","inputSchema":{"default":1e400,"properties":{"region":{"type":"string","x-mcp-header":"Region"}}}}]}"#;
    let server =
        HttpServer::modern(|asked| (asked.name() == "tools/list").then(|| result(asked, TOOLS))).await;
    let mut plan = plan(&server.url(), &[("onWarning", Input::Function)], &[]);
    plan.lists_tools = true;
    let heard = std::sync::Arc::new(crate::Heard::default());
    let (session, welcome) =
        workflow_mcp::session::connect(plan, heard.clone(), std::future::pending()).await.unwrap();
    assert!(!welcome.0.contains("bad") && welcome.0.contains("1e400"), "{}", welcome.0);
    assert!(heard.0.lock().unwrap()[0].contains("WARN_MCP_TOOL_SKIPPED"));
    outcome(call(&session, "echo", r#"{"region":"Zürich","x":1e400}"#)).await.unwrap_err();
    server
        .until("the call is there", |server| server.all().iter().any(|asked| asked.body.contains("Zürich")))
        .await;
    let call = server.all().into_iter().find(|asked| asked.body.contains("Zürich")).unwrap();
    assert_eq!(call.header("mcp-param-region"), Some("=?base64?WsO8cmljaA==?="));
    close(&session).await;
}

#[tokio::test]
async fn calls_whose_headers_were_refused_share_one_new_list_and_are_sent_once_more() {
    let mismatch = |asked: &Asked| {
        let error = format!(
            r#"{{"jsonrpc":"2.0","id":{},"error":{{"code":-32020,"message":"header mismatch"}}}}"#,
            asked.id()
        );
        json_body(400, &error)
    };
    let server = HttpServer::modern(move |asked| {
        let refused = asked.name() == "tools/call" && (asked.body.contains("never") || asked.header("mcp-param-region").is_none());
        refused.then(|| mismatch(asked)).or_else(|| {
            let tools = r#"{"tools":[{"name":"echo","inputSchema":{"properties":{"region":{"type":"string","x-mcp-header":"Region"}}}}]}"#;
            let is_second = asked.name() == "tools/list" && asked.id() != "3";
            is_second.then(|| result(asked, tools))
        })
    })
    .await;
    let session = connected(&server).await;
    let calls: Vec<_> = (0..3).map(|_| call(&session, "echo", r#"{"region":"eu"}"#)).collect();
    let ids: Vec<_> = calls.iter().map(|(id, _)| id.unwrap().to_string()).collect();
    for call in calls {
        outcome(call).await.unwrap();
    }
    assert_eq!(server.asked("tools/list").len(), 2);
    let sent = server.asked("tools/call");
    assert_eq!(sent.len(), 6);
    assert!(sent[3..].iter().all(|asked| !ids.contains(&asked.id())), "a new attempt has a new id");
    let error = outcome(call(&session, "echo", r#"{"region":"never"}"#)).await.unwrap_err();
    assert_eq!((error.code, error.detail("rpcCode")), (ErrorCode::Http, Some(&(-32020).into())));
    assert_eq!(server.asked("tools/call").len(), 8);
    close(&session).await;
}

#[tokio::test]
async fn a_server_that_refuses_the_version_it_lists_is_asked_once_more() {
    for refusals in [1, 2] {
        let count = std::sync::atomic::AtomicUsize::new(0);
        let server = HttpServer::modern(move |asked| {
            let refused = asked.name() == "server/discover"
                && count.fetch_add(1, std::sync::atomic::Ordering::SeqCst) < refusals;
            refused.then(|| {
                let error = r#"{"code":-32022,"message":"no","data":{"supported":["2026-07-28"]}}"#;
                json_body(400, &format!(r#"{{"jsonrpc":"2.0","id":{},"error":{error}}}"#, asked.id()))
            })
        })
        .await;
        let modern = [("protocol", Input::String("modern".to_owned()))];
        let plan = plan(&server.url(), &modern, &[]);
        if refusals == 1 {
            close(&connected_by(plan).await).await;
        } else {
            assert_eq!(failure(plan).await.code, ErrorCode::ProtocolVersion);
        }
        assert_eq!(server.asked("server/discover").len(), 2);
    }
}

#[tokio::test]
async fn a_subscription_that_the_server_refuses_over_http_is_nobodys_call_and_left_in_peace() {
    let server = HttpServer::modern(|asked| match asked.name().as_str() {
        "server/discover" => Some(result(
            asked,
            r#"{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{"listChanged":true}},"resultType":"complete"}"#,
        )),
        "subscriptions/listen" => Some(respond(501, &[], "")),
        _ => None,
    })
    .await;
    let mut plan = plan(&server.url(), &[], &[]);
    plan.lists_tools = true;
    let session = connected_by(plan).await;
    server.until("it is asked for", |server| server.asked("subscriptions/listen").len() == 1).await;
    outcome(call(&session, "echo", "{}")).await.unwrap();
    assert_eq!(session.diagnostics()["unexpectedAnswers"], 0);
    close(&session).await;
    assert_eq!(server.asked("subscriptions/listen").len(), 1);
}
