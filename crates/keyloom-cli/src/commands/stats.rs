//! `keyloom stats`: how much of everything there is.

use clap::Args;
use serde_json::Value;

use crate::cli::Place;
use crate::exit::Failure;
use crate::output::{Screen, cell, line, visible};
use crate::target::{Request, Target};

/// Print what the store holds: records, entries, sizes
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Stats {
    /// How many keys may be counted for each figure; more are estimated
    #[arg(long, value_name = "N")]
    budget: Option<usize>,
}

const EXAMPLES: &str = "\
Examples:
  keyloom stats
  keyloom stats --json | jq .collections";

impl Stats {
    pub(crate) fn run(self, place: &Place) -> Result<(), Failure> {
        let request = Request::get(&["admin", "stats"]).param_if("budget", self.budget);
        let answer = Target::open(place)?.value(request)?;
        let screen = Screen::of(place);
        match screen.is_for_people() {
            true => tell(screen, &answer),
            false => screen.json(&answer),
        }
    }
}

fn tell(_screen: Screen, answer: &Value) -> Result<(), Failure> {
    answer.as_object().into_iter().flatten().try_for_each(|(name, value)| {
        line(&format!("{}: {}", visible(name), visible(&cell(value))))
    })
}
