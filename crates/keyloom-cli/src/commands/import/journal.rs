//! What an import remembers: how far it is, and which lines failed.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{TOLD_MAX, tell_line};
use crate::exit::{FAILED, Failure, USAGE, WRONG_INPUT};
use crate::output::note;

/// How far an import is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct State {
    /// What is imported how, so that a file is not resumed as something else.
    settings: Value,
    /// What tells this import apart from others.
    id: String,
    /// How many bytes of the input are done.
    pub(super) bytes: u64,
    /// How many lines of it.
    pub(super) lines: u64,
    /// How many records were written.
    pub(super) written: u64,
    /// How many lines failed.
    pub(super) failed: u64,
}

/// The file beside the input that tells how far the import is.
pub(super) struct Journal {
    path: Option<PathBuf>,
    state: State,
    /// What failed before this process began.
    failed_before: u64,
    /// What the file was before.
    before: Option<Vec<u8>>,
}

impl Journal {
    /// For an input that cannot be read again.
    pub(super) fn none() -> Self {
        Journal { path: None, state: State::default(), failed_before: 0, before: None }
    }

    pub(super) fn open(input: &str, settings: Value, resume: bool) -> Result<Self, Failure> {
        let path = PathBuf::from(format!("{input}.progress.json"));
        let before = fs::read(&path).ok();
        let state = match (&before, resume) {
            (Some(bytes), true) => read_state(&path, bytes, &settings)?,
            (Some(_), false) => {
                note("an import of this file was interrupted; --resume would go on from there");
                State::default()
            }
            (None, true) => {
                note("nothing to resume; beginning at the first line");
                State::default()
            }
            (None, false) => State::default(),
        };
        let failed_before = state.failed;
        let state = State { settings, ..state };
        Ok(Journal { path: Some(path), state, failed_before, before })
    }

    pub(super) fn state(&self) -> &State {
        &self.state
    }

    /// Whether an earlier process began this import.
    pub(super) fn is_resumed(&self) -> bool {
        !self.state.id.is_empty()
    }

    /// Remembers that everything up to here is done.
    pub(super) fn advance(
        &mut self,
        bytes: u64,
        lines: u64,
        written: u64,
        failed: u64,
    ) -> Result<(), Failure> {
        self.state.bytes = bytes;
        self.state.lines = lines;
        self.state.written += written;
        self.state.failed = self.failed_before + failed;
        self.save()
    }

    /// Gives the id of the import, which is remembered before anything is sent.
    pub(super) fn begin(&mut self) -> Result<String, Failure> {
        if self.state.id.is_empty() {
            self.state.id = keyloom::Id::new().to_string();
            self.save()?;
        }
        Ok(self.state.id.clone())
    }

    fn save(&self) -> Result<(), Failure> {
        let Some(path) = &self.path else { return Ok(()) };
        let text = serde_json::to_vec(&self.state).unwrap_or_default();
        // Written beside and renamed, so that whoever resumes finds the old or the new one.
        let fresh = path.with_extension("json.new");
        let saved = fs::write(&fresh, text).and_then(|()| fs::rename(&fresh, path));
        saved.map_err(|error| unwritable(path, &error))
    }

    /// A failure that ends the import before its end. One that was refused as a whole leaves
    /// everything as it was.
    pub(super) fn interrupted(&self, failure: Failure) -> Failure {
        if self.state.lines == 0 && failure.did_nothing() {
            self.withdraw();
        }
        match self.path {
            Some(_) if self.state.lines > 0 => {
                let message = format!("after line {}: {}", self.state.lines, failure.message());
                Failure::new(failure.code(), message).with_hint("--resume goes on from there")
            }
            _ => failure,
        }
    }

    /// Leaves the file as it was before. Where that fails, somebody is told to resume an import
    /// that begins at its first line.
    fn withdraw(&self) {
        let Some(path) = &self.path else { return };
        let _ = match &self.before {
            Some(bytes) => fs::write(path, bytes),
            None => fs::remove_file(path),
        };
    }

    /// Nothing is left to resume.
    pub(super) fn finish(self) -> Result<(), Failure> {
        let Some(path) = &self.path else { return Ok(()) };
        match fs::remove_file(path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(unwritable(path, &error))
            }
            _ => Ok(()),
        }
    }
}

fn read_state(path: &Path, bytes: &[u8], settings: &Value) -> Result<State, Failure> {
    let state: State = serde_json::from_slice(bytes).map_err(|_| {
        Failure::new(WRONG_INPUT, format!("{} does not tell how far it was", path.display()))
            .with_hint("without --resume the import begins anew")
    })?;
    if state.settings != *settings {
        let message = "this import began with another --collection or --mode";
        return Err(Failure::new(USAGE, message)
            .with_hint(format!("it was {}; repeat it so, or begin anew", state.settings)));
    }
    Ok(state)
}

/// The lines that failed, as JSON lines in a file.
pub(super) struct Report {
    path: Option<PathBuf>,
    file: Option<File>,
    is_appended: bool,
    count: u64,
}

impl Report {
    pub(super) fn new(path: Option<PathBuf>, is_appended: bool) -> Self {
        Report { path, file: None, is_appended, count: 0 }
    }

    /// The import is under way: what an earlier one said is over.
    pub(super) fn begin(&mut self) {
        if let (Some(path), false) = (&self.path, self.is_appended) {
            // If it cannot be removed, it cannot be written either, and that is told then.
            let _ = fs::remove_file(path);
        }
        self.is_appended = true;
    }

    /// How many lines failed in this process.
    pub(super) fn count(&self) -> u64 {
        self.count
    }

    /// Where all of them are told.
    pub(super) fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    pub(super) fn add(&mut self, error: &Value) -> Result<(), Failure> {
        self.count += 1;
        if self.count <= TOLD_MAX {
            tell_line(error);
        }
        let Some(path) = &self.path else { return Ok(()) };
        let failed = |error| unwritable(path, &error);
        let file = match &mut self.file {
            Some(file) => file,
            none => {
                let mut options = OpenOptions::new();
                options.create(true).append(true);
                none.insert(options.open(path).map_err(failed)?)
            }
        };
        writeln!(file, "{error}").map_err(failed)
    }
}

fn unwritable(path: &Path, error: &std::io::Error) -> Failure {
    Failure::new(FAILED, format!("{} cannot be written: {error}", path.display()))
}
