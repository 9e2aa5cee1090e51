//! Projects: what a name in a script means.
//!
//! - [`options`] — what a host asks of a project
//! - [`file`] — which file is a project's, and whether it may be believed
//! - [`json`] — JSON with comments, and its lines
//! - [`server`] — what one name means, judged when it is used first
//! - [`variables`] — placeholders; [`hidden`] — what else is not shown
//! - [`url`], [`headers`], [`program`] — what may stand in a server's `url`, `headers` and `command`

mod file;
pub mod headers;
mod hidden;
mod json;
pub mod options;
mod program;
pub mod server;
pub mod url;
mod variables;

use std::collections::HashSet;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::error::{ErrorCode, McpError};
use crate::policy::definition;
use crate::policy::found::{Found, path_of, shown};
use crate::policy::input::Input;
use crate::policy::nearest::nearest;
use crate::policy::platform::Platform;
use json::Lines;
use options::{Config, Options};
use server::folder_of;

/// Longer names are no names; they stand in every message about their server.
const LONGEST_NAME: usize = 128;

/// So many of the known names stand in the message about one that is not; `details.known` has them all.
const SHOWN_NAMES: usize = 20;

/// A project's configuration, read once.
pub struct Project {
    options: Options,
    source: Source,
    entries: Vec<Entry>,
    /// The host's current folder when it was opened.
    directory: PathBuf,
}

/// Where it came from, and the names of its servers.
impl fmt::Debug for Project {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.entries.iter().map(|entry| &entry.name).collect();
        formatter
            .debug_struct("Project")
            .field("options", &self.options)
            .field("file", &self.source.file)
            .field("servers", &names)
            .finish_non_exhaustive()
    }
}

/// Where the configuration came from.
struct Source {
    file: Option<PathBuf>,
    /// Nobody named the file.
    is_discovered: bool,
    lines: Lines,
    /// What a relative `cwd` starts from.
    folder: PathBuf,
    /// The folders that were looked at, where nothing was found.
    looked: Vec<PathBuf>,
}

/// One server as it is written.
pub struct Entry {
    pub name: String,
    path: String,
    value: Input,
}

impl Project {
    /// Reads the configuration that the options name, or finds it. What is wrong with a single server is told when that is used.
    pub fn open(options: Options, directory: &Path) -> Result<Self, McpError> {
        let (source, root) = match &options.config {
            Config::Given(config) => (Source::named(None, directory), Some(config.clone())),
            Config::File(path) => {
                let file = directory.join(path);
                let (root, lines) = parsed(&file, &file::read_named(&file)?)?;
                (Source { lines, ..Source::named(Some(file), directory) }, Some(root))
            }
            Config::Discovered => {
                let from = start(options.from.as_deref(), directory)?;
                let search = file::search(&from, file::home(&options.env, Platform::HOST).as_deref())?;
                let source =
                    Source { is_discovered: true, looked: search.folders, ..Source::named(None, &from) };
                match search.found {
                    None => (source, None),
                    Some(file) => {
                        let (root, lines) = parsed(&file, &file::read_found(&file)?)?;
                        let folder = folder_of(&file).to_owned();
                        (Source { file: Some(file), lines, folder, ..source }, Some(root))
                    }
                }
            }
        };
        let mut project = Self { options, source, entries: Vec::new(), directory: directory.to_owned() };
        if let Some(root) = root {
            project.entries = project.entries_of(&root).map_err(|error| project.located(error))?;
        }
        Ok(project)
    }

    #[must_use]
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// The file that the configuration came from.
    #[must_use]
    pub fn file(&self) -> Option<&Path> {
        self.source.file.as_deref()
    }

