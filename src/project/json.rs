//! JSON with comments and trailing commas, as people write it by hand, and the line each thing stands on.

use std::collections::HashMap;

use jsonc_parser::ast::Value;
use jsonc_parser::common::Ranged;
use jsonc_parser::{CollectOptions, ParseOptions, parse_to_ast};

use crate::policy::found::path_of;
use crate::policy::input::Input;

/// What VS Code and Claude read, and no more: JSON5's looser forms would be errors in every other reader of the file.
const DIALECT: ParseOptions = ParseOptions {
    allow_comments: true,
    allow_trailing_commas: true,
    allow_loose_object_property_names: false,
    allow_missing_commas: false,
    allow_single_quoted_strings: false,
    allow_hexadecimal_numbers: false,
    allow_unary_plus_numbers: false,
    allow_bare_decimal_point_numbers: false,
    allow_non_finite_numbers: false,
    allow_extended_string_escapes: false,
};

/// As far in as messages have lines: `mcpServers.NAME.headers.NAME`. With a path for each value of any depth a file of
/// 1 MiB took gigabytes.
const DEEPEST: usize = 4;

/// Lines by path, as messages write paths.
#[derive(Debug, Default, Clone)]
pub(super) struct Lines(HashMap<String, usize>);

/// Why a text is no JSON.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Fault {
    pub line: usize,
    /// In words, without anything of the text: it may stand in the middle of a secret.
    pub reason: String,
}

impl Lines {
    /// The line of what a path names, or of the nearest thing around it that is there.
    pub(super) fn of(&self, path: &str) -> Option<usize> {
        let mut path = path;
        loop {
            if let Some(line) = self.0.get(path) {
                return Some(*line);
            }
            path = path.rsplit_once(['.', '['])?.0;
        }
    }
}

/// Reads a text; an empty one is an error.
pub(super) fn read(text: &str) -> Result<(Input, Lines), Fault> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let parsed = parse_to_ast(text, &CollectOptions::default(), &DIALECT).map_err(|error| Fault {
        line: error.line_display(),
        reason: format!("{} (column {})", error.kind().to_string().to_lowercase(), error.column_display()),
    })?;
    let Some(value) = parsed.value else {
        return Err(Fault { line: 1, reason: "there is nothing in it".to_owned() });
    };
    let breaks = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(at, _)| at).collect();
    let mut reader = Reader { breaks, lines: Lines::default() };
    let input = reader.input(&Place { path: String::new(), line: 0, depth: 0 }, value);
    Ok((input, reader.lines))
}

struct Reader {
    /// Where the lines end.
    breaks: Vec<usize>,
    lines: Lines,
}

/// Where a value stands.
struct Place {
    /// Empty below [`DEEPEST`].
    path: String,
    line: usize,
    depth: usize,
}

impl Reader {
    /// The parser ends at a depth of 512, so this does too.
    fn input(&mut self, place: &Place, value: Value<'_>) -> Input {
        match value {
            Value::StringLit(text) => Input::String(text.value.into_owned()),
            Value::NumberLit(number) => number.value.parse().map_or(Input::Other("a number"), Input::Number),
            Value::BooleanLit(boolean) => Input::Bool(boolean.value),
            Value::NullKeyword(_) => Input::Null,
            Value::Array(array) => {
                let elements = array.elements.into_iter().enumerate();
                Input::List(
                    elements
                        .map(|(index, element)| {
                            let inner =
                                self.inside(place, element.start(), |path| format!("{path}[{index}]"));
                            self.input(&inner, element)
                        })
                        .collect(),
                )
            }
            Value::Object(object) => {
                let mut entries: Vec<(String, Input)> = Vec::with_capacity(object.properties.len());
                let mut places: HashMap<String, usize> = HashMap::with_capacity(object.properties.len());
                for property in object.properties {
                    let start = property.start();
                    let name = property.name.into_string();
                    let inner = self.inside(place, start, |path| path_of(path, &name));
                    let value = self.input(&inner, property.value);
                    // As with JSON.parse the last of two counts, in the place of the first.
                    if let Some(earlier) = places.get(&name) {
                        entries[*earlier].1 = value;
                    } else {
                        places.insert(name.clone(), entries.len());
                        entries.push((name, value));
                    }
                }
                Input::Object(entries)
            }
        }
    }

