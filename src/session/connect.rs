//! From a plan to a session: start or reach the server, handshake, listing, under one deadline.

use std::collections::HashSet;
use std::fmt::Write;
use std::future::Future;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use serde_json::Value;
use tokio::sync::watch;

use super::calls::{Calls, Expired};
use super::failed_start::{Phase, explain};
use super::inbox::Inbox;
use super::listing::LISTING;
use super::{Owner, Session, Shared, handshake, milliseconds, wire};
use crate::error::{ErrorCode, McpError};
use crate::link::Link;
use crate::link::http::{self, Remote};
use crate::link::stdio;
use crate::policy::definition::{Definition, ToolFilter};
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

/// What is to be connected, judged.
#[derive(Clone)]
pub struct Plan {
    /// The definition's `id`, or the server's name in its project.
    pub id: String,
    pub server: Server,
    pub tools: ToolFilter,
    /// Whether the start waits for the list of tools, and calls of other names are refused.
    pub lists_tools: bool,
    /// Of each call, and of the start where the options name none.
    pub timeout: Duration,
    /// Whether the host answers what a server asks in mid-call: only then the capability `elicitation` is declared.
    pub answers_input: bool,
    /// Knows what must not be shown: inherited values, expanded placeholders, headers.
    pub redactor: Redactor,
    /// Names that the server was to inherit and that are not set.
    pub missing: Vec<String>,
    pub options: Arc<Options>,
}

/// Where a server is.
#[derive(Clone)]
pub enum Server {
    /// It is started.
    Process(Command),
    /// It is reached.
    Http(Remote),
}

impl Plan {
    /// `directory`: the host's working directory at the time of the call, for a definition that names none.
    #[must_use]
    pub fn of(definition: Definition, options: Arc<Options>, directory: Option<PathBuf>) -> Self {
        let environment = environment::build(&definition, &options.env, Platform::HOST);
        let mut words = definition.command.into_iter();
        let command = Command {
            program: words.next().map(PathBuf::from).unwrap_or_default(),
            arguments: words.collect(),
            directory: definition.cwd.map(PathBuf::from).or(directory),
            variables: environment.variables,
        };
        Self {
            id: definition.id,
            server: Server::Process(command),
            tools: definition.tools,
            lists_tools: true,
            timeout: definition.timeout,
            answers_input: false,
            redactor: Redactor::new(&environment.inherited),
            missing: environment.missing,
            options,
        }
    }
}

/// What a host learns of a server that has started: a JSON object.
#[derive(Debug)]
pub struct Welcome(pub String);

/// Starts or reaches a server and waits until its tools are known. Must run on the I/O thread. When `cancelled` resolves first, the server is
/// stopped and the error is `ERR_MCP_CLOSED`.
pub async fn connect(
    plan: Plan,
    owner: Arc<dyn Owner>,
    cancelled: impl Future<Output = ()>,
) -> Result<(Session, Welcome), McpError> {
    let started = Instant::now();
    let shutdown = plan.options.shutdown;
    let shared = Arc::new(Shared {
        id: plan.id,
        filter: plan.tools,
        redactor: plan.redactor,
        is_process: matches!(plan.server, Server::Process(_)),
        lists_tools: plan.lists_tools,
        answers_input: plan.answers_input,
        listens: plan.options.listens,
        waits: Waits { end_of_input: shutdown.end_of_input, terminate: shutdown.terminate },
        timeout: plan.timeout,
        runtime: tokio::runtime::Handle::current(),
        owner,
        link: OnceLock::new(),
        negotiated: OnceLock::new(),
        calls: Calls::default(),
        names: Mutex::new(HashSet::new()),
        listing: tokio::sync::Mutex::new(()),
        refresh_wanted: AtomicBool::new(false),
        listings: AtomicU64::new(0),
        closing: AtomicBool::new(false),
        life: Mutex::default(),
        closed: watch::Sender::new(None),
        missing: plan.missing,
        inputs: Mutex::default(),
        unknown: AtomicU64::new(0),
        handshake_ms: AtomicU64::new(0),
    });
    let limit = plan.options.connect_timeout.unwrap_or(plan.timeout);
    let mut phase = Phase::Start;
    let outcome = tokio::select! {
        biased;
        () = cancelled => Err(shared.closed_error()),
        outcome = tokio::time::timeout(limit, start(&shared, plan.server, &plan.options, &mut phase)) => {
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
            Err(explain(error, &shared, phase, limit))
        }
    }
}

async fn start(
    shared: &Arc<Shared>,
    server: Server,
    options: &Options,
    phase: &mut Phase,
) -> Result<String, McpError> {
    let link = open(shared, server, options).await?;
    // Set once, here: nothing before this line can have sent anything.
    let _ = shared.link.set(link);
    let keeper = shared.clone();
    tokio::spawn(async move { keeper.calls.keep_deadlines(|call: Expired| keeper.expired(call)).await });
    *phase = Phase::Handshake;
    let negotiated = handshake::negotiate(shared, options.protocol).await?;
    let _ = shared.negotiated.set(negotiated);
    *phase = Phase::Listing;
    if shared.lists_tools {
        let _one_at_a_time = shared.listing.lock().await;
        return shared.list(LISTING, None).await.map(|tools| shared.set_tools(tools));
    }
    if !shared.is_process && shared.modern_meta().is_some() {
        learn_schemas(shared).await?;
    }
    Ok("[]".to_owned())
}

async fn open(shared: &Arc<Shared>, server: Server, options: &Options) -> Result<Arc<dyn Link>, McpError> {
    let receiver = Arc::new(Inbox(shared.clone()));
    match server {
        Server::Process(command) => {
            let opening = stdio::Opening {
                server: shared.id.clone(),
                command,
                guardian: options.guardian,
                max_message_bytes: options.max_message_bytes,
                redactor: shared.redactor.clone(),
                wants_stderr: options.listens.stderr,
            };
            Ok(stdio::open(opening, receiver).await?)
        }
        Server::Http(remote) => {
            let opening = http::Opening {
                server: shared.id.clone(),
                remote,
                max_message_bytes: options.max_message_bytes,
                redactor: shared.redactor.clone(),
                answers_input: shared.answers_input,
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
