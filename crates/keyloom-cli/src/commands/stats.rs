//! `keyloom stats`: how much a store holds.

use clap::Args;
use serde_json::Value;

use crate::cli::GlobalOptions;
use crate::exit::Failure;
use crate::numbers;
use crate::output::{Screen, Table, bytes, cell, grouped, line, visible};
use crate::target::{Request, Target};

/// Print what the store holds: records, entries, sizes
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Stats {
    /// Count at most this many keys for each figure; a plus marks those with more [default: 10000]
    #[arg(long, value_name = "N", value_parser = numbers::count)]
    budget: Option<usize>,
}

const EXAMPLES: &str = "\
Examples:
  keyloom stats
  keyloom stats --json | jq .collections";

impl Stats {
    pub(crate) fn run(self, place: &GlobalOptions) -> Result<(), Failure> {
        let request = Request::get(&["admin", "stats"]).param_if("budget", self.budget);
        let answer = Target::open(place)?.value(request)?;
        let screen = Screen::of(place);
        match screen.is_for_people() {
            true => tell(screen, &answer),
            false => screen.json(&answer),
        }
    }
}

fn tell(screen: Screen, answer: &Value) -> Result<(), Failure> {
    let kept = if answer["is_persistent"] == false { ", which ends with its process" } else { "" };
    line(&format!("engine: {}{kept}", visible(&cell(&answer["engine"]))))?;
    let mut table = Table::new(["collection", "index", "keys", "size", "state"]);
    for collection in answer["collections"].as_array().into_iter().flatten() {
        let name = cell(&collection["name"]);
        let [keys, size] = amount(&collection["records"]);
        table.row([&name, "", &keys, &size, ""]);
        for index in collection["indexes"].as_array().into_iter().flatten() {
            let [keys, size] = amount(&index["entries"]);
            table.row([&name, &cell(&index["name"]), &keys, &size, &cell(&index["state"])]);
        }
    }
    screen.table(&table)?;
    let mut figures = Table::new(["figure", "value"]);
    for figure in answer["figures"].as_array().into_iter().flatten() {
        let value = match (figure["value"].as_u64(), figure["unit"].as_str()) {
            (Some(size), Some("bytes")) => bytes(size),
            (Some(count), Some("count") | None) => grouped(count),
            (_, unit) => format!("{} {}", cell(&figure["value"]), unit.unwrap_or_default()),
        };
        figures.row([cell(&figure["name"]), value]);
    }
    line("")?;
    screen.table(&figures)
}

/// Keys and bytes; a plus marks numbers that were counted only in part.
fn amount(amount: &Value) -> [String; 2] {
    let at_least = if amount["is_exact"] == false { "+" } else { "" };
    let number = |name: &str| amount[name].as_u64().unwrap_or(0);
    [
        format!("{}{at_least}", grouped(number("keys"))),
        format!("{}{at_least}", bytes(number("bytes"))),
    ]
}
