//! What may be shown: text of or about a server, with the values of the child's inherited variables replaced by `«NAME»`.
//!
//! - Looked for: every value that is capability-bearing by name or by format, from [`SHORTEST`] bytes up; and every other
//!   value of 12 characters or more that is not a path, a plain word, a region or a number.
//! - Also its lines, and the parts that are secrets by themselves (the password of a URL, the token behind `Bearer`).
//! - Also, from 8 characters up, how it reads in base64 (alone or inside a longer base64 text), percent-escaped, in JSON and in HTML.
//! - In whatever case: names of hosts and media types come back in small letters, headings in capitals.
//! - Where two of them overlap in a text the whole stretch is replaced, by the name of the longer.

mod forms;
mod texts;

use self::texts::{capability_texts, ordinary_texts};
use crate::json::with_whole_characters;
use crate::policy::capability::{name_is_capability, value_format};
use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};
use serde_json::Value;
use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;
use std::ops::Range;
use std::sync::{Arc, PoisonError, RwLock};

/// Values of one to three bytes stand in every text by chance. To replace them would shred what is shown and, by the places
/// it happens in, tell the value; and whoever guards something with three characters has no secret to lose.
const SHORTEST: usize = 4;
/// What a switch is set to is no secret even where the variable's name says so (`API_KEY=none`).
const NO_SECRETS: [&str; 7] = ["true", "false", "none", "null", "undefined", "enabled", "disabled"];
/// Encoded forms, in characters (design, redaction).
const SHORTEST_ENCODED: usize = 8;
/// Beyond this length of one value only the value and its JSON form are looked for, which keeps the automaton small.
const LONGEST_ENCODED: usize = 16 * 1024;

/// Values learned later: a function that gives headers gives a new token every hour, and the oldest is of no use to anybody any more.
const LEARNED_MAX: usize = 128;

/// Replaces what must not be shown by `«NAME»`. Cheap to clone; clones learn together.
#[derive(Clone)]
pub struct Redactor {
    known: Arc<RwLock<Known>>,
}

/// What a redactor was told, and what it makes of it.
struct Known {
    /// For as long as it lives.
    lasting: Vec<(String, String)>,
    /// The latest last.
    learned: Vec<(String, String)>,
    inner: Arc<Inner>,
}

struct Inner {
    /// `None` when there is nothing to look for.
    automaton: Option<AhoCorasick>,
    /// By pattern.
    names: Vec<String>,
    longest: usize,
}

impl Redactor {
    /// `inherited`: name and value of the variables the child inherited.
    #[must_use]
    pub fn new(inherited: &[(String, String)]) -> Self {
        let inner = Arc::new(Inner::of(inherited));
        let known = Known { lasting: inherited.to_vec(), learned: Vec::new(), inner };
        Self { known: Arc::new(RwLock::new(known)) }
    }

    /// Looks for these, too, from now on: names and values of what does not change.
    pub fn keep(&self, values: &[(String, String)]) {
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        let new: Vec<_> = values.iter().filter(|value| !known.lasting.contains(value)).cloned().collect();
        if !new.is_empty() {
            known.lasting.extend(new);
            known.look_for_all();
        }
    }

    /// The same for headers that others will follow: beyond [`LEARNED_MAX`] the ones that were not seen for the longest are forgotten.
    pub fn learn(&self, values: &[(String, String)]) {
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        let mut has_new = false;
        for value in values.iter().filter(|value| !known.lasting.contains(value)).collect::<Vec<_>>() {
            let earlier = known.learned.iter().position(|learned| learned == value);
            has_new |= earlier.is_none();
            // One that stays while others change is as new as they are.
            let value = earlier.map_or_else(|| value.clone(), |at| known.learned.remove(at));
            known.learned.push(value);
        }
        if has_new {
            let surplus = known.learned.len().saturating_sub(LEARNED_MAX);
            known.learned.drain(..surplus);
            known.look_for_all();
        }
    }

    fn inner(&self) -> Arc<Inner> {
        self.known.read().unwrap_or_else(PoisonError::into_inner).inner.clone()
    }

