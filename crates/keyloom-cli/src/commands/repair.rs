//! `keyloom repair`: mend what verify finds.

use clap::Args;
use serde_json::{Value, json};

use crate::cli::Place;
use crate::exit::Failure;
use crate::jobs;
use crate::output::{Screen, Table, cell};
use crate::target::Target;

/// Mend every entry that is missing, dangling or wrong
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Repair {
    /// Only say what would be done
    #[arg(long)]
    dry_run: bool,
}

const EXAMPLES: &str = "\
Examples:
  keyloom repair --dry-run
  keyloom repair

Records are the truth: entries that they lack are written, and entries without a record go. Each
mend rests on exactly what was read, so that writers may go on meanwhile.";

impl Repair {
    pub(crate) fn run(self, place: &Place) -> Result<(), Failure> {
        let target = Target::open(place)?;
        let body = json!({ "dry_run": self.dry_run });
        let what = if self.dry_run { "looking" } else { "repairing" };
        let result = jobs::run(&target, jobs::request("repair", &body), what)?;
        let screen = Screen::of(place);
        match screen.is_for_people() {
            true => print(screen, &result),
            false => screen.json(&result),
        }
    }
}

/// The numbers of a result, with what they count.
fn print(screen: Screen, result: &Value) -> Result<(), Failure> {
    let mut table = Table::new(["what", "count"]);
    for (name, value) in result.as_object().into_iter().flatten() {
        if value.is_number() || value.is_boolean() {
            table.row([name.replace('_', " "), cell(value)]);
        }
    }
    screen.table(&table)
}
