#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::json;

use super::server::{Headers, Reach, Server};
use super::*;

const ENV: [(&str, &str); 5] = [
    ("TOKEN", "tok-en-value-1"),
    ("HOST_PART", "mcp.example.com"),
    ("PATH", "/bin:/usr/bin"),
    ("OTHER", "x"),
    ("DEPLOY_TOKEN", "q7Jd0-plain-looking"),
];

fn options(config: Config) -> Options {
    Options {
        allowed_inherited_env_keys: ["TOKEN", "HOST_PART", "UNSET"].map(String::from).to_vec(),
        env: ENV.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec(),
        allow_stdio: true,
        from: None,
        config,
        allowed_origins: vec!["https://allowed.example".to_owned()],
        answers_input: false,
        hears_warnings: false,
    }
}

/// A project whose configuration was given in code.
fn given(text: &str) -> Result<Project, McpError> {
    Project::open(options(Config::Given(json::read(text).unwrap().0)), Path::new("/work"))
}

/// A server of it, by the text of its entry.
fn server(entry: &str) -> Result<Server, McpError> {
    let project = given(&format!(r#"{{"mcpServers": {{"exa": {entry}}}}}"#))?;
    project.server(project.entry("exa")?)
}

/// A file that goes with the test, in a folder of its own where a search ends.
struct Written(PathBuf);

impl Written {
    fn new(text: &str) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name =
            format!("workflow-mcp-project-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let folder = std::fs::canonicalize(std::env::temp_dir()).unwrap().join(name);
        std::fs::create_dir_all(folder.join(".git")).unwrap();
        std::fs::write(folder.join(".mcp.json"), text).unwrap();
        Self(folder)
    }

    fn found(&self) -> Result<Project, McpError> {
        Project::open(options(Config::Discovered), &self.0)
    }

    fn named(&self) -> Result<Project, McpError> {
        Project::open(options(Config::File(".mcp.json".to_owned())), &self.0)
    }
}

impl Drop for Written {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn headers(server: &Server) -> Vec<(&str, &str)> {
    let Reach::Url { headers: Headers::Fixed(headers), .. } = &server.reach else {
        panic!("no fixed headers")
    };
    headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect()
}

#[test]
fn both_shapes_are_read_and_a_name_stands_in_one_of_them() {
    let project = given(
        r#"{"mcpServers": {"a": {"url": "https://a.example"}}, "servers": {"b": {"url": "https://b.example"}, "off": {"disabled": true}},
            "inputs": [{"anything": [[1]]}]}"#,
    )
    .unwrap();
    assert_eq!(project.names().collect::<Vec<_>>(), ["a", "b"]);
    let twice = given(r#"{"mcpServers": {"a": {}}, "servers": {"a": {}}}"#).err().unwrap();
    assert_eq!(twice.detail("path"), Some(&json!("options.config.servers.a")));
    assert_eq!(given("{}").unwrap().names().count(), 0);
    for wrong in [r#"{"mcpServers": []}"#, r#"{"servers": {"": {}}}"#, r#"{"servers": {"a\nb": {}}}"#] {
        assert_eq!(given(wrong).err().unwrap().code, ErrorCode::Config, "{wrong}");
    }
}

#[test]
fn a_name_that_is_not_there_says_which_are_and_where_it_looked() {
    let project = given(
        r#"{"mcpServers": {"exa": {"url": "https://a.example"}, "context7": {"url": "https://b.example"}}}"#,
    )
    .unwrap();
    let error = project.entry("context").err().unwrap();
    assert_eq!(error.code, ErrorCode::ServerNotFound);
    assert_eq!(error.detail("nearest"), Some(&json!("context7")));
    assert_eq!(error.detail("known"), Some(&json!(["exa", "context7"])));
    assert!(error.message.contains("known are exa, context7"), "{}", error.message);

    let empty = Written::new("");
    std::fs::remove_file(empty.0.join(".mcp.json")).unwrap();
    let error = empty.found().unwrap().entry("exa").err().unwrap();
    let folder = empty.0.display().to_string();
    assert_eq!(error.detail("looked"), Some(&json!([folder])));
    assert!(
        error.message.contains(".vscode/mcp.json") && error.message.contains(&folder),
        "{}",
        error.message
    );
}

#[test]
fn a_disabled_server_is_not_there_and_says_so() {
    let project = given(r#"{"servers": {"a": {"url": "https://a.example", "disabled": true}}}"#).unwrap();
    let error = project.entry("a").err().unwrap();
    assert_eq!((error.code, error.detail("disabled")), (ErrorCode::ServerNotFound, Some(&json!(true))));
}

#[test]
fn a_server_without_a_url_is_for_projects_that_start_commands() {
    let text = r#"{"servers": {"command": {"command": "sh"}, "typed": {"type": "stdio", "command": "sh", "url": "https://a.example"},
        "http": {"type": "http", "command": "sh"}, "empty": {}, "number": 5}}"#;
    let allowed = given(text).unwrap();
    let code = |project: &Project, name| project.entry(name).err().map(|error| error.code);
    for name in ["command", "typed"] {
        assert_eq!(code(&allowed, name), None, "{name}");
    }
    for name in ["http", "empty", "number"] {
        assert_eq!(code(&allowed, name), Some(ErrorCode::ServerHasNoUrl), "{name}");
    }
    let config = Config::Given(json::read(text).unwrap().0);
    let refused = Project::open(Options { allow_stdio: false, ..options(config) }, Path::new("/")).unwrap();
    for name in ["command", "typed", "http", "empty"] {
        assert_eq!(code(&refused, name), Some(ErrorCode::ServerHasNoUrl), "{name}");
    }
    assert!(refused.entry("command").err().unwrap().message.contains("allowStdio"));
}

#[test]
fn one_broken_server_breaks_itself_alone() {
    let project = given(
        r#"{"mcpServers": {"good": {"url": "https://a.example"}, "bad": {"url": "ftp://a.example"}, "odd": {"url": 5},
            "late": {"url": "https://a.example", "timeout": 30}}}"#,
    )
    .unwrap();
    let server = |name| project.server(project.entry(name).unwrap()).map(|_| ()).map_err(|error| error.code);
    assert_eq!(server("good"), Ok(()));
    for name in ["bad", "odd", "late"] {
        assert_eq!(server(name), Err(ErrorCode::Config), "{name}");
    }
}

