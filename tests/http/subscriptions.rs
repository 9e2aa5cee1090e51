//! Changes of tools over HTTP, where a subscription is a request whose answer is a stream.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::server::{HttpServer, Reply, Step, event, json_body, result, stream};
use super::{Heard, close, plan};
use workflow_mcp::session::{Event, Owner, Plan, connect};

const WELCOME: &str = r#"{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{"listChanged":true}}}"#;

/// An event of the subscription that `asked` opened.
fn told(id: &str, method: &str) -> Step {
    let meta = format!(r#"{{"io.modelcontextprotocol/subscriptionId":{id}}}"#);
    event(&format!(
        r#"{{"jsonrpc":"2.0","method":"notifications/{method}","params":{{"notifications":{{}},"_meta":{meta}}}}}"#
    ))
}

/// Keeps the lists that are told of.
#[derive(Default)]
struct Lists(Mutex<Vec<String>>);

impl Owner for Lists {
    fn heard(&self, event: Event) {
        if let Event::ToolsChanged(list) = event {
            self.0.lock().unwrap().push(list);
        }
    }
}

fn listing(url: &str) -> Plan {
    Plan { lists_tools: true, ..plan(url, &[], &[]) }
}

#[tokio::test]
async fn a_change_is_heard_on_the_stream_and_the_stream_ends_with_the_session() {
    let lists = Arc::new(AtomicUsize::new(0));
    let counted = lists.clone();
    let server = HttpServer::modern(move |asked| -> Option<Reply> {
        match asked.name().as_str() {
            "server/discover" => Some(result(asked, WELCOME)),
            "subscriptions/listen" => Some(stream(vec![
                told(&asked.id(), "subscriptions/acknowledged"),
                Step::Wait(Duration::from_millis(300)),
                told("999", "tools/list_changed"),
                told(&asked.id(), "tools/list_changed"),
                Step::Hold,
            ])),
            "tools/list" => {
                let name = format!("list{}", counted.fetch_add(1, Ordering::SeqCst));
                Some(result(asked, &format!(r#"{{"tools":[{{"name":"{name}","inputSchema":{{}}}}]}}"#)))
            }
            _ => None,
        }
    })
    .await;
    let heard = Arc::new(Lists::default());
    let started = connect(listing(&server.url()), heard.clone(), std::future::pending()).await;
    let (session, _) = started.unwrap();
    let newest = || {
        let heard = heard.0.lock().unwrap();
        heard.last().is_some_and(|event| event.contains(&format!("list{}", lists.load(Ordering::SeqCst) - 1)))
    };
    server.until("the new list is heard", |_| newest()).await;
    assert_eq!(server.asked("subscriptions/listen").len(), 1);
    assert_eq!(session.diagnostics()["pendingRequests"], 0);
    close(&session).await;
    server.until("the stream has ended", |server| server.open() == 0).await;
}

#[tokio::test]
async fn a_stream_that_breaks_is_opened_again_with_a_list_and_a_refusal_is_not() {
    for refuses in [false, true] {
        let server = HttpServer::modern(move |asked| -> Option<Reply> {
            match asked.name().as_str() {
                "server/discover" => Some(result(asked, WELCOME)),
                "subscriptions/listen" if refuses => Some(json_body(
                    200,
                    &format!(
                        r#"{{"jsonrpc":"2.0","id":{},"error":{{"code":-32601,"message":"no"}}}}"#,
                        asked.id()
                    ),
                )),
                "subscriptions/listen" => {
                    Some(stream(vec![told(&asked.id(), "subscriptions/acknowledged"), Step::Cut]))
                }
                _ => None,
            }
        })
        .await;
        let started =
            connect(listing(&server.url()), Arc::new(Heard::default()), std::future::pending()).await;
        let (session, _) = started.unwrap();
        if refuses {
            tokio::time::sleep(Duration::from_millis(1_500)).await;
            assert_eq!(server.asked("subscriptions/listen").len(), 1);
        } else {
            server
                .until("it is opened again", |server| {
                    server.asked("subscriptions/listen").len() > 1 && server.asked("tools/list").len() > 1
                })
                .await;
        }
        close(&session).await;
    }
}
