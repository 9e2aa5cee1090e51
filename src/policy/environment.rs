//! What a child gets: built for every start, never inherited whole.

use std::collections::HashSet;
use std::fmt;

use super::definition::Definition;
use super::platform::Platform;

#[cfg(test)]
mod tests;

/// The names of the official client, and what programs need to find the user's language, temporary folder and time zone.
const POSIX_BASE: [&str; 11] =
    ["HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER", "LANG", "LC_ALL", "LC_CTYPE", "TMPDIR", "TZ"];

/// The names of the official client (`@modelcontextprotocol/client` 2.4.0, `dist/stdio.mjs`).
const WINDOWS_BASE: [&str; 18] = [
    "APPDATA",
    "COMSPEC",
    "HOMEDRIVE",
    "HOMEPATH",
    "LOCALAPPDATA",
    "PATH",
    "PATHEXT",
    "PROCESSOR_ARCHITECTURE",
    "PROGRAMDATA",
    "PROGRAMFILES",
    "PROGRAMFILES(X86)",
    "PROGRAMW6432",
    "SYSTEMDRIVE",
    "SYSTEMROOT",
    "TEMP",
    "USERNAME",
    "USERPROFILE",
    "WINDIR",
];

/// The environment of one child.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct ChildEnvironment {
    /// Everything the child gets; no name twice.
    pub variables: Vec<(String, String)>,
    /// Those of them that `inheritEnvironment` names.
    pub inherited: Vec<(String, String)>,
    /// The names of `inheritEnvironment` that the parent has not set. The child does not get them.
    pub missing: Vec<String>,
}

/// Names only: values may be secret.
impl fmt::Debug for ChildEnvironment {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = |list: &[(String, String)]| list.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>();
        formatter
            .debug_struct("ChildEnvironment")
            .field("variables", &names(&self.variables))
            .field("inherited", &names(&self.inherited))
            .field("missing", &self.missing)
            .finish()
    }
}

/// The base, then what the definition fixes, then what it inherits from `env`; a later one replaces an earlier one of its name.
///
/// Names are spelled as the list of the base or the definition spells them, whatever `env` has. A base value that begins with
/// `()` is left out: it is a function of a shell, which the official client does not pass on either.
#[must_use]
pub fn build(definition: &Definition, env: &[(String, String)], platform: Platform) -> ChildEnvironment {
    let base: &[&str] = match platform {
        Platform::Posix => &POSIX_BASE,
        Platform::Windows => &WINDOWS_BASE,
    };
    let values = platform.values_by_key(env);
    let mut child = ChildEnvironment::default();
    for name in &definition.inherit_environment {
        match values.get(&platform.variable_key(name)) {
            Some(value) => child.inherited.push((name.clone(), (*value).to_owned())),
            None => child.missing.push(name.clone()),
        }
    }
    let asked: HashSet<_> = [&definition.environment, &child.inherited]
        .into_iter()
        .flatten()
        .map(|(name, _)| platform.variable_key(name))
        .collect();
    for name in base.iter().filter(|name| !asked.contains(**name)) {
        if let Some(value) = values.get(*name).filter(|value| !value.starts_with("()")) {
            child.variables.push(((*name).to_owned(), (*value).to_owned()));
        }
    }
    child.variables.extend(definition.environment.iter().chain(&child.inherited).cloned());
    child
}
