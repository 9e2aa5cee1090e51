#![expect(clippy::unwrap_used, reason = "a test that cannot read its own input fails")]

use std::cell::Cell;

use serde_json::{Value, json};

use super::*;

type IsRight = fn(&Input) -> bool;

const CANARY: &str = "Canary 9f3a7c51e2";

fn judged(options: &Value) -> Result<Options, McpError> {
    judge(&options.into(), || (&json!({ "HOST": "env" })).into(), true)
}

fn refused(input: &Input) -> McpError {
    let error = judge(input, || Input::Object(Vec::new()), true).unwrap_err();
    assert_eq!(error.code, ErrorCode::InvalidArgument);
    assert!(!error.to_json().to_string().contains(CANARY), "{error}");
    assert!(error.message.starts_with(error.detail("path").unwrap().as_str().unwrap()), "{error}");
    assert!(error.message.contains(error.detail("reason").unwrap().as_str().unwrap()), "{error}");
    error
}

#[test]
fn no_options_are_the_defaults() {
    for input in [Input::Undefined, Input::Object(Vec::new())] {
        let options = judge(&input, || (&json!({ "HOST": "env" })).into(), false).unwrap();
        assert!(options.allowed_inherited_env_keys.is_empty());
        assert_eq!(options.env, [("HOST".to_owned(), "env".to_owned())]);
        assert_eq!(options.connect_timeout, None);
        assert_eq!(options.protocol, Protocol::Auto);
        assert_eq!(options.max_message_bytes, 67_108_864);
        let two_seconds = Duration::from_secs(2);
        assert_eq!(options.shutdown, Shutdown { end_of_input: two_seconds, terminate: two_seconds });
        assert!(options.guardian);
        assert!(!options.partial);
        assert_eq!(options.listens, Listens::default());
    }
}

#[test]
fn every_option_is_read() {
    let input = Input::from(&json!({
        "allowedInheritedEnvKeys": ["A", "B", "A"],
        "env": { "X": "1", "ProgramFiles(x86)": "C:\\x", "": "", "Y": "" },
        "connectTimeout": 1,
        "protocol": "2026-07-28",
        "maxMessageBytes": 1024,
        "shutdown": { "endOfInput": 0, "terminate": 300_000 },
        "guardian": false,
        "partial": true,
    }))
    .with("onStderr", Input::Function)
    .with("onLog", Input::Undefined)
    .with("onClose", Input::Function)
    .with("signal", Input::Other("AbortSignal"))
    .with("env.Z", Input::Undefined);
    let options = judge(&input, || panic!("the host's environment is not needed"), true).unwrap();
    assert_eq!(options.allowed_inherited_env_keys, ["A", "B"]);
    let names: Vec<&str> = options.env.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["X", "ProgramFiles(x86)", "", "Y"]);
    assert_eq!(options.connect_timeout, Some(Duration::from_millis(1)));
    assert_eq!(options.protocol, Protocol::Version("2026-07-28"));
    assert_eq!(options.max_message_bytes, 1024);
    assert_eq!(options.shutdown.end_of_input, Duration::ZERO);
    assert_eq!(options.shutdown.terminate, Duration::from_mins(5));
    assert!(!options.guardian);
    assert!(options.partial);
    assert_eq!(options.listens, Listens { stderr: true, ..Listens::default() });
}

#[test]
fn the_words_of_protocol_are_known() {
    let protocol = |word: &str| judged(&json!({ "protocol": word })).map(|options| options.protocol);
    assert_eq!(protocol("auto"), Ok(Protocol::Auto));
    assert_eq!(protocol("legacy"), Ok(Protocol::Legacy));
    assert_eq!(protocol("modern"), Ok(Protocol::Modern));
    for version in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"] {
        assert_eq!(protocol(version), Ok(Protocol::Version(version)));
    }
    let error = protocol("2025-06-19").unwrap_err();
    assert_eq!(error.detail("nearest"), Some(&"2025-06-18".into()));
    assert_eq!(protocol("Modern").unwrap_err().detail("nearest"), Some(&"modern".into()));
}

#[test]
fn the_environment_of_the_host_is_read_only_without_one_in_the_options() {
    let asked = Cell::new(0);
    let host = || {
        asked.set(asked.get() + 1);
        Input::from(&json!({ "HOST": "env" }))
    };
    let given = judge(&(&json!({ "env": {} })).into(), host, false).unwrap();
    assert!(given.env.is_empty());
    assert_eq!(asked.get(), 0);
    judge(&Input::from(&json!({})).with("env", Input::Undefined), host, false).unwrap();
    assert_eq!(asked.get(), 1);
}

#[test]
fn a_broken_environment_of_the_host_is_named_as_such() {
    let host = || Input::Object(vec![("A".to_owned(), Input::Thrown)]);
    let error = judge(&Input::Undefined, host, false).unwrap_err();
    assert_eq!(error.detail("path"), Some(&"process.env.A".into()));
}

