//! `keyloom import`: JSON lines into a store.

mod chunks;
mod journal;

use std::path::PathBuf;

use axum::http::Method;
use clap::{Args, ValueEnum};
use serde_json::{Value, json};

use self::chunks::{Chunk, Chunks};
use self::journal::{Journal, Report};
use crate::cli::Place;
use crate::exit::{Failure, USAGE, WRONG_INPUT};
use crate::output::{Progress, Screen, counted, line, note};
use crate::target::{Request, Target};

/// Write records from JSON lines
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Import {
    /// The file, or - for stdin
    file: String,
    /// The collection, if the lines are bare records; otherwise each line names its own
    #[arg(long)]
    collection: Option<String>,
    /// What happens to records that are there already
    #[arg(long, value_enum, default_value_t = Mode::Put)]
    mode: Mode,
    /// Go on where an import of this file was interrupted
    #[arg(long)]
    resume: bool,
    /// Where the lines that failed are told [default: FILE.errors.jsonl]
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
}

/// What happens to records that are there already.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Mode {
    /// They are replaced; repeating a line changes nothing
    Put,
    /// They stay, and the line fails
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
with 3. Progress is kept in FILE.progress.json until the import is done.";

/// How many failed lines are told on stderr; the report has all of them.
const TOLD_MAX: u64 = 10;

impl Import {
    pub(crate) fn run(self, place: &Place) -> Result<(), Failure> {
        let is_stdin = self.file == "-";
        if is_stdin && self.resume {
            let message = "stdin cannot be resumed, since it cannot be read again";
            return Err(Failure::new(USAGE, message).with_hint("import a file"));
        }
        let settings = json!({ "collection": self.collection, "mode": self.mode_name() });
        let mut journal = match is_stdin {
            true => Journal::none(),
            false => Journal::open(&self.file, settings, self.resume)?,
        };
        let mut chunks = match is_stdin {
            true => Chunks::of_stdin(),
            false => Chunks::of_file(&self.file, journal.state())?,
        };
        let target = Target::open(place)?;
        let mut report = Report::new(self.report_path(is_stdin), journal.is_resumed());
        let progress = match chunks.size() {
            Some(size) => Progress::bytes(size, "importing"),
            None => Progress::spinner("importing"),
        };
        // An input without lines is sent too: the server may know no such collection.
        let mut next = Some(chunks.next()?.unwrap_or_else(|| chunks.end()));
        while let Some(chunk) = next {
            let (first, end) = (chunk.first_line, chunk.end);
            let id = journal.begin()?;
            let answer = target
                .value(self.request(&id, chunk))
                .map_err(|failure| journal.interrupted(failure))?;
            report.begin();
            let written = answer["written"].as_u64().unwrap_or(0);
            for error in answer["errors"].as_array().into_iter().flatten() {
                report.add(&failed_line(error, first))?;
            }
            journal.advance(end, chunks.line(), written, report.count())?;
            progress.at(end);
            next = chunks.next()?;
        }
        drop(progress);
        report.begin();
        let state = journal.state();
        let (written, failed) = (state.written, state.failed);
        journal.finish()?;
        self.tell(place, written, failed, &report)
    }

    fn request(&self, id: &str, chunk: Chunk) -> Request {
        let request = Request::new(Method::POST, &["admin", "import"])
            .param_if("collection", self.collection.as_ref())
            .param("mode", self.mode_name())
            .body("application/x-ndjson", chunk.bytes);
        match self.mode {
            Mode::Put => request,
            // A piece that is sent again, since its answer was lost, inserts nothing twice.
            Mode::Insert => request.header("idempotency-key", format!("{id}-{}", chunk.first_line)),
        }
    }

    fn mode_name(&self) -> &'static str {
        match self.mode {
            Mode::Put => "put",
            Mode::Insert => "insert",
        }
    }

    fn report_path(&self, is_stdin: bool) -> Option<PathBuf> {
        let beside = (!is_stdin).then(|| PathBuf::from(format!("{}.errors.jsonl", self.file)));
        self.report.clone().or(beside)
    }

    fn tell(
        &self,
        place: &Place,
        written: u64,
        failed: u64,
        report: &Report,
    ) -> Result<(), Failure> {
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
        // Where no line names its collection, they are records alone.
        let bare = (written == 0 && self.collection.is_none())
            .then(|| "bare records need --collection NAME".to_owned());
        let hints: Vec<String> = [bare, all].into_iter().flatten().collect();
        Err(if hints.is_empty() { failure } else { failure.with_hint(hints.join("; ")) })
    }
}

/// An error with the number of its line in the whole input.
fn failed_line(error: &Value, first: u64) -> Value {
    let line = first + error["line"].as_u64().unwrap_or(1).saturating_sub(1);
    let mut told = error.clone();
    told["line"] = line.into();
    told
}

/// Says on stderr what is wrong with a line.
fn tell_line(error: &Value) {
    let problem = &error["problem"];
    let detail = problem["detail"].as_str().or(problem["title"].as_str());
    let detail = detail.map_or_else(|| problem.to_string(), str::to_owned);
    note(&format!("line {}: {detail}", error["line"]));
}
