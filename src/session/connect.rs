//! From a definition to a session: spawn, handshake, listing, under one deadline.

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
use super::inbox::{Inbox, LISTING};
use super::{Owner, Session, Shared, handshake, milliseconds, sentence_of, wire};
use crate::error::{ErrorCode, McpError};
use crate::link::STDERR_IN_ERRORS;
use crate::link::stdio::{self, Opening};
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
#[derive(Debug)]
pub struct Welcome(pub String);

/// Starts a server and waits until its tools are known. Must run on the I/O thread. When `cancelled` resolves first, the server is
/// stopped and the error is `ERR_MCP_CLOSED`.
pub async fn connect(
    plan: Plan,
    owner: Arc<dyn Owner>,
    cancelled: impl Future<Output = ()>,
) -> Result<(Session, Welcome), McpError> {
    let started = Instant::now();
    let environment = environment::build(&plan.definition, &plan.options.env, Platform::HOST);
    let redactor = Redactor::new(&environment.inherited);
    let shutdown = plan.options.shutdown;
    let shared = Arc::new(Shared {
        id: plan.definition.id.clone(),
        filter: plan.definition.tools.clone(),
        redactor: redactor.clone(),
        listens: plan.options.listens,
        waits: Waits { end_of_input: shutdown.end_of_input, terminate: shutdown.terminate },
        timeout: plan.definition.timeout,
        runtime: tokio::runtime::Handle::current(),
        owner,
        link: OnceLock::new(),
        negotiated: OnceLock::new(),
        calls: Calls::default(),
        names: Mutex::new(HashSet::new()),
        listing: tokio::sync::Mutex::new(()),
        refresh_wanted: AtomicBool::new(false),
        connected: AtomicBool::new(false),
        closing: AtomicBool::new(false),
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
    let limit = plan.options.connect_timeout.unwrap_or(plan.definition.timeout);
    let mut phase = Phase::Start;
    let outcome = tokio::select! {
        biased;
        () = cancelled => Err(shared.closed_error()),
        outcome = tokio::time::timeout(limit, start(&shared, opening, &plan.options, &mut phase)) => {
            outcome.unwrap_or_else(|_| Err(McpError::new(ErrorCode::Timeout, "")))
        }
    };
    match outcome {
        Ok(tools) => {
            shared.handshake_ms.store(milliseconds(started.elapsed()), Ordering::Relaxed);
            warn_of_missing(&shared, &plan.options.env);
            shared.connected.store(true, Ordering::Release);
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

/// Where a start has got to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Start,
    Handshake,
    Listing,
}

async fn start(
    shared: &Arc<Shared>,
    opening: Opening,
    options: &Options,
    phase: &mut Phase,
) -> Result<String, McpError> {
    let link = stdio::open(opening, Arc::new(Inbox(shared.clone()))).await?;
    // Set once, here: nothing before this line can have sent anything.
    let _ = shared.link.set(link);
    let keeper = shared.clone();
    tokio::spawn(async move { keeper.calls.keep_deadlines(|call: Expired| keeper.expired(call)).await });
    *phase = Phase::Handshake;
    let negotiated = handshake::negotiate(shared, options.protocol).await?;
    let _ = shared.negotiated.set(negotiated);
    *phase = Phase::Listing;
    let _one_at_a_time = shared.listing.lock().await;
    shared.list(LISTING, None).await.map(|tools| shared.set_tools(tools))
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

/// Says of a failed start what a person needs to find out why.
fn explain(error: McpError, shared: &Shared, phase: Phase, limit: Duration) -> McpError {
    let missing = &shared.missing;
    let noise = shared.link.get().map(|link| link.skipped()).unwrap_or_default();
    let stderr = shared.link.get().map(|link| link.stderr(STDERR_IN_ERRORS)).unwrap_or_default();
    let (done, phase_name) = match phase {
        Phase::Start => ("started", "connect"),
        Phase::Handshake => ("answered the handshake", "connect"),
        Phase::Listing => ("listed its tools", "list"),
    };
    let error = match error.code {
        ErrorCode::Timeout => {
            let ms = milliseconds(limit);
            let message =
                format!("The server {} had not {done} within {ms} ms{}.", shared.id, hint(&noise, &stderr));
            McpError::new(ErrorCode::Timeout, message).with("phase", phase_name).with("ms", ms)
        }
        ErrorCode::Exited => {
            let mut message =
                format!("The server {} did not start: {}", shared.id, sentence_of(&shared.id, &error));
            if let Some(first) = noise.first() {
                let _ =
                    write!(message, " It printed on stdout what is no MCP message: {}.", wire::quoted(first));
            }
            let mut failed = McpError::new(ErrorCode::Handshake, message);
            failed.details = error.details.into_iter().filter(|(key, _)| *key != "stderr").collect();
            failed
        }
        // The last two: what a server answers that starts without its token is often its first list.
        ErrorCode::Handshake | ErrorCode::ProtocolVersion | ErrorCode::Rpc | ErrorCode::InvalidMessage => {
            error
        }
        _ => return error.of_server(&shared.id),
    };
    let mut error =
        error.with("stderr", stderr).with("stdoutNoise", noise).with("missingEnv", missing.clone());
    if !missing.is_empty() {
        let _ =
            write!(error.message, " Not set in the environment it inherits from: {}.", missing.join(", "));
    }
    error.of_server(&shared.id)
}

fn hint(noise: &[String], stderr: &str) -> String {
    if let Some(first) = noise.first() {
        return format!("; it printed on stdout what is no MCP message: {}", wire::quoted(first));
    }
    let said = stdio::stderr::telling_line(stderr).map(|line| format!("; its stderr says: {line}"));
    said.unwrap_or_else(|| "; raise connectTimeout if it may take longer, for a download say".to_owned())
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
