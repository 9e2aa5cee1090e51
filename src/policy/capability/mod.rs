//! What is secret: variables whose name says so, values whose format says so, and values the host already knows.
//!
//! A false positive is a server that will not start, a false negative a secret that stays in a definition.
//! Where a rule has to choose, it is the first that weighs more (design, environment policy).

mod formats;
mod names;
mod values;

use std::collections::HashMap;
use std::fmt;

pub use names::{Vocabulary, name_is_capability};
pub use values::value_format;
pub(crate) use values::{percent_decoded, secret_parts};

/// Shorter values are equal by chance: `production`, `localhost`, a port.
const RECOGNISED_FROM: usize = 12;

/// The capability-bearing variables of the host's environment, to recognise their values elsewhere.
#[derive(Clone, Default)]
pub struct KnownCapabilities {
    name_by_value: HashMap<String, String>,
}

impl KnownCapabilities {
    /// Keeps the variables whose name is capability-bearing and whose value has 12 characters or more.
    #[must_use]
    pub fn of(env: &[(String, String)]) -> Self {
        let mut name_by_value = HashMap::new();
        for (name, value) in env {
            if value.chars().count() >= RECOGNISED_FROM && name_is_capability(name) {
                name_by_value.entry(value.clone()).or_insert_with(|| name.clone());
            }
        }
        Self { name_by_value }
    }

    /// The variable that holds this very value, or what follows the first `=` of it (`--token=…`).
    #[must_use]
    pub fn holder_of(&self, value: &str) -> Option<&str> {
        let assigned = || value.split_once('=').map(|(_, assigned)| assigned);
        self.name_by_value.get(value).or_else(|| self.name_by_value.get(assigned()?)).map(String::as_str)
    }
}

impl fmt::Debug for KnownCapabilities {
    /// Names only: the values are what must not be shown.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_set().entries(self.name_by_value.values()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host() -> KnownCapabilities {
        let env = [
            ("DEPLOY_TOKEN", "q7Jd0-plain-looking"),
            ("BACKUP_TOKEN", "q7Jd0-plain-looking"),
            ("SMTP_PASS", "elevenchars"),
            ("GREETING", "good morning everybody"),
        ];
        KnownCapabilities::of(&env.map(|(name, value)| (name.to_owned(), value.to_owned())))
    }

    #[test]
    fn a_value_is_recognised_by_the_first_variable_that_holds_it() {
        assert_eq!(host().holder_of("q7Jd0-plain-looking"), Some("DEPLOY_TOKEN"));
        assert_eq!(host().holder_of("--token=q7Jd0-plain-looking"), Some("DEPLOY_TOKEN"));
    }

    #[test]
    fn part_of_a_value_a_short_value_and_an_ordinary_variable_are_not_recognised() {
        assert_eq!(host().holder_of("q7Jd0-plain"), None);
        assert_eq!(host().holder_of("elevenchars"), None);
        assert_eq!(host().holder_of("good morning everybody"), None);
    }

    #[test]
    fn debug_output_shows_names_and_no_value() {
        let shown = format!("{:?}", host());
        assert!(shown.contains("DEPLOY_TOKEN") && !shown.contains("q7Jd0"), "{shown}");
    }
}
