//! What the system makes of a file that is to be executed.

use std::path::{Path, PathBuf};

/// Whether it is there. Who may execute it is a matter of access lists: that the system refused says enough.
pub(in crate::process) fn may_execute(path: &Path) -> bool {
    path.exists()
}

/// Nothing here reads a `#!` line.
pub(in crate::process) const fn interpreter(_script: &Path) -> Option<PathBuf> {
    None
}
