//! The way to a server: headers, credentials, redirects, proxies, and what is said when it cannot be reached.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use workflow_mcp::error::{ErrorCode, McpError};
use workflow_mcp::link::http::{HeaderList, Headers, HeadersComing, Needed, Remote};
use workflow_mcp::policy::redact::Redactor;
use workflow_mcp::session::Server;

use crate::server::{Asked, HttpServer, PATIENCE, Step, respond};
use crate::{call, close, connected_by, failure, headers, outcome, plan};

fn plan_with(url: &str, headers: Arc<dyn Headers>) -> workflow_mcp::session::Plan {
    let mut plan = plan(url, &[], &[]);
    plan.server = Server::Http(Remote { url: url.to_owned(), headers });
    plan
}

/// A new token each time it is asked, which takes a while; whoever asks meanwhile waits for the same.
#[derive(Default)]
struct Tokens {
    asked: AtomicUsize,
    last: Mutex<Option<HeaderList>>,
    one_at_a_time: tokio::sync::Mutex<()>,
}

impl Headers for Tokens {
    fn headers(&self, refused: Option<&HeaderList>, _: Needed) -> HeadersComing<'_> {
        let refused = refused.cloned();
        Box::pin(async move {
            let _one = self.one_at_a_time.lock().await;
            let last = self.last.lock().unwrap().clone();
            if last.is_some() && last != refused {
                return Ok(last);
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
            let number = self.asked.fetch_add(1, Ordering::SeqCst) + 1;
            let newest: HeaderList =
                Arc::new([("Authorization".to_owned(), format!("Bearer token-{number}"))]);
            *self.last.lock().unwrap() = Some(newest.clone());
            Ok(Some(newest))
        })
    }
}

fn token(asked: &Asked) -> Option<&str> {
    asked.header("authorization")
}

#[tokio::test]
async fn calls_refused_together_get_newer_credentials_together_and_are_sent_once_more() {
    let valid = Arc::new(AtomicUsize::new(1));
    let judge = valid.clone();
    let server = HttpServer::start(move |asked| {
        let wanted = format!("Bearer token-{}", judge.load(Ordering::SeqCst));
        (token(asked) != Some(&wanted)).then(|| respond(401, &[("www-authenticate", "Bearer")], ""))
    })
    .await;
    let tokens = Arc::new(Tokens::default());
    let session = connected_by(plan_with(&server.url(), tokens.clone())).await;
    outcome(call(&session, "echo", "{}")).await.unwrap();
    valid.store(2, Ordering::SeqCst);
    let calls: Vec<_> = (0..5).map(|_| call(&session, "echo", "{}")).collect();
    for call in calls {
        outcome(call).await.unwrap();
    }
    assert_eq!(tokens.asked.load(Ordering::SeqCst), 2);
    assert!(server.asked("tools/call").len() <= 11);
    valid.store(9, Ordering::SeqCst);
    let error = outcome(call(&session, "echo", "{}")).await.unwrap_err();
    assert_eq!(
        (error.code, error.detail("wwwAuthenticate")),
        (ErrorCode::AuthRequired, Some(&"Bearer".into()))
    );
    assert_eq!(tokens.asked.load(Ordering::SeqCst), 3, "once for each refusal");
    close(&session).await;
}

/// Fails when it is asked again.
struct Broken;

impl Headers for Broken {
    fn headers(&self, refused: Option<&HeaderList>, _: Needed) -> HeadersComing<'_> {
        let outcome = match refused {
            None => Ok(None),
            Some(_) => Err(McpError::new(ErrorCode::Config, "the login service is down")),
        };
        Box::pin(std::future::ready(outcome))
    }
}

#[tokio::test]
async fn a_refresh_that_fails_is_the_cause_of_the_refusal() {
    let server = HttpServer::start(|_| Some(respond(401, &[], ""))).await;
    let error = failure(plan_with(&server.url(), Arc::new(Broken))).await;
    assert_eq!((error.code, error.detail("status")), (ErrorCode::AuthRequired, Some(&401.into())));
    assert_eq!(error.cause.unwrap().message, "the login service is down");
    assert_eq!(server.all().len(), 1);
}