    /// One step further in, from the value at `outer` to the one that begins at a byte of the text. What stands on the
    /// line of what is around it is found by that.
    fn inside(&mut self, outer: &Place, at: usize, path: impl FnOnce(&str) -> String) -> Place {
        let depth = outer.depth + 1;
        if depth > DEEPEST {
            return Place { path: String::new(), line: outer.line, depth };
        }
        let path = path(&outer.path);
        let line = self.breaks.partition_point(|end| *end < at) + 1;
        if line != outer.line {
            self.lines.0.insert(path.clone(), line);
        }
        Place { path, line, depth }
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    #[test]
    fn comments_trailing_commas_and_a_byte_order_mark_are_read() {
        let text = "\u{feff}{\n  // one\n  \"a\": [1, true, null,], /* two\n */\n  \"b\": {\"c-d\": \"x\\u00e9\",},\n}\n";
        let (input, lines) = read(text).unwrap();
        let list = Input::List(vec![Input::Number(1.0), Input::Bool(true), Input::Null]);
        let inner = Input::Object(vec![("c-d".into(), Input::String("xé".into()))]);
        assert_eq!(input, Input::Object(vec![("a".into(), list), ("b".into(), inner)]));
        assert_eq!(lines.of("a"), Some(3));
        assert_eq!(lines.of("a[1]"), Some(3));
        assert_eq!(lines.of(r#"b["c-d"]"#), Some(5));
        assert_eq!(lines.of("b.absent"), Some(5));
        assert_eq!(lines.of("nowhere"), None);
    }

    #[test]
    fn a_fault_names_its_line_and_nothing_of_the_text() {
        for (text, line) in [
            ("", 1),
            ("// nothing", 1),
            ("{\n\"a\": 1,\n\"b\": sk-verysecret\n}", 3),
            ("{\n\"a\": 1\n\"b\": 2}", 2),
            ("{\n\"a\": 'single'}", 2),
            ("{a: 1}", 1),
            ("{\"a\": 0xff}", 1),
            ("{\"a\": NaN}", 1),
            ("{\"a\": \"open", 1),
            ("{}\n{}", 2),
        ] {
            let fault = read(text).unwrap_err();
            assert_eq!(fault.line, line, "{text}: {}", fault.reason);
            assert!(!fault.reason.contains("secret"), "{}", fault.reason);
        }
    }

    #[test]
    fn the_last_of_two_properties_of_one_name_counts() {
        let (input, _) = read(r#"{"a": 1, "b": 2, "a": 3}"#).unwrap();
        let expected = vec![("a".into(), Input::Number(3.0)), ("b".into(), Input::Number(2.0))];
        assert_eq!(input, Input::Object(expected));
    }

    #[test]
    fn the_deepest_path_is_that_of_a_header() {
        let text = "{\n\"mcpServers\": {\n\"a\": {\n\"headers\": {\n\"X\": {\n\"y\": 1}}}}}";
        let (_, lines) = read(text).unwrap();
        assert_eq!(lines.of("mcpServers.a.headers.X"), Some(5));
        assert_eq!(lines.of("mcpServers.a.headers.X.y"), Some(5));
        let (_, lines) = read("{\n\"a\": {\"b\": 1,\n\"c\": 2}}").unwrap();
        assert_eq!((lines.of("a.b"), lines.of("a.c"), lines.0.len()), (Some(2), Some(3), 2));
    }

    #[test]
    fn what_a_file_takes_grows_with_its_length_alone() {
        // Names of a path of 14 KB, and 400,000 values behind it.
        let deep = format!(r#"{{"{}":"#, "n".repeat(64)).repeat(200);
        let text = format!("{deep}[{}1]{}", "1,\n".repeat(400_000), "}".repeat(200));
        let (_, lines) = read(&text).unwrap();
        assert_eq!(lines.0.len(), 1);
        let names: Vec<_> = (0..80_000).map(|at| format!(r#""k{at}":1"#)).collect();
        let Input::Object(entries) = read(&format!("{{{}}}", names.join(","))).unwrap().0 else { panic!() };
        assert_eq!(entries.len(), names.len());
    }

    #[test]
    fn a_file_that_nests_without_end_is_a_fault_and_no_overflow() {
        let fault = read(&"[".repeat(1 << 20)).unwrap_err();
        assert!(fault.reason.contains("depth"), "{}", fault.reason);
        assert!(read(&r#"{"a":"#.repeat(100_000)).is_err());
    }
}
