//! What may be asked: definitions of servers, and what they mean.
//!
//! Each is judged once, in the order of its fields in `index.d.ts`; the first fault is the answer. Properties that nobody
//! knows come before all. A refusal names the place and what kind of thing stands there, never a value: values of
//! `environment` and arguments may be secret even where no rule here sees it.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::ops::RangeInclusive;
use std::time::Duration;

use serde_json::{Map, Value};

use super::capability::{KnownCapabilities, name_is_capability, value_format};
use super::found::{Found, shown};
use super::input::Input;
use super::nearest::nearest;
use super::options::Options;
use super::platform::Platform;
use crate::error::{ErrorCode, McpError};

#[cfg(test)]
mod tests;

/// The most servers of one call.
pub const MAX_SERVERS: usize = 8;

const KNOWN: [&str; 7] = ["id", "command", "environment", "inheritEnvironment", "timeout", "cwd", "tools"];
const TIMEOUT_MS: RangeInclusive<u32> = 1_000..=300_000;
pub const DEFAULT_TIMEOUT: Duration = Duration::from_mins(1);

const ID: &str = "a string of 1 to 64 characters: small letters, digits and -, a letter first";
const COMMAND: &str = "an array of strings: the absolute path of a program, then its arguments one by one";

/// One server as asked for, checked and complete.
#[derive(Clone, PartialEq, Eq)]
pub struct Definition {
    /// `^[a-z][a-z0-9-]{0,63}$`, unique in its call.
    pub id: String,
    /// The absolute path of the program, then its arguments.
    pub command: Vec<String>,
    /// The fixed variables of the child, in the order of the definition.
    pub environment: Vec<(String, String)>,
    /// The names copied from the parent; none stands here twice, none is in `environment`.
    pub inherit_environment: Vec<String>,
    /// For the handshake and for each call: 1 to 300 seconds, default 60.
    pub timeout: Duration,
    /// Absolute; none stands for the host's at the time of the call.
    pub cwd: Option<String>,
    pub tools: ToolFilter,
}

/// Which of a server's tools are exposed: all, unless told otherwise.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ToolFilter {
    pub include: Option<Vec<String>>,
    pub exclude: Option<Vec<String>>,
}

impl ToolFilter {
    /// Whether the tool is exposed. A name in both lists is not.
    #[must_use]
    pub fn admits(&self, name: &str) -> bool {
        let holds = |list: &Vec<String>| list.iter().any(|entry| entry == name);
        self.include.as_ref().is_none_or(holds) && !self.exclude.as_ref().is_some_and(holds)
    }

    fn to_json(&self) -> Option<Value> {
        let lists = [("include", &self.include), ("exclude", &self.exclude)];
        let lists =
            lists.into_iter().filter_map(|(name, list)| Some((name.to_owned(), list.as_deref()?.into())));
        let lists: Map<String, Value> = lists.collect();
        (!lists.is_empty()).then_some(Value::Object(lists))
    }
}

impl Definition {
    /// The `NormalizedMcpServer`: every default filled in, the fields in the order of `index.d.ts`, an absent `cwd` and
    /// a filter that filters nothing left out. Judging it again gives the same.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let environment = self.environment.iter().map(|(name, value)| (name.clone(), value.as_str().into()));
        let mut json = Map::new();
        json.insert("id".into(), self.id.as_str().into());
        json.insert("command".into(), self.command.as_slice().into());
        json.insert("environment".into(), Value::Object(environment.collect()));
        json.insert("inheritEnvironment".into(), self.inherit_environment.as_slice().into());
        json.insert(
            "timeout".into(),
            (self.timeout.as_secs() * 1_000 + u64::from(self.timeout.subsec_millis())).into(),
        );
        if let Some(cwd) = &self.cwd {
            json.insert("cwd".into(), cwd.as_str().into());
        }
        if let Some(tools) = self.tools.to_json() {
            json.insert("tools".into(), tools);
        }
        Value::Object(json)
    }
}

