//! `keyloom verify`: is every index whole?

use clap::Args;
use serde_json::{Value, json};

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
        let count = print_findings(screen, &result)?;
        if count == 0 {
            if screen.is_for_people() {
                note("everything is whole");
            }
            return Ok(());
        }
        Err(Failure::new(FAILED, format!("{} found", counted(count, "finding")))
            .with_hint("`keyloom repair --dry-run` says what would mend it"))
    }
}

/// Prints findings, and says how many there are; the list may be shorter.
pub(super) fn print_findings(screen: Screen, result: &Value) -> Result<u64, Failure> {
    let findings = result["findings"].as_array().map_or(&[][..], Vec::as_slice);
    if screen.is_for_people() {
        let mut table = Table::new(["kind", "collection", "index", "key", "detail"]);
        for finding in findings {
            let detail = ["detail", "reason", "record", "message"];
            let detail = detail.into_iter().map(|name| cell(&finding[name]));
            let detail = detail.filter(|text| !text.is_empty()).collect::<Vec<_>>().join("; ");
            let named = ["kind", "collection", "index", "key"].map(|name| cell(&finding[name]));
            table.row(named.into_iter().chain([detail]));
        }
        screen.table(&table)?;
    } else {
        screen.json(result)?;
    }
    Ok(findings.len() as u64)
}
