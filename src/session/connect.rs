//! From a plan to a session: start or reach the server, handshake, listing, under one deadline.

use std::collections::HashSet;
use std::fmt::{self, Write};
use std::future::Future;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use serde_json::Value;
use tokio::sync::watch;

use super::calls::{Calls, Expired};
use super::failed_start::{Attempt, Phase, explain};
use super::inbox::Inbox;
use super::listing::LISTING;
use super::plan::{Plan, Server};
use super::subscription::Subscription;
use super::{Owner, Session, Shared, handshake, milliseconds, wire};
use crate::error::{ErrorCode, McpError};
use crate::link::{Link, Receiver, http, stdio};
use crate::policy::nearest::nearest;
use crate::policy::options::Options;
use crate::process::Waits;

/// After a failed start the server has this long to leave by itself before SIGTERM: it has nothing to save yet.
const FAILED_END_OF_INPUT: Duration = Duration::from_millis(100);

/// A caller whose connect timed out or was aborted is released when the server is gone, and after this time at the latest;
/// the stop ladder then goes on behind it.
const RELEASE_AFTER: Duration = Duration::from_millis(150);

/// What a host learns of a server that has started: a JSON object.
pub struct Welcome(pub String);

impl fmt::Debug for Welcome {
    /// Without the text: tools and instructions are handed on as the server wrote them.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Welcome({} bytes)", self.0.len())
    }
}

/// Starts or reaches a server and waits until its tools are known. Must run on the I/O thread. When `cancelled`
/// resolves first, the server is stopped and the error is `ERR_MCP_CLOSED`.
pub async fn connect(
    plan: Plan,
    owner: Arc<dyn Owner>,
    cancelled: impl Future<Output = ()>,
) -> Result<(Session, Welcome), McpError> {
    connect_through(open, plan, owner, cancelled).await
}

/// As [`connect`], over whatever link `open` gives.
pub async fn connect_through<L: Future<Output = Result<Arc<dyn Link>, McpError>>>(
    open: impl FnOnce(Plan, Arc<dyn Receiver>) -> L,
    plan: Plan,
    owner: Arc<dyn Owner>,
    cancelled: impl Future<Output = ()>,
) -> Result<(Session, Welcome), McpError> {
    let started = Instant::now();
    let limit = plan.options.connect_timeout.unwrap_or(plan.timeout);
    let mut attempt =
        Attempt { phase: Phase::Start, begun: started, limit, search_path: plan.server.search_path() };
    let shared = Arc::new(shared(&plan, owner));
    let opening = open(plan.clone(), Arc::new(Inbox(shared.clone())));
    let outcome = tokio::select! {
        biased;
        () = cancelled => Err(shared.closed_error()),
        outcome = tokio::time::timeout(limit, start(&shared, opening, &plan.options, &mut attempt.phase)) => {
            outcome.unwrap_or_else(|_| Err(McpError::new(ErrorCode::Timeout, "")))
        }
    };
    match outcome {
        Ok(tools) => {
            shared.handshake_ms.store(milliseconds(started.elapsed()), Ordering::Relaxed);
            warn_of_missing(&shared, &plan.options.env);
            shared.connected();
            let welcome = welcome(&shared, &tools);
            Ok((Session(shared), welcome))
        }
        Err(error) => {
            let waits_for_caller = matches!(error.code, ErrorCode::Timeout | ErrorCode::Closed);
            let stopped = stop(&shared, &error);
            if waits_for_caller {
                let _ = tokio::time::timeout(RELEASE_AFTER, stopped).await;
            } else {
                stopped.await;
            }
            Err(explain(error, &shared, &attempt))
        }
    }
}

/// What the parts of the session will share, before there is a link. On the I/O thread.
fn shared(plan: &Plan, owner: Arc<dyn Owner>) -> Shared {
    let shutdown = plan.options.shutdown;
    Shared {
        id: plan.id.clone(),
        filter: plan.tools.clone(),
        redactor: plan.redactor.clone(),
        is_process: matches!(plan.server, Server::Process(_)),
        lists_tools: plan.lists_tools,
        answers_input: plan.answers_input,
        listens: plan.options.listens,
        waits: Waits { end_of_input: shutdown.end_of_input, terminate: shutdown.terminate },
        timeout: plan.timeout,
        max_message_bytes: plan.options.max_message_bytes,
        runtime: tokio::runtime::Handle::current(),
        owner,
        link: OnceLock::new(),
        negotiated: OnceLock::new(),
        calls: Calls::default(),
        names: Mutex::new(HashSet::new()),
        listing: tokio::sync::Mutex::new(()),
        refresh_wanted: AtomicBool::new(false),
        refreshed: Mutex::default(),
        subscription: Subscription::default(),
        listings: AtomicU64::new(0),
        closing: AtomicBool::new(false),
        life: Mutex::default(),
        closed: watch::Sender::new(None),
        missing: plan.missing.clone(),
        inputs: Mutex::default(),
        asking: AtomicUsize::new(0),
        unknown: AtomicU64::new(0),
        handshake_ms: AtomicU64::new(0),
    }
}

