//! `keyloom verify`: is every index whole?

use clap::Args;
use serde_json::{Value, json};

use super::keys::key;
use crate::cli::Place;
use crate::exit::{FAILED, Failure};
use crate::jobs;
use crate::output::{Screen, Table, cell, counted, note};
use crate::target::Target;

/// Find every entry that is missing, dangling or wrong
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Verify {}

const EXAMPLES: &str = "\
Examples:
  keyloom verify
  keyloom verify --server http://127.0.0.1:7117 --json

Reads every record and every entry, while writers go on. Ends with 1 if something was found;
`keyloom repair --dry-run` says what would mend it.";

impl Verify {
    pub(crate) fn run(self, place: &Place) -> Result<(), Failure> {
        let target = Target::open(place)?;
        let result = jobs::run(&target, jobs::request("verify", &json!({})), "verifying")?;
        let screen = Screen::of(place);
        if !screen.is_for_people() {
            screen.json(&result)?;
        }
        print_findings(screen, &result["findings"])?;
        let count = total(&result["counts"]);
        let [records, entries] = ["records", "entries"].map(|name| &result[name]);
        let looked_at = format!(
            "{} and {}",
            counted(records.as_u64().unwrap_or(0), "record"),
            counted(entries.as_u64().unwrap_or(0), "entry")
        );
        if count == 0 {
            note(&format!("everything is whole: {looked_at}"));
            return Ok(());
        }
        Err(Failure::new(FAILED, format!("{} in {looked_at}", counted(count, "finding")))
            .with_hint("`keyloom repair --dry-run` says what would mend it"))
    }
}

/// How many findings there are, of all kinds. The list of them may be shorter.
pub(super) fn total(counts: &Value) -> u64 {
    counts.as_object().into_iter().flatten().filter_map(|(_, count)| count.as_u64()).sum()
}

/// Prints findings for people.
pub(super) fn print_findings(screen: Screen, findings: &Value) -> Result<(), Failure> {
    if !screen.is_for_people() {
        return Ok(());
    }
    let mut table = Table::new(["kind", "collection", "index", "key", "record", "reason"]);
    for finding in findings.as_array().into_iter().flatten() {
        let named = ["kind", "collection", "index"].map(|name| cell(&finding[name]));
        let rest = [key(finding), cell(&finding["record"]), cell(&finding["reason"])];
        table.row(named.into_iter().chain(rest));
    }
    screen.table(&table)
}
