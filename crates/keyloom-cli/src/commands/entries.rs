//! `keyloom entries`: every key that one record owns.

use clap::Args;

use super::keys::{key, value};
use crate::cli::GlobalOptions;
use crate::exit::Failure;
use crate::output::{Screen, Table, cell};
use crate::target::{Request, Target};

/// List every key that one record owns: itself, its entries, counters and history
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Entries {
    /// The collection
    collection: String,
    /// The record's key
    key: String,
}

const EXAMPLES: &str = "\
Examples:
  keyloom entries approval 01kb3v4n7q9w2x5y8z1a3c5e7g
  keyloom entries post ana:posts:p1 --json | jq -r .key";

impl Entries {
    pub(crate) fn run(self, place: &GlobalOptions) -> Result<(), Failure> {
        let path = ["collections", &self.collection, "records", &self.key, "entries"];
        let answer = Target::open(place)?.value(Request::get(&path))?;
        let keys = answer["keys"].as_array().map_or(&[][..], Vec::as_slice);
        let screen = Screen::of(place);
        if !screen.is_for_people() {
            return keys.iter().try_for_each(|item| screen.json(item));
        }
        let mut table = Table::new(["kind", "of", "key", "value"]);
        for item in keys {
            let missing = if item["is_present"] == false { " (missing)" } else { "" };
            let kind = format!("{}{missing}", cell(&item["kind"]));
            let of = cell(&item["index"]) + &cell(&item["aggregate"]);
            table.row([kind, of, key(item), value(item)]);
        }
        screen.table(&table)
    }
}
