//! Placeholders: variables of the host in the texts of a project, for the names that the host allows.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use super::options::Options;
use crate::error::{ErrorCode, McpError};
use crate::policy::found::{Found, shown};
use crate::policy::nearest::nearest;
use crate::policy::platform::{Platform, is_variable_name};

/// The variables that one server of a project asks for.
pub(super) struct Variables<'a> {
    options: &'a Options,
    allowed: HashSet<Cow<'a, str>>,
    values: HashMap<Cow<'a, str>, &'a str>,
    platform: Platform,
    /// Name and value of those that went into a text.
    pub used: Vec<(String, String)>,
    /// Where the first placeholder stood, and its name: also of one whose default was taken.
    pub first: Option<(String, String)>,
}

/// A text with its placeholders replaced.
pub(super) struct Expanded {
    pub text: String,
    /// A variable's value is in it.
    pub holds_variable: bool,
    /// There was a placeholder in it.
    pub had_placeholder: bool,
}

/// One `${…}`.
struct Placeholder<'t> {
    name: &'t str,
    default: Option<&'t str>,
}

impl<'a> Variables<'a> {
    pub(super) fn of(options: &'a Options, platform: Platform) -> Self {
        let allowed =
            options.allowed_inherited_env_keys.iter().map(|key| platform.variable_key(key)).collect();
        let values = platform.values_by_key(&options.env);
        Self { options, allowed, values, platform, used: Vec::new(), first: None }
    }

    /// Replaces every placeholder of a text. No other `${` is left in what is sent.
    pub(super) fn expand(&mut self, found: &Found<'_>, text: &str) -> Result<Expanded, McpError> {
        let mut expanded = Expanded { text: String::new(), holds_variable: false, had_placeholder: false };
        let mut rest = text;
        while let Some((before, inner)) = rest.split_once("${") {
            expanded.text.push_str(before);
            let (inner, after) = inner.split_once('}').ok_or_else(|| {
                // What follows may be a secret.
                found.refusal("holds ${ without the } that ends it; a placeholder is ${NAME}, ${env:NAME} or ${NAME:-default}")
            })?;
            let placeholder = placeholder(inner).ok_or_else(|| unknown(found, inner))?;
            expanded.had_placeholder = true;
            let default = placeholder.default;
            match self.value(found, placeholder.name)?.filter(|value| default.is_none() || !value.is_empty())
            {
                Some(value) => {
                    expanded.text.push_str(value);
                    expanded.holds_variable = true;
                    self.used.push((placeholder.name.to_owned(), value.to_owned()));
                }
                None => expanded.text.push_str(default.ok_or_else(|| {
                    let or = format!(", or write ${{{}:-default}}", placeholder.name);
                    unset(found, placeholder.name, &self.values, &or)
                })?),
            }
            rest = after;
        }
        expanded.text.push_str(rest);
        Ok(expanded)
    }

    /// The value of a variable that is named as such.
    pub(super) fn named(&mut self, found: &Found<'_>, name: &str) -> Result<String, McpError> {
        let value = self.value(found, name)?.ok_or_else(|| unset(found, name, &self.values, ""))?.to_owned();
        self.used.push((name.to_owned(), value.clone()));
        Ok(value)
    }

    fn value(&mut self, found: &Found<'_>, name: &str) -> Result<Option<&'a str>, McpError> {
        let key = self.platform.variable_key(name);
        if !self.allowed.contains(&key) {
            return Err(not_allowed(found, name, &self.options.allowed_inherited_env_keys));
        }
        self.first.get_or_insert_with(|| (found.path().into_owned(), name.to_owned()));
        Ok(self.values.get(&key).copied())
    }
}

/// `NAME`, `env:NAME`, each also with `:-default`.
fn placeholder(inner: &str) -> Option<Placeholder<'_>> {
    let named = inner.strip_prefix("env:").unwrap_or(inner);
    let (name, default) = match named.split_once(":-") {
        Some((name, default)) => (name, Some(default)),
        None => (named, None),
    };
    // A placeholder inside of a default would be sent as it stands.
    let is_whole = default.is_none_or(|default| !default.contains("${"));
    (is_variable_name(name) && is_whole).then_some(Placeholder { name, default })
}

/// Of what stands in the braces only what can be a name is shown: a default may be a secret.
fn unknown(found: &Found<'_>, inner: &str) -> McpError {
    let name = inner.split_once(":-").map_or(inner, |(name, _)| name);
    let is_name = name.chars().all(|letter| letter.is_alphanumeric() || "_.:- ".contains(letter));
    let what = if is_name { format!("${{{}}}", shown(name)) } else { "a placeholder".to_owned() };
    let reason = format!(
        "holds {what}, which means nothing here; allowed are ${{NAME}}, ${{env:NAME}} and ${{NAME:-default}}, with the \
         name of a variable"
    );
    found.refusal(&reason)
}

