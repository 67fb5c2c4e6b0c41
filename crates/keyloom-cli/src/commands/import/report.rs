//! Reports the lines that failed, as JSON lines in a file.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::journal::unwritable;
use crate::exit::Failure;
use crate::output::note;

/// The most failed lines that are printed to stderr; the report has all of them.
const TOLD_MAX: u64 = 10;

/// The part of a report that belongs to finished batches.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Reported {
    pub(super) path: PathBuf,
    bytes: u64,
}

/// The report of failed lines.
pub(super) struct Report {
    path: Option<PathBuf>,
    file: Option<File>,
    bytes: u64,
    /// How many lines this process reported.
    told: u64,
}

impl Report {
    /// A new report. It replaces that of an earlier import.
    pub(super) fn begin(path: Option<PathBuf>) -> Self {
        if let Some(path) = &path {
            // If the file cannot be removed, it cannot be written either, and writing reports the
            // error.
            let _ = fs::remove_file(path);
        }
        Report { path, file: None, bytes: 0, told: 0 }
    }

    /// A continued report. Lines of unfinished batches are cut off and reported again.
    pub(super) fn go_on(path: Option<PathBuf>, before: Option<&Reported>) -> Result<Self, Failure> {
        let known = before.filter(|before| path.as_ref() == Some(&before.path));
        let Some(Reported { path: known, bytes }) = known else { return Ok(Report::begin(path)) };
        let mut report = Report { path, file: None, bytes: 0, told: 0 };
        if *bytes == 0 {
            return Ok(Report::begin(report.path));
        }
        let failed = |error| unwritable(known, &error);
        let file = open(known).map_err(failed)?;
        // Somebody may have shortened the file meanwhile.
        report.bytes = file.metadata().map_err(failed)?.len().min(*bytes);
        file.set_len(report.bytes).map_err(failed)?;
        report.file = Some(file);
        Ok(report)
    }

    /// The report of an import that is finished already.
    pub(super) fn told_before(before: Option<&Reported>) -> Self {
        let path = before.map(|before| before.path.clone());
        Report { path, file: None, bytes: 0, told: 0 }
    }

    /// The file with all failed lines.
    pub(super) fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// How long the report is.
    pub(super) fn reported(&self) -> Option<Reported> {
        Some(Reported { path: self.path.clone()?, bytes: self.bytes })
    }

    /// Reports failed lines.
    pub(super) fn add(&mut self, errors: &[Value]) -> Result<(), Failure> {
        for error in errors {
            self.told += 1;
            if self.told <= TOLD_MAX {
                tell_line(error);
            }
        }
        let Some(path) = self.path.as_ref().filter(|_| !errors.is_empty()) else { return Ok(()) };
        let failed = |error| unwritable(path, &error);
        let file = match &mut self.file {
            Some(file) => file,
            none => none.insert(open(path).map_err(failed)?),
        };
        let text: String = errors.iter().map(|error| format!("{error}\n")).collect();
        file.write_all(text.as_bytes()).map_err(failed)?;
        self.bytes += text.len() as u64;
        Ok(())
    }
}

fn open(path: &Path) -> std::io::Result<File> {
    OpenOptions::new().create(true).append(true).open(path)
}

/// Prints to stderr what is wrong with a line.
fn tell_line(error: &Value) {
    let problem = &error["problem"];
    let detail = problem["detail"].as_str().or(problem["title"].as_str());
    let detail = detail.map_or_else(|| problem.to_string(), str::to_owned);
    note(&format!("line {}: {detail}", error["line"]));
}
