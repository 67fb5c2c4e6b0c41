//! `keyloom watch`: prints the change log as it grows.

use std::io::{BufRead, BufReader, Read};
use std::time::Duration;

use clap::Args;
use serde_json::Value;

use crate::cli::GlobalOptions;
use crate::exit::{Failure, UNREACHABLE, USAGE};
use crate::numbers;
use crate::output::{Screen, cell, line, moment, note, visible};
use crate::target::{Request, Target, runtime};

/// Print changes as they happen, one line each
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Watch {
    /// Begin at this position of the log, instead of now; with --once, instead of the oldest
    #[arg(long, value_name = "POSITION")]
    from: Option<String>,
    /// Only changes of this collection
    #[arg(long)]
    collection: Option<String>,
    /// Only changes of records whose keys have this prefix
    #[arg(long)]
    prefix: Option<String>,
    /// Exit after this many commits
    #[arg(long, value_name = "N", value_parser = numbers::count)]
    count: Option<usize>,
    /// Print what the log has and exit, instead of waiting
    #[arg(long)]
    once: bool,
}

const EXAMPLES: &str = "\
Examples:
  keyloom watch --server http://127.0.0.1:7117
  keyloom watch --server http://127.0.0.1:7117 --collection approval --json | jq .changes
  keyloom watch --once

The schema must declare a [log]. A connection that breaks is taken up again where it was.";

/// The longest pause before connecting again.
const PAUSE_MAX: Duration = Duration::from_secs(30);

impl Watch {
    pub(crate) fn run(self, place: &GlobalOptions) -> Result<(), Failure> {
        let target = Target::open(place)?;
        let screen = Screen::of(place);
        if self.once {
            return self.read(&target, screen);
        }
        if !target.is_remote() {
            let message = "nobody else can write to a store while this command holds it";
            return Err(Failure::new(USAGE, message).with_hint(
                "watch a running server with --server URL, or print the log with --once",
            ));
        }
        self.follow(&target, screen)
    }

    fn request(&self) -> Request {
        Request::get(&["changes"])
            .param_if("collection", self.collection.as_ref())
            .param_if("prefix", self.prefix.as_ref())
    }

    /// Prints what the log has now.
    fn read(&self, target: &Target, screen: Screen) -> Result<(), Failure> {
        // Without a position, it starts at the oldest one that the log has.
        let mut from = self.from.clone();
        let mut left = self.count.unwrap_or(usize::MAX);
        loop {
            let page = target.value(self.request().param_if("from", from.as_ref()))?;
            let commits = page["commits"].as_array().map_or(&[][..], Vec::as_slice);
            for commit in commits.iter().take(left) {
                print(screen, commit)?;
                left -= 1;
            }
            let next = Some(cell(&page["next"]));
            if left == 0 || page["is_end"] == true || next == from {
                return Ok(());
            }
            from = next;
        }
    }

    /// Prints changes as they come, until there were enough or somebody stops it.
    fn follow(&self, target: &Target, screen: Screen) -> Result<(), Failure> {
        let mut last: Option<String> = None;
        let mut left = self.count.unwrap_or(usize::MAX);
        let mut pause = Duration::from_millis(500);
        let clock = runtime()?;
        let mut is_first = true;
        loop {
            let mut request = self.request().header("accept", "text/event-stream");
            request = match &last {
                Some(last) => request.header("last-event-id", last),
                None => request.param_if("from", self.from.as_ref()),
            };
            match target.stream(request) {
                Ok(stream) => {
                    pause = Duration::from_millis(500);
                    let mut events = Events::new(stream);
                    while let Some(commit) = events.next()? {
                        print(screen, &commit)?;
                        left -= 1;
                        if left == 0 {
                            return Ok(());
                        }
                    }
                    last = events.last.or(last);
                }
                Err(failure) if is_first || failure.code() != UNREACHABLE => return Err(failure),
                Err(_) => {}
            }
            is_first = false;
            note("the connection is lost; trying again");
            clock.block_on(async { tokio::time::sleep(pause).await });
            pause = (pause * 2).min(PAUSE_MAX);
        }
    }
}

/// Prints one commit: a line for each of its changes, or the commit itself for programs.
fn print(screen: Screen, commit: &Value) -> Result<(), Failure> {
    if !screen.is_for_people() {
        return screen.json(commit);
    }
    let at = commit["at"].as_i64().map(moment).unwrap_or_default();
    let by = commit["by"].as_str().map(|by| format!(" by {by}")).unwrap_or_default();
    if commit["is_schema_change"] == true {
        line(&visible(&format!("{at} the schema changed{by}")))?;
    }
    for change in commit["changes"].as_array().into_iter().flatten() {
        let [collection, key] = ["collection", "stored_at"].map(|name| cell(&change[name]));
        let shown = match (change["became"].as_str(), &change["increments"]) {
            (Some("deleted"), _) => "deleted".to_owned(),
            (Some("untouched"), increments) => format!("incremented {increments}"),
            _ => format!("written {}", change["record"]),
        };
        line(&visible(&format!("{at} {collection} {key}{by} {shown}")))?;
    }
    Ok(())
}

/// Server-sent events, as they arrive.
struct Events {
    lines: BufReader<Box<dyn Read + Send>>,
    /// The last reported position, including those in signs of life.
    last: Option<String>,
}

impl Events {
    fn new(stream: Box<dyn Read + Send>) -> Self {
        Events { lines: BufReader::new(stream), last: None }
    }

    /// The next commit; `None` if the stream ends or breaks. A problem that ends it for good is an
    /// error.
    fn next(&mut self) -> Result<Option<Value>, Failure> {
        let (mut name, mut data) = (String::new(), String::new());
        loop {
            let mut text = String::new();
            if self.lines.read_line(&mut text).unwrap_or(0) == 0 {
                return Ok(None);
            }
            let text = text.trim_end_matches(['\n', '\r']);
            let (field, value) = text.split_once(':').unwrap_or((text, ""));
            let value = value.strip_prefix(' ').unwrap_or(value);
            match field {
                "id" => self.last = Some(value.to_owned()),
                "event" => value.clone_into(&mut name),
                "data" => data.push_str(value),
                _ if !text.is_empty() || data.is_empty() => {}
                _ => {
                    let told: Value = serde_json::from_str(&data).unwrap_or_default();
                    return match name.as_str() {
                        "problem" => ended(&told),
                        _ => Ok(Some(told)),
                    };
                }
            }
        }
    }
}

/// A server that stops may come back; any other problem ends the watch.
fn ended(problem: &Value) -> Result<Option<Value>, Failure> {
    let failure = Failure::of_problem(problem);
    if failure.code() == UNREACHABLE { Ok(None) } else { Err(failure) }
}
