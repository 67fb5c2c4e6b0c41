//! `keyloom increment`: counters of a record.

use axum::http::Method;
use clap::Args;
use serde_json::{Map, Value};

use crate::cli::GlobalOptions;
use crate::conditions::assignment;
use crate::exit::{Failure, USAGE};
use crate::output::{Screen, Table, cell, line};
use crate::target::{Request, Target};

/// Add to counters of a record, all at once
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Increment {
    /// The collection
    collection: String,
    /// The record's key
    key: String,
    /// Counters and what to add to them: stats.running=+1 stats.awaiting=-1
    #[arg(required = true, value_name = "COUNTER=N")]
    counters: Vec<String>,
}

const EXAMPLES: &str = "\
Examples:
  keyloom increment flow daily-report stats.running=+1
  keyloom increment flow daily-report stats.running=-1 stats.success=+1

Several counters change in one step. It never conflicts with other writers, and a bound that
would be broken changes nothing and ends with 4.";

impl Increment {
    pub(crate) fn run(self, place: &GlobalOptions) -> Result<(), Failure> {
        let mut deltas = Map::new();
        for text in &self.counters {
            let (counter, delta) = assignment(text)?;
            if deltas.insert(counter.to_owned(), Value::from(number(counter, delta)?)).is_some() {
                return Err(Failure::new(USAGE, format!("the counter {counter} comes twice")));
            }
        }
        let path = ["collections", &self.collection, "records", &self.key, "increment"];
        let request = Request::new(Method::POST, &path).json(Value::Object(deltas).to_string());
        let answer = Target::open(place)?.ask(request)?;
        let screen = Screen::of(place);
        // A caller that may only write does not get the values of the counters.
        let values = if answer.body.is_empty() { Value::Null } else { answer.json()? };
        if screen.is_for_people() && values.is_null() {
            return line("added; this token does not see the values");
        }
        if !screen.is_for_people() {
            return screen.json(&values);
        }
        let mut table = Table::new(["counter", "value"]);
        for (counter, value) in values.as_object().into_iter().flatten() {
            table.row([counter, &cell(value)]);
        }
        screen.table(&table)
    }
}

fn number(counter: &str, text: &str) -> Result<i64, Failure> {
    text.parse().map_err(|_| {
        let message = format!("{counter}: {text:?} is not a whole number of 64 bits");
        Failure::new(USAGE, message).with_hint("as in stats.running=+1 or stats.running=-1")
    })
}
