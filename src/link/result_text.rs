//! The text of a result, as a part of the line it came in: moving 10 MB to the front costs more than all the rest.

use std::fmt;
use std::ops::{Deref, Range};

/// Shorter strings are not worth knowing.
pub const LONG: usize = 32 * 1024;

/// A long string in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LongString {
    /// Without its quotes.
    pub body: Range<usize>,
    /// It is ASCII and has no escapes: it says what is written.
    pub is_plain: bool,
}

/// What was seen of a line while it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    pub is_ascii: bool,
    /// The long strings of the whole line, in order.
    pub strings: Vec<LongString>,
}

/// Valid JSON.
#[derive(Clone)]
pub enum ResultText {
    Whole(String),
    /// A part of a line that was valid UTF-8.
    Part {
        line: Vec<u8>,
        part: Range<usize>,
        seen: Seen,
    },
}

impl ResultText {
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Self::Whole(text) => text.len(),
            Self::Part { part, .. } => part.len(),
        }
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The whole line, where the text stands in it, and what was seen of it where somebody looked.
    #[must_use]
    pub fn parts(&self) -> (&[u8], Range<usize>, Option<&Seen>) {
        match self {
            Self::Whole(text) => (text.as_bytes(), 0..text.len(), None),
            Self::Part { line, part, seen } => (line, part.clone(), Some(seen)),
        }
    }

    #[must_use]
    pub fn into_parts(self) -> (Vec<u8>, Range<usize>) {
        match self {
            Self::Whole(text) => {
                let part = 0..text.len();
                (text.into_bytes(), part)
            }
            Self::Part { line, part, .. } => (line, part),
        }
    }

    /// Copies a part of a line.
    #[must_use]
    pub fn into_string(self) -> String {
        match self {
            Self::Whole(text) => text,
            part @ Self::Part { .. } => (*part).to_owned(),
        }
    }

    /// Whether the text, and each of its long strings, is known to need nothing done to it to be a string of another language.
    #[must_use]
    pub fn is_plain(&self) -> bool {
        matches!(self, Self::Part { seen, .. } if seen.is_ascii && seen.strings.iter().all(|string| string.is_plain))
    }
}

/// Looks at a part of a line once more, to be sure that it is text.
impl Deref for ResultText {
    type Target = str;

    fn deref(&self) -> &str {
        let (line, part, _) = self.parts();
        match self {
            Self::Whole(text) => text,
            Self::Part { .. } => {
                line.get(part).and_then(|text| std::str::from_utf8(text).ok()).unwrap_or_default()
            }
        }
    }
}

impl From<String> for ResultText {
    fn from(text: String) -> Self {
        Self::Whole(text)
    }
}

impl From<&str> for ResultText {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}

impl PartialEq for ResultText {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for ResultText {}

impl fmt::Debug for ResultText {
    /// How much there is: a result is never redacted.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "ResultText({} bytes)", self.len())
    }
}
