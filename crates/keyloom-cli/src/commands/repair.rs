//! `keyloom repair`: repairs what `verify` finds.

use clap::Args;
use serde_json::json;

use super::pace::Pace;
use super::verify::{Idle, print_findings, total};
use crate::cli::GlobalOptions;
use crate::exit::{FAILED, Failure};
use crate::jobs;
use crate::output::{Screen, counted, note};
use crate::target::Target;

/// Mend every entry that is missing, dangling or wrong
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Repair {
    /// Only print what a repair would do
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    pace: Pace,
}

const EXAMPLES: &str = "\
Examples:
  keyloom repair --dry-run
  keyloom repair

Records are the truth: entries that they lack are written, and entries without a record go. Each
mend rests on exactly what was read, so that writers may go on meanwhile. An index that failed or is
not built to its end is told of: `keyloom build` makes it ready.";

impl Repair {
    pub(crate) fn run(self, place: &GlobalOptions) -> Result<(), Failure> {
        let target = Target::open(place)?;
        let body = self.pace.say(json!({ "dry_run": self.dry_run }));
        let what = if self.dry_run { "looking" } else { "repairing" };
        let result = jobs::run(&target, jobs::request("repair", &body), what)?;
        let screen = Screen::of(place);
        if !screen.is_for_people() {
            screen.json(&result)?;
        }
        print_findings(screen, &result["mended"])?;
        let mended = counted(total(&result["mended_counts"]), "finding");
        match self.dry_run {
            true => note(&format!("{mended} would be mended; nothing was changed")),
            false => note(&format!("{mended} mended")),
        }
        let idle = Idle::of(&result);
        idle.print(screen)?;
        let left = total(&result["left_counts"]);
        if left == 0 {
            // A repair does not build indexes.
            return match idle.hint() {
                Some(hint) => {
                    let message = format!("nothing is left to mend{}", idle.clause());
                    Err(Failure::new(FAILED, message).with_hint(hint))
                }
                None => Ok(()),
            };
        }
        print_findings(screen, &result["left"])?;
        Err(Failure::new(FAILED, format!("{} cannot be mended", counted(left, "finding")))
            .with_hint("the reason says what a person has to decide"))
    }
}