async fn start(
    shared: &Arc<Shared>,
    opening: impl Future<Output = Result<Arc<dyn Link>, McpError>>,
    options: &Options,
    phase: &mut Phase,
) -> Result<String, McpError> {
    // Set once, here: nothing before this line can have sent anything.
    let _ = shared.link.set(opening.await?);
    let keeper = shared.clone();
    tokio::spawn(async move {
        let catch_up = || keeper.link.get().into_iter().for_each(|link| link.catch_up());
        keeper.calls.keep_deadlines(catch_up, |call: Expired| keeper.expired(call)).await;
    });
    *phase = Phase::Handshake;
    let negotiated = handshake::negotiate(shared, options.protocol).await?;
    let _ = shared.negotiated.set(negotiated);
    *phase = Phase::Listing;
    if shared.lists_tools {
        // Before the list, so that no change is lost between the two.
        shared.subscribe();
        let _one_at_a_time = shared.listing.lock().await;
        return shared.list_at_start().await.map(|tools| shared.set_tools(tools));
    }
    if !shared.is_process && shared.modern_meta().is_some() {
        learn_schemas(shared).await?;
    }
    Ok("[]".to_owned())
}

async fn open(plan: Plan, receiver: Arc<dyn Receiver>) -> Result<Arc<dyn Link>, McpError> {
    let options = plan.options;
    match plan.server {
        Server::Process(command) => {
            let opening = stdio::Opening {
                server: plan.id,
                command,
                guardian: options.guardian,
                max_message_bytes: options.max_message_bytes,
                redactor: plan.redactor.clone(),
                wants_stderr: options.listens.stderr,
            };
            Ok(stdio::open(opening, receiver).await?)
        }
        Server::Http(remote) => {
            let opening = http::Opening {
                server: plan.id,
                remote,
                max_message_bytes: options.max_message_bytes,
                redactor: plan.redactor.clone(),
                answers_input: plan.answers_input,
                env: &options.env,
            };
            Ok(http::open(opening, receiver).await?)
        }
    }
}

/// From 2026-07-28 on HTTP headers repeat arguments as the schemas of the tools say (SEP-2243). A server whose tools cannot be listed may
/// have some that can be called.
async fn learn_schemas(shared: &Arc<Shared>) -> Result<(), McpError> {
    let _one_at_a_time = shared.listing.lock().await;
    match shared.list(LISTING, None).await {
        Err(error) if shared.calls.gone().is_some() => return Err(error),
        Err(error) => {
            let message = format!(
                "The server's tools could not be listed, which revision 2026-07-28 needs for the headers of some calls. {}",
                error.message
            );
            shared.warn("WARN_MCP_TOOLS_NOT_LISTED", &message, vec![("error", error.to_json())]);
        }
        Ok(_) => {}
    }
    Ok(())
}

/// Stops what was started; resolves when it is gone.
async fn stop(shared: &Arc<Shared>, error: &McpError) {
    shared.closing.store(true, Ordering::Release);
    shared.calls.end(error, &shared.closed_error());
    shared.subscription.end();
    let Some(link) = shared.link.get().cloned() else { return };
    let end_of_input = shared.waits.end_of_input.min(FAILED_END_OF_INPUT);
    let waits = Waits { end_of_input, ..shared.waits };
    // In a task of its own: the ladder goes on when the caller is released before its end.
    let ladder = shared.runtime.spawn(async move { link.close(waits).await });
    let _ = ladder.await;
}

/// A server that lacks its token mostly starts all the same, and fails at the first call.
fn warn_of_missing(shared: &Shared, env: &[(String, String)]) {
    for name in &shared.missing {
        let nearest = nearest(name, env.iter().map(|(name, _)| name.as_str()));
        let hint = nearest.map(|nearest| format!("; {nearest} is set")).unwrap_or_default();
        let message = format!(
            "The variable {name} is to be inherited and is not set{hint}. The server started without it."
        );
        shared.warn(
            "WARN_MCP_MISSING_ENV",
            &message,
            vec![("key", name.as_str().into()), ("nearest", nearest.into())],
        );
    }
}

fn welcome(shared: &Shared, tools: &str) -> Welcome {
    let pid = shared.link.get().and_then(|link| link.pid());
    let mut text = format!(r#"{{"pid":{},"tools":{tools}"#, Value::from(pid));
    if let Some(negotiated) = shared.negotiated.get() {
        let _ = write!(
            text,
            r#","protocolVersion":{},"serverCapabilities":{}"#,
            wire::quoted(negotiated.version.as_str()),
            negotiated.capabilities
        );
        for (name, member) in
            [("serverInfo", &negotiated.server_info), ("instructions", &negotiated.instructions)]
        {
            if let Some(member) = member {
                let _ = write!(text, r#","{name}":{member}"#);
            }
        }
    }
    text.push('}');
    Welcome(text)
}
