//! What JavaScript values were given, from the description that `lib/core.js` makes of them.
//!
//! The description is made in JavaScript because only there a getter or proxy that throws can be asked safely: N-API leaves the
//! exception pending, and clearing it takes `unsafe`. As JSON text it crosses in one string, like everything else.
//!
//! A JSON string, finite number, boolean, `null` and array stand for themselves; `{"o":{…}}` is an object;
//! `{"t":kind}` is what JSON cannot say.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

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
    serde_json::from_str(description).map_or(Input::Other("an unreadable value"), |Described(input)| input)
}

/// What a description says, read without a tree of JSON in between: each start reads the host's whole environment.
struct Described(Input);

impl<'de> Deserialize<'de> for Described {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Reader).map(Self)
    }
}

struct Reader;

impl<'de> Visitor<'de> for Reader {
    type Value = Input;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a description of a value")
    }

    fn visit_unit<E>(self) -> Result<Input, E> {
        Ok(Input::Null)
    }

    fn visit_bool<E>(self, bool: bool) -> Result<Input, E> {
        Ok(Input::Bool(bool))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Input, E> {
        Ok(Input::Number(number))
    }

    #[expect(clippy::cast_precision_loss, reason = "a number of JavaScript comes back as what it was")]
    fn visit_u64<E>(self, number: u64) -> Result<Input, E> {
        Ok(Input::Number(number as f64))
    }

    #[expect(clippy::cast_precision_loss, reason = "a number of JavaScript comes back as what it was")]
    fn visit_i64<E>(self, number: i64) -> Result<Input, E> {
        Ok(Input::Number(number as f64))
    }

    fn visit_str<E>(self, text: &str) -> Result<Input, E> {
        Ok(Input::String(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Input, A::Error> {
        let mut list = Vec::new();
        while let Some(Described(element)) = elements.next_element()? {
            list.push(element);
        }
        Ok(Input::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Input, A::Error> {
        let mut input = tagged("");
        while let Some(key) = members.next_key::<Cow<'_, str>>()? {
            match &*key {
                "o" => input = Input::Object(members.next_value::<Members>()?.0),
                "t" => input = tagged(&members.next_value::<Cow<'_, str>>()?),
                _ => drop(members.next_value::<IgnoredAny>()?),
            }
        }
        Ok(input)
    }
}

/// What an object has, in order.
struct Members(Vec<(String, Input)>);

impl<'de> Deserialize<'de> for Members {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(MembersReader).map(Self)
    }
}

struct MembersReader;

impl<'de> Visitor<'de> for MembersReader {
    type Value = Vec<(String, Input)>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("the members of an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Self::Value, A::Error> {
        let mut read = Vec::new();
        while let Some((key, Described(value))) = members.next_entry()? {
            read.push((key, value));
        }
        Ok(read)
    }
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
            r#"{"o":{"__proto__":{"t":"NaN"},"list":["a",{"t":"hole"},null,-0.5],"m":{"t":"a Map"}}}"#;
        let Input::Object(members) = read(description) else { panic!("no object") };
        assert!(matches!(&members[0], (key, Input::Number(number)) if key == "__proto__" && number.is_nan()));
        let list = vec![Input::String("a".into()), Input::Hole, Input::Null, Input::Number(-0.5)];
        assert_eq!(members[1], ("list".into(), Input::List(list)));
        assert_eq!(members[2].1, Input::Other("a Map"));
    }
}
