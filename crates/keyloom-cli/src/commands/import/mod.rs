//! `keyloom import`: imports JSON lines into a store.

mod journal;
mod report;
mod source;

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use axum::http::Method;
use clap::{Args, ValueEnum};
use serde_json::{Value, json};

use self::journal::{Done, Earlier, Journal, Settings};
use self::report::Report;
use self::source::{Batch, Source};
use crate::cli::GlobalOptions;
use crate::exit::{Failure, UNKNOWN, USAGE, WRONG_INPUT};
use crate::interrupt::unless_interrupted;
use crate::output::{Progress, Screen, counted, line, note};
use crate::target::{Request, Target};

/// Write records from JSON lines
#[derive(Clone, Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Import {
    /// The file, or - for stdin
    file: String,
    /// The collection, if the lines are bare records; otherwise each line names its own
    #[arg(long)]
    collection: Option<String>,
    /// What to do with records that exist already
    #[arg(long, value_enum, default_value_t = Mode::Put)]
    mode: Mode,
    /// Continue an interrupted import of this file; no line is written twice
    #[arg(long)]
    resume: bool,
    /// Start an interrupted import of this file again, from its first line
    #[arg(long, conflicts_with = "resume")]
    restart: bool,
    /// Where to report lines that failed [default: FILE.errors.jsonl]
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
}

/// What to do with records that exist already.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Mode {
    /// Replace them
    Put,
    /// Keep them, and report the line as failed
    Insert,
}

const EXAMPLES: &str = "\
Examples:
  keyloom import backup.jsonl
  keyloom import people.jsonl --collection user --mode insert
  keyloom import backup.jsonl --resume                    after an interruption
  zcat backup.jsonl.gz | keyloom import -

Lines are what `keyloom export` writes, or bare records with --collection. A line that cannot be
written does not stop the others: it is told with its number in the report, and the command ends
with 3.

FILE.progress.json tells how far the import is, and stays when it is finished. Whatever ends an
import, the same command with --resume goes on and writes no line twice; on a finished import it
writes nothing. It is refused if the file has changed, or if the interruption lasted longer than
the store keeps idempotency keys (24 hours unless its schema says otherwise).";

/// The type of problem of a store that does not know the last imported batch.
const UNKNOWN_BATCH: &str = "unknown-batch";

/// How far an import is, for the message if it is interrupted.
#[derive(Default)]
struct Standing {
    lines: AtomicU64,
    /// Whether it can be resumed.
    is_kept: AtomicBool,
    progress: Mutex<Option<Progress>>,
}

impl Import {
    pub(crate) fn run(self, place: &GlobalOptions) -> Result<(), Failure> {
        let standing = Arc::new(Standing::default());
        let is_resume = self.resume;
        let (worker, place) = (Arc::clone(&standing), place.clone());
        unless_interrupted(
            move || self.work(&place, &worker),
            |code| {
                standing.show(None);
                standing.stopped(Failure::new(code, "interrupted"), is_resume)
            },
        )
    }

    fn work(&self, place: &GlobalOptions, standing: &Standing) -> Result<(), Failure> {
        let mut source = Source::open(&self.file)?;
        let mut journal = self.journal(place, &source)?;
        if let Some(at) = journal.finished_at() {
            let Import { file, .. } = self;
            note(&format!("{file} was imported already, at {at}; nothing was written now"));
            return self.tell(place, journal.done(), &Report::told_before(journal.reported()));
        }
        let target = Target::open(place)?;
        let report_path = self.report_path(&journal);
        let mut report = match journal.is_resumed() {
            true => Report::go_on(report_path, journal.reported())?,
            false => {
                // The store may not have this collection; then it must fail before anything has
                // happened.
                target.value(self.request(journal.key(), None, Vec::new()))?;
                journal.begin()?;
                Report::begin(report_path)
            }
        };
        standing.show(Some(match source.print() {
            Some(print) => Progress::bytes(print.bytes, "importing"),
            None => Progress::spinner("importing"),
        }));
        standing.is_at(&journal);
        let done = self.write_batches(&target, &mut source, &mut journal, &mut report, standing);
        standing.show(None);
        done.map_err(|failure| standing.stopped(failure, self.resume))?;
        self.tell(place, journal.done(), &report)
    }

    fn journal(&self, place: &GlobalOptions, source: &Source) -> Result<Journal, Failure> {
        let settings = Settings {
            collection: self.collection.clone(),
            mode: self.mode_name().to_owned(),
            space: place.space.clone(),
        };
        let Some(print) = source.print() else {
            if self.resume {
                let message =
                    format!("{} cannot be resumed, since it cannot be read again", source.name());
                return Err(Failure::new(USAGE, message).with_hint("write it to a file first"));
            }
            return Ok(Journal::unwritten(settings));
        };
        let earlier = match (self.resume, self.restart) {
            (true, _) => Earlier::Resume,
            (_, true) => Earlier::Restart,
            _ => Earlier::Respect,
        };
        let target = place.server().unwrap_or_else(|| place.address());
        Journal::open(&self.file, settings, target, print.clone(), earlier)
    }

