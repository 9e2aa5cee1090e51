#![expect(clippy::unwrap_used, reason = "a test that cannot read its own input fails")]

use serde_json::json;

use super::*;
use crate::policy::options;

mod capabilities;
mod idempotence;
mod kinds;

const CANARY: &str = "Canary 9f3a7c51e2";

fn options_of(options: &Value) -> Options {
    options::judge(&options.into(), || panic!("these tests give env"), false).unwrap()
}

fn options() -> Options {
    options_of(&json!({ "env": {}, "allowedInheritedEnvKeys": ["BRIDGE", "OTHER"] }))
}

fn judged(definition: &Value) -> Result<Definition, McpError> {
    judge_one(&definition.into(), &options(), Platform::Posix)
}

fn with(field: &str, value: &Value) -> Input {
    Input::from(&json!({ "id": "x", "command": ["/x"] })).with(field, value.into())
}

fn refused_on(platform: Platform, input: &Input) -> McpError {
    let error = judge_one(input, &options(), platform).unwrap_err();
    assert_eq!(error.code, ErrorCode::InvalidDefinition, "{error}");
    assert!(error.message.starts_with(error.detail("path").unwrap().as_str().unwrap()), "{error}");
    assert!(error.message.contains(error.detail("reason").unwrap().as_str().unwrap()), "{error}");
    error
}

fn refused(input: &Input) -> McpError {
    refused_on(Platform::Posix, input)
}

fn path_of(error: &McpError) -> &str {
    error.detail("path").unwrap().as_str().unwrap()
}

#[test]
fn the_least_definition_gets_every_default() {
    let definition = judged(&json!({ "id": "project-tools", "command": ["/usr/bin/node"] })).unwrap();
    assert_eq!(
        definition.to_json().to_string(),
        r#"{"id":"project-tools","command":["/usr/bin/node"],"environment":{},"inheritEnvironment":[],"timeout":60000}"#
    );
    assert_eq!(definition.cwd, None);
    assert!(definition.tools.admits("anything"));
}

#[test]
fn every_field_is_kept_in_the_order_of_the_contract() {
    let definition = judged(&json!({
        "tools": { "exclude": ["b"], "include": ["a", "b"] },
        "cwd": "/srv/a b",
        "timeout": 1000,
        "inheritEnvironment": ["OTHER", "BRIDGE"],
        "environment": { "Z": "", "A": "ü" },
        "command": ["/usr/bin/node", "", "--flag", "a b"],
        "id": "a",
    }));
    assert_eq!(
        definition.unwrap().to_json().to_string(),
        concat!(
            r#"{"id":"a","command":["/usr/bin/node","","--flag","a b"],"environment":{"Z":"","A":"ü"},"#,
            r#""inheritEnvironment":["OTHER","BRIDGE"],"timeout":1000,"cwd":"/srv/a b","#,
            r#""tools":{"include":["a","b"],"exclude":["b"]}}"#
        )
    );
}

#[test]
fn undefined_properties_are_absent() {
    let mut input = with("environment", &json!({ "A": "1" }));
    for path in ["environment.B", "environment.1A", "inheritEnvironment", "timeout", "cwd", "tools", "odd"] {
        input = input.with(path, Input::Undefined);
    }
    let definition = judge_one(&input, &options(), Platform::Posix).unwrap();
    assert_eq!(definition.environment, [("A".to_owned(), "1".to_owned())]);
    let input = with("tools", &json!({})).with("tools.include", Input::Undefined);
    let definition = judge_one(&input, &options(), Platform::Posix).unwrap();
    assert_eq!(definition.to_json().get("tools"), None);
}

