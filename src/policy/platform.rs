//! What a name, a path and a variable are on each system. The system is an argument, so that both are tested everywhere.

/// The kind of system a server runs on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Platform {
    Posix,
    Windows,
}

impl Platform {
    /// The system this was built for.
    pub const HOST: Self = if cfg!(windows) { Self::Windows } else { Self::Posix };

    /// Whether two variable names mean the same variable. Windows compares them without case.
    #[must_use]
    pub fn same_variable(self, left: &str, right: &str) -> bool {
        match self {
            Self::Posix => left == right,
            Self::Windows => left.eq_ignore_ascii_case(right),
        }
    }

    /// The value of a variable. Where names that differ only in case meet on Windows, the one that Node's
    /// `child_process` would use counts: the first in lexicographic order.
    #[must_use]
    pub fn variable<'e>(self, env: &'e [(String, String)], name: &str) -> Option<&'e str> {
        let same = env.iter().filter(|(key, _)| self.same_variable(key, name));
        same.min_by_key(|(key, _)| key).map(|(_, value)| value.as_str())
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
        assert!(Platform::Windows.same_variable("Path", "PATH"));
        assert!(!Platform::Posix.same_variable("Path", "PATH"));
    }

    #[test]
    fn of_variables_that_differ_in_case_windows_takes_the_one_node_takes() {
        let env = [("Path", "old"), ("PATH", "new")].map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(Platform::Windows.variable(&env, "path"), Some("new"));
        assert_eq!(Platform::Posix.variable(&env, "Path"), Some("old"));
        assert_eq!(Platform::Posix.variable(&env, "path"), None);
    }
}
