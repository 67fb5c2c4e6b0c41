//! `keyloom build`: makes an index ready.

use clap::Args;
use serde_json::json;

use super::pace::Pace;
use crate::cli::GlobalOptions;
use crate::exit::Failure;
use crate::jobs;
use crate::output::{Screen, line, visible};
use crate::target::Target;

/// Fill an index, a count or a sum from the existing records, while writers go on
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Build {
    /// The collection
    collection: String,
    /// The index, count or sum
    index: String,
    #[command(flatten)]
    pace: Pace,
}

const EXAMPLES: &str = "\
Examples:
  keyloom build approval requester
  keyloom build approval code --server http://127.0.0.1:7117

A build that was interrupted goes on when it is run again.";

impl Build {
    pub(crate) fn run(self, place: &GlobalOptions) -> Result<(), Failure> {
        let Build { collection, index, pace } = self;
        let target = Target::open(place)?;
        let body = pace.say(json!({ "collection": collection, "index": index }));
        let result = jobs::run(&target, jobs::request("build", &body), "building")?;
        let screen = Screen::of(place);
        match screen.is_for_people() {
            true => line(&format!("{}.{} is ready", visible(&collection), visible(&index))),
            false => screen.json(&result),
        }
    }
}