/// Gives a token, and fails to give another as often as it is asked.
#[derive(Default)]
struct Once(AtomicUsize);

impl Headers for Once {
    fn headers(&self, refused: Option<&HeaderList>, _: Needed) -> HeadersComing<'_> {
        let outcome = if refused.is_some() {
            self.0.fetch_add(1, Ordering::SeqCst);
            Err(McpError::new(ErrorCode::AuthRequired, "the login service is down").with("question", 7))
        } else {
            Ok(Some(Arc::new([("Authorization".to_owned(), "Bearer once".to_owned())]) as HeaderList))
        };
        Box::pin(std::future::ready(outcome))
    }
}

#[tokio::test]
async fn a_refresh_that_fails_fails_for_all_who_were_refused_together() {
    let arrived = Arc::new(AtomicUsize::new(0));
    let together = arrived.clone();
    let server = HttpServer::start(move |asked| {
        // Each refusal is held back until all five were sent.
        (asked.name() == "tools/call").then(|| {
            together.fetch_add(1, Ordering::SeqCst);
            let mut steps = vec![Step::Wait(Duration::from_millis(300))];
            steps.extend(respond(401, &[], ""));
            steps
        })
    })
    .await;
    let source = Arc::new(Once::default());
    let session = connected_by(plan_with(&server.url(), source.clone())).await;
    let calls: Vec<_> = (0..5).map(|_| call(&session, "echo", "{}")).collect();
    for call in calls {
        let error = outcome(call).await.unwrap_err();
        assert_eq!(
            (error.code, error.message.as_str()),
            (ErrorCode::AuthRequired, "the login service is down")
        );
        assert_eq!((error.detail("status"), error.detail("question")), (Some(&401.into()), Some(&7.into())));
    }
    assert_eq!((arrived.load(Ordering::SeqCst), source.0.load(Ordering::SeqCst)), (5, 1));
    outcome(call(&session, "echo", "{}")).await.unwrap_err();
    assert_eq!(source.0.load(Ordering::SeqCst), 2, "a later call asks again");
    assert_eq!(arrived.load(Ordering::SeqCst), 5, "and sends nothing with what was refused");
    close(&session).await;
}

#[tokio::test]
async fn headers_of_the_protocol_cannot_be_set_and_nothing_is_sent_with_them() {
    for name in [
        "Accept",
        "content-type",
        "Mcp-Session-Id",
        "MCP-Anything",
        "Last-Event-ID",
        "Host",
        "Content-Length",
    ] {
        let server = HttpServer::start(|_| None).await;
        let error = failure(plan_with(&server.url(), headers(&[("X-Fine", "1"), (name, "x")]))).await;
        assert_eq!(error.code, ErrorCode::Config, "{name}");
        assert!(error.message.contains(name), "{error}");
        assert!(server.all().is_empty());
    }
    let server = HttpServer::start(|_| None).await;
    let error = failure(plan_with(&server.url(), headers(&[("X-Key", "secret\nX-Evil: 1")]))).await;
    assert!(error.code == ErrorCode::Config && !error.message.contains("secret"), "{error}");
}

#[tokio::test]
async fn a_redirect_is_followed_within_the_origin_only_and_headers_go_nowhere_else() {
    let other = HttpServer::start(|_| None).await;
    let elsewhere = other.url();
    for (status, target, expected) in [
        (307, "/moved?x=1".to_owned(), true),
        (308, "moved".to_owned(), true),
        (307, format!("{elsewhere}?key=abc"), false),
        (302, "/moved".to_owned(), false),
        (307, "/mcp".to_owned(), false),
    ] {
        let location = target.clone();
        let server = HttpServer::start(move |asked| {
            (asked.path == "/mcp").then(|| respond(status, &[("location", &location)], ""))
        })
        .await;
        let plan = plan_with(&server.url(), headers(&[("X-Api-Key", "canary-4711-abcd")]));
        if expected {
            let session = connected_by(plan).await;
            outcome(call(&session, "echo", "{}")).await.unwrap();
            close(&session).await;
            assert!(server.all().iter().all(|asked| asked.header("x-api-key") == Some("canary-4711-abcd")));
        } else {
            let error = failure(plan).await;
            assert_eq!((error.code, error.detail("status").is_some()), (ErrorCode::Http, true));
            assert!(!format!("{error:?}").contains("key=abc"), "{error:?}");
            assert!(server.all().len() <= 11);
        }
    }
    assert!(other.all().is_empty());
}