#[test]
fn every_wrong_kind_in_every_place_is_refused_with_its_path() {
    let valid = Input::from(&json!({
        "allowedInheritedEnvKeys": ["A"],
        "env": { "A": CANARY, "B C": CANARY },
        "connectTimeout": 5,
        "protocol": "auto",
        "maxMessageBytes": 4096,
        "shutdown": { "endOfInput": 1, "terminate": 1 },
        "guardian": true,
        "partial": true,
    }));
    judge(&valid, || Input::Undefined, true).unwrap();
    let any = |_: &Input| false;
    let list = |value: &Input| matches!(value, Input::List(_));
    let object = |value: &Input| matches!(value, Input::Object(_));
    let text = |value: &Input| matches!(value, Input::String(text) if !text.contains('\0'));
    let boolean = |value: &Input| matches!(value, Input::Bool(_));
    let function = |value: &Input| matches!(value, Input::Function);
    let places: [(&str, IsRight); 18] = [
        ("allowedInheritedEnvKeys", list),
        ("allowedInheritedEnvKeys[0]", any),
        ("env", object),
        ("env.A", text),
        ("signal", object),
        ("connectTimeout", any),
        ("protocol", any),
        ("maxMessageBytes", any),
        ("shutdown", object),
        ("shutdown.endOfInput", any),
        ("shutdown.terminate", any),
        ("guardian", boolean),
        ("onStderr", function),
        ("onLog", function),
        ("onToolsChanged", function),
        ("onWarning", function),
        ("onClose", function),
        ("partial", boolean),
    ];
    for (place, is_right) in places {
        for value in Input::of_every_kind(CANARY) {
            if is_right(&value) {
                continue;
            }
            let error = refused(&valid.clone().with(place, value.clone()));
            assert_eq!(error.detail("path"), Some(&format!("options.{place}").into()), "{value:?}");
        }
    }
    for value in Input::of_every_kind(CANARY).into_iter().filter(|value| !object(value)) {
        let error = refused(&value);
        assert_eq!(error.detail("path"), Some(&"options".into()));
        assert!(error.message.contains(value.kind()), "{error}");
    }
}

#[test]
fn a_variable_that_is_no_string_is_named_by_its_key() {
    let error = refused(&Input::from(&json!({ "env": { "B C": 5 } })));
    assert_eq!(error.message, r#"options.env["B C"] is a number; allowed is a string."#);
}

#[test]
fn numbers_have_their_ranges() {
    for (name, unit, inside, outside) in [
        ("connectTimeout", "milliseconds", [1.0, 2_147_483_647.0], [0.0, 2_147_483_648.0]),
        ("maxMessageBytes", "bytes", [1024.0, 536_870_912.0], [1023.0, 536_870_913.0]),
        ("shutdown.endOfInput", "milliseconds", [0.0, 300_000.0], [-1.0, 300_001.0]),
        ("shutdown.terminate", "milliseconds", [0.0, 300_000.0], [-1.0, 300_001.0]),
    ] {
        let with = |number| Input::from(&json!({ "shutdown": {} })).with(name, Input::Number(number));
        for number in inside {
            judge(&with(number), || Input::Object(Vec::new()), false).unwrap();
        }
        for number in outside {
            let error = refused(&with(number));
            assert_eq!(error.detail("path"), Some(&format!("options.{name}").into()));
            assert!(error.message.contains(unit), "{error}");
        }
    }
}

#[test]
fn unknown_options_are_refused_before_all_with_the_nearest_known() {
    for (name, nearest) in [
        ("connectTimeOut", Some("connectTimeout")),
        ("allowedInheritedEnvKey", Some("allowedInheritedEnvKeys")),
        ("environment", None),
        ("onStdErr", Some("onStderr")),
        ("__proto__", None),
        ("timeout", None),
    ] {
        let error = refused(&Input::from(&json!({ "env": 5 })).with(name, Input::Thrown));
        assert_eq!(error.detail("path"), Some(&format!("options.{name}").into()));
        assert_eq!(error.detail("nearest"), nearest.map(Value::from).as_ref(), "{name}");
    }
    let error = refused(&Input::from(&json!({ "shutdown": { "terminat": 5 } })));
    assert_eq!(error.detail("path"), Some(&"options.shutdown.terminat".into()));
    assert_eq!(error.detail("nearest"), Some(&"terminate".into()));
    judge(&Input::Object(vec![("odd".to_owned(), Input::Undefined)]), || Input::Object(Vec::new()), false)
        .unwrap();
}

#[test]
fn partial_is_an_option_of_a_group_only() {
    let input = Input::from(&json!({ "partial": true }));
    assert!(judge(&input, || Input::Object(Vec::new()), true).unwrap().partial);
    let error = judge(&input, || Input::Object(Vec::new()), false).unwrap_err();
    assert_eq!(error.detail("path"), Some(&"options.partial".into()));
}

#[test]
fn an_allowed_name_that_no_variable_can_have_is_refused() {
    for name in ["", "1A", "A-B", "A=B", "__proto__", CANARY] {
        let error = refused(&Input::from(&json!({ "allowedInheritedEnvKeys": ["A", name] })));
        assert_eq!(error.detail("path"), Some(&"options.allowedInheritedEnvKeys[1]".into()));
    }
}

#[test]
fn debug_output_shows_names_only() {
    let text = format!("{:?}", judged(&json!({ "env": { "A": CANARY } })).unwrap());
    assert!(text.contains("\"A\"") && !text.contains(CANARY), "{text}");
}