/// No argument and no value of a variable: they may be secret.
impl fmt::Debug for Definition {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let environment: Vec<&str> = self.environment.iter().map(|(name, _)| name.as_str()).collect();
        formatter
            .debug_struct("Definition")
            .field("id", &self.id)
            .field("program", &self.command.first())
            .field("environment", &environment)
            .field("inherit_environment", &self.inherit_environment)
            .field("timeout", &self.timeout)
            .field("cwd", &self.cwd)
            .field("tools", &self.tools)
            .finish_non_exhaustive()
    }
}

/// Judges a lone definition; paths are like `command[0]`, and `definition` for the whole.
pub fn judge_one(input: &Input, options: &Options, platform: Platform) -> Result<Definition, McpError> {
    let found = Found::outermost(ErrorCode::InvalidDefinition, "", input);
    Judge::new(options, platform).definition(&found, &[])
}

/// Judges an array of 1 to [`MAX_SERVERS`] definitions, which are to be started.
pub fn judge_group(
    input: &Input,
    options: &Options,
    platform: Platform,
) -> Result<Vec<Definition>, McpError> {
    let definitions = judge_all(input, options, platform)?;
    if definitions.is_empty() {
        let servers = Found::outermost(ErrorCode::InvalidDefinition, "servers", input);
        return Err(servers.refusal("is an empty array; allowed are 1 to 8 definitions"));
    }
    Ok(definitions)
}

/// Judges an array of 0 to [`MAX_SERVERS`] definitions; paths are like `servers[1].command[0]`.
pub fn judge_all(input: &Input, options: &Options, platform: Platform) -> Result<Vec<Definition>, McpError> {
    let servers = Found::outermost(ErrorCode::InvalidDefinition, "servers", input);
    let elements = servers.elements("an array of definitions")?;
    if elements.len() > MAX_SERVERS {
        let count = elements.len();
        let message = format!(
            "servers holds {count} definitions; one call takes at most {MAX_SERVERS}, so make several."
        );
        let error = McpError::new(ErrorCode::TooManyServers, message);
        return Err(error.with("limit", MAX_SERVERS).with("count", count));
    }
    let judge = Judge::new(options, platform);
    let mut definitions = Vec::with_capacity(elements.len());
    for element in elements {
        definitions.push(judge.definition(&element, &definitions)?);
    }
    Ok(definitions)
}

/// The rule that says that something is a capability, as the end of a sentence, and its name in `details.why`.
struct Rule {
    why: &'static str,
    says: String,
}

/// What is allowed where an absolute path belongs, in words for a message.
#[derive(Clone, Copy)]
struct Allowed {
    posix: &'static str,
    windows: &'static str,
}

const PROGRAM: Allowed = Allowed {
    posix: "an absolute path, such as /usr/bin/node (`command -v node` prints it)",
    windows: r"an absolute path with a drive or a share, such as C:\node\node.exe or \\server\share (`where node` prints it)",
};

const FOLDER: Allowed = Allowed {
    posix: "an absolute path, such as /home/me/project",
    windows: r"an absolute path with a drive or a share, such as C:\project or \\server\share",
};

struct Judge<'o> {
    options: &'o Options,
    /// Made when the first value is looked up: it takes a look at each name of the host's environment.
    known: OnceCell<KnownCapabilities>,
    /// The keys of `allowedInheritedEnvKeys`.
    allowed: HashSet<Cow<'o, str>>,
    platform: Platform,
}

impl<'o> Judge<'o> {
    fn new(options: &'o Options, platform: Platform) -> Self {
        let allowed =
            options.allowed_inherited_env_keys.iter().map(|key| platform.variable_key(key)).collect();
        Self { options, known: OnceCell::new(), allowed, platform }
    }

    /// The variable of the host's environment that holds this very value.
    fn holder_of(&self, value: &str) -> Option<&str> {
        self.known.get_or_init(|| KnownCapabilities::of(&self.options.env)).holder_of(value)
    }

