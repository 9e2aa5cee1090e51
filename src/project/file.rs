//! Which file is a project's, and whether it may be believed.
//!
//! A file that nobody named is found by where a script happens to run, so it must be one that only this user can have written:
//! in a shared folder everybody could plant one.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};

use crate::error::{ErrorCode, McpError};
use crate::policy::platform::Platform;

/// Where a folder's configuration is, the first that is there counts.
pub(super) const NAMES: [&str; 3] = [".mcp.json", ".cursor/mcp.json", ".vscode/mcp.json"];

/// Nobody writes more by hand.
const LONGEST: u64 = 1024 * 1024;

/// What a search came to.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Search {
    pub found: Option<PathBuf>,
    /// The folders that were looked at.
    pub folders: Vec<PathBuf>,
}

/// Looks from `folder` upwards, as far as a repository root or the home folder, these included.
pub(super) fn search(folder: &Path, home: Option<&Path>) -> Result<Search, McpError> {
    let mut folders = Vec::new();
    for folder in folder.ancestors() {
        folders.push(folder.to_owned());
        for name in NAMES {
            let file = folder.join(name);
            if exists(&file).map_err(|error| unreadable(&file, &error))? {
                return Ok(Search { found: Some(file), folders });
            }
        }
        // A file where it is a worktree or a submodule.
        if home == Some(folder) || exists(&folder.join(".git")).unwrap_or(true) {
            break;
        }
    }
    Ok(Search { found: None, folders })
}

/// The home folder that an environment names.
pub(super) fn home(env: &[(String, String)], platform: Platform) -> Option<PathBuf> {
    let name = if platform == Platform::Windows { "USERPROFILE" } else { "HOME" };
    let home = platform.values_by_key(env).get(name).filter(|home| !home.is_empty()).map(PathBuf::from)?;
    Some(fs::canonicalize(&home).unwrap_or(home))
}

/// The text of a file that the host named, and so trusts.
pub(super) fn read_named(file: &Path) -> Result<String, McpError> {
    let opened = open(file).map_err(|error| unreadable(file, &error))?;
    read(file, opened)
}

/// The text of a file that was found, if only this user can have written it.
pub(super) fn read_found(file: &Path) -> Result<String, McpError> {
    // The link itself, where it is one: whoever made it chose what it points at.
    let link = fs::symlink_metadata(file).map_err(|error| unreadable(file, &error))?;
    let opened = open(file).map_err(|error| unreadable(file, &error))?;
    // Of what was opened, which nobody can exchange any more.
    let target = opened.metadata().map_err(|error| unreadable(file, &error))?;
    let folder = file.parent().map(fs::metadata).transpose().map_err(|error| unreadable(file, &error))?;
    if let Some(reason) = distrust(&link, &target, folder.as_ref()) {
        let message = format!(
            "The project file {} is not used: {reason}. If it is to be trusted, name it in options.config.",
            file.display()
        );
        return Err(fault(file, &message, reason));
    }
    read(file, opened)
}

/// The `ERR_MCP_CONFIG` of a whole file.
pub(super) fn fault(file: &Path, message: &str, reason: &str) -> McpError {
    McpError::new(ErrorCode::Config, message).with("file", file.to_string_lossy()).with("reason", reason)
}

fn exists(path: &Path) -> io::Result<bool> {
    match fs::symlink_metadata(path) {
        Ok(_) => Ok(true),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok(false),
        Err(error) => Err(error),
    }
}

fn open(file: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        // A FIFO of this name would block its opener for ever.
        options.custom_flags(rustix::fs::OFlags::NONBLOCK.bits().cast_signed());
    }
    options.open(file)
}

fn read(file: &Path, opened: File) -> Result<String, McpError> {
    let metadata = opened.metadata().map_err(|error| unreadable(file, &error))?;
    let reason = if !metadata.is_file() {
        "it is no regular file".to_owned()
    } else if metadata.len() > LONGEST {
        format!("it is longer than {LONGEST} bytes")
    } else {
        let mut bytes = Vec::new();
        opened.take(LONGEST + 1).read_to_end(&mut bytes).map_err(|error| unreadable(file, &error))?;
        match String::from_utf8(bytes) {
            Ok(text) => return Ok(text),
            Err(_) => "it is no UTF-8 text".to_owned(),
        }
    };
    Err(fault(file, &format!("The project file {} cannot be used: {reason}.", file.display()), &reason))
}

fn unreadable(file: &Path, error: &io::Error) -> McpError {
    let reason = match error.kind() {
        ErrorKind::NotFound => "it does not exist, or is a link to what does not".to_owned(),
        ErrorKind::PermissionDenied => "this user may not read it".to_owned(),
        _ => error.to_string(),
    };
    fault(file, &format!("The project file {} cannot be read: {reason}.", file.display()), &reason)
}

/// Why somebody else may have written a file: its owner, its mode, or a folder in which everybody may exchange files. In one with the
/// sticky bit, as `/tmp` has it, only the owner of a file may.
#[cfg(unix)]
fn distrust(link: &Metadata, target: &Metadata, folder: Option<&Metadata>) -> Option<&'static str> {
    use std::os::unix::fs::MetadataExt;
    const BY_EVERYBODY: u32 = 0o002;
    const STICKY: u32 = 0o1000;
    let me = rustix::process::geteuid().as_raw();
    if link.uid() != me || target.uid() != me {
        Some("it belongs to another user")
    } else if target.is_file() && target.mode() & BY_EVERYBODY != 0 {
        Some("everybody may write to it")
    } else if folder.is_some_and(|folder| folder.mode() & (BY_EVERYBODY | STICKY) == BY_EVERYBODY) {
        Some("everybody may exchange files in its folder")
    } else {
        None
    }
}

/// Windows says who owns and who may write in access control lists; folders of a user are the user's own by default.
#[cfg(not(unix))]
fn distrust(_: &Metadata, _: &Metadata, _: Option<&Metadata>) -> Option<&'static str> {
    None
}

#[cfg(test)]
mod tests;
