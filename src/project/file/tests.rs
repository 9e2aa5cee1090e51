#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::atomic::{AtomicU32, Ordering};

use super::*;

/// A folder that goes with the test.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name =
            format!("workflow-mcp-file-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let path = fs::canonicalize(std::env::temp_dir()).unwrap().join(name);
        fs::create_dir(&path).unwrap();
        Self(path)
    }

    fn folder(&self, path: &str) -> PathBuf {
        let path = self.0.join(path);
        fs::create_dir_all(&path).unwrap();
        path
    }

    fn file(&self, path: &str) -> PathBuf {
        let path = self.0.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, "{}").unwrap();
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn the_nearest_file_counts_and_in_a_folder_the_first_of_the_three() {
    let top = Folder::new();
    top.folder(".git");
    let deep = top.folder("a/b");
    let found = |folder: &Path| search(folder, None).unwrap().found;
    assert_eq!(found(&deep), None);
    for name in [".vscode/mcp.json", ".cursor/mcp.json", ".mcp.json"] {
        let file = top.file(name);
        assert_eq!(found(&deep), Some(file));
    }
    let nearer = top.file("a/.vscode/mcp.json");
    assert_eq!(found(&deep), Some(nearer));
}

#[test]
fn the_search_ends_at_a_repository_and_at_the_home_folder() {
    let top = Folder::new();
    top.file(".mcp.json");
    let deep = top.folder("home/repository/package");
    let home = top.folder("home");
    assert_eq!(search(&deep, Some(&home)).unwrap().found, None);
    assert_eq!(search(&deep, Some(&home)).unwrap().folders.last(), Some(&home));
    assert!(search(&deep, None).unwrap().found.is_some());
    // As a worktree has it.
    fs::write(top.0.join("home/repository/.git"), "gitdir: elsewhere").unwrap();
    let search = search(&deep, None).unwrap();
    assert_eq!((search.found, search.folders.len()), (None, 2));
}

#[test]
fn a_file_in_place_of_a_folder_is_no_project() {
    let top = Folder::new();
    top.folder(".git");
    fs::write(top.0.join(".cursor"), "").unwrap();
    assert_eq!(search(&top.0, None).unwrap().found, None);
}

#[test]
fn home_is_that_of_the_environment() {
    let env =
        [("HOME", "/a"), ("USERPROFILE", r"C:\a")].map(|(name, value)| (name.to_owned(), value.to_owned()));
    assert_eq!(home(&env, Platform::Posix), Some(PathBuf::from("/a")));
    assert_eq!(home(&env, Platform::Windows), Some(PathBuf::from(r"C:\a")));
    assert_eq!(home(&[], Platform::Posix), None);
}

#[cfg(unix)]
mod trust {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    fn mode(path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    fn reason(file: &Path) -> String {
        read_found(file).unwrap_err().detail("reason").unwrap().as_str().unwrap().to_owned()
    }

    #[test]
    fn a_file_of_this_user_is_read() {
        let top = Folder::new();
        let file = top.file(".mcp.json");
        mode(&file, 0o664);
        assert_eq!(read_found(&file).unwrap(), "{}");
    }

    #[test]
    fn a_file_that_everybody_may_write_is_refused_unless_the_host_names_it() {
        let top = Folder::new();
        let file = top.file(".mcp.json");
        mode(&file, 0o646);
        assert_eq!(reason(&file), "everybody may write to it");
        assert_eq!(read_named(&file).unwrap(), "{}");
    }

    #[test]
    fn a_folder_in_which_everybody_may_exchange_files_is_refused_and_a_sticky_one_is_not() {
        let top = Folder::new();
        let file = top.file("open/.mcp.json");
        mode(&top.0.join("open"), 0o777);
        assert_eq!(reason(&file), "everybody may exchange files in its folder");
        mode(&top.0.join("open"), 0o1777);
        assert!(read_found(&file).is_ok());
    }

    #[test]
    fn what_a_link_points_at_is_what_counts() {
        let top = Folder::new();
        let file = top.file("real.json");
        let link = top.0.join(".mcp.json");
        symlink(&file, &link).unwrap();
        assert!(read_found(&link).is_ok());
        mode(&file, 0o666);
        assert_eq!(reason(&link), "everybody may write to it");
        fs::remove_file(&file).unwrap();
        assert!(search(&top.0, None).unwrap().found.is_some());
        assert_eq!(reason(&link), "it does not exist, or is a link to what does not");
        fs::remove_file(&link).unwrap();
        symlink(&link, &link).unwrap();
        assert!(read_found(&link).is_err());
    }

    #[test]
    fn a_file_of_another_user_is_refused() {
        // `/proc/1` is root's or, as root, somebody's whom a chown makes the owner.
        let top = Folder::new();
        let file = top.file(".mcp.json");
        if std::os::unix::fs::chown(&file, Some(12_345), None).is_ok() {
            assert_eq!(reason(&file), "it belongs to another user");
        } else {
            assert_eq!(reason(Path::new("/etc/passwd")), "it belongs to another user");
        }
    }

    #[test]
    fn what_is_no_file_is_refused_and_keeps_nobody_waiting() {
        let top = Folder::new();
        let folder = top.folder(".mcp.json");
        assert_eq!(reason(&folder), "it is no regular file");
        let fifo = top.0.join("fifo");
        let made = std::process::Command::new("mkfifo").arg(&fifo).status().unwrap();
        assert!(made.success());
        assert_eq!(reason(&fifo), "it is no regular file");
        let long = top.0.join("long");
        File::create(&long).unwrap().set_len(LONGEST + 1).unwrap();
        assert!(reason(&long).contains("longer than"));
        fs::write(&long, [0xff]).unwrap();
        assert_eq!(reason(&long), "it is no UTF-8 text");
    }
}
