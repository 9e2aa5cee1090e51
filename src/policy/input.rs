//! A value as JavaScript gave it: JSON, and what JSON cannot say. `node::values` reads it, the rest of this room judges it.

use std::fmt;

#[cfg(test)]
mod written;

/// One JavaScript value. Own enumerable string keys only, in their order; symbols are left out.
#[derive(Clone, PartialEq)]
pub enum Input {
    Undefined,
    Null,
    Bool(bool),
    Number(f64),
    String(String),
    /// An array; `Hole` stands where an element is missing.
    List(Vec<Input>),
    /// A plain object, an instance of a class or a proxy of one. `__proto__` is a key like any other.
    Object(Vec<(String, Input)>),
    Hole,
    Function,
    /// The getter or proxy trap that was asked threw.
    Thrown,
    /// Deeper than `lib/core.js` reads, which is also how a cycle ends.
    TooDeep,
    /// Anything else, by the name of its kind: `Map`, `Set`, `Date`, `Promise`, `symbol`, `bigint` …
    Other(&'static str),
}

impl fmt::Debug for Input {
    /// The kind, never the value: it may be the host's whole environment.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.kind())
    }
}

impl Input {
    /// What kind of thing this is, for messages. Never the value, which may be secret.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Undefined => "undefined",
            Self::Null => "null",
            Self::Bool(_) => "a boolean",
            Self::Number(number) if number.is_nan() => "NaN",
            Self::Number(number) if number.is_infinite() => "an infinite number",
            Self::Number(_) => "a number",
            Self::String(text) if text.is_empty() => "an empty string",
            Self::String(_) => "a string",
            Self::List(_) => "an array",
            Self::Object(_) => "an object",
            Self::Hole => "a hole in the array",
            Self::Function => "a function",
            Self::Thrown => "a property that throws when it is read",
            Self::TooDeep => "a value that is nested too deeply",
            Self::Other(name) => name,
        }
    }
}
