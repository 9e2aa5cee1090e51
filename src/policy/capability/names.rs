//! Names: an English compound says at its end what it is. `TOKEN_URL` is a URL, `URL_TOKEN` a token.
//!
//! 1. The name is split into lower-case words at `_`, `-`, `.` and camelCase; run-together words (`PGPASSWORD`, `apikey`)
//!    are taken apart where a secret noun ends them; numbers are dropped.
//! 2. A word that makes the name a switch (`REQUIRE_TOKEN`) says no, and so does what counts or handles many (`MAX_TOKENS`,
//!    `MASK_SECRETS`).
//! 3. The last word says yes when it is a secret noun in the company that noun asks for ([`NOUNS`]).
//! 4. A last word that only says which or how written (`_PROD`, `_BASE64`, [`TRAILERS`]) is taken off, and 3 asked again.
//! 5. An unmistakable pair may have its owner behind it (`API_KEY_ACME`), unless that is a word about the pair (`API_KEY_HEADER`).
//! 6. `PASSWORD_DB`: a few write it the other way round.
//!
//! The rules have no numbers that a sample could fit; what they know is words. `examples/classify.rs` measures them, also without
//! the words that only the judged names could have taught.

mod lexicon;
mod words;

#[cfg(test)]
mod tests;

use lexicon::{
    ABOUT, KNOWN_TAILS, LEADING, NOUNS, ORDINARY_TAILS, OWNERS, PAIRS, PLURALS, QUANTITIES, SWITCHES,
    TRAILERS, VERBS, When, Words, listed,
};
use std::collections::HashSet;

/// Whether the name of a variable says that its value gives access to something. Case does not matter; linear in the name.
#[must_use]
pub fn name_is_capability(name: &str) -> bool {
    Vocabulary::default().finds_capability(name)
}

/// The words that the rules know: all of them, or, to measure what is worth how much, all but some.
#[derive(Default)]
pub struct Vocabulary {
    forgotten: HashSet<String>,
}

impl Vocabulary {
    /// As if the rules had never heard of these words.
    #[must_use]
    pub fn without(forgotten: HashSet<String>) -> Self {
        Self { forgotten }
    }

    /// The words of a name, in lower case, as the rules see them.
    #[must_use]
    pub fn words_of(&self, name: &str) -> Vec<String> {
        words::words(name, self)
    }

    /// [`name_is_capability`], with these words.
    #[must_use]
    pub fn finds_capability(&self, name: &str) -> bool {
        let words = self.words_of(name);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        if self.is_switch(&words) || self.ends_with(&words, ORDINARY_TAILS) {
            return false;
        }
        let mut rest = words.as_slice();
        while let Some((last, before)) = rest.split_last() {
            if self.ends_in_secret(last, before) {
                return true;
            }
            if !self.lists(TRAILERS, last) && last.len() > 1 {
                break;
            }
            rest = before;
        }
        self.ends_with(&words, KNOWN_TAILS) || self.has_pair_with_owner(&words) || self.leads(&words)
    }

    fn is_switch(&self, words: &[&str]) -> bool {
        let [first, .., last] = words else { return false };
        let has = |list| words.iter().any(|word| self.lists(list, word));
        has(SWITCHES) || (self.lists(PLURALS, last) && (self.lists(VERBS, first) || has(QUANTITIES)))
    }

    fn ends_in_secret(&self, last: &str, before: &[&str]) -> bool {
        let previous = before.last();
        let follows = |others| previous.is_some_and(|previous| self.lists(others, previous));
        NOUNS.iter().filter(|(nouns, _)| self.lists(nouns, last)).any(|(_, when)| match when {
            When::Always => true,
            When::Unless(others) => !follows(others),
            When::After(others) => follows(others),
            When::AfterAnyBut(others) => previous.is_some() && !follows(others),
        })
    }

    fn has_pair_with_owner(&self, words: &[&str]) -> bool {
        words.windows(2).enumerate().any(|(at, pair)| {
            let owner = &words[at + 2..];
            PAIRS.contains(&(pair[0], pair[1]))
                && pair.iter().all(|word| self.knows(word))
                && (1..=2).contains(&owner.len())
                && !owner.iter().any(|word| self.lists(ABOUT, word))
        })
    }

    fn leads(&self, words: &[&str]) -> bool {
        matches!(words, [noun, owner] if self.lists(LEADING, noun) && self.lists(OWNERS, owner))
    }

    fn ends_with(&self, words: &[&str], tails: &[&[&str]]) -> bool {
        tails.iter().any(|tail| words.ends_with(tail) && tail.iter().all(|word| self.knows(word)))
    }

    fn lists(&self, words: Words, word: &str) -> bool {
        self.knows(word) && listed(words, word)
    }

    fn knows(&self, word: &str) -> bool {
        !self.forgotten.contains(word)
    }
}
