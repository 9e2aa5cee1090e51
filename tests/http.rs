//! Sessions over streamable HTTP, against servers that behave and misbehave as told. No N-API is compiled in.

#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "http/answers.rs"]
mod answers;
#[path = "http/reaching.rs"]
mod reaching;
#[path = "http/revisions.rs"]
mod revisions;
#[path = "support/http.rs"]
mod server;
#[path = "http/sessions.rs"]
mod sessions;
#[path = "http/subscriptions.rs"]
mod subscriptions;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use server::{HttpServer, PATIENCE};
use tokio::sync::oneshot;
use workflow_mcp::error::McpError;
use workflow_mcp::link::http::{Fixed, Headers, Remote};
use workflow_mcp::link::result_text::ResultText;
use workflow_mcp::policy::definition::ToolFilter;
use workflow_mcp::policy::input::Input;
use workflow_mcp::policy::options::judge;
use workflow_mcp::policy::redact::Redactor;
use workflow_mcp::session::calls::{Outcome, Settle, Terms};
use workflow_mcp::session::{Asked, Event, Owner, Plan, Reason, Server, Session, connect};

#[derive(Default)]
struct Heard(Mutex<Vec<String>>);

impl Owner for Heard {
    fn heard(&self, event: Event) {
        self.0.lock().unwrap().push(format!("{event:?}"));
    }
}

fn object(members: &[(&str, Input)]) -> Input {
    Input::Object(members.iter().map(|(key, value)| ((*key).to_owned(), value.clone())).collect())
}

fn headers(list: &[(&str, &str)]) -> Arc<dyn Headers> {
    Arc::new(Fixed(list.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()))
}

/// A script's session with this server.
fn plan(url: &str, options: &[(&str, Input)], env: &[(&str, &str)]) -> Plan {
    let env: Vec<_> = env.iter().map(|(name, value)| (*name, Input::String((*value).to_owned()))).collect();
    let options = judge(&object(options), || object(&env), false).unwrap();
    Plan {
        id: "remote".to_owned(),
        server: Server::Http(Remote { url: url.to_owned(), headers: headers(&[]) }),
        tools: ToolFilter::default(),
        lists_tools: false,
        timeout: PATIENCE,
        answers_input: false,
        redactor: Redactor::new(&[]),
        missing: Vec::new(),
        options: Arc::new(options),
    }
}

async fn connected(server: &HttpServer) -> Session {
    connected_by(plan(&server.url(), &[], &[])).await
}

async fn connected_by(plan: Plan) -> Session {
    connect(plan, Arc::new(Heard::default()), std::future::pending()).await.unwrap().0
}

async fn failure(plan: Plan) -> McpError {
    match connect(plan, Arc::new(Heard::default()), std::future::pending()).await {
        Ok(_) => panic!("it connected"),
        Err(error) => error,
    }
}

fn terms(timeout: Duration) -> Terms {
    Terms::within("call", Some(timeout))
}

type Pending = (Option<u64>, oneshot::Receiver<Outcome>);

fn call(session: &Session, name: &str, arguments: &str) -> Pending {
    call_on(session, name, arguments, terms(PATIENCE))
}

fn call_on(session: &Session, name: &str, arguments: &str, terms: Terms) -> Pending {
    let (sender, outcome) = oneshot::channel();
    let settle = Settle::new(|outcome| drop(sender.send(outcome)));
    (session.call_tool(name, arguments, Asked { terms, meta: None }, settle), outcome)
}

async fn outcome(call: Pending) -> Result<String, McpError> {
    tokio::time::timeout(PATIENCE, call.1).await.unwrap().unwrap().map(ResultText::into_string)
}

async fn close(session: &Session) {
    session.close(Reason::Closed);
    tokio::time::timeout(PATIENCE, session.closed()).await.unwrap();
}
