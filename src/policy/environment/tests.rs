use std::time::Duration;

use super::*;
use crate::policy::definition::ToolFilter;

fn owned(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

fn definition(environment: &[(&str, &str)], inherit: &[&str]) -> Definition {
    Definition {
        id: "x".to_owned(),
        command: vec!["/x".to_owned()],
        environment: owned(environment),
        inherit_environment: inherit.iter().map(|name| (*name).to_owned()).collect(),
        timeout: Duration::from_mins(1),
        cwd: None,
        tools: ToolFilter::default(),
    }
}

#[test]
fn a_child_gets_the_base_and_what_its_definition_says_and_nothing_else() {
    let env = owned(&[
        ("PATH", "/bin"),
        ("NODE_OPTIONS", "--inspect"),
        ("HOME", "/home/ü"),
        ("LD_PRELOAD", "/evil.so"),
        ("ELECTRON_RUN_AS_NODE", "1"),
        ("HOST_TOKEN", "secret"),
        ("BRIDGE_TOKEN", "allowed"),
        ("TZ", ""),
        ("path", "/other"),
        ("APPDATA", "x"),
    ]);
    let child = build(&definition(&[("MODE", "日本")], &["BRIDGE_TOKEN"]), &env, Platform::Posix);
    let expected =
        [("HOME", "/home/ü"), ("PATH", "/bin"), ("TZ", ""), ("MODE", "日本"), ("BRIDGE_TOKEN", "allowed")];
    assert_eq!(child.variables, owned(&expected));
    assert_eq!(child.inherited, owned(&[("BRIDGE_TOKEN", "allowed")]));
    assert!(child.missing.is_empty());
}

#[test]
fn every_name_of_the_base_is_passed_on() {
    for (platform, base) in [(Platform::Posix, &POSIX_BASE[..]), (Platform::Windows, &WINDOWS_BASE[..])] {
        let env: Vec<_> = base.iter().map(|name| ((*name).to_owned(), format!("value of {name}"))).collect();
        assert_eq!(build(&definition(&[], &[]), &env, platform).variables, env);
    }
}

#[test]
fn fixed_wins_over_base_and_inherited_over_base() {
    let env = owned(&[("PATH", "/host"), ("LANG", "C"), ("HOME", "() { :; }")]);
    let child =
        build(&definition(&[("PATH", "/fixed"), ("HOME", "() fixed")], &["LANG"]), &env, Platform::Posix);
    assert_eq!(child.variables, owned(&[("PATH", "/fixed"), ("HOME", "() fixed"), ("LANG", "C")]));
    assert_eq!(child.inherited, owned(&[("LANG", "C")]));
}

#[test]
fn a_shell_function_in_the_base_is_left_out() {
    let env = owned(&[("TERM", "() { :; }"), ("SHELL", " () x")]);
    assert_eq!(build(&definition(&[], &[]), &env, Platform::Posix).variables, owned(&[("SHELL", " () x")]));
}

#[test]
fn an_inherited_name_that_is_not_set_is_missing_and_an_empty_one_is_not() {
    let env = owned(&[("EMPTY", "")]);
    let child = build(&definition(&[], &["UNSET", "EMPTY", "HOME"]), &env, Platform::Posix);
    assert_eq!(child.variables, owned(&[("EMPTY", "")]));
    assert_eq!(child.missing, ["UNSET", "HOME"]);
}

#[test]
fn windows_finds_and_replaces_names_without_case() {
    let env = owned(&[
        ("Path", "C:\\old"),
        ("SystemRoot", "C:\\Windows"),
        ("ProgramFiles(x86)", "C:\\x86"),
        ("bridge_token", "allowed"),
        ("TERM", "xterm"),
    ]);
    let child =
        build(&definition(&[("path", "C:\\new")], &["BRIDGE_TOKEN", "Missing"]), &env, Platform::Windows);
    let expected = [
        ("PROGRAMFILES(X86)", "C:\\x86"),
        ("SYSTEMROOT", "C:\\Windows"),
        ("path", "C:\\new"),
        ("BRIDGE_TOKEN", "allowed"),
    ];
    assert_eq!(child.variables, owned(&expected));
    assert_eq!(child.missing, ["Missing"]);
}

#[test]
fn debug_output_shows_names_only() {
    let child = build(&definition(&[("A", "canary")], &["B"]), &owned(&[("B", "canary")]), Platform::Posix);
    let text = format!("{child:?}");
    assert!(text.contains("\"A\"") && text.contains("\"B\"") && !text.contains("canary"), "{text}");
}
