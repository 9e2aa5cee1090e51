//! JSON that JavaScript reads and `serde_json` does not.

use std::borrow::Cow;
use std::ops::Range;

/// JSON text with U+FFFD in place of each escape of half a surrogate pair: `"\ud83d"` is what a server writes that cuts a string in
/// the middle of an emoji. No Rust string can hold it, so `serde_json` refuses the whole text for it.
#[must_use]
pub fn with_whole_characters(json: &str) -> Cow<'_, str> {
    let halves = halves(json.as_bytes());
    if halves.is_empty() {
        return Cow::Borrowed(json);
    }
    let mut whole = String::with_capacity(json.len());
    let mut at = 0;
    for half in halves {
        whole.push_str(json.get(at..half.start).unwrap_or_default());
        whole.push('\u{fffd}');
        at = half.end;
    }
    whole.push_str(json.get(at..).unwrap_or_default());
    Cow::Owned(whole)
}

/// Where escapes of half a pair stand. A backslash is inside a string wherever it is.
fn halves(json: &[u8]) -> Vec<Range<usize>> {
    const HIGH: Range<u16> = 0xd800..0xdc00;
    const LOW: Range<u16> = 0xdc00..0xe000;
    let mut halves = Vec::new();
    let mut at = 0;
    while let Some(offset) = json.get(at..).and_then(|rest| memchr::memchr(b'\\', rest)) {
        let start = at + offset;
        let first = unit(json, start);
        at = match first {
            Some(high)
                if HIGH.contains(&high) && unit(json, start + 6).is_some_and(|low| LOW.contains(&low)) =>
            {
                start + 12
            }
            Some(half) if HIGH.contains(&half) || LOW.contains(&half) => {
                halves.push(start..start + 6);
                start + 6
            }
            _ => start + 2,
        };
    }
    halves
}

/// The UTF-16 unit whose escape stands there.
fn unit(json: &[u8], at: usize) -> Option<u16> {
    let digits = json.get(at..at + 6)?.strip_prefix(b"\\u")?;
    u16::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_a_pair_is_replaced_and_nothing_else() {
        for (json, whole) in [
            (r#""cut \ud83d""#, "\"cut \u{fffd}\""),
            (r#""\uD83D\uD83D\uDE00 \ude00\u0041""#, "\"\u{fffd}\\uD83D\\uDE00 \u{fffd}\\u0041\""),
            (r#"{"\udc00":"\\\ud800"}"#, "{\"\u{fffd}\":\"\\\\\u{fffd}\"}"),
            (r#""\\ud83d""#, r#""\\ud83d""#),
            (r#""ü\n\"\u00e9\ud83d\ude00""#, r#""ü\n\"\u00e9\ud83d\ude00""#),
            ("\"\\ud8", "\"\\ud8"),
            ("\\", "\\"),
        ] {
            assert_eq!(with_whole_characters(json), whole);
        }
    }
}
