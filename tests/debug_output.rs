//! What `{:?}` shows of the types that hold what a definition, a host or a server gave: never a value that may be secret.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

use workflow_mcp::link::envelope::{Line, parse};
use workflow_mcp::link::http::{Fixed, Remote};
use workflow_mcp::link::stdio::lines::{Chunk, Lines};
use workflow_mcp::link::{Arrival, Frame, FrameKind};
use workflow_mcp::policy::capability::KnownCapabilities;
use workflow_mcp::policy::definition::judge_one;
use workflow_mcp::policy::environment::build;
use workflow_mcp::policy::input::Input;
use workflow_mcp::policy::options::judge;
use workflow_mcp::policy::platform::Platform;
use workflow_mcp::policy::redact::Redactor;
use workflow_mcp::project::server::{Headers, Reach};
use workflow_mcp::project::{self, Project};
use workflow_mcp::session::Welcome;

const CANARY: &str = "c4n4ry Zq8wL/m3xTv";

/// What a definition may hold, and no message shows all the same.
const HIDDEN: &str = "hidden c4n4ry";

fn text(text: &str) -> Input {
    Input::String(text.to_owned())
}

fn object(entries: Vec<(&str, Input)>) -> Input {
    Input::Object(entries.into_iter().map(|(key, value)| (key.to_owned(), value)).collect())
}

#[test]
fn debug_output_never_shows_a_value_of_a_definition_a_host_or_a_server() {
    let env = object(vec![("NOTES_TOKEN", text(CANARY)), ("PATH", text("/usr/bin"))]);
    let options = object(vec![
        ("env", env.clone()),
        ("allowedInheritedEnvKeys", Input::List(vec![text("NOTES_TOKEN")])),
    ]);
    let definition = object(vec![
        ("id", text("notes")),
        ("command", Input::List(vec![text("/usr/bin/notes"), text(HIDDEN)])),
        ("environment", object(vec![("GREETING", text(HIDDEN))])),
        ("inheritEnvironment", Input::List(vec![text("NOTES_TOKEN")])),
    ]);
    let mut shown = vec![format!("{env:?} {definition:?}")];
    let options = judge(&options, || Input::Undefined, false).unwrap();
    let definition = judge_one(&definition, &options, Platform::Posix).unwrap();
    let child = build(&definition, &options.env, Platform::Posix);
    assert!(child.inherited.iter().any(|(_, value)| value == CANARY));
    shown.push(format!("{options:?} {definition:?} {child:?}"));
    shown.push(format!("{:?} {:?}", KnownCapabilities::of(&options.env), Redactor::new(&child.inherited)));

    for line in [
        format!(r#"{{"jsonrpc":"2.0","id":1,"result":{{"text":"{CANARY}"}}}}"#),
        format!(r#"{{"jsonrpc":"2.0","id":1,"error":{{"code":1,"message":"{CANARY}","data":"{CANARY}"}}}}"#),
        format!(r#"{{"jsonrpc":"2.0","id":"{CANARY}","method":"{CANARY}"}}"#),
        format!(r#"{{"jsonrpc":"2.0","method":"{CANARY}","params":{{"text":"{CANARY}"}}}}"#),
    ] {
        let Line::Messages(messages) = parse(&line) else { panic!("{line} is a message") };
        shown.extend(messages.into_iter().map(|message| format!("{:?}", Arrival::Message(message))));
    }
    let mut lines = Lines::new(1024);
    lines.space().extend_from_slice(format!("{CANARY}\n{CANARY}").as_bytes());
    let chunk = lines.next_chunk();
    assert!(matches!(&chunk, Some(Chunk::Line(line)) if line == CANARY.as_bytes()));
    shown.push(format!("{chunk:?}"));
    shown.push(format!("{:?}", Frame { kind: FrameKind::Request(1), text: CANARY.to_owned() }));
    shown.push(format!("{:?}", Welcome(CANARY.to_owned())));

    for each in shown {
        assert!(!each.contains("c4n4ry"), "{each}");
    }
}

/// A literal, a variable and a default, wherever a project may have them.
#[test]
fn debug_output_never_shows_a_value_of_a_project() {
    let url =
        format!("https://c4n4ry.example/${{NOTES_HOST}}/?key={CANARY}&other=${{NOTES_TOKEN:-{HIDDEN}}}");
    let headers = object(vec![("X-Api-Key", text(CANARY)), ("X-Other", text("${NOTES_TOKEN} c4n4ry"))]);
    let remote = object(vec![("url", text(&url)), ("headers", headers)]);
    let local = object(vec![
        ("command", text("/bin/sh")),
        ("args", Input::List(vec![text("--token=${NOTES_TOKEN}"), text(CANARY)])),
        ("env", object(vec![("NOTES_TOKEN", text("${NOTES_TOKEN}")), ("API_KEY", text(CANARY))])),
    ]);
    let options = object(vec![
        ("env", object(vec![("NOTES_TOKEN", text(CANARY)), ("NOTES_HOST", text(CANARY))])),
        ("allowedInheritedEnvKeys", Input::List(vec![text("NOTES_TOKEN"), text("NOTES_HOST")])),
        ("config", object(vec![("mcpServers", object(vec![("remote", remote), ("local", local)]))])),
        ("allowStdio", Input::Bool(true)),
    ]);
    let options = project::options::judge(&options, || Input::Undefined).unwrap();
    let project = Project::open(options, &std::env::temp_dir()).unwrap();
    let mut shown = vec![format!("{project:?} {:?}", project.options())];
    for name in ["remote", "local"] {
        let server = project.server(project.entry(name).unwrap()).unwrap();
        assert!(server.secrets.iter().any(|(_, value)| value == CANARY));
        shown.push(format!("{server:?} {:?}", server.reach));
        if let Reach::Url { url, headers: Headers::Fixed(list), .. } = server.reach {
            let headers = Fixed(list.into());
            assert!(url.contains("c4n4ry") && headers.0.len() == 2);
            shown.push(format!("{headers:?}"));
            shown.push(format!("{:?}", Remote { url, headers: Arc::new(headers) }));
        }
    }
    assert_eq!(shown.len(), 5);
    for each in shown {
        assert!(!each.contains("c4n4ry"), "{each}");
    }
}

/// Of a command that could not be started, the error names the program and the folder; whatever else it was given is not in it.
#[cfg(unix)]
#[tokio::test]
async fn an_error_of_the_system_shows_neither_arguments_nor_variables() {
    use workflow_mcp::process::{Command, spawn};
    let command = |program: &str, directory: Option<&str>| Command {
        program: PathBuf::from(OsString::from(program)),
        arguments: vec![CANARY.to_owned(), "x".repeat(4 << 20)],
        directory: directory.map(PathBuf::from),
        variables: vec![("NOTES_TOKEN".to_owned(), CANARY.to_owned())],
    };
    for (program, directory) in
        [("/nonexistent/notes", None), ("/bin/sh", Some("/nonexistent")), ("/bin/sh", None), ("/", None)]
    {
        let error = spawn(command(program, directory), false).await.unwrap_err();
        let shown = format!("{error} {error:?}");
        assert!(!shown.contains("c4n4ry"), "{shown}");
    }
}
