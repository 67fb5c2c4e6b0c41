//! `keyloom history`: the versions of a record.

use clap::Args;
use serde_json::Value;

use crate::cli::GlobalOptions;
use crate::exit::Failure;
use crate::output::{Screen, Table, cell, line, visible};
use crate::pages::Paging;
use crate::target::{Request, Target};

/// List the versions of a record, newest first
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct History {
    /// The collection, which must declare a history
    collection: String,
    /// The record's key
    key: String,
    /// Show what each version changed
    #[arg(long)]
    diff: bool,
    #[command(flatten)]
    paging: Paging,
}

const EXAMPLES: &str = "\
Examples:
  keyloom history approval 01kb3v4n7q9w2x5y8z1a3c5e7g
  keyloom history approval 01kb3v4n7q9w2x5y8z1a3c5e7g --diff
  keyloom get approval 01kb3v4n7q9w2x5y8z1a3c5e7g --version VERSION";

impl History {
    pub(crate) fn run(self, place: &GlobalOptions) -> Result<(), Failure> {
        let path = ["collections", &self.collection, "records", &self.key, "history"];
        let target = Target::open(place)?;
        let screen = Screen::of(place);
        let diff = self.diff;
        self.paging.read(&target, screen, &Request::get(&path), "versions", |items| match diff {
            _ if !screen.is_for_people() => items.iter().try_for_each(|item| screen.json(item)),
            true => items.iter().try_for_each(|item| print_diff(screen, item)),
            false => print(screen, items),
        })
    }
}

fn print(screen: Screen, items: &[Value]) -> Result<(), Failure> {
    let mut table = Table::new(["time", "kind", "by", "version", "changed"]);
    for item in items {
        let changed = changes(item).map(path).collect::<Vec<_>>().join(" ");
        let named = ["kind", "by", "version"].map(|name| cell(&item[name]));
        table.row([time(item)].into_iter().chain(named).chain([changed]));
    }
    screen.table(&table)
}

/// Prints a version as a heading, with a line for every value that was removed or added.
fn print_diff(screen: Screen, item: &Value) -> Result<(), Failure> {
    let by = item["by"].as_str().map(|by| format!(" by {by}")).unwrap_or_default();
    let head = format!("{} {}{by}  {}", time(item), cell(&item["kind"]), cell(&item["version"]));
    line(&screen.bold(&visible(&head)))?;
    for change in changes(item) {
        for (mark, side) in [('-', "before"), ('+', "after")] {
            if let Some(value) = change.get(side).filter(|value| !value.is_null()) {
                line(&format!(
                    "  {mark} {}: {}",
                    visible(&path(change)),
                    visible(&value.to_string())
                ))?;
            }
        }
    }
    Ok(())
}

fn changes(item: &Value) -> impl Iterator<Item = &Value> {
    item["changes"].as_array().into_iter().flatten()
}

/// The path of a changed value, with its parts joined by dots.
fn path(change: &Value) -> String {
    match &change["path"] {
        Value::Array(parts) => parts.iter().map(cell).collect::<Vec<_>>().join("."),
        other => cell(other),
    }
}

/// When the version was made.
fn time(item: &Value) -> String {
    let millis = [&item["at_ms"], &item["at"]].into_iter().find_map(Value::as_i64);
    millis.map_or_else(|| cell(&item["at"]), crate::output::moment)
}
