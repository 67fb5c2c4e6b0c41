//! Where fjall's journals are.

use std::path::{Path, PathBuf};

/// The journal of that number.
pub(super) fn journal_path(folder: &Path, number: u64) -> PathBuf {
    folder.join(format!("{number}.jnl"))
}

/// The numbers of all journals.
pub(super) fn journals(folder: &Path) -> Vec<u64> {
    let files = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let number = |name: &str| name.strip_suffix(".jnl")?.parse().ok();
    files.filter_map(|file| number(file.file_name().to_str()?)).collect()
}

/// The highest number of a journal, which is the one that fjall goes on with.
pub(super) fn last_journal(folder: &Path) -> Option<u64> {
    journals(folder).into_iter().max()
}
