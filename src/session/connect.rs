//! From a definition to a session: spawn, handshake, listing, under one deadline.

use std::collections::HashSet;
use std::fmt::{self, Write};
use std::future::Future;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use serde_json::Value;
use tokio::sync::watch;

use super::calls::{Calls, Expired};
use super::failed_start::{Attempt, Phase, explain};
use super::inbox::Inbox;
use super::listing::LISTING;
use super::subscription::Subscription;
use super::{Owner, Session, Shared, handshake, milliseconds, wire};
use crate::error::{ErrorCode, McpError};
use crate::link::stdio::{self, Opening};
use crate::link::{Link, Receiver};
use crate::policy::definition::Definition;
use crate::policy::environment;
use crate::policy::nearest::nearest;
use crate::policy::options::Options;
use crate::policy::platform::Platform;
use crate::policy::redact::Redactor;
use crate::process::{Command, Waits};

/// After a failed start the server has this long to leave by itself before SIGTERM: it has nothing to save yet.
const FAILED_END_OF_INPUT: Duration = Duration::from_millis(100);

/// A caller whose connect timed out or was aborted is released when the server is gone, and after this time at the latest;
/// the stop ladder then goes on behind it.
const RELEASE_AFTER: Duration = Duration::from_millis(150);

/// What is to be started, judged.
#[derive(Clone)]
pub struct Plan {
    pub definition: Definition,
    pub options: Arc<Options>,
    /// The host's working directory at the time of the call, where the definition names none.
    pub directory: Option<PathBuf>,
}

/// What a host learns of a server that has started: a JSON object.
pub struct Welcome(pub String);

impl fmt::Debug for Welcome {
    /// Without the text: tools and instructions are handed on as the server wrote them.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Welcome({} bytes)", self.0.len())
    }
}

/// Starts a server and waits until its tools are known. Must run on the I/O thread. When `cancelled` resolves first, the server is
/// stopped and the error is `ERR_MCP_CLOSED`.
pub async fn connect(
    plan: Plan,
    owner: Arc<dyn Owner>,
    cancelled: impl Future<Output = ()>,
) -> Result<(Session, Welcome), McpError> {
    let open = |opening, receiver| async { Ok(stdio::open(opening, receiver).await? as Arc<dyn Link>) };
    connect_through(open, plan, owner, cancelled).await
}

/// As [`connect`], over whatever link `open` gives.
pub async fn connect_through<L: Future<Output = Result<Arc<dyn Link>, McpError>>>(
    open: impl FnOnce(Opening, Arc<dyn Receiver>) -> L,
    plan: Plan,
    owner: Arc<dyn Owner>,
    cancelled: impl Future<Output = ()>,
) -> Result<(Session, Welcome), McpError> {
    let started = Instant::now();
    let environment = environment::build(&plan.definition, &plan.options.env, Platform::HOST);
    let redactor = Redactor::new(&environment.inherited);
    let limit = plan.options.connect_timeout.unwrap_or(plan.definition.timeout);
    let path = Platform::HOST.values_by_key(&environment.variables).get("PATH").copied().map(str::to_owned);
    let mut attempt = Attempt { phase: Phase::Start, begun: started, limit, search_path: path };
    let shutdown = plan.options.shutdown;
    let shared = Arc::new(Shared {
        id: plan.definition.id.clone(),
        filter: plan.definition.tools.clone(),
        redactor: redactor.clone(),
        listens: plan.options.listens,
        waits: Waits { end_of_input: shutdown.end_of_input, terminate: shutdown.terminate },
        timeout: plan.definition.timeout,
        max_message_bytes: plan.options.max_message_bytes,
        runtime: tokio::runtime::Handle::current(),
        owner,
        link: OnceLock::new(),
        negotiated: OnceLock::new(),
        calls: Calls::default(),
        names: Mutex::new(HashSet::new()),
        listing: tokio::sync::Mutex::new(()),
        refresh_wanted: AtomicBool::new(false),
        subscription: Subscription::default(),
        closing: AtomicBool::new(false),
        life: Mutex::default(),
        closed: watch::Sender::new(None),
        missing: environment.missing,
        unknown: AtomicU64::new(0),
        handshake_ms: AtomicU64::new(0),
    });
    let opening = Opening {
        server: plan.definition.id.clone(),
        command: command(&plan, environment.variables),
        guardian: plan.options.guardian,
        max_message_bytes: plan.options.max_message_bytes,
        redactor,
        wants_stderr: plan.options.listens.stderr,
    };
    let inbox = Arc::new(Inbox(shared.clone()));
    let opening = open(opening, inbox);
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
            shared.lives(|life| life.is_connected = true);
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

async fn start(
    shared: &Arc<Shared>,
    opening: impl Future<Output = Result<Arc<dyn Link>, McpError>>,
    options: &Options,
    phase: &mut Phase,
) -> Result<String, McpError> {
    // Set once, here: nothing before this line can have sent anything.
    let _ = shared.link.set(opening.await?);
    let keeper = shared.clone();
    tokio::spawn(async move { keeper.calls.keep_deadlines(|call: Expired| keeper.expired(call)).await });
    *phase = Phase::Handshake;
    let negotiated = handshake::negotiate(shared, options.protocol).await?;
    let _ = shared.negotiated.set(negotiated);
    // Before the list, so that no change is lost between the two.
    shared.subscribe();
    *phase = Phase::Listing;
    let _one_at_a_time = shared.listing.lock().await;
    shared.list(LISTING, None).await.map(|tools| shared.set_tools(tools))
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

fn command(plan: &Plan, variables: Vec<(String, String)>) -> Command {
    let mut words = plan.definition.command.iter();
    Command {
        program: words.next().map(PathBuf::from).unwrap_or_default(),
        arguments: words.cloned().collect(),
        directory: plan.definition.cwd.as_ref().map(PathBuf::from).or_else(|| plan.directory.clone()),
        variables,
    }
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
