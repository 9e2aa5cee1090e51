//! What a name, a path and a variable are on each system. The system is an argument, so that both are tested everywhere.

use std::borrow::Cow;
use std::collections::HashMap;

/// The kind of system a server runs on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Platform {
    Posix,
    Windows,
}

impl Platform {
    /// The system this was built for.
    pub const HOST: Self = if cfg!(windows) { Self::Windows } else { Self::Posix };

    /// What names share that mean the same variable, to look them up by. Windows compares them without case.
    #[must_use]
    pub fn variable_key(self, name: &str) -> Cow<'_, str> {
        match self {
            Self::Windows if name.bytes().any(|byte| byte.is_ascii_lowercase()) => {
                Cow::Owned(name.to_ascii_uppercase())
            }
            _ => Cow::Borrowed(name),
        }
    }

    /// The values of an environment by [`Platform::variable_key`]. Where names that differ only in case meet on Windows, the
    /// one that Node's `child_process` would use counts: the first in lexicographic order.
    #[must_use]
    pub fn values_by_key(self, env: &[(String, String)]) -> HashMap<Cow<'_, str>, &str> {
        let mut found: HashMap<Cow<'_, str>, (&str, &str)> = HashMap::new();
        for (name, value) in env {
            let first = found.entry(self.variable_key(name)).or_insert((name, value));
            if name.as_str() < first.0 {
                *first = (name, value);
            }
        }
        found.into_iter().map(|(key, (_, value))| (key, value)).collect()
    }

    /// Whether a path means the same file whatever the current folder and drive are: `/x` on POSIX; `C:\x`, `C:/x`
    /// and `\\server\share` on Windows, where `C:x` and `\x` depend on the current folder or drive.
    #[must_use]
    pub fn is_absolute(self, path: &str) -> bool {
        match self {
            Self::Posix => path.starts_with('/'),
            Self::Windows => is_drive_absolute(path) || is_unc(path),
        }
    }
}

/// Whether this can be the name of a variable of a server: `^[A-Za-z_][A-Za-z0-9_]*$`.
///
/// `__proto__` cannot: JavaScript code that copies such a key into an object sets the prototype instead.
#[must_use]
pub fn is_variable_name(name: &str) -> bool {
    let mut bytes = name.bytes();
    bytes.next().is_some_and(|first| first.is_ascii_alphabetic() || first == b'_')
        && bytes.all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        && name != "__proto__"
}

fn is_slash(byte: u8) -> bool {
    byte == b'\\' || byte == b'/'
}

fn is_drive_absolute(path: &str) -> bool {
    matches!(path.as_bytes(), [drive, b':', slash, ..] if drive.is_ascii_alphabetic() && is_slash(*slash))
}

fn is_unc(path: &str) -> bool {
    let [first, second, rest @ ..] = path.as_bytes() else { return false };
    let mut parts = rest.split(|byte| is_slash(*byte));
    let mut named = || parts.next().is_some_and(|part| !part.is_empty());
    is_slash(*first) && is_slash(*second) && named() && named()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn absolute_means_independent_of_the_current_folder_and_drive() {
        for path in ["/", "/usr/bin/node", "/a b/ü"] {
            assert!(Platform::Posix.is_absolute(path), "{path}");
        }
        for path in ["", "node", "./node", "../node", "~/node", "C:\\node.exe", "\\\\server\\share"] {
            assert!(!Platform::Posix.is_absolute(path), "{path}");
        }
        for path in ["C:\\node.exe", "c:/node.exe", "C:\\", "\\\\server\\share", "\\\\server\\share\\x.exe"] {
            assert!(Platform::Windows.is_absolute(path), "{path}");
        }
        for path in [
            "",
            "node",
            "C:foo",
            "C:",
            "\\foo",
            "/usr/bin/node",
            "\\\\",
            "\\\\server",
            "\\\\server\\",
            "\\\\\\share",
            "1:\\foo",
            "é:\\foo",
        ] {
            assert!(!Platform::Windows.is_absolute(path), "{path}");
        }
    }

    #[test]
    fn variable_names_are_words() {
        for name in ["A", "_", "a1", "PATH", "_x_9", "__proto", "constructor"] {
            assert!(is_variable_name(name), "{name}");
        }
        for name in ["", "1A", "A-B", "A B", "A=B", "Ä", "A\0", "A\n", "ProgramFiles(x86)", "__proto__"] {
            assert!(!is_variable_name(name), "{name:?}");
        }
    }

    #[test]
    fn windows_compares_variables_without_case() {
        let key = Platform::variable_key;
        assert_eq!(key(Platform::Windows, "Path"), key(Platform::Windows, "PATH"));
        assert_ne!(key(Platform::Posix, "Path"), key(Platform::Posix, "PATH"));
    }

    #[test]
    fn of_variables_that_differ_in_case_windows_takes_the_one_node_takes() {
        let env = [("Path", "old"), ("PATH", "new")].map(|(name, value)| (name.to_owned(), value.to_owned()));
        let value = |platform: Platform, name| platform.values_by_key(&env).get(name).copied();
        assert_eq!(value(Platform::Windows, "PATH"), Some("new"));
        assert_eq!(value(Platform::Posix, "Path"), Some("old"));
        assert_eq!(value(Platform::Posix, "path"), None);
    }
}
