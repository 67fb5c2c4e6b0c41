//! `keyloom get`: one record.

use clap::Args;

use crate::cli::Place;
use crate::exit::Failure;
use crate::output;
use crate::target::{Request, Target};

/// Print a record.
#[derive(Debug, Args)]
pub(crate) struct Get {
    /// The collection
    collection: String,
    /// The record's key, after the literal beginning of its template
    key: String,
}

impl Get {
    pub(crate) fn run(self, place: &Place) -> Result<(), Failure> {
        let target = Target::open(place)?;
        let path = ["collections", &self.collection, "records", &self.key];
        let answer = target.ask(Request::get(&path))?;
        output::record(place, &answer)
    }
}
