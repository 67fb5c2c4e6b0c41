//! Imports records from JSON lines.

mod apart;
mod batch;
mod line;
mod lines;

use axum::extract::{Request, State};
use axum::response::Response;
use axum::routing::post;
use keyloom::Store;
use serde_json::{Value, json};

use self::batch::Batch;
use self::line::{Collections, Import, Mode};
use self::lines::{Line, Lines};
use crate::api::answer;
use crate::api::routes::Routes;
use crate::app::App;
use crate::body::refuse_encodings;
use crate::caller::Caller;
use crate::params::Params;
use crate::problem::Problem;
use crate::refusal;

/// The most errors that are listed. All are counted.
const ERRORS_MAX: usize = 1_000;

/// How many lines are processed together, and their approximate number of bytes.
const WINDOW_LINES: usize = 256;
const WINDOW_BYTES: usize = 4 << 20;

/// How many records are written at once.
const AT_ONCE: usize = 32;

pub(in crate::api) fn routes() -> Routes {
    Routes::new().route("/import", post(import))
}

/// The settings of an import.
struct Task {
    store: Store,
    collections: Collections,
    /// The collection of all lines, if the request names one.
    collection: Option<String>,
    mode: Mode,
    /// The idempotency key of the request.
    once: Option<String>,
    /// Whether the whole body is a batch, which gets the same answer however often it is sent.
    is_batch: bool,
    line_bytes_max: usize,
}

/// The result of an import.
#[derive(Default)]
struct Report {
    /// The number of the last line that was read, from 1.
    lines: u64,
    written: u64,
    errors: Vec<Value>,
    errors_count: u64,
}

/// `POST /admin/import`
async fn import(
    State(app): State<App>,
    caller: Caller,
    mut params: Params,
    request: Request,
) -> Result<Response, Problem> {
    let store = caller.admin()?.clone();
    let collection = params.take("collection")?;
    let mode = mode(params.take("mode")?.as_deref())?;
    let from_line: Option<u64> = params.take_number("from_line")?;
    let batch = batch(&mut params, &caller, from_line)?;
    params.finish()?;
    refuse_encodings(request.headers())?;
    let collections = Collections::of(&store).await?;
    if let Some(name) = &collection {
        collections.check(name)?;
    }
    let limits = &app.config().limits;
    let line_bytes_max = limits.line_bytes_max;
    let once = caller.key.clone();
    let is_batch = batch.is_some();
    let task = Task { store, collections, collection, mode, once, is_batch, line_bytes_max };
    let mut report = Report::default();
    let lines = Lines::new(request.into_body(), line_bytes_max, limits.body_timeout);
    let run = async {
        match &batch {
            Some(batch) => task.run_batch(batch, lines, &mut report).await,
            None => task.run(lines, from_line.unwrap_or(1), &mut report).await,
        }
    };
    let end = tokio::select! {
        end = run => end,
        () = app.stopped() => Err(refusal::stopping()),
    };
    match end {
        Ok(()) => Ok(answer::json(&report.to_json())),
        Err(problem) => Err(problem
            .with("lines", report.lines)
            .with("written", report.written)
            .with("errors", report.errors)
            .with("errors_count", report.errors_count)),
    }
}

/// The whole body as a batch, if the request asks for that.
fn batch(
    params: &mut Params,
    caller: &Caller,
    from_line: Option<u64>,
) -> Result<Option<Batch>, Problem> {
    let (is_batch, after) = (params.take_flag("batch")?, params.take("after")?);
    let refused = |detail: &str| Err(Problem::invalid_request(detail));
    match (is_batch, caller.key.clone()) {
        (true, _) if from_line.is_some() => {
            refused("a batch is written as a whole: leave from_line out, or batch")
        }
        (true, Some(key)) => Ok(Some(Batch { key, after })),
        (true, None) => refused("a batch needs an Idempotency-Key, which stands for all its lines"),
        (false, _) if after.is_some() => refused("the parameter after goes with batch=true"),
        (false, _) => Ok(None),
    }
}

fn mode(text: Option<&str>) -> Result<Mode, Problem> {
    match text {
        None | Some("insert") => Ok(Mode::Insert),
        Some("put") => Ok(Mode::Put),
        Some(other) => {
            let detail = "the parameter mode is insert or put";
            Err(Problem::invalid_request(detail).with("value", other))
        }
    }
}

impl Task {
    /// Writes line by line. The error of a line is reported; an error of the store ends the import.
    async fn run(
        &self,
        mut lines: Lines,
        from_line: u64,
        report: &mut Report,
    ) -> Result<(), Problem> {
        let mut is_last = false;
        while !is_last {
            let mut window: Vec<(u64, Line)> = Vec::new();
            let mut bytes = 0;
            while window.len() < WINDOW_LINES && bytes < WINDOW_BYTES {
                // Lines that have arrived are written before the import waits for more.
                let line = match lines.at_hand() {
                    Some(line) => line,
                    None if !window.is_empty() => break,
                    None => match lines.next().await? {
                        Some(line) => line,
                        None => {
                            is_last = true;
                            break;
                        }
                    },
                };
                report.lines += 1;
                if report.lines < from_line {
                    continue;
                }
                bytes += if let Line::Text(text) = &line { text.len() } else { 0 };
                window.push((report.lines, line));
            }
            self.write_window(window, report).await?;
        }
        Ok(())
    }

    /// Writes some lines concurrently, but those of one record in order.
    async fn write_window(
        &self,
        window: Vec<(u64, Line)>,
        report: &mut Report,
    ) -> Result<(), Problem> {
        let mut read: Vec<(u64, Result<Import, Problem>)> = Vec::with_capacity(window.len());
        for (number, line) in window {
            match line {
                Line::Text(text) if text.trim_ascii().is_empty() => {}
                line => read.push((number, self.read(line).await)),
            }
        }
        let read = read.iter().map(|(number, read)| (*number, read.as_ref()));
        self.write_apart(read.collect(), report).await
    }

    async fn read(&self, line: Line) -> Result<Import, Problem> {
        match line {
            Line::Text(text) => {
                self.collections.read(&self.store, &text, self.collection.as_deref()).await
            }
            Line::TooLong => {
                let most = self.line_bytes_max;
                Err(refusal::limit_exceeded(format!("the line has more than {most} bytes")))
            }
        }
    }
}

impl Report {
    fn note(&mut self, line: u64, end: Result<(), Value>) {
        match end {
            Ok(()) => self.written += 1,
            Err(problem) => self.refuse(json!({"line": line, "problem": problem})),
        }
    }

    /// Adds the results of earlier lines.
    fn add(&mut self, written: u64, errors: Vec<Value>) {
        self.written += written;
        errors.into_iter().for_each(|error| self.refuse(error));
    }

    fn refuse(&mut self, error: Value) {
        self.errors_count += 1;
        if self.errors.len() < ERRORS_MAX {
            self.errors.push(error);
        }
    }

    fn to_json(&self) -> Value {
        let Report { lines, written, errors, errors_count } = self;
        json!({"lines": lines, "written": written, "errors": errors, "errors_count": errors_count})
    }
}