    /// The text without the secrets. Borrowed when there are none in it.
    #[must_use]
    pub fn text<'a>(&self, text: &'a str) -> Cow<'a, str> {
        self.inner().text(text)
    }

    /// JSON text in, JSON out: only strings (keys too) are redacted. What cannot be parsed becomes a JSON string of the redacted text.
    #[must_use]
    pub fn json(&self, text: &str) -> Value {
        match serde_json::from_str(&with_whole_characters(text)) {
            Ok(value) => self.value(value),
            Err(_) => Value::String(self.text(text).into_owned()),
        }
    }

    /// At most `limit` bytes of the redacted text. `text` may be cut itself, if no less than `limit` and [`Redactor::longest`] bytes of
    /// it are there: what a cut could have left of a secret is not shown.
    #[must_use]
    pub fn excerpt(&self, text: &str, limit: usize) -> String {
        // One and the same, whatever is learned meanwhile.
        let inner = self.inner();
        let longest = inner.longest;
        let seen = text.floor_char_boundary(limit + longest);
        let mut shown = inner.text(text.get(..seen).unwrap_or_default()).into_owned();
        let whole = text.len() < limit + longest;
        let kept = if whole { limit } else { limit.min(shown.len().saturating_sub(longest)) };
        shown.truncate(shown.floor_char_boundary(kept));
        shown
    }

    /// Length in bytes of the longest thing it looks for: how much a reader holds back so that nothing is missed across a cut.
    /// 0 when it looks for nothing.
    #[must_use]
    pub fn longest(&self) -> usize {
        self.inner().longest
    }

    /// The same of a value that was parsed, which is 128 levels deep at most.
    #[must_use]
    pub fn value(&self, value: Value) -> Value {
        match value {
            Value::String(text) => Value::String(self.text(&text).into_owned()),
            Value::Array(items) => items.into_iter().map(|item| self.value(item)).collect(),
            Value::Object(entries) => entries
                .into_iter()
                .map(|(key, value)| (self.text(&key).into_owned(), self.value(value)))
                .collect(),
            other => other,
        }
    }
}

impl Known {
    fn look_for_all(&mut self) {
        let all: Vec<_> = self.lasting.iter().chain(&self.learned).cloned().collect();
        self.inner = Arc::new(Inner::of(&all));
    }
}

impl fmt::Debug for Redactor {
    /// How much it looks for, never what.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let inner = self.inner();
        formatter
            .debug_struct("Redactor")
            .field("patterns", &inner.names.len())
            .field("longest", &inner.longest)
            .finish()
    }
}

/// A part of a text to replace.
struct Stretch<'a> {
    range: Range<usize>,
    name: &'a str,
    /// Of the match that gave the name.
    longest: usize,
}

impl Inner {
    fn of(values: &[(String, String)]) -> Self {
        let (capabilities, ordinary): (Vec<_>, Vec<_>) =
            values.iter().partition(|(name, value)| is_capability(name, value));
        let capabilities =
            capabilities.into_iter().map(|(name, value)| Secret::of(name, value, capability_texts));
        let ordinary = ordinary.into_iter().map(|(name, value)| Secret::of(name, value, ordinary_texts));
        let secrets: Vec<Secret> = capabilities.chain(ordinary).collect();

        // All values as they are come before any encoded form, capabilities before ordinary values: what one variable
        // says outright keeps its name when it is also an encoding of another.
        let mut patterns = Patterns::default();
        patterns.add(&secrets, |text| vec![text.to_owned()]);
        patterns.add(&secrets, forms::in_json);
        patterns.add(secrets.iter().filter(|secret| secret.is_short), forms::in_html);
        patterns.add(secrets.iter().filter(|secret| secret.is_short), forms::percent_escaped);
        patterns.add(secrets.iter().filter(|secret| secret.is_short), forms::in_base64);
        patterns.build()
    }