#[test]
fn ids_are_small_letters_digits_and_dashes() {
    for id in ["a", "a-", "project-tools-2", &"a".repeat(64)] {
        assert_eq!(judge_one(&with("id", &json!(id)), &options(), Platform::Posix).unwrap().id, id);
    }
    for id in ["A", "1a", "-a", "a_b", "a b", "ä", "aä", "a\n", &"a".repeat(65)] {
        assert_eq!(path_of(&refused(&with("id", &json!(id)))), "id", "{id:?}");
    }
    let error = refused(&with("id", &json!("My Server")));
    assert!(error.message.starts_with(r#"id is "My Server"; allowed is a string of 1 to 64"#), "{error}");
    let token = format!("ghp_{}", "k3Jx9QmZ2vLw8RtY5bNc7HdF4sGp6TaE1uXo");
    let error = refused(&with("id", &json!(token)));
    assert!(!error.to_json().to_string().contains(&token[4..12]), "{error}");
}

#[test]
fn ids_are_unique_in_one_call() {
    let servers = json!([
        { "id": "a", "command": ["/x"] },
        { "id": "b", "command": ["/x"] },
        { "id": "a", "command": [] },
    ]);
    let error = judge_all(&(&servers).into(), &options(), Platform::Posix).unwrap_err();
    assert_eq!(error.code, ErrorCode::InvalidDefinition);
    assert_eq!(
        error.message,
        "servers[2].id is a, which is the id of servers[0] too; ids are unique in one call."
    );
}

#[test]
fn up_to_eight_servers_are_judged_in_their_order() {
    let servers = |count: usize| -> Input {
        let one = |index| json!({ "id": format!("s{index}"), "command": ["/x"] });
        (&Value::Array((0..count).map(one).collect())).into()
    };
    assert_eq!(judge_all(&servers(0), &options(), Platform::Posix), Ok(Vec::new()));
    let eight = judge_all(&servers(8), &options(), Platform::Posix).unwrap();
    let ids: Vec<&str> = eight.iter().map(|definition| definition.id.as_str()).collect();
    assert_eq!(ids, ["s0", "s1", "s2", "s3", "s4", "s5", "s6", "s7"]);
    let error = judge_all(&servers(9).with("[0]", Input::Null), &options(), Platform::Posix).unwrap_err();
    assert_eq!(error.code, ErrorCode::TooManyServers);
    assert_eq!((error.detail("limit"), error.detail("count")), (Some(&8.into()), Some(&9.into())));
}

#[test]
fn the_program_is_an_absolute_path_of_its_platform() {
    for (platform, program) in [
        (Platform::Posix, "/usr/bin/node"),
        (Platform::Windows, r"C:\node\node.exe"),
        (Platform::Windows, "C:/node/node.exe"),
        (Platform::Windows, r"\\server\share\node.exe"),
    ] {
        judge_one(&with("command", &json!([program])), &options(), platform).unwrap();
        judge_one(
            &with("cwd", &json!(program)).with("command[0]", Input::String(program.into())),
            &options(),
            platform,
        )
        .unwrap();
    }
    for (platform, program) in [
        (Platform::Posix, ""),
        (Platform::Posix, "node"),
        (Platform::Posix, "./node"),
        (Platform::Posix, "~/node"),
        (Platform::Posix, r"C:\node.exe"),
        (Platform::Posix, "/node\0"),
        (Platform::Windows, "node"),
        (Platform::Windows, "C:node.exe"),
        (Platform::Windows, r"\node.exe"),
        (Platform::Windows, "/usr/bin/node"),
    ] {
        assert_eq!(
            path_of(&refused_on(platform, &with("command", &json!([program])))),
            "command[0]",
            "{program:?}"
        );
        let absolute = if platform == Platform::Posix { "/x" } else { r"C:\x" };
        let in_cwd = with("cwd", &json!(program)).with("command[0]", Input::String(absolute.into()));
        assert_eq!(path_of(&refused_on(platform, &in_cwd)), "cwd", "{program:?}");
    }
    assert_eq!(path_of(&refused(&with("command", &json!([])))), "command");
}

#[test]
fn the_timeout_is_an_integer_in_its_range() {
    for ms in [1_000, 300_000] {
        let definition = judge_one(&with("timeout", &json!(ms)), &options(), Platform::Posix).unwrap();
        assert_eq!(definition.timeout, Duration::from_millis(ms));
    }
    for ms in [0.0, -1.0, 60.0, 999.0, 300_001.0, 1_000.5, 1e300] {
        let error = refused(&with("timeout", &json!(ms)));
        assert_eq!(path_of(&error), "timeout");
        assert!(
            error.message.ends_with("allowed is an integer from 1000 to 300000 (milliseconds)."),
            "{error}"
        );
    }
}

#[test]
fn variables_have_names_that_every_shell_knows() {
    for (name, path) in [
        ("1A", r#"environment["1A"]"#),
        ("", r#"environment[""]"#),
        ("A-B", r#"environment["A-B"]"#),
        ("A=B", r#"environment["A=B"]"#),
        ("A$", "environment.A$"),
        ("Ä", r#"environment["Ä"]"#),
        ("__proto__", "environment.__proto__"),
    ] {
        assert_eq!(path_of(&refused(&with("environment", &json!({ name: CANARY })))), path);
        let error = refused(&with("inheritEnvironment", &json!(["BRIDGE", name])));
        assert_eq!(path_of(&error), "inheritEnvironment[1]");
    }
}

#[test]
fn an_inherited_name_must_be_allowed() {
    let error =
        judge_one(&with("inheritEnvironment", &json!(["BRIDGE", "BRIGDE"])), &options(), Platform::Posix);
    let error = error.unwrap_err();
    assert_eq!(error.code, ErrorCode::EnvNotAllowed);
    assert_eq!(path_of(&error), "inheritEnvironment[1]");
    assert_eq!(error.detail("key"), Some(&"BRIGDE".into()));
    assert_eq!(error.detail("nearest"), Some(&"BRIDGE".into()));
    assert_eq!(error.server_id.as_deref(), Some("x"));
    let lower = with("inheritEnvironment", &json!(["bridge", "Bridge"]));
    let on = |platform| judge_one(&lower.clone(), &options(), platform);
    assert_eq!(on(Platform::Posix).unwrap_err().code, ErrorCode::EnvNotAllowed);
    let lower = lower.with("command[0]", Input::String(r"C:\x".into()));
    assert_eq!(judge_one(&lower, &options(), Platform::Windows).unwrap().inherit_environment, ["bridge"]);
}

#[test]
fn a_repeated_inherited_name_is_kept_once() {
    let input = with("inheritEnvironment", &json!(["BRIDGE", "OTHER", "BRIDGE"]));
    let definition = judge_one(&input, &options(), Platform::Posix).unwrap();
    assert_eq!(definition.inherit_environment, ["BRIDGE", "OTHER"]);
}

#[test]
fn a_name_is_either_fixed_or_inherited() {
    let input =
        with("environment", &json!({ "MODE": "x" })).with("inheritEnvironment", (&json!(["MODE"])).into());
    assert_eq!(path_of(&refused(&input)), "inheritEnvironment[0]");
    let input = input.with("inheritEnvironment[0]", Input::String("mode".into()));
    let input = input.with("command[0]", Input::String(r"C:\x".into()));
    assert_eq!(path_of(&refused_on(Platform::Windows, &input)), "inheritEnvironment[0]");
}

#[test]
fn on_windows_a_variable_is_fixed_once_whatever_its_case() {
    let input = with("environment", &json!({ "Mode": "x", "MODE": "y" }));
    judge_one(&input, &options(), Platform::Posix).unwrap();
    let input = input.with("command[0]", Input::String(r"C:\x".into()));
    assert_eq!(path_of(&refused_on(Platform::Windows, &input)), "environment.MODE");
}

#[test]
fn unknown_properties_come_first_with_the_nearest_known_name() {
    for (name, nearest) in [
        ("comand", Some("command")),
        ("env", Some("environment")),
        ("inheritEnv", Some("inheritEnvironment")),
        ("args", None),
        ("url", None),
        ("__proto__", None),
        ("constructor", None),
    ] {
        let error = refused(&Input::from(&json!({ "id": 5 })).with(name, Input::Thrown));
        assert_eq!(path_of(&error), name);
        assert_eq!(error.detail("nearest"), nearest.map(Value::from).as_ref(), "{name}");
        assert!(error.message.contains("inheritEnvironment, timeout"), "{error}");
    }
    assert_eq!(path_of(&refused(&with("tools", &json!({ "includes": [] })))), "tools.includes");
}

#[test]
fn the_first_fault_in_document_order_is_the_answer() {
    let order = [
        ("id", json!("A")),
        ("command", json!(["x"])),
        ("environment", json!({ "A": 1 })),
        ("inheritEnvironment", json!(["A-B"])),
        ("timeout", json!(1)),
        ("cwd", json!("x")),
        ("tools", json!([])),
    ];
    for first in 0..order.len() {
        let faults = order[first..].iter().rev();
        let input =
            faults.fold(with("id", &json!("x")), |input, (name, value)| input.with(name, value.into()));
        assert!(path_of(&refused(&input)).starts_with(order[first].0));
    }
    let servers = json!([{ "id": "a", "command": ["x"] }, { "id": "A" }]);
    let error = judge_all(&(&servers).into(), &options(), Platform::Posix).unwrap_err();
    assert_eq!(path_of(&error), "servers[0].command[0]");
    assert_eq!(error.server_id.as_deref(), Some("a"));
}

#[test]
fn a_filter_admits_what_is_included_and_not_excluded() {
    let filter = |tools| judge_one(&with("tools", &tools), &options(), Platform::Posix).unwrap().tools;
    let only = filter(json!({ "include": ["a", "b"], "exclude": ["b"] }));
    assert!(only.admits("a") && !only.admits("b") && !only.admits("c"));
    let without = filter(json!({ "exclude": ["b"] }));
    assert!(without.admits("a") && !without.admits("b"));
    assert!(!filter(json!({ "include": [] })).admits("a"));
    assert!(filter(json!({ "exclude": [] })).admits("a"));
}

#[test]
fn debug_output_shows_neither_arguments_nor_values() {
    let definition = judged(&json!({ "id": "x", "command": ["/x", CANARY], "environment": { "A": CANARY } }));
    let text = format!("{:?}", definition.unwrap());
    assert!(text.contains("\"A\"") && text.contains("\"/x\"") && !text.contains(CANARY), "{text}");
}