    fn definition(&self, found: &Found<'_>, earlier: &[Definition]) -> Result<Definition, McpError> {
        found.has_only(&KNOWN, "an object with id and command")?;
        let id = id(&found.property("id"), earlier)?;
        self.body(found, id.clone()).map_err(|error| error.of_server(&id))
    }

    fn body(&self, found: &Found<'_>, id: String) -> Result<Definition, McpError> {
        let command = self.command(&found.property("command"))?;
        let environment = self.environment(found.property("environment"))?;
        let inherit_environment =
            self.inherit_environment(found.property("inheritEnvironment"), &environment)?;
        let timeout = timeout(found)?;
        let cwd = found.property("cwd").given().map(|cwd| self.absolute(&cwd, FOLDER)).transpose()?;
        let tools =
            found.property("tools").given().map_or_else(|| Ok(ToolFilter::default()), |it| tools(&it))?;
        Ok(Definition { id, command, environment, inherit_environment, timeout, cwd, tools })
    }

    fn command(&self, found: &Found<'_>) -> Result<Vec<String>, McpError> {
        let elements = found.elements(COMMAND)?;
        let Some((program, arguments)) = elements.split_first() else {
            return Err(found.is("an empty array", COMMAND));
        };
        let mut command = vec![self.absolute(program, PROGRAM)?];
        for argument in arguments {
            let text = argument.text("a string")?;
            if let Some(rule) = self.argument_rule(text) {
                return Err(capability(argument, None, &rule));
            }
            command.push(text.to_owned());
        }
        Ok(command)
    }

    fn absolute(&self, found: &Found<'_>, allowed: Allowed) -> Result<String, McpError> {
        let allowed = match self.platform {
            Platform::Posix => allowed.posix,
            Platform::Windows => allowed.windows,
        };
        let path = found.text(allowed)?;
        if path.is_empty() {
            return Err(found.wrong(allowed));
        }
        if !self.platform.is_absolute(path) {
            return Err(found.is("a string that is no absolute path", allowed));
        }
        Ok(path.to_owned())
    }

    fn environment(&self, found: Found<'_>) -> Result<Vec<(String, String)>, McpError> {
        let mut environment: Vec<(String, String)> = Vec::new();
        let mut earlier = HashMap::new();
        let Some(found) = found.given() else { return Ok(environment) };
        for (name, entry) in found.entries("an object of strings, the variables by their names")? {
            entry.has_variable_name(name)?;
            let value = entry.text("a string, also where it stands for a number or a boolean")?;
            if let Some(twin) = earlier.insert(self.platform.variable_key(name), name) {
                let twin = shown(twin);
                return Err(entry
                    .refusal(&format!("is the same variable as {twin}, which is in environment already")));
            }
            if let Some(rule) = self.variable_rule(name, value) {
                return Err(capability(&entry, Some(name), &rule));
            }
            environment.push((name.to_owned(), value.to_owned()));
        }
        Ok(environment)
    }

    /// A repeated name changes nothing, so it is kept once. That a name is fixed too is said before that it is not
    /// allowed: an allowed one was refused in `environment` already.
    fn inherit_environment(
        &self,
        found: Found<'_>,
        environment: &[(String, String)],
    ) -> Result<Vec<String>, McpError> {
        let mut names: Vec<String> = Vec::new();
        let Some(found) = found.given() else { return Ok(names) };
        let fixed: HashSet<_> =
            environment.iter().map(|(name, _)| self.platform.variable_key(name)).collect();
        let mut earlier = HashSet::new();
        for element in found.elements("an array of names of variables")? {
            let name = element.variable_name()?;
            let key = self.platform.variable_key(name);
            if fixed.contains(&key) {
                let name = shown(name);
                return Err(element
                    .refusal(&format!("inherits {name}, which environment sets too; keep one of the two")));
            }
            if !self.is_allowed(name) {
                return Err(self.not_allowed(&element, name));
            }
            if earlier.insert(key) {
                names.push(name.to_owned());
            }
        }
        Ok(names)
    }

    fn is_allowed(&self, name: &str) -> bool {
        self.allowed.contains(&self.platform.variable_key(name))
    }