    fn text<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let stretches = self.stretches(text);
        if stretches.is_empty() {
            return Cow::Borrowed(text);
        }
        let mut shown = String::with_capacity(text.len());
        let mut at = 0;
        for Stretch { range, name, .. } in stretches {
            shown.push_str(text.get(at..range.start).unwrap_or_default());
            shown.push('«');
            shown.push_str(name);
            shown.push('»');
            at = range.end;
        }
        shown.push_str(text.get(at..).unwrap_or_default());
        Cow::Owned(shown)
    }

    /// Matches may overlap: a leftmost search would show the rest of a secret whose beginning belongs to another.
    fn stretches(&self, text: &str) -> Vec<Stretch<'_>> {
        let Some(automaton) = &self.automaton else { return Vec::new() };
        let mut stretches: Vec<Stretch<'_>> = Vec::new();
        // By end, so a match can only swallow stretches from the back.
        for found in automaton.find_overlapping_iter(text) {
            let mut next = Stretch {
                range: found.range(),
                name: self.names.get(found.pattern().as_usize()).map_or("", String::as_str),
                longest: found.len(),
            };
            while let Some(last) = stretches.pop_if(|last| {
                last.range.end > next.range.start
                    || (last.range.end == next.range.start && last.name == next.name)
            }) {
                next.range.start = next.range.start.min(last.range.start);
                if last.longest > next.longest {
                    (next.name, next.longest) = (last.name, last.longest);
                }
            }
            stretches.push(next);
        }
        stretches
    }
}

/// What one variable gives to look for.
struct Secret<'a> {
    name: &'a str,
    texts: Vec<String>,
    /// Also looked for in its long encodings.
    is_short: bool,
}

impl<'a> Secret<'a> {
    fn of(name: &'a str, value: &str, texts: fn(&str) -> Vec<String>) -> Self {
        // Without the line break that a value read from a file often ends with.
        let value = value.trim();
        let mut texts = texts(value);
        texts.extend(texts.clone().iter().filter_map(|text| forms::as_latin_1(text)));
        Self { name, texts, is_short: value.len() <= LONGEST_ENCODED }
    }
}

/// What is looked for, and for whose sake. The first to name a text keeps it.
#[derive(Default)]
struct Patterns {
    index: HashMap<String, usize>,
    names: Vec<String>,
}

impl Patterns {
    /// Each text of the secrets in the forms that `forms` gives, encoded ones for texts that are long enough.
    fn add<'a>(&mut self, secrets: impl IntoIterator<Item = &'a Secret<'a>>, forms: fn(&str) -> Vec<String>) {
        for secret in secrets {
            for text in &secret.texts {
                for form in forms(text) {
                    let is_encoded = form != *text;
                    if form.len() >= SHORTEST && !(is_encoded && text.chars().count() < SHORTEST_ENCODED) {
                        self.add_text(secret.name, form);
                    }
                }
            }
        }
    }

    fn add_text(&mut self, name: &str, text: String) {
        let next = self.names.len();
        if *self.index.entry(text).or_insert(next) == next {
            self.names.push(name.to_owned());
        }
    }

    fn build(self) -> Inner {
        let mut texts: Vec<(String, usize)> = self.index.into_iter().collect();
        texts.sort_unstable_by_key(|(_, at)| *at);
        let longest = texts.iter().map(|(text, _)| text.len()).max().unwrap_or(0);
        if longest == 0 {
            return Inner { automaton: None, names: self.names, longest };
        }
        // Contiguous: a DFA of a pasted key file in all its forms would take hundreds of megabytes.
        let automaton = AhoCorasick::builder()
            .match_kind(MatchKind::Standard)
            .ascii_case_insensitive(true)
            .kind(Some(AhoCorasickKind::ContiguousNFA))
            .build(texts.iter().map(|(text, _)| text));
        // It fails beyond 2^31 states only, which takes gibibytes of environment.
        Inner { automaton: automaton.ok(), names: self.names, longest }
    }
}

fn is_capability(name: &str, value: &str) -> bool {
    let is_setting = NO_SECRETS.iter().any(|word| value.eq_ignore_ascii_case(word));
    name_is_capability(name) && !is_setting || value_format(value).is_some()
}

#[cfg(test)]
mod tests;