#[test]
fn sse_is_refused_with_what_to_do() {
    let error = server(r#"{"type": "sse", "url": "https://a.example/sse"}"#).err().unwrap();
    assert_eq!(error.code, ErrorCode::Config);
    assert!(error.message.contains("streamable HTTP"), "{}", error.message);
    assert_eq!(
        server(r#"{"type": "ws", "url": "https://a.example"}"#).err().unwrap().code,
        ErrorCode::Config
    );
}

#[test]
fn variables_go_into_urls_and_headers_and_are_not_to_be_shown() {
    let server = server(
        r#"{"type": "http", "url": "https://${HOST_PART}/mcp?x=${UNSET:-1}", "headers": {"X-Key": "${TOKEN}", "X-Plain": "p"},
            "bearerTokenEnv": "TOKEN", "timeout": 5000, "protocol": "legacy", "unknown": {"a": 1}}"#,
    )
    .unwrap();
    let Reach::Url { url, is_private, .. } = &server.reach else { panic!("no url") };
    assert_eq!((url.as_str(), *is_private), ("https://mcp.example.com/mcp?x=1", true));
    let expected =
        [("X-Key", "tok-en-value-1"), ("X-Plain", "p"), ("Authorization", "Bearer tok-en-value-1")];
    assert_eq!(headers(&server), expected);
    assert!(server.secrets.contains(&("TOKEN".to_owned(), "tok-en-value-1".to_owned())));
    assert_eq!(server.timeout, Duration::from_secs(5));
    assert!(server.literals.is_empty());
}

#[test]
fn variables_that_are_not_allowed_or_not_set_stop_their_server() {
    for (entry, code) in [
        (r#"{"url": "https://a.example/${OTHER}"}"#, ErrorCode::EnvNotAllowed),
        (r#"{"url": "https://a.example", "headers": {"X": "${OTHER}"}}"#, ErrorCode::EnvNotAllowed),
        (r#"{"url": "https://a.example", "bearerTokenEnv": "OTHER"}"#, ErrorCode::EnvNotAllowed),
        (r#"{"command": "sh", "args": ["${OTHER}"]}"#, ErrorCode::EnvNotAllowed),
        (r#"{"command": "sh", "env": {"A": "${OTHER}"}}"#, ErrorCode::EnvNotAllowed),
        (r#"{"url": "https://a.example/${UNSET}"}"#, ErrorCode::Config),
        (r#"{"url": "https://a.example", "bearerTokenEnv": "UNSET"}"#, ErrorCode::Config),
        (r#"{"url": "https://a.example", "bearerTokenEnv": "not a name"}"#, ErrorCode::Config),
        (r#"{"url": "https://a.example", "headers": {"X": "${input:key}"}}"#, ErrorCode::Config),
        (r#"{"command": "${TOKEN}"}"#, ErrorCode::Config),
        (r#"{"command": "sh", "cwd": "${TOKEN}"}"#, ErrorCode::Config),
    ] {
        let error = server(entry).err().unwrap();
        assert_eq!(error.code, code, "{entry}: {}", error.message);
        assert_eq!(error.server_id.as_deref(), Some("exa"));
        assert!(!error.to_json().to_string().contains("tok-en"), "{}", error.message);
    }
}

#[test]
fn capabilities_go_over_plain_http_to_this_machine_alone() {
    for entry in [
        r#"{"url": "http://a.example", "headers": {"Authorization": "Bearer x"}}"#,
        r#"{"url": "http://a.example", "headers": {"X": "${HOST_PART}"}}"#,
        r#"{"url": "http://a.example", "bearerTokenEnv": "TOKEN"}"#,
        r#"{"url": "http://a.example/?q=${TOKEN}"}"#,
        r#"{"url": "http://a.example/?api_key=abc-123-def"}"#,
    ] {
        let error = server(entry).err().unwrap();
        assert_eq!(error.code, ErrorCode::Config, "{entry}");
        assert!(error.message.contains("https"), "{}", error.message);
    }
    for entry in [
        r#"{"url": "http://localhost:3000", "bearerTokenEnv": "TOKEN"}"#,
        r#"{"url": "http://${HOST_PART}/mcp"}"#,
        r#"{"url": "http://a.example", "headers": {"X-Trace": "1"}}"#,
    ] {
        assert!(server(entry).is_ok(), "{entry}");
    }
}

#[test]
fn what_no_header_can_be_is_refused_and_not_quoted() {
    for headers in [
        r#"{"a b": "x"}"#,
        r#"{"X": "se-cret\r\nHost: y"}"#,
        r#"{"X": 5}"#,
        r#"{"X": "1", "x": "2"}"#,
        r#"{"Host": "x"}"#,
    ] {
        let error =
            server(&format!(r#"{{"url": "https://a.example", "headers": {headers}}}"#)).err().unwrap();
        assert_eq!(error.code, ErrorCode::Config, "{headers}");
        assert!(!error.message.contains("se-cret"), "{}", error.message);
    }
    let both =
        r#"{"url": "https://a.example", "headers": {"authorization": "Basic x"}, "bearerTokenEnv": "TOKEN"}"#;
    assert_eq!(server(both).err().unwrap().code, ErrorCode::Config);
}

#[test]
fn capabilities_that_are_written_down_are_accepted_and_named() {
    let server = server(
        r#"{"url": "https://a.example/mcp?exaApiKey=abc-123-def", "headers": {"Authorization": "Bearer lit-eral", "X-Known": "q7Jd0-plain-looking", "X": "y"}}"#,
    )
    .unwrap();
    let path = |end: &str| format!("options.config.mcpServers.exa.{end}");
    assert_eq!(server.literals, [path("url"), path("headers.Authorization"), path(r#"headers["X-Known"]"#)]);
    let values: Vec<_> = server.secrets.iter().map(|(_, value)| value.as_str()).collect();
    assert_eq!(values, ["abc-123-def", "Bearer lit-eral", "q7Jd0-plain-looking"]);
}

#[cfg(unix)]
#[test]
fn a_command_is_found_and_gets_what_its_entry_says() {
    let server = server(
        r#"{"command": "sh", "args": ["-c", "${HOST_PART}", "--key=ghp_k3Jx9QmZ2vLw8RtY5bNc7HdF4sGp6TaE1uXo"],
            "env": {"A": "${TOKEN}", "API_KEY": "literal-key"}, "cwd": "sub"}"#,
    )
    .unwrap();
    let Reach::Command(definition) = &server.reach else { panic!("no command") };
    assert_eq!(definition.command[..3], ["/bin/sh", "-c", "mcp.example.com"].map(String::from));
    assert_eq!(definition.cwd.as_deref(), Some("/work/sub"));
    assert_eq!(definition.environment[0], ("A".to_owned(), "tok-en-value-1".to_owned()));
    assert_eq!(server.literals.len(), 2);
    let missing = super::tests::server(r#"{"command": "no-such-program"}"#).err().unwrap();
    assert_eq!(missing.code, ErrorCode::Config);
    assert_eq!(missing.detail("tried"), Some(&json!(["/bin/no-such-program", "/usr/bin/no-such-program"])));
}

#[test]
fn a_found_file_sends_variables_only_where_the_host_said_so() {
    let text = |url: &str| {
        format!(r#"{{"mcpServers": {{"exa": {{"url": "{url}", "headers": {{"X": "${{TOKEN}}"}}}}}}}}"#)
    };
    let server = |project: Project| project.server(project.entry("exa").unwrap()).map(|_| ());
    let planted = Written::new(&text("https://evil.example/mcp"));
    let error = server(planted.found().unwrap()).unwrap_err();
    assert_eq!(error.code, ErrorCode::EnvNotAllowed);
    assert_eq!(error.detail("origin"), Some(&json!("https://evil.example")));
    assert_eq!(error.detail("line"), Some(&json!(1)));
    assert_eq!(server(planted.named().unwrap()), Ok(()), "a file that the host names is trusted");
    assert_eq!(server(Written::new(&text("https://allowed.example/mcp")).found().unwrap()), Ok(()));
    // The variable itself as the host: it would be looked up.
    let leaking = Written::new(&text("https://${TOKEN}.evil.example"));
    let error = server(leaking.found().unwrap()).unwrap_err();
    assert!(!error.to_json().to_string().contains("tok-en"), "{error}");
    // A default is no way around.
    let default = Written::new(r#"{"mcpServers": {"exa": {"url": "https://evil.example/${UNSET:-x}"}}}"#);
    assert_eq!(server(default.found().unwrap()).unwrap_err().code, ErrorCode::EnvNotAllowed);
    let command = Written::new(r#"{"mcpServers": {"exa": {"command": "sh", "env": {"A": "${TOKEN}"}}}}"#);
    assert_eq!(server(command.found().unwrap()).unwrap_err().code, ErrorCode::EnvNotAllowed);
    let without = Written::new(r#"{"mcpServers": {"exa": {"url": "https://anywhere.example"}}}"#);
    assert_eq!(server(without.found().unwrap()), Ok(()));
}

#[test]
fn faults_of_a_file_say_where() {
    let text = "{\n  // servers\n  \"servers\": {\n    \"exa\": {\n      \"url\": \"ftp://a.example\",\n    }\n  }\n}\n";
    let written = Written::new(text);
    let file = written.0.join(".mcp.json").display().to_string();
    let project = written.found().unwrap();
    assert_eq!(project.file(), Some(written.0.join(".mcp.json").as_path()));
    let error = project.server(project.entry("exa").unwrap()).err().unwrap();
    assert_eq!((error.detail("file"), error.detail("line")), (Some(&json!(file)), Some(&json!(5))));
    assert!(
        error.message.starts_with(&format!("{file}, line 5: servers.exa.url has no scheme, or one")),
        "{}",
        error.message
    );

    for (text, line) in [("{", Some(1)), ("[]", None), ("{\n\"servers\": []}", Some(2))] {
        let written = Written::new(text);
        let error = written.found().err().unwrap();
        assert_eq!(error.code, ErrorCode::Config);
        assert_eq!(error.detail("line").and_then(serde_json::Value::as_u64), line, "{text}");
        assert!(error.detail("reason").is_some() && error.detail("file").is_some());
    }
}

#[test]
fn a_search_begins_in_a_folder_that_is_there() {
    let from = |from: &str| Options { from: Some(from.to_owned()), ..options(Config::Discovered) };
    let error = Project::open(from("no/such/folder"), Path::new("/")).err().unwrap();
    assert_eq!(
        (error.code, error.detail("path")),
        (ErrorCode::InvalidArgument, Some(&json!("options.from")))
    );
    let written = Written::new(r#"{"servers": {"a": {"url": "https://a.example"}}}"#);
    std::fs::create_dir(written.0.join("deep")).unwrap();
    let project = Project::open(from("deep"), &written.0).unwrap();
    assert_eq!(project.names().collect::<Vec<_>>(), ["a"]);
}
