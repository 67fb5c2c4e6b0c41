//! The state of an import, in a file beside its source: what it imports, how far it is, and whether
//! it is finished.
//!
//! The idempotency key of every batch is made of the import's key and the batch's first line. The
//! file is written before a batch is sent, and after it is answered. So however the import ends,
//! the file says which batches are done. At most one more batch was sent, and the store knows its
//! key.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

use keyloom::{Id, Timestamp};
use serde::{Deserialize, Serialize};

use super::report::Reported;
use super::source::{BATCH_SIZE, BatchSize, Print};
use crate::exit::{CONFLICT, FAILED, Failure, USAGE, WRONG_INPUT};
use crate::output::{counted, moment, note};

const FORMAT: u32 = 1;

/// The settings of an import. A resumed import must have the same ones.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Settings {
    pub(super) collection: Option<String>,
    pub(super) mode: String,
    pub(super) space: String,
}

/// The progress of an import.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Done {
    /// How many bytes of the source are done.
    pub(super) bytes: u64,
    /// How many lines of the source are done.
    pub(super) lines: u64,
    /// How many records were written.
    pub(super) written: u64,
    /// How many lines failed.
    pub(super) failed: u64,
}

/// The content of the file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct State {
    format: u32,
    /// A key that distinguishes this import from others.
    import: String,
    settings: Settings,
    /// The target, for people.
    target: String,
    source: Print,
    batch: BatchSize,
    done: Done,
    is_finished: bool,
    /// The key of the last batch that is done, or of the import itself before the first batch.
    last_key: String,
    report: Option<Reported>,
    /// When this was written, in milliseconds since 1970.
    at: i64,
}

/// The file beside the source. A source that can be read only once has none.
pub(super) struct Journal {
    path: Option<PathBuf>,
    state: State,
    is_resumed: bool,
}

/// What to do about an earlier import of the same file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Earlier {
    /// Continue it.
    Resume,
    /// Discard its state.
    Restart,
    /// Refuse to start if it was interrupted.
    Respect,
}

impl Journal {
    /// A new import of a source that can be read only once.
    pub(super) fn unwritten(settings: Settings) -> Self {
        let source = Print::default();
        Journal {
            path: None,
            state: State::new(settings, String::new(), source),
            is_resumed: false,
        }
    }

    /// The import of a file: a new one, or the one that is resumed.
    pub(super) fn open(
        file: &str,
        settings: Settings,
        target: String,
        source: Print,
        earlier: Earlier,
    ) -> Result<Self, Failure> {
        let path = PathBuf::from(format!("{file}.progress.json"));
        let found = read(&path)?;
        let fresh = State::new(settings, target, source);
        let state = match (found, earlier) {
            (Some(found), Earlier::Resume) => found?.resumed_as(file, &path, &fresh)?,
            (Some(found), Earlier::Respect) => {
                found?.respected(file)?;
                fresh
            }
            (None, Earlier::Resume) => {
                note(&format!("nothing to resume: no import of {file} was begun; it begins now"));
                fresh
            }
            (_, Earlier::Restart) | (None, Earlier::Respect) => fresh,
        };
        let is_resumed = !state.last_key.is_empty();
        Ok(Journal { path: Some(path), state, is_resumed })
    }

    /// Whether the source is a file, so that the state can be stored beside it.
    pub(super) fn is_beside_file(&self) -> bool {
        self.path.is_some()
    }

    /// Where and when the import worked, for a person who looks for it.
    pub(super) fn traces(&self) -> String {
        let State { target, done, at, .. } = &self.state;
        format!(
            "the import was at work on {target} until {}, and lines 1 to {} were done; \
             ask that store, or see which lines behind them are there and import the others",
            moment(*at),
            done.lines
        )
    }

    /// Whether an earlier process began this import.
    pub(super) fn is_resumed(&self) -> bool {
        self.is_resumed
    }

    /// Whether the import can be resumed if it ends now.
    pub(super) fn is_kept(&self) -> bool {
        self.path.is_some() && !self.state.last_key.is_empty()
    }

    /// When an earlier process finished this import.
    pub(super) fn finished_at(&self) -> Option<String> {
        self.state.is_finished.then(|| moment(self.state.at))
    }

    pub(super) fn done(&self) -> Done {
        self.state.done
    }

    pub(super) fn batch_size(&self) -> BatchSize {
        self.state.batch
    }

    /// How much an earlier process reported about lines that failed.
    pub(super) fn reported(&self) -> Option<&Reported> {
        self.state.report.as_ref()
    }

    /// The key of the import itself.
    pub(super) fn key(&self) -> &str {
        &self.state.import
    }

