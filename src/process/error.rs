//! Why a program did not start. The system says ENOENT for three different things; the caller wants to know which.

use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::{error, fmt};

use super::command::Command;
use super::executable::{interpreter, may_execute};
use super::format;

/// A program that did not start. `Display` is one readable sentence; arguments and variables are never in it.
#[derive(Debug)]
pub struct SpawnError {
    /// The system's number, where it refused; `None` for what it was never asked, such as an argument with NUL.
    pub errno: Option<i32>,
    pub what: What,
    /// The path of what `what` says.
    pub path: PathBuf,
    pub source: io::Error,
    sentence: String,
}

/// What it was that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    Command,
    /// The working directory.
    Cwd,
    /// The program named by the `#!` line of the command, which is a script.
    Interpreter,
}

impl What {
    /// As `details.what` says it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Command => "command",
            Self::Cwd => "cwd",
            Self::Interpreter => "interpreter",
        }
    }
}

impl SpawnError {
    /// Looks for the culprit in the file system, after the fact, where the refusal was about a path. Blocks for that.
    pub(super) fn explain(command: &Command, source: io::Error) -> Self {
        let about_a_path = matches!(
            source.kind(),
            ErrorKind::NotFound | ErrorKind::NotADirectory | ErrorKind::PermissionDenied
        );
        let wrong_path = || wrong_directory(command).or_else(|| wrong_interpreter(&command.program));
        let (what, path, sentence) = about_a_path
            .then(wrong_path)
            .flatten()
            .unwrap_or_else(|| wrong_program(&command.program, &source));
        Self { errno: source.raw_os_error(), what, path, source, sentence }
    }
}

/// The numbers for a file that the system does not know how to execute: ENOEXEC, on macOS also EBADARCH; on Windows
/// `ERROR_BAD_EXE_FORMAT` and `ERROR_EXE_MACHINE_TYPE_MISMATCH`.
const UNKNOWN_FORMAT: &[i32] = if cfg!(windows) {
    &[193, 216]
} else if cfg!(target_os = "macos") {
    &[8, 86]
} else {
    &[8]
};

type Culprit = (What, PathBuf, String);

fn wrong_directory(command: &Command) -> Option<Culprit> {
    let directory = command.directory.as_deref()?;
    let shown = directory.display();
    let sentence = match directory.metadata() {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            format!("The working directory {shown} does not exist")
        }
        Ok(found) if !found.is_dir() => format!("The working directory {shown} is not a directory"),
        Ok(_) if may_execute(directory) => return None,
        _ => format!("The working directory {shown} may not be entered by this user"),
    };
    Some((What::Cwd, directory.to_owned(), sentence))
}

fn wrong_interpreter(script: &Path) -> Option<Culprit> {
    let interpreter = interpreter(script)?;
    // A script that may not be executed is its own culprit.
    if !may_execute(script) || may_execute(&interpreter) {
        return None;
    }
    // Of a script from Windows the carriage return belongs to the path.
    let named = interpreter.to_string_lossy();
    let why = if named.ends_with('\r') { ": the script has the line ends of Windows (CRLF)" } else { "" };
    let sentence = format!(
        "{} is a script whose first line names the interpreter {}, which was not found or may not be executed{why}",
        script.display(),
        named.escape_debug()
    );
    Some((What::Interpreter, interpreter, sentence))
}

fn wrong_program(program: &Path, source: &io::Error) -> Culprit {
    let shown = program.display();
    let sentence = match (source.kind(), program.metadata()) {
        (ErrorKind::NotFound, Err(_)) => format!("The command {shown} was not found"),
        (ErrorKind::NotFound, Ok(_)) => {
            format!("The command {shown} is there, but the loader it was built for is not on this system")
        }
        (ErrorKind::PermissionDenied, Ok(found)) if found.is_dir() => {
            format!("The command {shown} is a directory, not a program")
        }
        (ErrorKind::PermissionDenied, _) => {
            format!("The command {shown} may not be executed by this user")
        }
        (ErrorKind::ArgumentListTooLong, _) => format!(
            "The command {shown} could not be started: its arguments and variables are longer than this system allows"
        ),
        _ if source.raw_os_error().is_some_and(|errno| UNKNOWN_FORMAT.contains(&errno)) => {
            format!("The command {shown} {}", format::fault(program))
        }
        _ => format!("The command {shown} could not be started: {source}"),
    };
    (What::Command, program.to_owned(), sentence)
}

impl fmt::Display for SpawnError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.sentence)
    }
}

impl error::Error for SpawnError {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        Some(&self.source)
    }
}
