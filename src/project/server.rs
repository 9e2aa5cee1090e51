//! What one name of a project means: its texts with their variables, judged when it is used first.

use std::collections::HashSet;
use std::fmt;
use std::path::Path;
use std::time::Duration;

use super::hidden::assigned;
use super::program::{Lookup, is_program};
use super::variables::{Expanded, Variables};
use super::{Entry, Project, headers, url};
use crate::error::{ErrorCode, McpError};
use crate::policy::capability::{KnownCapabilities, name_is_capability, value_format};
use crate::policy::definition::{DEFAULT_TIMEOUT, Definition, ToolFilter, timeout};
use crate::policy::found::{Found, program_of, shown};
use crate::policy::input::Input;
use crate::policy::options::{Protocol, protocol};
use crate::policy::platform::Platform;
use crate::policy::redact::Redactor;

/// One server, ready to be connected.
pub struct Server {
    pub name: String,
    /// For the opening and for each call that brings none.
    pub timeout: Duration,
    pub protocol: Protocol,
    pub reach: Reach,
    /// Name and value of what must not be shown.
    pub secrets: Vec<(String, String)>,
    /// Where capabilities are written down that should be variables.
    pub literals: Vec<String>,
}

/// How it is reached.
pub enum Reach {
    Url {
        url: String,
        headers: Headers,
        /// Nobody on the way can read what is sent.
        is_private: bool,
    },
    Command(Definition),
}

/// What goes with every request.
pub enum Headers {
    Fixed(Vec<(String, String)>),
    /// The host's function gives them.
    Function,
}

/// How it is reached, and the names of what must not be shown.
impl fmt::Debug for Server {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let secrets: Vec<_> = self.secrets.iter().map(|(name, _)| name).collect();
        formatter
            .debug_struct("Server")
            .field("name", &self.name)
            .field("reach", &self.reach)
            .field("secrets", &secrets)
            .field("literals", &self.literals)
            .finish_non_exhaustive()
    }
}

/// Without the URL, in which capabilities may stand.
impl fmt::Debug for Reach {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Url { headers, is_private, .. } => formatter
                .debug_struct("Url")
                .field("headers", headers)
                .field("is_private", is_private)
                .finish_non_exhaustive(),
            Self::Command(definition) => formatter.debug_tuple("Command").field(definition).finish(),
        }
    }
}

/// The names.
impl fmt::Debug for Headers {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fixed(list) => formatter.debug_list().entries(list.iter().map(|(name, _)| name)).finish(),
            Self::Function => formatter.write_str("Function"),
        }
    }
}

impl Project {
    /// What a name means that [`Project::entry`] gave out.
    pub fn server(&self, entry: &Entry) -> Result<Server, McpError> {
        let judge = Judge {
            project: self,
            entry,
            variables: Variables::of(&self.options, Platform::HOST),
            known: KnownCapabilities::of(&self.options.env),
            secrets: Vec::new(),
            literals: Vec::new(),
        };
        judge.server().map_err(|error| self.located(error).of_server(&entry.name))
    }
}

pub(super) struct Judge<'p> {
    project: &'p Project,
    entry: &'p Entry,
    pub(super) variables: Variables<'p>,
    known: KnownCapabilities,
    pub(super) secrets: Vec<(String, String)>,
    literals: Vec<String>,
}

