//! What is to be connected: a process to start or a server to reach.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::link::http::Remote;
use crate::policy::definition::{Definition, ToolFilter};
use crate::policy::environment;
use crate::policy::options::Options;
use crate::policy::platform::Platform;
use crate::policy::redact::Redactor;
use crate::process::Command;

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

impl Server {
    /// `PATH` as a server that is started sees it.
    pub(super) fn search_path(&self) -> Option<String> {
        let Self::Process(command) = self else { return None };
        Platform::HOST.values_by_key(&command.variables).get("PATH").copied().map(str::to_owned)
    }
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
