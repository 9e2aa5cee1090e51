//! What JavaScript values were given, from the description that `lib/input.js` makes of them.
//!
//! The description is made in JavaScript because only there a getter or proxy that throws can be asked safely: N-API leaves the
//! exception pending, and clearing it takes `unsafe`. As JSON text it crosses in one string, like everything else.
//!
//! A JSON string, finite number, boolean, `null` and array stand for themselves; `{"o":[[key,value],…]}` is an object; `{"t":kind}` is what
//! JSON cannot say.

use serde_json::Value;

use crate::policy::input::Input;

/// Kinds of values that definitions and options never hold, by the name for messages.
const KINDS: &[&str] = &[
    "a symbol",
    "a bigint",
    "a Map",
    "a Set",
    "a Date",
    "a RegExp",
    "a Promise",
    "a WeakMap",
    "a WeakSet",
    "a typed array",
    "an ArrayBuffer",
    "a boxed primitive",
    "an Error",
    "an iterator",
    "a WeakRef",
    "a URL",
    "a URLSearchParams",
    "a Headers",
    "a FormData",
    "an array of more than 262144 elements",
    "a string that is not well-formed Unicode",
];

/// Reads one description.
#[must_use]
pub fn read(description: &str) -> Input {
    serde_json::from_str(description).map_or(Input::Other("an unreadable value"), input)
}

fn input(description: Value) -> Input {
    match description {
        Value::Null => Input::Null,
        Value::Bool(bool) => Input::Bool(bool),
        Value::Number(number) => number.as_f64().map_or(Input::Other("a number"), Input::Number),
        Value::String(text) => Input::String(text),
        Value::Array(elements) => Input::List(elements.into_iter().map(input).collect()),
        Value::Object(mut members) => {
            if let Some(Value::Array(pairs)) = members.remove("o") {
                return Input::Object(pairs.into_iter().filter_map(pair).collect());
            }
            tagged(members.get("t").and_then(Value::as_str).unwrap_or_default())
        }
    }
}

fn pair(pair: Value) -> Option<(String, Input)> {
    let Value::Array(pair) = pair else { return None };
    let mut pair = pair.into_iter();
    let Some(Value::String(key)) = pair.next() else { return None };
    pair.next().map(|value| (key, input(value)))
}

fn tagged(tag: &str) -> Input {
    match tag {
        "undefined" => Input::Undefined,
        "hole" => Input::Hole,
        "function" => Input::Function,
        "thrown" => Input::Thrown,
        "deep" => Input::TooDeep,
        "NaN" => Input::Number(f64::NAN),
        "Infinity" => Input::Number(f64::INFINITY),
        "-Infinity" => Input::Number(f64::NEG_INFINITY),
        kind => Input::Other(
            KINDS.iter().find(|known| **known == kind).copied().unwrap_or("a value of another kind"),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_json_cannot_say_comes_through() {
        let description =
            r#"{"o":[["__proto__",{"t":"NaN"}],["list",["a",{"t":"hole"},null,-0.5]],["m",{"t":"a Map"}]]}"#;
        let Input::Object(members) = read(description) else { panic!("no object") };
        assert!(matches!(&members[0], (key, Input::Number(number)) if key == "__proto__" && number.is_nan()));
        let list = vec![Input::String("a".into()), Input::Hole, Input::Null, Input::Number(-0.5)];
        assert_eq!(members[1], ("list".into(), Input::List(list)));
        assert_eq!(members[2].1, Input::Other("a Map"));
    }
}