impl Judge<'_> {
    fn server(mut self) -> Result<Server, McpError> {
        let found = self.entry.found();
        // Whether it is `true` was asked before; that a word is not taken for it shall not go unseen.
        found.property("disabled").given().map(|it| it.boolean()).transpose()?;
        let timeout = timeout(&found)?;
        let protocol = found.property("protocol").given().map_or(Ok(Protocol::Auto), |it| protocol(&it))?;
        let kind = found.property("type");
        if matches!(kind.value, Input::String(kind) if kind == "sse") {
            return Err(kind.refusal(
                "is sse: the legacy SSE transport of 2024-11-05 is not supported; most servers offer streamable HTTP by now, often \
                 under /mcp in place of /sse, with type: 'http'",
            ));
        }
        kind.given().map(|kind| kind.word(&["http", "streamable-http", "stdio"])).transpose()?;
        let reach = if self.entry.is_command() { self.command(&found)? } else { self.url(&found)? };
        // A variable's value keeps the name of the variable, whatever else holds it.
        let mut secrets = self.variables.used;
        for secret in self.secrets {
            if !secrets.contains(&secret) {
                secrets.push(secret);
            }
        }
        let literals = self.literals;
        Ok(Server { name: self.entry.name.clone(), timeout, protocol, reach, secrets, literals })
    }

    fn url(&mut self, found: &Found<'_>) -> Result<Reach, McpError> {
        let place = found.property("url");
        let written = place.text("an absolute URL, such as https://mcp.example.com/mcp")?;
        let literals = url::capabilities(written);
        let has_literal = !literals.is_empty();
        for (name, value) in literals {
            self.literal(&place.path(), name, &value);
        }
        let text = self.variables.expand(&place, written)?.text;
        let in_url = self.variables.used.len();
        self.hide_parts_of(text.trim());
        let address = url::judge(text.trim()).map_err(|fault| place.refusal(fault))?;
        let headers = self.headers(found, address.is_private)?;
        let has_secret =
            has_literal || self.variables.used[..in_url].iter().any(|(name, value)| is_secret(name, value));
        if has_secret && !address.is_private {
            return Err(place.refusal(IN_CLEAR));
        }
        self.may_be_sent_to(Some(&address.origin))?;
        Ok(Reach::Url { url: address.url, headers, is_private: address.is_private })
    }

    fn headers(&mut self, found: &Found<'_>, is_private: bool) -> Result<Headers, McpError> {
        let bearer = found.property("bearerTokenEnv");
        let place = found.property("headers");
        if matches!(place.value, Input::Function) {
            return match bearer.given() {
                None => Ok(Headers::Function),
                Some(bearer) => {
                    Err(bearer.refusal("stands beside a function for headers; keep one of the two"))
                }
            };
        }
        let mut list: Vec<(String, String)> = Vec::new();
        for (name, header) in
            place.given().map_or_else(|| Ok(Vec::new()), |it| it.entries("an object of strings"))?
        {
            let written = header.text("a string")?;
            let Expanded { text, holds_variable, .. } = self.variables.expand(&header, written)?;
            if let Some(fault) = headers::fault(name, &text) {
                return Err(header.refusal(fault));
            }
            if list.iter().any(|(earlier, _)| earlier.eq_ignore_ascii_case(name)) {
                return Err(header.refusal("is there twice, in another spelling"));
            }
            let is_capability = holds_variable || headers::is_capability(name, &text) || self.is_known(&text);
            if is_capability && !is_private {
                return Err(header.refusal(IN_CLEAR));
            }
            if is_capability && !holds_variable {
                self.literal(&header.path(), name.to_owned(), &text);
            } else if holds_variable {
                self.hide_beside_variables(name, &text);
            }
            list.push((name.to_owned(), text));
        }
        if let Some(bearer) = bearer.given() {
            let name = bearer.variable_name()?;
            if list.iter().any(|(header, _)| header.eq_ignore_ascii_case("authorization")) {
                return Err(bearer.refusal("stands beside headers.Authorization; keep one of the two"));
            }
            let value = format!("Bearer {}", self.variables.named(&bearer, name)?);
            if let Some(fault) = headers::fault("Authorization", &value) {
                return Err(bearer.refusal(fault));
            }
            if !is_private {
                return Err(bearer.refusal(IN_CLEAR));
            }
            list.push(("Authorization".to_owned(), value));
        }
        Ok(Headers::Fixed(list))
    }

    fn command(&mut self, found: &Found<'_>) -> Result<Reach, McpError> {
        let place = found.property("command");
        let program = place.text("the name or the path of a program")?;
        let cwd = found.property("cwd");
        let folder = cwd.given().map(|cwd| self.folder(&cwd)).transpose()?;
        let mut command = vec![self.program(&place, program, folder.as_deref())?];
        let args = found.property("args");
        let mut option = String::new();
        for argument in
            args.given().map_or_else(|| Ok(Vec::new()), |args| args.elements("an array of strings"))?
        {
            let Expanded { text, holds_variable, .. } =
                self.variables.expand(&argument, argument.text("a string")?)?;
            let (name, value) = assigned(&option, &text);
            if holds_variable {
                self.hide_beside_variables(name, value);
            } else if is_secret(name, value) || self.is_known(value) {
                let name = if name.is_empty() { "argument" } else { name };
                self.literal(&argument.path(), name.to_owned(), value);
            }
            // Without a value of its own, which would be shown as the name of the next one's.
            let is_option = text.starts_with('-') && !text.contains(['=', ':', ' ']);
            option = if is_option { text.clone() } else { String::new() };
            command.push(text);
        }
        let environment = self.environment(found.property("env"))?;
        self.may_be_sent_to(None)?;
        Ok(Reach::Command(Definition {
            id: self.entry.name.clone(),
            command,
            environment,
            inherit_environment: Vec::new(),
            timeout: DEFAULT_TIMEOUT,
            cwd: folder,
            tools: ToolFilter::default(),
        }))
    }

    fn environment(&mut self, found: Found<'_>) -> Result<Vec<(String, String)>, McpError> {
        let mut environment = Vec::new();
        let mut earlier = HashSet::new();
        for (name, entry) in
            found.given().map_or_else(|| Ok(Vec::new()), |it| it.entries("an object of strings"))?
        {
            entry.has_variable_name(name)?;
            if !earlier.insert(Platform::HOST.variable_key(name)) {
                return Err(entry.refusal("is there twice, in another spelling"));
            }
            let written = entry.text("a string, also where it stands for a number or a boolean")?;
            let Expanded { text, holds_variable, .. } = self.variables.expand(&entry, written)?;
            if text.contains('\0') {
                return Err(entry.refusal("asks for a variable with a NUL character in it"));
            }
            if holds_variable {
                self.hide_beside_variables(name, &text);
            } else if is_secret(name, &text) || self.is_known(&text) {
                self.literal(&entry.path(), name.to_owned(), &text);
            }
            environment.push((name.to_owned(), text));
        }
        Ok(environment)
    }

    fn folder(&self, found: &Found<'_>) -> Result<String, McpError> {
        let path = found.text("the path of a folder")?;
        if path.is_empty() || path.contains("${") {
            return Err(found.refusal("is no path of a folder; placeholders are not replaced in cwd"));
        }
        Ok(self.project.source.folder.join(path).to_string_lossy().into_owned())
    }

    fn program(&self, found: &Found<'_>, command: &str, folder: Option<&str>) -> Result<String, McpError> {
        if command.is_empty() || command.contains("${") {
            return Err(
                found.refusal("is no name or path of a program; placeholders are not replaced in command")
            );
        }
        let here = self.project.directory.to_string_lossy();
        let env = &self.project.options.env;
        let lookup = Lookup { platform: Platform::HOST, env, folder: folder.unwrap_or(&here) };
        lookup.find(command, is_program).map_err(|tried| {
            let program = program_of(command);
            let words = command.strip_prefix(program).filter(|words| !words.is_empty());
            let shown_path =
                |path: &String| words.map_or_else(|| path.clone(), |words| path.replace(words, ""));
            let tried: Vec<_> = tried.iter().map(shown_path).collect();
            let looked = match (tried.as_slice(), command.contains('/')) {
                ([], _) => "options.env has no PATH with an absolute folder in it".to_owned(),
                (tried, true) => format!("looked for {}", tried.join(", ")),
                // A PATH is long.
                (_, false) => {
                    "PATH of options.env leads to none (details.tried has where it was looked for)".to_owned()
                }
            };
            let hint = if command.contains(char::is_whitespace) { "; arguments stand in args" } else { "" };
            let reason = format!("is {}, and no such program was found: {looked}{hint}", shown(program));
            found.refusal(&reason).with("tried", tried)
        })
    }

    /// A file that nobody named may send variables only where the host said so: it may have been planted.
    fn may_be_sent_to(&self, origin: Option<&str>) -> Result<(), McpError> {
        let Some((path, key)) = &self.variables.first else { return Ok(()) };
        if !self.project.source.is_discovered || origin.is_some_and(|origin| self.is_allowed(origin)) {
            return Ok(());
        }
        let whereto = match origin {
            Some(origin) => format!("to {origin}, which is not in options.allowedOrigins; add it there"),
            None => "to a command; keep the value out of it".to_owned(),
        };
        let message = format!(
            "{path} would send the variable {key} {whereto}, or name the file in options.config if it is to be trusted: it was \
             found, and anybody may have put it there."
        );
        // The origin may have a variable in it.
        let redactor = Redactor::new(&self.variables.used);
        let error = McpError::new(ErrorCode::EnvNotAllowed, redactor.text(&message));
        let error = error.with("path", path.as_str()).with("key", key.as_str());
        Err(match origin {
            Some(origin) => error.with("origin", redactor.text(origin)),
            None => error,
        })
    }

    fn is_allowed(&self, origin: &str) -> bool {
        self.project.options.allowed_origins.iter().any(|allowed| allowed == origin)
    }

    /// Whether it is the value of a capability-bearing variable of the host.
    fn is_known(&self, value: &str) -> bool {
        self.known.holder_of(value).is_some()
    }

    /// A capability that is written down is accepted, and not shown.
    fn literal(&mut self, path: &str, name: String, value: &str) {
        self.secrets.push((name, value.to_owned()));
        self.literals.push(path.to_owned());
    }
}

const IN_CLEAR: &str = "may hold a secret and would go over plain http, readable on the way; use https (plain http is for this machine only)";

pub(super) fn is_secret(name: &str, value: &str) -> bool {
    name_is_capability(name) || value_format(value).is_some()
}

/// The path that a folder of a project is relative to.
pub(super) fn folder_of(file: &Path) -> &Path {
    file.parent().unwrap_or(file)
}