    fn write_batches(
        &self,
        target: &Target,
        source: &mut Source,
        journal: &mut Journal,
        report: &mut Report,
        standing: &Standing,
    ) -> Result<(), Failure> {
        let done = journal.done();
        source.go_to(done.bytes, done.lines)?;
        // The first batch after a resume may have been written already, and the store must know its
        // predecessor.
        let mut after = journal.is_resumed().then(|| journal.last_key().to_owned());
        while let Some(Batch { text, first_line }) = source.next(journal.batch_size())? {
            let key = journal.key_of_batch(first_line);
            let request = self.request(&key, after.take(), text);
            let answer = target.value(request).map_err(|failure| match failure.kind() {
                Some(UNKNOWN_BATCH) => failure.with_hint(journal.traces()),
                _ => failure,
            })?;
            let errors = failed_lines(&answer, first_line);
            report.add(&errors)?;
            let before = journal.done();
            let done = Done {
                bytes: source.offset,
                lines: source.lines,
                written: before.written + answer["written"].as_u64().unwrap_or(0),
                failed: before.failed + errors.len() as u64,
            };
            journal.advance(key, done, report.reported())?;
            standing.is_at(journal);
        }
        journal.finish()
    }

    /// A batch, which happens once however often it is sent with its key.
    fn request(&self, key: &str, after: Option<String>, lines: Vec<u8>) -> Request {
        Request::new(Method::POST, &["admin", "import"])
            .param_if("collection", self.collection.as_ref())
            .param("mode", self.mode_name())
            .param("batch", true)
            .param_if("after", after)
            .header("idempotency-key", key)
            .body("application/x-ndjson", lines)
    }

    fn mode_name(&self) -> &'static str {
        match self.mode {
            Mode::Put => "put",
            Mode::Insert => "insert",
        }
    }

    /// Where failed lines are reported: in the given file, in the earlier report, or beside the
    /// source.
    fn report_path(&self, journal: &Journal) -> Option<PathBuf> {
        let before = journal.reported().map(|before| before.path.clone());
        let beside = || PathBuf::from(format!("{}.errors.jsonl", self.file));
        self.report.clone().or(before).or_else(|| journal.is_beside_file().then(beside))
    }

    fn tell(&self, place: &GlobalOptions, done: Done, report: &Report) -> Result<(), Failure> {
        let Done { written, failed, .. } = done;
        let screen = Screen::of(place);
        match screen.is_for_people() {
            true => line(&format!("{} imported", counted(written, "record")))?,
            false => screen.json(&json!({ "written": written, "failed": failed }))?,
        }
        if failed == 0 {
            return Ok(());
        }
        let failure = Failure::new(WRONG_INPUT, format!("{} failed", counted(failed, "line")));
        let all = report.path().map(|path| format!("all of them are in {}", path.display()));
        // If no line names its collection, they are bare records.
        let bare = (written == 0 && self.collection.is_none())
            .then(|| "bare records need --collection NAME".to_owned());
        let hints: Vec<String> = [bare, all].into_iter().flatten().collect();
        Err(if hints.is_empty() { failure } else { failure.with_hint(hints.join("; ")) })
    }
}

impl Standing {
    fn show(&self, progress: Option<Progress>) {
        *self.progress.lock().unwrap_or_else(PoisonError::into_inner) = progress;
    }

    fn is_at(&self, journal: &Journal) {
        let Done { bytes, lines, .. } = journal.done();
        self.lines.store(lines, Ordering::Relaxed);
        self.is_kept.store(journal.is_kept(), Ordering::Relaxed);
        let progress = self.progress.lock().unwrap_or_else(PoisonError::into_inner);
        progress.iter().for_each(|progress| progress.at(bytes));
    }

    /// A failure that ends the import early, with a hint at how to continue.
    fn stopped(&self, failure: Failure, is_resume: bool) -> Failure {
        let lines = self.lines.load(Ordering::Relaxed);
        let is_kept = self.is_kept.load(Ordering::Relaxed);
        let failure = match lines {
            0 => failure,
            lines => failure.after(&format!("after line {lines}")),
        };
        let again = if is_resume { "the same command" } else { "the same command with --resume" };
        let go_on = match (is_kept, lines) {
            (true, _) => format!("{again} goes on, and writes nothing twice"),
            (false, 0) => return failure,
            (false, lines) => format!(
                "lines 1 to {lines} are done, and some behind them may be; \
                 an import of a file can be resumed"
            ),
        };
        match failure.code() {
            // Nobody has to find out what happened: resuming does.
            UNKNOWN => failure.with_hint(go_on),
            // Resuming would be refused again.
            _ if failure.kind() == Some(UNKNOWN_BATCH) => failure,
            _ => failure.with_further_hint(&go_on),
        }
    }
}

/// The refused lines, with their numbers in the whole source.
fn failed_lines(answer: &Value, first_line: u64) -> Vec<Value> {
    let errors = answer["errors"].as_array().into_iter().flatten();
    let numbered = errors.map(|error| {
        let mut told = error.clone();
        told["line"] = (first_line - 1 + error["line"].as_u64().unwrap_or(1)).into();
        told
    });
    numbered.collect()
}
