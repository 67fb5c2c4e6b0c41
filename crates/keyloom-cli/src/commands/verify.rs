//! `keyloom verify`: checks that every index is complete and correct.

use clap::Args;
use serde_json::{Value, json};

use super::keys::key;
use super::pace::Pace;
use crate::cli::GlobalOptions;
use crate::exit::{FAILED, Failure};
use crate::jobs;
use crate::output::{Screen, Table, cell, counted, line, note, visible};
use crate::target::Target;

/// Find every missing, dangling or wrong entry, and every index that is not ready
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Verify {
    #[command(flatten)]
    pace: Pace,
}

const EXAMPLES: &str = "\
Examples:
  keyloom verify
  keyloom verify --server http://127.0.0.1:7117 --json
  keyloom verify --percent-of-time 25

Reads every record and every entry, while writers go on. Ends with 1 if something was found, or if
an index failed or is not built to its end; a disabled index is told of, and ends with 0.
`keyloom repair --dry-run` says what would mend a finding.";

impl Verify {
    pub(crate) fn run(self, place: &GlobalOptions) -> Result<(), Failure> {
        verify(&Target::open(place)?, Screen::of(place), self.pace)
    }
}

/// Verifies a space, and tells what was found. Fails if that was something.
pub(super) fn verify(target: &Target, screen: Screen, pace: Pace) -> Result<(), Failure> {
    let result = jobs::run(target, jobs::request("verify", &pace.say(json!({}))), "verifying")?;
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
    let idle = Idle::of(&result);
    idle.print(screen)?;
    tell_unsettled(&result);
    if count > 0 {
        let idle = idle.clause();
        let message = format!("{} in {looked_at}{idle}", counted(count, "finding"));
        return Err(Failure::new(FAILED, message)
            .with_hint("`keyloom repair --dry-run` says what would mend it"));
    }
    if let Some(hint) = idle.hint() {
        let message = format!("no finding in {looked_at}{}", idle.clause());
        return Err(Failure::new(FAILED, message).with_hint(hint));
    }
    match idle.0.is_empty() {
        true => note(&format!("everything is whole: {looked_at}")),
        false => note(&format!("all that is in use is whole: {looked_at}{}", idle.clause())),
    }
    Ok(())
}

/// The indexes and aggregates that are not ready.
pub(super) struct Idle<'r>(&'r [Value]);

impl<'r> Idle<'r> {
    /// The ones in the result of a verification or a repair.
    pub(super) fn of(result: &'r Value) -> Self {
        Idle(result["not_ready"].as_array().map_or(&[], Vec::as_slice))
    }

    /// Prints them for people.
    pub(super) fn print(&self, screen: Screen) -> Result<(), Failure> {
        if !screen.is_for_people() {
            return Ok(());
        }
        // Not as a table, which would cut the names of conflicting records.
        for idle in self.0 {
            let [collection, index, state] =
                ["collection", "index", "state"].map(|name| cell(&idle[name]));
            let reason = match idle["reason"].as_str() {
                Some(reason) => format!(": {reason}"),
                None => String::new(),
            };
            line(&visible(&format!("{collection}.{index} is {state}{reason}")))?;
        }
        Ok(())
    }

    /// Their numbers by state: `; 1 index is failed, 2 are disabled`.
    pub(super) fn clause(&self) -> String {
        let states = ["failed", "building", "disabled"].map(|state| {
            let count = self.0.iter().filter(|idle| idle["state"] == state).count();
            (state, count)
        });
        let told = states.into_iter().filter(|(_, count)| *count > 0).map(|(state, count)| {
            let verb = if count == 1 { "is" } else { "are" };
            format!("; {} {verb} {state}", counted(count as u64, "index"))
        });
        told.collect()
    }

    /// What to do about the first one that is not disabled on purpose.
    pub(super) fn hint(&self) -> Option<String> {
        let fault = self.0.iter().find(|idle| idle["state"] != "disabled")?;
        let [collection, index] = ["collection", "index"].map(|name| cell(&fault[name]));
        let build = format!("`keyloom build {collection} {index}`");
        Some(match fault["state"] == "failed" {
            true => format!("change the records that the reason names, then {build}"),
            false => format!("{build} makes it complete"),
        })
    }
}

/// Prints that some suspicions could not be settled, if there are any.
fn tell_unsettled(result: &Value) {
    let unsettled = result["unsettled"].as_u64().unwrap_or(0);
    if unsettled > 0 {
        let what = counted(unsettled, "suspicion");
        note(&format!("{what} could not be settled while writers went on; run it again"));
    }
}

/// The number of findings of all kinds. The list of them may be shorter.
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
