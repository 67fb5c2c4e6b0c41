//! Where fjall's journals are.

use std::path::{Path, PathBuf};

/// The journal of that number.
pub(super) fn journal_path(folder: &Path, number: u64) -> PathBuf {
    folder.join(format!("{number}.jnl"))
}

/// The highest number of a journal, which is the one that fjall goes on with.
pub(super) fn last_journal(folder: &Path) -> Option<u64> {
    let files = std::fs::read_dir(folder).ok()?.flatten();
    files.filter_map(|file| file.file_name().to_str()?.strip_suffix(".jnl")?.parse().ok()).max()
}