    /// The key of the batch that begins with this line.
    pub(super) fn key_of_batch(&self, first_line: u64) -> String {
        format!("{}-{first_line}", self.state.import)
    }

    /// The key of the last batch that is done.
    pub(super) fn last_key(&self) -> &str {
        &self.state.last_key
    }

    /// Records that the store knows the import.
    pub(super) fn begin(&mut self) -> Result<(), Failure> {
        self.state.last_key = self.state.import.clone();
        self.save()
    }

    /// Records that everything up to here is done.
    pub(super) fn advance(
        &mut self,
        key: String,
        done: Done,
        report: Option<Reported>,
    ) -> Result<(), Failure> {
        (self.state.last_key, self.state.done, self.state.report) = (key, done, report);
        self.save()
    }

    /// Records that the import is finished.
    pub(super) fn finish(&mut self) -> Result<(), Failure> {
        self.state.is_finished = true;
        self.save()
    }

    /// Writes a new file, syncs it, and renames it. So whoever resumes finds a complete file.
    fn save(&mut self) -> Result<(), Failure> {
        let Some(path) = &self.path else { return Ok(()) };
        self.state.at = now();
        let fresh = path.with_extension("json.new");
        let saved =
            serde_json::to_vec(&self.state).map_err(std::io::Error::from).and_then(|text| {
                let mut file = File::create(&fresh)?;
                file.write_all(&text)?;
                file.sync_data()?;
                fs::rename(&fresh, path)
            });
        saved.map_err(|error| {
            unwritable(path, &error).with_hint(
                "progress is kept beside the file; a link to it may lie in another folder",
            )
        })
    }
}

impl State {
    fn new(settings: Settings, target: String, source: Print) -> Self {
        State {
            format: FORMAT,
            import: Id::new().to_string(),
            settings,
            target,
            source,
            batch: BATCH_SIZE,
            done: Done::default(),
            is_finished: false,
            last_key: String::new(),
            report: None,
            at: now(),
        }
    }

    /// The same import, if it imports the same file with the same settings.
    fn resumed_as(self, file: &str, path: &Path, now: &State) -> Result<Self, Failure> {
        if self.settings != now.settings {
            let Settings { collection, mode, space } = &self.settings;
            let collection = collection.as_deref().unwrap_or("none");
            let message = "this import began with another --collection, --mode or --space";
            return Err(Failure::new(USAGE, message).with_hint(format!(
                "it was --collection {collection} --mode {mode} --space {space}; \
                 --restart begins a new one"
            )));
        }
        if self.source != now.source {
            let what = if self.is_finished { "was imported" } else { "began to be imported" };
            let message = format!(
                "{file} has changed since it {what}: it had {}, and has {}",
                counted(self.source.bytes, "byte"),
                match self.source.bytes == now.source.bytes {
                    true => "as many others".to_owned(),
                    false => counted(now.source.bytes, "byte"),
                }
            );
            return Err(Failure::new(WRONG_INPUT, message).with_hint(format!(
                "{} lines of what it was are done: {} tells more; --restart imports what it is \
                 now from its first line",
                self.done.lines,
                path.display()
            )));
        }
        Ok(self)
    }

    /// Refuses to import a file a second time before a first import is finished.
    fn respected(&self, file: &str) -> Result<(), Failure> {
        if self.is_finished {
            note(&format!(
                "{file} was imported before, at {}; this imports it again",
                moment(self.at)
            ));
            return Ok(());
        }
        let message = format!("an import of {file} was interrupted after line {}", self.done.lines);
        Err(Failure::new(CONFLICT, message).with_hint(
            "--resume goes on from there and writes nothing twice; --restart begins a new import",
        ))
    }
}

/// The content of the file. The inner error says that it cannot be understood.
fn read(path: &Path) -> Result<Option<Result<State, Failure>>, Failure> {
    let text = match fs::read(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        read => read.map_err(|error| {
            Failure::new(FAILED, format!("{} cannot be read: {error}", path.display()))
        })?,
    };
    let known = serde_json::from_slice(&text).ok().filter(|state: &State| state.format == FORMAT);
    Ok(Some(known.ok_or_else(|| {
        let message = format!("{} does not tell how far an earlier import was", path.display());
        Failure::new(WRONG_INPUT, message).with_hint(
            "another version may have written it; --restart begins a new import in its place",
        )
    })))
}

fn now() -> i64 {
    Timestamp::now().millis()
}

pub(super) fn unwritable(path: &Path, error: &std::io::Error) -> Failure {
    Failure::new(FAILED, format!("{} cannot be written: {error}", path.display()))
}
