//! What of a server is not shown beside the values of its variables and what is written down as a capability.

use super::server::{Judge, is_secret};
use super::url;
use crate::policy::capability::{name_is_capability, secret_parts};

impl Judge<'_> {
    /// What of a URL, with its variables in it, is not shown: where a default was taken, and where a part looks as if it granted access.
    /// A variable's value also as it reads in a URL.
    pub(super) fn hide_parts_of(&mut self, url: &str) {
        self.secrets.extend(url::capabilities(url));
        self.secrets.extend(url::unguessable(url));
        for (name, value) in &self.variables.used {
            let forms = url::as_sent(value).into_iter();
            self.secrets.extend(forms.map(|form| (name.clone(), form)));
        }
    }

    /// A capability of which a variable is a part only: the rest of it is not shown either.
    pub(super) fn hide_beside_variables(&mut self, name: &str, text: &str) {
        const LONG: usize = 12;
        const LONG_WITH_DIGIT: usize = 8;
        if !is_secret(name, text) {
            return;
        }
        let rest =
            self.variables.used.iter().fold(text.to_owned(), |rest, (_, value)| rest.replace(value, " "));
        let is_telling = |word: &str| {
            word.len() >= LONG
                || word.len() >= LONG_WITH_DIGIT && word.bytes().any(|byte| byte.is_ascii_digit())
        };
        // More than `Bearer` and the like.
        if rest.split(|letter: char| !letter.is_alphanumeric()).any(is_telling) {
            self.secrets.push((name.to_owned(), text.to_owned()));
        }
        self.secrets.extend(secret_parts(text).into_iter().map(|part| (name.to_owned(), part)));
    }
}

/// The name that an argument gives its value, and the value: `--token=…`, `NAME=…`, `Name: …`, and `--token` before it.
pub(super) fn assigned<'a>(option: &'a str, argument: &'a str) -> (&'a str, &'a str) {
    let is_name = |name: &str| {
        !name.is_empty() && !name.contains(|letter: char| letter.is_whitespace() || letter == '/')
    };
    let parts = argument.split_once(['=', ':']).filter(|(name, _)| is_name(name) && name_is_capability(name));
    match parts {
        Some((name, value)) => (name, value.trim()),
        None if argument.starts_with('-') => ("", argument),
        None => (option, argument),
    }
}
