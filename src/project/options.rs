//! What a host asks of a project: the options of `openMcpProject`.

use std::fmt;

use super::url;
use crate::error::{ErrorCode, McpError};
use crate::policy::found::Found;
use crate::policy::input::Input;
use crate::policy::options::{allowed_keys, variables};
use crate::policy::platform::Platform;
use crate::policy::redact::Redactor;

/// The properties in the order of `index.d.ts`, which is the order of judging.
const KNOWN: [&str; 8] = [
    "allowedInheritedEnvKeys",
    "env",
    "allowStdio",
    "from",
    "config",
    "allowedOrigins",
    "onInputRequired",
    "onWarning",
];

/// The options of a project, checked and complete.
#[derive(Clone)]
pub struct Options {
    /// The variables that the project's servers may be sent.
    pub allowed_inherited_env_keys: Vec<String>,
    /// Where variables are read from: `options.env`, else the host's own.
    pub env: Vec<(String, String)>,
    pub allow_stdio: bool,
    /// Where to look upwards from; none stands for the current folder.
    pub from: Option<String>,
    pub config: Config,
    /// Where a discovered file may send allowed variables, as `https://host:port`, a default port left out.
    pub allowed_origins: Vec<String>,
    /// Somebody answers when a server asks for input.
    pub answers_input: bool,
    /// Somebody hears warnings.
    pub hears_warnings: bool,
}

/// Where the configuration comes from.
#[derive(Clone)]
pub enum Config {
    Discovered,
    /// A file that the host trusts.
    File(String),
    /// Given in code.
    Given(Input),
}

impl Options {
    /// Hides the values of the variables that the project's servers may be sent.
    pub(super) fn redactor(&self) -> Redactor {
        let values = Platform::HOST.values_by_key(&self.env);
        let allowed = self.allowed_inherited_env_keys.iter();
        let held = allowed.filter_map(|name| {
            let value = values.get(&Platform::HOST.variable_key(name))?;
            Some((name.clone(), (*value).to_owned()))
        });
        Redactor::new(&held.collect::<Vec<_>>())
    }
}

/// Names only: values may be secret.
impl fmt::Debug for Options {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Options")
            .field("allowed_inherited_env_keys", &self.allowed_inherited_env_keys)
            .field("allow_stdio", &self.allow_stdio)
            .field("allowed_origins", &self.allowed_origins)
            .finish_non_exhaustive()
    }
}

/// Reads the options of one project; `undefined` is none of them. `host_env` gives the host's own environment and is asked only where
/// `options.env` is absent. The first bad option is `ERR_MCP_INVALID_ARGUMENT`, unknown ones come before all.
pub fn judge(input: &Input, host_env: impl FnOnce() -> Input) -> Result<Options, McpError> {
    let none = Input::Object(Vec::new());
    let given = if matches!(input, Input::Undefined) { &none } else { input };
    let options = Found::outermost(ErrorCode::InvalidArgument, "options", given);
    options.has_only(&KNOWN, "an object")?;
    let allowed_inherited_env_keys = allowed_keys(options.property("allowedInheritedEnvKeys"))?;
    let env = match options.property("env").given() {
        Some(env) => variables(&env)?,
        None => variables(&Found::outermost(ErrorCode::InvalidArgument, "process.env", &host_env()))?,
    };
    let allow_stdio = options.property("allowStdio").given().map_or(Ok(false), |it| it.boolean())?;
    let from =
        options.property("from").given().map(|from| path(&from, "the path of a folder")).transpose()?;
    let config = config(&options.property("config"))?;
    let allowed_origins = origins(options.property("allowedOrigins"))?;
    let answers_input = options.property("onInputRequired").function()?;
    let hears_warnings = options.property("onWarning").function()?;
    Ok(Options {
        allowed_inherited_env_keys,
        env,
        allow_stdio,
        from,
        config,
        allowed_origins,
        answers_input,
        hears_warnings,
    })
}

fn path(found: &Found<'_>, allowed: &str) -> Result<String, McpError> {
    let path = found.text(allowed)?;
    if path.is_empty() { Err(found.wrong(allowed)) } else { Ok(path.to_owned()) }
}

fn config(found: &Found<'_>) -> Result<Config, McpError> {
    const ALLOWED: &str = "the path of a file, or an object with mcpServers or servers";
    match found.value {
        Input::Undefined => Ok(Config::Discovered),
        Input::String(_) => path(found, ALLOWED).map(Config::File),
        Input::Object(_) => Ok(Config::Given(found.value.clone())),
        _ => Err(found.wrong(ALLOWED)),
    }
}

fn origins(found: Found<'_>) -> Result<Vec<String>, McpError> {
    const ORIGIN: &str = "an origin, such as https://mcp.example.com or http://localhost:3000";
    let Some(found) = found.given() else { return Ok(Vec::new()) };
    let judge = |element: &Found<'_>| {
        let origin = url::origin(element.text(ORIGIN)?);
        origin.ok_or_else(|| element.is("a string that is no origin", ORIGIN))
    };
    found.elements("an array of origins")?.iter().map(judge).collect()
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    fn object(entries: &[(&str, Input)]) -> Input {
        Input::Object(entries.iter().map(|(key, value)| ((*key).to_owned(), value.clone())).collect())
    }

    fn text(text: &str) -> Input {
        Input::String(text.to_owned())
    }

    fn refusal(key: &str, value: Input) -> McpError {
        judge(&object(&[(key, value)]), || object(&[])).unwrap_err()
    }

    #[test]
    fn nothing_is_asked_by_default() {
        let options = judge(&Input::Undefined, || object(&[("A", text("1"))])).unwrap();
        assert_eq!(options.env, [("A".to_owned(), "1".to_owned())]);
        assert!(!options.allow_stdio && matches!(options.config, Config::Discovered));
    }

    #[test]
    fn unknown_options_and_wrong_values_are_refused_with_their_place() {
        assert_eq!(refusal("allowStdIo", Input::Bool(true)).detail("nearest"), Some(&"allowStdio".into()));
        for (key, value) in [
            ("allowStdio", text("yes")),
            ("from", text("")),
            ("config", Input::Number(1.0)),
            ("config", text("")),
            ("allowedOrigins", text("https://a.example")),
            ("onInputRequired", Input::Bool(true)),
            ("onWarning", Input::Null),
            ("allowedInheritedEnvKeys", Input::List(vec![text("NOT-A-NAME")])),
        ] {
            let error = refusal(key, value);
            assert_eq!(error.code, ErrorCode::InvalidArgument);
            assert!(error.message.starts_with(&format!("options.{key}")), "{}", error.message);
        }
    }

    #[test]
    fn origins_are_kept_in_one_spelling() {
        let given = ["https://MCP.example.com", "https://mcp.example.com:443/", "http://localhost:3000"];
        let list = Input::List(given.map(text).to_vec());
        let options = judge(&object(&[("allowedOrigins", list)]), || object(&[])).unwrap();
        let expected = ["https://mcp.example.com", "https://mcp.example.com", "http://localhost:3000"];
        assert_eq!(options.allowed_origins, expected);
        for wrong in
            ["mcp.example.com", "https://a.example/mcp", "https://u:p@a.example", "ftp://a.example", "*"]
        {
            refusal("allowedOrigins", Input::List(vec![text(wrong)]));
        }
    }
}
