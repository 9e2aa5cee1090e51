//! The members of a JSON object, without decoding their values.
//!
//! `JSON.parse` semantics where serde's derive has others: the last of two equal keys counts, unknown members cost nothing,
//! and a key or value that a Rust string cannot hold (half an emoji) harms nobody who does not ask for it.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

/// The raw values of the members called `names`, each `None` when absent. `None` as a whole when `text` is not one JSON object.
#[must_use]
pub fn fields<'a, const N: usize>(text: &'a str, names: [&str; N]) -> Option<[Option<&'a RawValue>; N]> {
    struct Pick<'n, const N: usize>([&'n str; N]);

    impl<'a, const N: usize> Visitor<'a> for Pick<'_, N> {
        type Value = [Option<&'a RawValue>; N];

        fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
            formatter.write_str("an object")
        }

        fn visit_map<A: MapAccess<'a>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let mut found = [None; N];
            // The key as raw text: decoding it would fail on half a surrogate pair.
            while let Some(key) = map.next_key::<&'a RawValue>()? {
                match key_name(key.get()).and_then(|key| self.0.iter().position(|name| *name == key)) {
                    Some(index) => found[index] = Some(map.next_value::<&'a RawValue>()?),
                    None => {
                        map.next_value::<IgnoredAny>()?;
                    }
                }
            }
            Ok(found)
        }
    }

    let mut deserializer = serde_json::Deserializer::from_str(text);
    let found = deserializer.deserialize_map(Pick(names)).ok()?;
    deserializer.end().ok()?;
    Some(found)
}

/// All members of a JSON object, keys as raw text (with their quotes); `None` when `text` is no object.
#[must_use]
pub fn members(text: &str) -> Option<Vec<(&RawValue, &RawValue)>> {
    struct All;

    impl<'a> Visitor<'a> for All {
        type Value = Vec<(&'a RawValue, &'a RawValue)>;

        fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
            formatter.write_str("an object")
        }

        fn visit_map<A: MapAccess<'a>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let mut all = Vec::new();
            while let Some(member) = map.next_entry()? {
                all.push(member);
            }
            Ok(all)
        }
    }

    let mut deserializer = serde_json::Deserializer::from_str(text);
    let all = deserializer.deserialize_map(All).ok()?;
    deserializer.end().ok()?;
    Some(all)
}

/// The raw elements of a JSON array; `None` when `text` is no array.
#[must_use]
pub fn elements(text: &str) -> Option<Vec<&RawValue>> {
    serde_json::from_str(text).ok()
}

/// The string a raw value is, when it is one that a Rust string can hold.
#[must_use]
pub fn string(raw: &RawValue) -> Option<Cow<'_, str>> {
    let text = raw.get();
    let inner = text.strip_prefix('"')?.strip_suffix('"')?;
    if inner.contains('\\') {
        serde_json::from_str::<String>(text).ok().map(Cow::Owned)
    } else {
        Some(Cow::Borrowed(inner))
    }
}

/// Whether a raw value is written `null`.
#[must_use]
pub fn is_null(raw: &RawValue) -> bool {
    raw.get() == "null"
}

/// The name that a raw key says, when a Rust string can hold it.
fn key_name(raw: &str) -> Option<Cow<'_, str>> {
    let inner = raw.get(1..raw.len() - 1).unwrap_or_default();
    if inner.as_bytes().contains(&b'\\') {
        serde_json::from_str::<String>(raw).ok().map(Cow::Owned)
    } else {
        Some(Cow::Borrowed(inner))
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    #[test]
    fn members_keep_their_text_and_the_last_of_two_counts() {
        let [a, b, c] =
            fields(r#" {"a": 1e400, "x": [{}], "b": "é", "a": {"k": -0}} "#, ["a", "b", "c"]).unwrap();
        assert_eq!(a.unwrap().get(), r#"{"k": -0}"#);
        assert_eq!(string(b.unwrap()).unwrap(), "é");
        assert!(c.is_none());
    }

    #[test]
    fn escaped_keys_are_recognised_and_half_an_emoji_harms_nobody() {
        let [id, text] = fields(r#"{"\u0069d":7,"\ud83d":1,"text":"\ud83d"}"#, ["id", "text"]).unwrap();
        assert_eq!(id.unwrap().get(), "7");
        assert_eq!(text.unwrap().get(), r#""\ud83d""#);
    }

    #[test]
    fn what_is_no_object_gives_nothing() {
        for text in ["", "null", "[]", "{", "{}{}", r#"{"a":}"#, "{'a':1}", "{} x"] {
            assert!(fields(text, ["a"]).is_none(), "{text}");
        }
    }

    #[test]
    fn depth_is_no_limit() {
        let deep = format!(r#"{{"a":{}{}}}"#, "[".repeat(5_000), "]".repeat(5_000));
        assert_eq!(fields(&deep, ["a"]).unwrap()[0].unwrap().get().len(), 10_000);
    }
}
