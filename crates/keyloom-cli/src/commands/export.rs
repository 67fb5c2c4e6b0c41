//! `keyloom export`: records as JSON lines.

use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, BufWriter, IsTerminal, Read, Seek, SeekFrom, Write, stdout};
use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::{Value, json};

use crate::cli::GlobalOptions;
use crate::exit::{FAILED, Failure, USAGE, WRONG_INPUT};
use crate::output::{Progress, Screen, counted, grouped, line, note, visible_json, written};
use crate::target::{Request, Target};

/// Write records as JSON lines, in the order of their keys
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Export {
    /// The collections; all of them unless named
    collections: Vec<String>,
    /// Write to this file instead of stdout
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Continue after the last whole line of the file, which then shows two moments
    #[arg(long, requires = "output")]
    resume: bool,
}

const EXAMPLES: &str = "\
Examples:
  keyloom export > records.jsonl
  keyloom export approval --output approvals.jsonl
  keyloom export --output records.jsonl --resume         after an interruption
  keyloom export note | jq -c .record

Each line is {\"collection\", \"key\", \"version\", \"record\"}; `keyloom import` takes it. All lines are
of one moment, while writers go on. If the space keeps a log, the export prints its position at that
moment: `keyloom watch --from POSITION` continues from there.";

/// The record after which an export continues.
struct After {
    collection: String,
    key: String,
}

/// The result of an export.
struct Told {
    records: u64,
    /// Whether everything was read from one snapshot: `snapshot`, or else `walk`.
    consistency: String,
    position: Option<String>,
    /// Whether it continued a file with lines of an earlier snapshot.
    is_resumed: bool,
}

impl Export {
    pub(crate) fn run(self, place: &GlobalOptions) -> Result<(), Failure> {
        let target = Target::open(place)?;
        let after = match (&self.output, self.resume) {
            (Some(path), true) => last_line(path)?,
            _ => None,
        };
        let mut names = self.collections.clone();
        if let Some(after) = &after {
            if names.is_empty() {
                names = all_collections(&target)?;
            }
            let Some(place) = names.iter().position(|name| *name == after.collection) else {
                let message =
                    format!("the file ends in {}, which is not exported", after.collection);
                return Err(Failure::new(USAGE, message).with_hint("name the same collections"));
            };
            names.drain(..place);
        }
        let is_resumed = after.is_some();
        // A single request, so that all collections come from one snapshot.
        let request = Request::get(&["admin", "export"])
            .params(names.into_iter().map(|name| ("collection".to_owned(), name)))
            .param_if("after", after.map(|after| after.key));
        let opened = target.open_stream(request)?;
        let header = |name: &str| opened.header(name).map(str::to_owned);
        let consistency = header("keyloom-consistency").unwrap_or_default();
        let position = header("keyloom-log-position");
        let mut sink = self.sink()?;
        let progress = Progress::spinner("exporting");
        let copied = copy(opened.body, &mut *sink, |lines| {
            progress.tell(&format!("exporting {}", grouped(lines)))
        });
        let records = copied.map_err(|failure| match self.output {
            Some(_) if failure.code() != 0 => failure
                .with_hint("begin anew, or go on with --resume: the file is then of two moments"),
            _ => failure,
        })?;
        written(sink.flush())?;
        drop(progress);
        self.tell(place, &Told { records, consistency, position, is_resumed })
    }

    /// Prints what was exported, and from which snapshot. The output itself has only the lines.
    fn tell(&self, place: &GlobalOptions, told: &Told) -> Result<(), Failure> {
        let of = told.of();
        let screen = Screen::of(place);
        let records = counted(told.records, "record");
        match &self.output {
            None if told.position.is_none() && told.is_one() => {}
            None => note(&format!("{records} exported, {of}")),
            Some(_) if screen.is_for_people() => match told.position.is_none() && told.is_one() {
                true => line(&format!("{records} exported"))?,
                false => line(&format!("{records} exported, {of}"))?,
            },
            Some(_) => screen.json(&told.to_json())?,
        }
        Ok(())
    }

    fn sink(&self) -> Result<Box<dyn Write>, Failure> {
        let Some(path) = &self.output else {
            return Ok(match stdout().is_terminal() {
                true => Box::new(Visible(stdout())),
                false => Box::new(BufWriter::new(stdout())),
            });
        };
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(!self.resume);
        let opened = options.open(path).and_then(|mut file| {
            file.seek(SeekFrom::End(0))?;
            Ok(file)
        });
        let file = opened.map_err(|error| unwritable(path, &error))?;
        Ok(Box::new(BufWriter::new(file)))
    }
}

impl Told {
    fn is_one(&self) -> bool {
        self.consistency == "snapshot" && !self.is_resumed
    }

    /// From which snapshot the lines come.
    fn of(&self) -> String {
        match (&self.position, self.consistency.as_str()) {
            _ if self.is_resumed => "of two moments, since it was resumed".to_owned(),
            (None, "snapshot") => "all of one moment".to_owned(),
            (Some(position), "snapshot") => {
                format!("all of one moment; the log goes on at {position}")
            }
            (None, _) => "each record as it was when it was read, not of one moment".to_owned(),
            (Some(position), _) => format!(
                "each record as it was when it was read; whole with the log from {position}"
            ),
        }
    }

    fn to_json(&self) -> Value {
        let consistency = if self.is_resumed { "resumed" } else { &self.consistency };
        let mut told = json!({ "records": self.records, "consistency": consistency });
        // A position that fits only the last part of the file is useless.
        if let (Some(position), false) = (&self.position, self.is_resumed) {
            told["position"] = json!(position);
        }
        told
    }
}

fn all_collections(target: &Target) -> Result<Vec<String>, Failure> {
    let schema = target.value(Request::get(&["schema"]))?;
    let names = schema["schema"]["collection"].as_object();
    Ok(names.into_iter().flat_map(|names| names.keys().cloned()).collect())
}

/// Copies whole lines, and counts them.
fn copy(
    stream: Box<dyn Read + Send>,
    sink: &mut dyn Write,
    mut tell: impl FnMut(u64),
) -> Result<u64, Failure> {
    let mut lines = BufReader::new(stream);
    let mut count = 0;
    let mut line = Vec::new();
    loop {
        line.clear();
        let read = lines.read_until(b'\n', &mut line);
        let read = read.map_err(|error| {
            Failure::new(crate::exit::UNREACHABLE, format!("the answer broke off: {error}"))
        })?;
        if read == 0 {
            return Ok(count);
        }
        if let Some(problem) = problem_of(&line) {
            return Err(Failure::of_problem(&problem));
        }
        written(sink.write_all(&line))?;
        count += 1;
        if count % 500 == 0 {
            tell(count);
        }
    }
}

/// The problem in the last line of an export that broke off. Lines about unreadable records stay in
/// the export: they name the record.
fn problem_of(line: &[u8]) -> Option<Value> {
    if !line.starts_with(b"{\"problem\"") {
        return None;
    }
    let told: Value = serde_json::from_slice(line).ok()?;
    told.get("problem").filter(|problem| problem.is_object()).cloned()
}

/// The record of the last whole line of a file. Everything after that line is cut off.
fn last_line(path: &Path) -> Result<Option<After>, Failure> {
    let failed = |error: std::io::Error| unwritable(path, &error);
    let file = match OpenOptions::new().read(true).write(true).open(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        opened => opened.map_err(failed)?,
    };
    let (mut whole, mut last) = (0, Vec::new());
    let mut lines = BufReader::new(&file);
    let mut line = Vec::new();
    loop {
        line.clear();
        let read = lines.read_until(b'\n', &mut line).map_err(failed)?;
        if !line.ends_with(b"\n") {
            break;
        }
        whole += read as u64;
        std::mem::swap(&mut last, &mut line);
    }
    File::set_len(&file, whole).map_err(failed)?;
    if last.is_empty() {
        return Ok(None);
    }
    let value: Value = serde_json::from_slice(&last).unwrap_or_default();
    match (value["collection"].as_str(), value["key"].as_str()) {
        (Some(collection), Some(key)) => {
            Ok(Some(After { collection: collection.to_owned(), key: key.to_owned() }))
        }
        _ => {
            let message = format!("{} does not end in a line of an export", path.display());
            Err(Failure::new(WRONG_INPUT, message).with_hint("without --resume it begins anew"))
        }
    }
}

fn unwritable(path: &Path, error: &std::io::Error) -> Failure {
    Failure::new(FAILED, format!("{} cannot be written: {error}", path.display()))
}

/// A terminal that gets no control characters.
struct Visible<W>(W);

impl<W: Write> Write for Visible<W> {
    /// Gets only whole lines of JSON.
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let text = visible_json(&String::from_utf8_lossy(bytes));
        self.0.write_all(text.as_bytes())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.0.flush()
    }
}
