//! The files of the repository, for tests of house rules.
#![allow(clippy::expect_used, clippy::panic, reason = "tests fail by panicking")]

use std::fs;
use std::path::{Path, PathBuf};

/// What was built or generated, or belongs to git.
const NOT_OURS: &[&str] = &[".git", "target", "corpus", "artifacts", "keyloom-data"];

/// One text file.
pub struct File {
    /// The path from the repository's root, with `/`.
    pub path: String,
    pub text: String,
}

impl File {
    pub fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }

    /// The lines with their numbers, from 1.
    pub fn lines(&self) -> impl Iterator<Item = (usize, &str)> {
        self.text.lines().enumerate().map(|(place, line)| (place + 1, line))
    }
}

pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the root exists")
}

/// Every text file below a folder of the repository, in the order of their paths.
pub fn files_below(folder: &str) -> Vec<File> {
    let root = root();
    let mut paths = Vec::new();
    collect(&root.join(folder), &mut paths);
    paths.sort();
    paths
        .into_iter()
        .filter_map(|path| {
            // A file that is not text has no lines to hold against a rule.
            let text = String::from_utf8(fs::read(&path).expect("files can be read")).ok()?;
            let path = path.strip_prefix(&root).expect("it is below the root");
            Some(File { path: path.to_string_lossy().replace('\\', "/"), text })
        })
        .collect()
}

fn collect(folder: &Path, paths: &mut Vec<PathBuf>) {
    let listing = fs::read_dir(folder).unwrap_or_else(|error| panic!("{folder:?}: {error}"));
    for entry in listing.map(|entry| entry.expect("folders can be listed")) {
        let kind = entry.file_type().expect("a listed file has a type");
        if NOT_OURS.iter().any(|name| entry.file_name() == *name) {
            continue;
        }
        if kind.is_dir() {
            collect(&entry.path(), paths);
        } else if kind.is_file() {
            paths.push(entry.path());
        }
    }
}

/// Fails with all that is wrong at once.
pub fn report(rule: &str, mut faults: Vec<String>) {
    faults.sort();
    assert!(faults.is_empty(), "{rule}\n\n  {}\n", faults.join("\n  "));
}