    /// The servers that are not disabled, in the order of the configuration.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.entries.iter().filter(|entry| !entry.is_disabled()).map(|entry| entry.name.as_str())
    }

    /// The server of that name, if a script may have it.
    pub fn entry(&self, name: &str) -> Result<&Entry, McpError> {
        let entry =
            self.entries.iter().find(|entry| entry.name == name).ok_or_else(|| self.not_found(name))?;
        if entry.is_disabled() {
            let message =
                format!("The server {name} is disabled{}: its property disabled is true.", self.in_file());
            return Err(McpError::new(ErrorCode::ServerNotFound, message)
                .with("disabled", true)
                .of_server(name));
        }
        let has_url = !entry.found().property("url").is_absent();
        if has_url && !entry.is_command() || entry.is_command() && self.options.allow_stdio {
            return Ok(entry);
        }
        let message = if entry.is_command() {
            format!(
                "The server {name} is a command and has no url{}; to start it, the host says allowStdio: true to configureMcp or openMcpProject.",
                self.in_file()
            )
        } else {
            let names = entry.found().entries("an object").unwrap_or_default();
            let near = nearest("url", names.iter().map(|(name, _)| *name));
            let hint = near.map(|near| format!(", and has {}", shown(near))).unwrap_or_default();
            format!("The server {name} has no url{hint}{}; give it one, or a command.", self.in_file())
        };
        Err(self.with_file(McpError::new(ErrorCode::ServerHasNoUrl, message).of_server(name)))
    }

    fn entries_of(&self, root: &Input) -> Result<Vec<Entry>, McpError> {
        let outer = if self.source.file.is_some() { "" } else { "options.config" };
        if !matches!(root, Input::Object(_)) {
            let reason = format!("it holds {}; allowed is an object with mcpServers or servers", root.kind());
            return Err(match self.file() {
                Some(file) => file::fault(
                    file,
                    &format!("The project file {} cannot be used: {reason}.", file.display()),
                    &reason,
                ),
                None => McpError::new(ErrorCode::Config, format!("{outer} cannot be used: {reason}.")),
            });
        }
        let root = Found::outermost(ErrorCode::Config, outer, root);
        let mut entries: Vec<Entry> = Vec::new();
        let mut names = HashSet::new();
        for shape in ["mcpServers", "servers"] {
            let Some(servers) = root.property(shape).given() else { continue };
            for (name, server) in servers.entries("an object, the servers by their names")? {
                if name.is_empty()
                    || name.chars().count() > LONGEST_NAME
                    || name.chars().any(char::is_control)
                {
                    let reason = format!(
                        "has a name that cannot be used; allowed are 1 to {LONGEST_NAME} characters without line breaks"
                    );
                    return Err(server.refusal(&reason));
                }
                if !names.insert(name) {
                    return Err(server.refusal("is in mcpServers too; keep one of the two"));
                }
                let path = path_of(&servers.path(), name);
                entries.push(Entry { name: name.to_owned(), path, value: server.value.clone() });
            }
        }
        Ok(entries)
    }

    fn not_found(&self, name: &str) -> McpError {
        // Somebody may have asked for the value in place of the name.
        let name = &*self.options.redactor().text(name);
        let known: Vec<&str> = self.names().collect();
        let near = nearest(name, known.iter().copied());
        let has = match (known.is_empty(), self.file()) {
            (true, None) if self.source.is_discovered => {
                let folders: Vec<_> =
                    self.source.looked.iter().map(|folder| folder.display().to_string()).collect();
                format!("there is no {} in {}", file::NAMES.join(", "), folders.join(", "))
            }
            (true, _) if self.entries.is_empty() => {
                format!("there is none under mcpServers or servers{}", self.in_file())
            }
            (true, _) => format!("all of its servers are disabled{}", self.in_file()),
            (false, _) => {
                let more = known.len().saturating_sub(SHOWN_NAMES);
                let more = if more > 0 { format!(" and {more} more") } else { String::new() };
                let names: Vec<_> = known.iter().copied().take(SHOWN_NAMES).collect();
                format!("known are {}{more}{}", names.join(", "), self.in_file())
            }
        };
        let hint = near.map(|near| format!(" (did you mean {near}?)")).unwrap_or_default();
        let message = format!("The project has no server {}{hint}: {has}.", shown(name));
        let error =
            McpError::new(ErrorCode::ServerNotFound, message).with("known", known).with("nearest", near);
        let looked = self.source.looked.iter().map(|folder| folder.to_string_lossy().into_owned());
        self.with_file(error.with("looked", looked.collect::<Vec<_>>())).of_server(name)
    }

    fn in_file(&self) -> String {
        self.file().map(|file| format!(" (in {})", file.display())).unwrap_or_default()
    }

    fn with_file(&self, error: McpError) -> McpError {
        match self.file() {
            Some(file) => error.with("file", file.to_string_lossy()),
            None => error,
        }
    }

    /// Says in which file and on which line it is what an error names by its path.
    fn located(&self, error: McpError) -> McpError {
        let path = error.detail("path").and_then(|path| path.as_str());
        let Some((path, file)) = path.zip(self.file()) else { return error };
        let line = self.source.lines.of(path);
        let place = line.map(|line| format!(", line {line}")).unwrap_or_default();
        let message = format!("{}{place}: {}", file.display(), error.message);
        self.with_file(McpError { message, ..error }).with("line", line)
    }
}

impl Source {
    fn named(file: Option<PathBuf>, directory: &Path) -> Self {
        let folder = file.as_deref().map_or(directory, folder_of).to_owned();
        Self { file, is_discovered: false, lines: Lines::default(), folder, looked: Vec::new() }
    }
}

impl Entry {
    /// How long a call may take that says nothing itself.
    #[must_use]
    pub fn timeout(&self) -> Duration {
        definition::timeout(&self.found()).unwrap_or(definition::DEFAULT_TIMEOUT)
    }

    /// Whether a function of the host gives its headers.
    #[must_use]
    pub fn has_headers_function(&self) -> bool {
        matches!(self.found().property("headers").value, Input::Function)
    }

    fn found(&self) -> Found<'_> {
        Found::outermost(ErrorCode::Config, &self.path, &self.value)
    }

    fn is_disabled(&self) -> bool {
        matches!(self.found().property("disabled").value, Input::Bool(true))
    }

    /// Whether it is started rather than asked over HTTP.
    fn is_command(&self) -> bool {
        let found = self.found();
        match found.property("type").value {
            Input::String(kind) if kind == "stdio" => true,
            Input::String(_) => false,
            _ => found.property("url").is_absent() && !found.property("command").is_absent(),
        }
    }
}

fn parsed(file: &Path, text: &str) -> Result<(Input, Lines), McpError> {
    json::read(text).map_err(|fault| {
        let message =
            format!("{}, line {}: the file is no JSON: {}.", file.display(), fault.line, fault.reason);
        file::fault(file, &message, &fault.reason).with("line", fault.line)
    })
}

/// The folder that the search begins in, without links: so that what is above it is what is really above it.
fn start(from: Option<&str>, directory: &Path) -> Result<PathBuf, McpError> {
    let from = from.map_or_else(|| directory.to_owned(), |from| directory.join(from));
    let found = std::fs::canonicalize(&from).ok().filter(|folder| folder.is_dir());
    found.ok_or_else(|| {
        let reason = "is no folder that can be entered";
        let error = McpError::new(ErrorCode::InvalidArgument, format!("options.from {reason}."));
        error.with("path", "options.from").with("reason", reason)
    })
}

#[cfg(test)]
mod tests;