/// `or`: another way out than to set it.
fn unset(found: &Found<'_>, name: &str, values: &HashMap<Cow<'_, str>, &str>, or: &str) -> McpError {
    let near = nearest(name, values.keys().map(AsRef::as_ref));
    let hint = near.map(|near| format!(" ({} is)", shown(near))).unwrap_or_default();
    let reason = format!("asks for the variable {name}, which is not set{hint}; set it{or}");
    found.refusal(&reason).with("key", name)
}

fn not_allowed(found: &Found<'_>, name: &str, allowed: &[String]) -> McpError {
    let near = nearest(name, allowed.iter().map(String::as_str));
    let hint =
        near.map(|near| format!(" (the nearest that is there is {})", shown(near))).unwrap_or_default();
    let reason = format!(
        "asks for the variable {}, which is not in options.allowedInheritedEnvKeys{hint}; a host that trusts the server with \
         it adds the name there",
        shown(name)
    );
    let error = found.refused_as(ErrorCode::EnvNotAllowed, &reason).with("key", shown(name));
    match near {
        Some(near) => error.with("nearest", shown(near)),
        None => error,
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;
    use crate::policy::input::Input;
    use crate::project::options;

    fn options() -> Options {
        let none = || Input::Object(Vec::new());
        let mut options = options::judge(&Input::Undefined, none).unwrap();
        options.allowed_inherited_env_keys = ["A", "EMPTY", "UNSET"].map(String::from).to_vec();
        let env = [("A", "a value"), ("EMPTY", ""), ("OTHER", "never")];
        options.env = env.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
        options
    }

    fn expand(text: &str) -> Result<String, McpError> {
        let options = options();
        let mut variables = Variables::of(&options, Platform::Posix);
        let found = Found::outermost(ErrorCode::Config, "url", &Input::Null);
        variables.expand(&found, text).map(|expanded| expanded.text)
    }

    #[test]
    fn a_placeholder_that_means_nothing_is_shown_without_what_may_be_a_secret() {
        for (text, shown) in [
            ("${input:key}", "holds ${input:key}, which"),
            ("${A-B:-se-cret}", "holds ${A-B}, which"),
            ("${A&key=se-cret}", "holds a placeholder, which"),
            ("${A&key=se-cret", "holds ${ without"),
        ] {
            let message = expand(text).unwrap_err().message;
            assert!(message.contains(shown) && !message.contains("se-cret"), "{message}");
        }
    }

    #[test]
    fn every_form_is_replaced() {
        for (text, expected) in [
            ("plain $A {A} $", "plain $A {A} $"),
            ("${A}", "a value"),
            ("<${A}|${env:A}>", "<a value|a value>"),
            ("${UNSET:-default}", "default"),
            ("${EMPTY:-default}", "default"),
            ("${EMPTY}", ""),
            ("${A:-default}", "a value"),
            ("${UNSET:-}", ""),
            ("${env:UNSET:-http://x:1/-}", "http://x:1/-"),
        ] {
            assert_eq!(expand(text).as_deref(), Ok(expected), "{text}");
        }
    }

    #[test]
    fn a_value_is_not_looked_through_again() {
        let mut options = options();
        options.env.push(("UNSET".to_owned(), "${OTHER}".to_owned()));
        let mut variables = Variables::of(&options, Platform::Posix);
        let found = Found::outermost(ErrorCode::Config, "url", &Input::Null);
        assert_eq!(variables.expand(&found, "${UNSET}").unwrap().text, "${OTHER}");
    }

    #[test]
    fn a_name_that_is_not_allowed_is_refused_even_with_a_default() {
        for text in ["${OTHER}", "${env:OTHER}", "${OTHER:-x}", "${workspaceFolder}"] {
            assert_eq!(expand(text).unwrap_err().code, ErrorCode::EnvNotAllowed, "{text}");
        }
        assert_eq!(expand("${AA}").unwrap_err().detail("key"), Some(&"AA".into()));
    }

    #[test]
    fn what_is_unset_or_no_placeholder_is_never_sent() {
        let unset = expand("${UNSET}").unwrap_err();
        assert_eq!((unset.code, unset.detail("key")), (ErrorCode::Config, Some(&"UNSET".into())));
        let unended = expand("${A").unwrap_err();
        assert!(unended.message.contains("without the }"), "{}", unended.message);
        // A name alone has no place for a default.
        let options = options();
        let found = Found::outermost(ErrorCode::Config, "bearerTokenEnv", &Input::Null);
        let named = Variables::of(&options, Platform::Posix).named(&found, "UNSET").unwrap_err();
        assert!(named.message.ends_with("; set it."), "{}", named.message);
        assert!(unset.message.ends_with("; set it, or write ${UNSET:-default}."), "{}", unset.message);
        for text in ["${input:key}", "${}", "${A", "${A-B}", "${UNSET:-${A}}", "x${ A }", "${__proto__}"] {
            assert_eq!(expand(text).unwrap_err().code, ErrorCode::Config, "{text}");
        }
    }
}