    fn not_allowed(&self, element: &Found<'_>, name: &str) -> McpError {
        // Somebody may have written the value where its name belongs.
        let key = if self.holder_of(name).is_some() { "«a value»".to_owned() } else { shown(name) };
        let allowed = &self.options.allowed_inherited_env_keys;
        let near = nearest(name, allowed.iter().map(String::as_str));
        let hint =
            near.map(|near| format!(" (the nearest that is there is {})", shown(near))).unwrap_or_default();
        let reason = format!(
            "inherits {key}, which is not in options.allowedInheritedEnvKeys{hint}; a host that trusts the server with \
             it adds the name there"
        );
        let error = element.refused_as(ErrorCode::EnvNotAllowed, &reason).with("key", key);
        match near {
            Some(near) => error.with("nearest", shown(near)),
            None => error,
        }
    }

    /// The first rule that applies to a fixed variable.
    fn variable_rule(&self, name: &str, value: &str) -> Option<Rule> {
        if self.is_allowed(name) {
            let says = "its name is in options.allowedInheritedEnvKeys".to_owned();
            return Some(Rule { why: "allowed-key", says });
        }
        if name_is_capability(name) {
            return Some(Rule { why: "name", says: "its name is that of a secret".to_owned() });
        }
        self.value_rule(value)
    }

    fn value_rule(&self, value: &str) -> Option<Rule> {
        let says = match value_format(value) {
            Some(format) => format!("its value has the form of {format}"),
            None => format!("its value is that of {} in options.env", shown(self.holder_of(value)?)),
        };
        Some(Rule { why: "value", says })
    }

    /// `--token=VALUE` carries the value as well as the argument that is nothing else.
    fn argument_rule(&self, argument: &str) -> Option<Rule> {
        let assigned = || argument.split_once('=').and_then(|(_, value)| self.value_rule(value));
        self.value_rule(argument).or_else(assigned)
    }
}

fn id(found: &Found<'_>, earlier: &[Definition]) -> Result<String, McpError> {
    let id = found.text(ID)?;
    let mut bytes = id.bytes();
    let is_id = bytes.next().is_some_and(|first| first.is_ascii_lowercase())
        && bytes.all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
        && id.len() <= 64;
    if id.is_empty() {
        return Err(found.wrong(ID));
    }
    if !is_id {
        return Err(found.is(&Value::from(shown(id)).to_string(), ID));
    }
    if let Some(index) = earlier.iter().position(|definition| definition.id == id) {
        return Err(found.refusal(&format!(
            "is {id}, which is the id of servers[{index}] too; ids are unique in one call"
        )));
    }
    Ok(id.to_owned())
}

/// How long the start and each call may take, of a definition or of a server of a project.
pub(crate) fn timeout(found: &Found<'_>) -> Result<Duration, McpError> {
    match found.property("timeout").given() {
        Some(timeout) => Ok(Duration::from_millis(timeout.integer(TIMEOUT_MS, "milliseconds")?.into())),
        None => Ok(DEFAULT_TIMEOUT),
    }
}

fn tools(found: &Found<'_>) -> Result<ToolFilter, McpError> {
    found.has_only(&["include", "exclude"], "an object with include and exclude")?;
    let names = |list| found.property(list).given().map(|list| list.texts("the name of a tool")).transpose();
    Ok(ToolFilter { include: names("include")?, exclude: names("exclude")? })
}

/// The refusal of a capability that is written down, with the way out.
fn capability(found: &Found<'_>, key: Option<&str>, rule: &Rule) -> McpError {
    let reason = format!(
        "may hold a secret ({}), which a definition does not carry; put the value into options.env, and its name into \
         inheritEnvironment and options.allowedInheritedEnvKeys",
        rule.says
    );
    let mut error = found.refused_as(ErrorCode::CapabilityInDefinition, &reason);
    if let Some(key) = key {
        error = error.with("key", shown(key));
    }
    error.with("why", rule.why)
}
