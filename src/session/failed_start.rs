//! Why a server did not start: what a person needs to find out.

use std::fmt::Write;
use std::time::{Duration, Instant};

use super::{Shared, milliseconds, sentence_of, wire};
use crate::error::{ErrorCode, McpError};
use crate::link::STDERR_IN_ERRORS;

/// Where a start has got to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    Start,
    Handshake,
    Listing,
}

/// A start under way: what its failure has to tell besides what the server did.
pub(super) struct Attempt {
    pub(super) phase: Phase,
    pub(super) begun: Instant,
    pub(super) limit: Duration,
    /// `PATH` as the server sees it.
    pub(super) search_path: Option<String>,
}

/// Says of a failed start what a person needs to find out why.
pub(super) fn explain(error: McpError, shared: &Shared, attempt: &Attempt) -> McpError {
    let missing = &shared.missing;
    let noise = shared.link.get().map(|link| link.skipped()).unwrap_or_default();
    let stderr = shared.link.get().map(|link| link.stderr(STDERR_IN_ERRORS)).unwrap_or_default();
    let (done, phase_name) = match attempt.phase {
        Phase::Start => ("started", "connect"),
        Phase::Handshake => ("answered the handshake", "connect"),
        Phase::Listing => ("listed its tools", "list"),
    };
    let error = match error.code {
        ErrorCode::Timeout => {
            let ms = milliseconds(attempt.limit);
            let message =
                format!("The server {} had not {done} within {ms} ms{}.", shared.id, hint(shared, &noise));
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
    if !shared.is_process {
        return error.of_server(&shared.id);
    }
    let is_handshake = error.code == ErrorCode::Handshake;
    let misses_something = says_not_found(&stderr);
    let misses_program = error.detail("exitCode") == Some(&COMMAND_NOT_FOUND.into());
    let mut error =
        error.with("stderr", stderr).with("stdoutNoise", noise).with("missingEnv", missing.clone());
    if is_handshake {
        error = error.with("phase", phase_name).with("ms", milliseconds(attempt.begun.elapsed()));
    }
    if misses_something {
        // The server's own words say what was not found; only this can say why.
        let search_path = attempt.search_path.as_deref().map(|path| shared.redactor.text(path).into_owned());
        error = error.with("searchPath", search_path);
        if misses_program {
            error.message.push_str(match attempt.search_path {
                Some(_) => " The PATH that it searched is in details.searchPath.",
                None => " It was given no PATH to search.",
            });
        }
    }
    if !missing.is_empty() {
        let _ =
            write!(error.message, " Not set in the environment it inherits from: {}.", missing.join(", "));
    }
    error.of_server(&shared.id)
}

/// The exit code of shells and of `env` for a program that they did not find (POSIX, shell command language 2.8.2).
const COMMAND_NOT_FOUND: i32 = 127;

/// As shells, `env`, `npx` and Windows say of a program that it is not there.
fn says_not_found(stderr: &str) -> bool {
    let stderr = stderr.to_ascii_lowercase();
    ["not found", "no such file or directory", "enoent", "is not recognized as"]
        .iter()
        .any(|words| stderr.contains(words))
}

fn hint(shared: &Shared, noise: &[String]) -> String {
    if let Some(first) = noise.first() {
        return format!("; it printed on stdout what is no MCP message: {}", wire::quoted(first));
    }
    let last_words = shared.link.get().and_then(|link| link.last_words());
    let said = last_words.map(|line| format!("; its stderr says: {line}"));
    said.unwrap_or_else(|| "; raise connectTimeout if it may take longer, for a download say".to_owned())
}
