//! A value where it was found, what may stand there, and the refusal that says both.

use std::borrow::Cow;
use std::ops::RangeInclusive;
use std::rc::Rc;

use serde_json::Value;

use super::capability::value_format;
use super::input::Input;
use super::nearest::nearest;
use super::platform::is_variable_name;
use crate::error::{ErrorCode, McpError};

const VARIABLE_NAME: &str = "the name of a variable: letters, digits and _, no digit first";

/// Longer texts are cut where a message shows them.
const SHOWN_CHARS: usize = 64;

static ABSENT: Input = Input::Undefined;

/// One value and its place, from which the refusal takes its path. The path of a lone definition is empty.
pub(crate) struct Found<'i> {
    code: ErrorCode,
    place: Rc<Place>,
    pub(crate) value: &'i Input,
}

/// Where a value is. It becomes a path in a refusal alone: each name is looked at for tokens then, and there are many that nobody refuses.
enum Place {
    Outermost(String),
    Property(Rc<Place>, String),
    Element(Rc<Place>, usize),
}

impl Place {
    fn path(&self) -> Cow<'_, str> {
        match self {
            Self::Outermost(path) => Cow::Borrowed(path),
            Self::Property(outer, name) => Cow::Owned(path_of(&outer.path(), name)),
            Self::Element(outer, index) => Cow::Owned(format!("{}[{index}]", outer.path())),
        }
    }
}

impl<'i> Found<'i> {
    /// A value nothing is around; `code` is what a refusal of it, or of anything in it, carries.
    pub(crate) fn outermost(code: ErrorCode, path: &str, value: &'i Input) -> Self {
        Self { code, place: Rc::new(Place::Outermost(path.to_owned())), value }
    }

    fn inside(&self, place: Place, value: &'i Input) -> Self {
        Self { code: self.code, place: Rc::new(place), value }
    }