#[tokio::test]
async fn what_a_server_repeats_of_a_secret_header_is_not_shown() {
    let server = HttpServer::start(|asked| {
        Some(respond(500, &[], &format!("bad key {}", asked.header("x-api-key").unwrap_or_default())))
    })
    .await;
    let plan = plan_with(&server.url(), headers(&[("X-Api-Key", "canary-4711-abcd")]));
    plan.redactor.learn(&[("X-Api-Key".to_owned(), "canary-4711-abcd".to_owned())]);
    let error = failure(plan).await;
    assert_eq!(error.detail("body"), Some(&"bad key «X-Api-Key»".into()));
    assert!(!format!("{error:?}").contains("canary"), "{error:?}");
}

#[tokio::test]
async fn a_variable_in_the_host_of_a_url_is_not_shown() {
    let mut plan = plan("http://tenant-4711-canary.localhost:9/mcp", &[], &[]);
    plan.redactor = Redactor::new(&[("TENANT".to_owned(), "tenant-4711-canary".to_owned())]);
    plan.timeout = 3 * PATIENCE;
    let error = failure(plan).await;
    assert_eq!(error.code, ErrorCode::Connect);
    assert!(
        error.message.contains("«TENANT».localhost:9") && !format!("{error:?}").contains("canary"),
        "{error}"
    );
}

#[tokio::test]
async fn what_cannot_be_reached_is_said_with_its_place() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let gone = listener.local_addr().unwrap().to_string();
    drop(listener);
    let server = HttpServer::start(|_| None).await;
    let plain = server.url().replace("http:", "https:");
    for (url, env, said) in [
        (
            format!("http://{gone}/mcp"),
            vec![],
            vec![gone.as_str(), "refused the connection; is the server running?"],
        ),
        (
            "http://nobody.invalid/mcp".to_owned(),
            vec![("HTTP_PROXY", gone.as_str())],
            vec![gone.as_str(), "proxy"],
        ),
        (
            "http://x.invalid/".to_owned(),
            vec![("http_proxy", gone.as_str()), ("NO_PROXY", "invalid")],
            vec!["x.invalid:80", "the name x.invalid ("],
        ),
        (plain, vec![], vec![if cfg!(feature = "tls") { "127.0.0.1" } else { "has no TLS" }]),
        ("ftp://x/".to_owned(), vec![], vec!["URL"]),
    ] {
        let mut asked = plan(&url, &[], &env);
        // Where a resolver is not there, its silence is not the first to end.
        asked.timeout = 3 * PATIENCE;
        let error = failure(asked).await;
        let expected = if url.starts_with("ftp") { ErrorCode::Config } else { ErrorCode::Connect };
        assert_eq!(error.code, expected, "{error}");
        for said in said {
            assert!(error.message.contains(said), "{error} does not say {said}");
        }
        assert!(!error.message.ends_with("?."), "{error}");
    }
}

#[tokio::test]
async fn requests_one_after_the_other_share_a_connection() {
    let server = HttpServer::start(|_| None).await;
    let session = connected_by(plan(&server.url(), &[], &[])).await;
    for _ in 0..20 {
        outcome(call(&session, "echo", "{}")).await.unwrap();
    }
    let connections: std::collections::HashSet<_> =
        server.asked("tools/call").iter().map(|asked| asked.connection).collect();
    assert!(connections.len() <= 2, "{connections:?}");
    close(&session).await;
}
