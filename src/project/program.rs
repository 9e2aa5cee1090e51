//! Which file a command means: as a shell would find it, without a shell.

use crate::policy::platform::Platform;

/// Where Windows looks for programs whose extension is not written, if `PATHEXT` is not set.
const PATHEXT: &str = ".COM;.EXE;.BAT;.CMD";

/// What a command is looked up with.
pub(super) struct Lookup<'a> {
    pub platform: Platform,
    pub env: &'a [(String, String)],
    /// The folder the server runs in, absolute: what a command with a slash is relative to.
    pub folder: &'a str,
}

impl Lookup<'_> {
    /// The absolute path of the program, or every path that was tried.
    pub(super) fn find(
        &self,
        command: &str,
        is_program: impl Fn(&str) -> bool,
    ) -> Result<String, Vec<String>> {
        if self.platform.is_absolute(command) {
            return Ok(command.to_owned());
        }
        let candidates = self.candidates(command);
        match candidates.iter().position(|candidate| is_program(candidate)) {
            Some(at) => Ok(candidates.into_iter().nth(at).unwrap_or_default()),
            None => Err(candidates),
        }
    }

    fn candidates(&self, command: &str) -> Vec<String> {
        let names = self.names(command);
        let has_folder = command.contains('/') || (self.is_windows() && command.contains(['\\', ':']));
        let folders = if has_folder { vec![self.folder.to_owned()] } else { self.path() };
        folders.iter().flat_map(|folder| names.iter().map(|name| self.joined(folder, name))).collect()
    }

    /// The folders of `PATH`. A relative one, the empty one too, would mean another place after each change of the current folder.
    fn path(&self) -> Vec<String> {
        let separator = if self.is_windows() { ';' } else { ':' };
        let path = self.variable("PATH").unwrap_or_default();
        let mut folders: Vec<String> = Vec::new();
        for folder in path.split(separator).map(|folder| folder.trim_matches('"')) {
            if self.platform.is_absolute(folder) && !folders.iter().any(|earlier| earlier == folder) {
                folders.push(folder.to_owned());
            }
        }
        folders
    }

    /// On Windows the name with each known extension, unless it has one of them.
    fn names(&self, command: &str) -> Vec<String> {
        if !self.is_windows() {
            return vec![command.to_owned()];
        }
        let known = self.variable("PATHEXT").filter(|known| !known.is_empty()).unwrap_or(PATHEXT);
        let extensions: Vec<String> = known.split(';').map(str::to_ascii_lowercase).collect();
        let lower = command.to_ascii_lowercase();
        if extensions.iter().any(|extension| !extension.is_empty() && lower.ends_with(extension.as_str())) {
            return vec![command.to_owned()];
        }
        extensions.iter().map(|extension| format!("{command}{extension}")).collect()
    }

    fn variable(&self, name: &str) -> Option<&str> {
        self.platform.values_by_key(self.env).get(name).copied()
    }

    fn joined(&self, folder: &str, name: &str) -> String {
        let (separator, end): (char, &[char]) =
            if self.is_windows() { ('\\', &['\\', '/']) } else { ('/', &['/']) };
        let name = name.strip_prefix("./").or_else(|| name.strip_prefix(".\\")).unwrap_or(name);
        format!("{}{separator}{name}", folder.trim_end_matches(end))
    }

    fn is_windows(&self) -> bool {
        self.platform == Platform::Windows
    }
}

/// Whether it is a file that may be executed.
pub(super) fn is_program(path: &str) -> bool {
    let Ok(metadata) = std::fs::metadata(path) else { return false };
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        metadata.is_file() && metadata.permissions().mode() & 0o111 != 0
    }
    #[cfg(not(unix))]
    metadata.is_file()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(
        platform: Platform,
        env: &[(&str, &str)],
        folder: &str,
        command: &str,
        there: &[&str],
    ) -> Result<String, Vec<String>> {
        let env: Vec<_> = env.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let lookup = Lookup { platform, env: &env, folder };
        lookup.find(command, |path| there.iter().any(|file| file.eq_ignore_ascii_case(path)))
    }

    #[test]
    fn a_bare_name_is_looked_up_in_the_folders_of_path_in_their_order() {
        let env = [("PATH", "/a::relative:./here:/b/")];
        let posix = |command, there: &[&str]| find(Platform::Posix, &env, "/project", command, there);
        assert_eq!(posix("node", &["/b/node", "/project/node"]), Ok("/b/node".into()));
        assert_eq!(posix("node", &["/a/node", "/b/node"]), Ok("/a/node".into()));
        assert_eq!(posix("node", &["/project/node"]), Err(vec!["/a/node".into(), "/b/node".into()]));
        assert_eq!(find(Platform::Posix, &[], "/project", "node", &[]), Err(vec![]));
    }

    #[test]
    fn a_name_with_a_slash_is_relative_to_the_folder_of_the_server() {
        let env = [("PATH", "/a")];
        let posix =
            |command| find(Platform::Posix, &env, "/project", command, &["/project/bin/x", "/project/x"]);
        assert_eq!(posix("bin/x"), Ok("/project/bin/x".into()));
        assert_eq!(posix("./x"), Ok("/project/x".into()));
        assert_eq!(posix("./y"), Err(vec!["/project/y".into()]));
        assert_eq!(posix("/usr/bin/y"), Ok("/usr/bin/y".into()));
    }

    #[test]
    fn on_windows_the_known_extensions_are_tried_in_their_order() {
        let env = [("Path", r#"C:\Windows;"C:\Program Files\nodejs\";tools"#), ("PATHEXT", ".EXE;.CMD")];
        let windows = |command, there: &[&str]| find(Platform::Windows, &env, r"D:\project", command, there);
        assert_eq!(
            windows("npx", &[r"C:\Program Files\nodejs\npx", r"C:\Program Files\nodejs\npx.cmd"]),
            Ok(r"C:\Program Files\nodejs\npx.cmd".into())
        );
        assert_eq!(windows("node.exe", &[r"C:\Windows\node.exe"]), Ok(r"C:\Windows\node.exe".into()));
        assert_eq!(windows(r".\run", &[r"D:\project\run.exe"]), Ok(r"D:\project\run.exe".into()));
        assert_eq!(windows(r"C:\x\y.exe", &[]), Ok(r"C:\x\y.exe".into()));
        let tried = windows("npx", &[]).err().unwrap_or_default();
        assert_eq!(tried[..2], [r"C:\Windows\npx.exe", r"C:\Windows\npx.cmd"].map(String::from));
        let default = find(Platform::Windows, &[("PATH", r"C:\a")], r"D:\", "x", &[r"C:\a\x.bat"]);
        assert_eq!(default, Ok(r"C:\a\x.bat".into()));
    }
}
