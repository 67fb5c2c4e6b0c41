//! `keyloom count`: how many records.

use clap::Args;

use crate::cli::GlobalOptions;
use crate::conditions::parameters;
use crate::exit::Failure;
use crate::numbers;
use crate::output::{Screen, line};
use crate::target::{Request, Target};

/// Count records, by a declared count or within a range
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Count {
    /// The collection
    collection: String,
    /// Conditions on the records: status=open 'days>=7'
    conditions: Vec<String>,
    /// Records that meet at least one of these; give two or more
    #[arg(long, value_name = "FIELD=VALUE")]
    any: Vec<String>,
    /// Use this index
    #[arg(long, value_name = "NAME")]
    index: Option<String>,
    /// Count the whole collection if no index serves
    #[arg(long)]
    scan: bool,
    /// Read at most this many entries
    #[arg(long, value_name = "N", value_parser = numbers::count)]
    limit: Option<usize>,
}

const EXAMPLES: &str = "\
Examples:
  keyloom count approval status=pending
  keyloom count run flow=daily-report status=success
  keyloom count approval requester_id=ana 'created_at>=1767225600000'

A declared count answers with one read. Otherwise the entries of an index are counted.";

impl Count {
    pub(crate) fn run(self, place: &GlobalOptions) -> Result<(), Failure> {
        let request = Request::get(&["collections", &self.collection, "count"])
            .params(parameters("where", &self.conditions)?)
            .params(parameters("any", &self.any)?)
            .param_if("index", self.index.as_ref())
            .flag("scan", self.scan)
            .param_if("limit", self.limit);
        let answer = Target::open(place)?.value(request)?;
        let screen = Screen::of(place);
        match screen.is_for_people() {
            true => line(&answer["count"].to_string()),
            false => screen.json(&answer),
        }
    }
}
