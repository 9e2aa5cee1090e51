//! Every kind of value in every place.

use super::*;

fn valid() -> Input {
    Input::from(&json!({
        "id": "x",
        "command": [format!("/{CANARY}"), CANARY, CANARY],
        "environment": { "FOO": CANARY, "BAR": CANARY },
        "inheritEnvironment": ["BRIDGE", "OTHER"],
        "timeout": 5000,
        "cwd": format!("/{CANARY}"),
        "tools": { "include": [CANARY, CANARY], "exclude": [CANARY] },
    }))
}

fn is_list(value: &Input) -> bool {
    matches!(value, Input::List(elements) if elements.iter().all(|element| matches!(element, Input::String(_))))
}

fn is_text(value: &Input) -> bool {
    matches!(value, Input::String(text) if !text.contains('\0'))
}

fn is_variables(value: &Input) -> bool {
    matches!(value, Input::Object(entries) if entries.iter().all(|(key, _)| key != "__proto__"))
}

fn nothing(_: &Input) -> bool {
    false
}

type IsRight = fn(&Input) -> bool;

/// Each place with the test for values that are right there.
const PLACES: [(&str, IsRight); 18] = [
    ("id", nothing),
    ("command", nothing),
    ("command[0]", nothing),
    ("command[1]", is_text),
    ("command[2]", is_text),
    ("environment", is_variables),
    ("environment.FOO", is_text),
    ("environment.BAR", is_text),
    ("inheritEnvironment", nothing),
    ("inheritEnvironment[0]", nothing),
    ("inheritEnvironment[1]", nothing),
    ("timeout", nothing),
    ("cwd", nothing),
    ("tools", nothing),
    ("tools.include", is_list),
    ("tools.include[1]", is_text),
    ("tools.exclude", is_list),
    ("tools.exclude[0]", is_text),
];

/// A wrong id may be quoted; nothing else may.
fn quotes(error: &McpError, place: &str) -> bool {
    place != "id" && error.to_json().to_string().contains(CANARY)
}

#[test]
fn every_wrong_kind_is_refused_where_it_stands_and_never_quoted() {
    judge_one(&valid(), &options(), Platform::Posix).unwrap();
    for (place, is_right) in PLACES {
        for value in Input::of_every_kind(CANARY).into_iter().filter(|value| !is_right(value)) {
            let error = refused(&valid().with(place, value.clone()));
            let path = path_of(&error);
            assert!(path.starts_with(place), "{value:?} at {place}: {error}");
            assert!(!quotes(&error, place), "{value:?} at {place}: {error}");
            // The others may be refused for what is in them, or for what they are not.
            if !matches!(value, Input::List(_) | Input::Object(_) | Input::String(_) | Input::Number(_)) {
                assert_eq!(path, place);
                assert!(error.message.contains(value.kind()), "{value:?} at {place}: {error}");
            }
        }
    }
}

#[test]
fn right_kinds_in_the_same_places_are_accepted() {
    for (place, is_right) in PLACES {
        for value in Input::of_every_kind(CANARY).into_iter().filter(is_right) {
            judge_one(&valid().with(place, value), &options(), Platform::Posix).unwrap();
        }
    }
}

#[test]
fn in_an_array_paths_begin_with_the_server() {
    for (place, is_right) in PLACES {
        for value in Input::of_every_kind(CANARY).into_iter().filter(|value| !is_right(value)) {
            let first = valid().with("id", Input::String("first".to_owned()));
            let servers = Input::List(vec![first, valid().with(place, value)]);
            let error = judge_all(&servers, &options(), Platform::Posix).unwrap_err();
            assert_eq!(error.code, ErrorCode::InvalidDefinition);
            assert!(path_of(&error).starts_with(&format!("servers[1].{place}")), "{error}");
            assert!(!quotes(&error, place), "{error}");
        }
    }
}

#[test]
fn what_is_no_definition_or_no_array_of_them_is_refused_as_a_whole() {
    for value in Input::of_every_kind(CANARY).into_iter().chain([Input::Undefined]) {
        if !matches!(value, Input::Object(_)) {
            assert_eq!(path_of(&refused(&value)), "definition");
            let servers = Input::List(vec![value.clone()]);
            let error = judge_all(&servers, &options(), Platform::Posix).unwrap_err();
            assert_eq!(path_of(&error), "servers[0]");
            assert!(error.message.contains(value.kind()), "{error}");
        }
        if !matches!(value, Input::List(_)) {
            let error = judge_all(&value, &options(), Platform::Posix).unwrap_err();
            assert_eq!(path_of(&error), "servers");
            assert_eq!(error.code, ErrorCode::InvalidDefinition);
        }
    }
}

#[test]
fn what_is_required_is_missed() {
    for required in ["id", "command"] {
        let error = refused(&valid().with(required, Input::Undefined));
        assert!(error.message.starts_with(&format!("{required} is missing; allowed is ")), "{error}");
    }
}

#[test]
fn undefined_in_an_array_is_a_wrong_element() {
    for place in PLACES.iter().map(|(place, _)| *place).filter(|place| place.ends_with(']')) {
        let error = refused(&valid().with(place, Input::Undefined));
        assert!(error.message.starts_with(&format!("{place} is undefined; allowed is ")), "{error}");
    }
}