    pub(crate) fn path(&self) -> Cow<'_, str> {
        match self.place.path() {
            path if path.is_empty() => Cow::Borrowed("definition"),
            path => path,
        }
    }

    /// A property that is `undefined` is absent.
    pub(crate) fn is_absent(&self) -> bool {
        matches!(self.value, Input::Undefined)
    }

    /// The value, unless it is absent.
    pub(crate) fn given(self) -> Option<Self> {
        (!self.is_absent()).then_some(self)
    }

    /// One property by its name; absent where there is none.
    pub(crate) fn property(&self, name: &str) -> Self {
        let own = match self.value {
            Input::Object(entries) => entries.iter().find(|(key, _)| key == name),
            _ => None,
        };
        self.inside(self.at(name), own.map_or(&ABSENT, |(_, value)| value))
    }

    /// Every property that is there, in order.
    pub(crate) fn entries(&self, allowed: &str) -> Result<Vec<(&'i str, Self)>, McpError> {
        let Input::Object(entries) = self.value else { return Err(self.wrong(allowed)) };
        let entries = entries.iter().map(|(key, value)| (key.as_str(), self.inside(self.at(key), value)));
        Ok(entries.filter(|(_, entry)| !entry.is_absent()).collect())
    }

    /// Refuses what is no object, and properties that nobody knows.
    pub(crate) fn has_only(&self, known: &[&'static str], allowed: &str) -> Result<(), McpError> {
        for (name, entry) in self.entries(allowed)? {
            if !known.contains(&name) {
                let what = match (name, known.contains(&"command")) {
                    // As in `mcpServers` files.
                    ("args", true) => "is not a known property: arguments follow the program in command",
                    ("url", true) => {
                        "is not a known property: servers behind a URL are called by name, with mcp() or openMcpProject()"
                    }
                    _ => "is not a known property",
                };
                return Err(entry.unknown(what, name, known));
            }
        }
        Ok(())
    }

    /// Every element of an array, in order; holes and `undefined` are elements too.
    pub(crate) fn elements(&self, allowed: &str) -> Result<Vec<Self>, McpError> {
        let Input::List(elements) = self.value else { return Err(self.wrong(allowed)) };
        let place = |(index, value)| self.inside(Place::Element(self.place.clone(), index), value);
        Ok(elements.iter().enumerate().map(place).collect())
    }

    /// A string without NUL, which neither arguments, paths nor variables can carry.
    pub(crate) fn text(&self, allowed: &str) -> Result<&'i str, McpError> {
        let Input::String(text) = self.value else { return Err(self.wrong(allowed)) };
        if text.contains('\0') {
            return Err(self.is("a string with a NUL character in it", &format!("{allowed}, without NUL")));
        }
        Ok(text)
    }

    /// A string that can be the name of a variable of a server.
    pub(crate) fn variable_name(&self) -> Result<&'i str, McpError> {
        let name = self.text(VARIABLE_NAME)?;
        if is_variable_name(name) {
            Ok(name)
        } else {
            Err(self.is("a string that is no name of a variable", VARIABLE_NAME))
        }
    }

    /// The same of the key that this is found under.
    pub(crate) fn has_variable_name(&self, key: &str) -> Result<(), McpError> {
        if is_variable_name(key) {
            Ok(())
        } else {
            Err(self.refusal(&format!("has a key that cannot be used; allowed is {VARIABLE_NAME}")))
        }
    }

    pub(crate) fn texts(&self, each: &str) -> Result<Vec<String>, McpError> {
        let elements = self.elements(&format!("an array, each element {each}"))?;
        elements.iter().map(|element| element.text(each).map(str::to_owned)).collect()
    }

    pub(crate) fn boolean(&self) -> Result<bool, McpError> {
        match self.value {
            Input::Bool(value) => Ok(*value),
            _ => Err(self.wrong("true or false")),
        }
    }

    /// Whether a function was given.
    pub(crate) fn function(&self) -> Result<bool, McpError> {
        match self.value {
            Input::Undefined => Ok(false),
            Input::Function => Ok(true),
            _ => Err(self.wrong("a function")),
        }
    }

    pub(crate) fn integer(&self, range: RangeInclusive<u32>, unit: &str) -> Result<u32, McpError> {
        let (least, most) = (*range.start(), *range.end());
        let allowed = format!("an integer from {least} to {most} ({unit})");
        let Input::Number(number) = *self.value else { return Err(self.wrong(&allowed)) };
        if !number.is_finite() {
            return Err(self.wrong(&allowed));
        }
        if number < f64::from(least) {
            return Err(self.is(&format!("a number below {least}"), &allowed));
        }
        if number > f64::from(most) {
            return Err(self.is(&format!("a number above {most}"), &allowed));
        }
        if number.fract() != 0.0 {
            return Err(self.is("a number with a fraction", &allowed));
        }
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "whole and inside a range of u32"
        )]
        Ok(number as u32)
    }

    /// One of several words.
    pub(crate) fn word(&self, known: &[&'static str]) -> Result<&'static str, McpError> {
        let Input::String(text) = self.value else {
            return Err(self.wrong(&format!("one of {}", known.join(", "))));
        };
        let word = known.iter().find(|word| *word == text).copied();
        word.ok_or_else(|| self.unknown("is a string that is none of the known words", text, known))
    }

    fn unknown(&self, what: &str, name: &str, known: &[&'static str]) -> McpError {
        let allowed = known.join(", ");
        match nearest(name, known.iter().copied()) {
            Some(near) => self
                .refusal(&format!("{what}; the nearest is {near}, allowed are {allowed}"))
                .with("nearest", near),
            None => self.refusal(&format!("{what}; allowed are {allowed}")),
        }
    }

    /// The refusal of a value of the wrong kind.
    pub(crate) fn wrong(&self, allowed: &str) -> McpError {
        if self.is_absent() && !self.place.path().ends_with(']') {
            return self.refusal(&format!("is missing; allowed is {allowed}"));
        }
        self.is(self.value.kind(), allowed)
    }

    /// The refusal of a value of the right kind: what it is instead, and what is allowed.
    pub(crate) fn is(&self, what: &str, allowed: &str) -> McpError {
        self.refusal(&format!("is {what}; allowed is {allowed}"))
    }

    /// The refusal for any other reason, which reads on from the path.
    pub(crate) fn refusal(&self, reason: &str) -> McpError {
        self.refused_as(self.code, reason).with("reason", reason)
    }

    /// The refusal with a code of its own.
    pub(crate) fn refused_as(&self, code: ErrorCode, reason: &str) -> McpError {
        let path = self.path();
        McpError::new(code, format!("{path} {reason}.")).with("path", &*path)
    }

    fn at(&self, name: &str) -> Place {
        Place::Property(self.place.clone(), name.to_owned())
    }
}

/// The path of a property of what is at `outer`.
pub(crate) fn path_of(outer: &str, name: &str) -> String {
    let shown = shown(name);
    if !is_identifier(&shown) {
        return format!("{outer}[{}]", Value::from(shown));
    }
    if outer.is_empty() { shown } else { format!("{outer}.{shown}") }
}

/// A name as a message may show it: cut after 64 characters, and not at all where somebody wrote a token in its place.
pub(crate) fn shown(name: &str) -> String {
    let assigned = || name.split_once('=').and_then(|(_, value)| value_format(value));
    if let Some(format) = value_format(name).or_else(assigned) {
        return format!("«{format}»");
    }
    match name.char_indices().nth(SHOWN_CHARS) {
        Some((end, _)) => format!("{}…", name.get(..end).unwrap_or_default()),
        None => name.to_owned(),
    }
}

/// The program of a whole command line, as some write it in place of the program: one of the other words may be a secret.
pub(crate) fn program_of(command: &str) -> &str {
    let program = command.split(" -").next().unwrap_or(command);
    match program.split_once(char::is_whitespace) {
        // A path may have spaces in it.
        Some((name, _)) if !name.contains(['/', '\\']) => name,
        _ => program,
    }
}

fn is_identifier(name: &str) -> bool {
    !name.is_empty()
        && !name.starts_with(|first: char| first.is_ascii_digit())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'$')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path_in(outer: &str, key: &str) -> String {
        Found::outermost(ErrorCode::Internal, outer, &Input::Null).property(key).place.path().into_owned()
    }

    #[test]
    fn paths_read_like_javascript() {
        assert_eq!(path_in("", "command"), "command");
        assert_eq!(path_in("servers[1].environment", "FOO"), "servers[1].environment.FOO");
        assert_eq!(path_in("environment", "1A"), r#"environment["1A"]"#);
        assert_eq!(path_in("environment", ""), r#"environment[""]"#);
        assert_eq!(path_in("environment", "a\"b\n"), r#"environment["a\"b\n"]"#);
        assert_eq!(path_in("", "not a name"), r#"["not a name"]"#);
    }

    #[test]
    fn a_path_stays_short_and_holds_no_token() {
        let cut = format!(r#"environment["{}…"]"#, "é".repeat(64));
        assert_eq!(path_in("environment", &"é".repeat(65)), cut);
        assert_eq!(path_in("environment", &"A".repeat(64)), format!("environment.{}", "A".repeat(64)));
        let token = format!("ghp_{}", "k3Jx9QmZ2vLw8RtY5bNc7HdF4sGp6TaE1uXo");
        for key in [token.clone(), format!("KEY={token}")] {
            assert!(!path_in("environment", &key).contains(&token[4..12]));
        }
    }

    #[test]
    fn integers_are_whole_and_in_range() {
        let read = |number| {
            Found::outermost(ErrorCode::InvalidArgument, "n", &Input::Number(number)).integer(1..=10, "ms")
        };
        assert_eq!(read(1.0), Ok(1));
        assert_eq!(read(10.0), Ok(10));
        for (number, what) in [
            (0.0, "a number below 1;"),
            (-0.0, "a number below 1;"),
            (1.5, "a number with a fraction;"),
            (10.5, "a number above 10;"),
            (1e308, "a number above 10;"),
            (f64::NAN, "NaN;"),
            (f64::INFINITY, "an infinite number;"),
            (f64::NEG_INFINITY, "an infinite number;"),
        ] {
            let message = read(number).err().map(|error| error.message);
            assert_eq!(
                message,
                Some(format!("n is {what} allowed is an integer from 1 to 10 (ms).")),
                "{number}"
            );
        }
    }
}
