//! What may not be written down.

use super::*;

const SECRET: &str = "a4f0c9d17be2 horse";

fn token() -> String {
    format!("ghp_{}", "k3Jx9QmZ2vLw8RtY5bNc7HdF4sGp6TaE1uXo")
}

fn options() -> Options {
    options_of(&json!({
        "allowedInheritedEnvKeys": ["BRIDGE", "GITHUB_TOKEN"],
        "env": { "GITLAB_TOKEN": SECRET, "SHORT_TOKEN": "elevenchars", "PLAIN": "twelve chars at least" },
    }))
}

fn refused_on(platform: Platform, input: &Input) -> McpError {
    let error = judge_one(input, &options(), platform).unwrap_err();
    assert_eq!(error.code, ErrorCode::CapabilityInDefinition, "{error}");
    let text = error.to_json().to_string();
    assert!(!text.contains(SECRET) && !text.contains(&token()[4..12]), "{error}");
    for way_out in ["options.env", "inheritEnvironment", "options.allowedInheritedEnvKeys"] {
        assert!(error.message.contains(way_out), "{error}");
    }
    error
}

fn refused(input: &Input) -> McpError {
    refused_on(Platform::Posix, input)
}

fn accepted(input: &Input) {
    judge_one(input, &options(), Platform::Posix).unwrap();
}

#[test]
fn the_first_rule_that_applies_is_named() {
    for (name, value, why) in [
        ("BRIDGE", "x", "allowed-key"),
        ("GITHUB_TOKEN", &token(), "allowed-key"),
        ("NPM_TOKEN", "x", "name"),
        ("NPM_TOKEN", &token(), "name"),
        ("npm_token", "x", "name"),
        ("MODE", &token(), "value"),
        ("MODE", SECRET, "value"),
    ] {
        let error = refused(&with("environment", &json!({ "FIRST": "x", name: value })));
        assert_eq!(path_of(&error), format!("environment.{name}"));
        assert_eq!(error.detail("key"), Some(&name.into()));
        assert_eq!(error.detail("why"), Some(&why.into()), "{name}");
        assert_eq!(error.server_id.as_deref(), Some("x"));
    }
}

#[test]
fn the_message_says_which_rule_spoke() {
    let says = |name: &str, value: &str| refused(&with("environment", &json!({ name: value }))).message;
    assert!(says("BRIDGE", "x").contains("its name is in options.allowedInheritedEnvKeys"));
    assert!(says("NPM_TOKEN", "x").contains("its name is that of a secret"));
    assert!(says("MODE", &token()).contains("its value has the form of "));
    assert!(says("MODE", SECRET).contains("its value is that of GITLAB_TOKEN in options.env"));
}

#[test]
fn arguments_are_judged_by_their_values() {
    for argument in [token(), SECRET.to_owned(), format!("--token={}", token()), format!("--token={SECRET}")]
    {
        let error = refused(&with("command", &json!(["/x", "--flag", argument])));
        assert_eq!(path_of(&error), "command[2]");
        assert_eq!(error.detail("why"), Some(&"value".into()));
        assert_eq!(error.detail("key"), None);
    }
    for argument in ["BRIDGE", "--token", "GITLAB_TOKEN", "--token=${GITLAB_TOKEN}", "=", "elevenchars"] {
        accepted(&with("command", &json!(["/x", argument])));
    }
}

#[test]
fn what_is_no_capability_is_accepted() {
    let environment =
        json!({ "MODE": "production", "A": "elevenchars", "B": "twelve chars at least", "bridge": "x" });
    accepted(&with("environment", &environment));
}

#[test]
fn on_windows_an_allowed_name_is_recognised_in_any_case() {
    let input =
        with("environment", &json!({ "bridge": "x" })).with("command[0]", Input::String(r"C:\x".into()));
    assert_eq!(refused_on(Platform::Windows, &input).detail("why"), Some(&"allowed-key".into()));
}

#[test]
fn a_name_that_is_fixed_and_allowed_is_refused_where_it_is_fixed() {
    let input = with("inheritEnvironment", &json!(["BRIDGE"]));
    let input = input.with("environment", (&json!({ "BRIDGE": "x" })).into());
    assert_eq!(path_of(&refused(&input)), "environment.BRIDGE");
}

#[test]
fn a_value_in_the_place_of_a_name_is_not_quoted() {
    let secret = "a4f0c9d17be2horse";
    let options = options_of(&json!({ "env": { "GITLAB_TOKEN": secret } }));
    for value in [token(), secret.to_owned()] {
        let input = with("inheritEnvironment", &json!([value]));
        let error = judge_one(&input, &options, Platform::Posix).unwrap_err();
        assert_eq!(error.code, ErrorCode::EnvNotAllowed);
        assert!(!error.to_json().to_string().contains(&value), "{error}");
    }
}
