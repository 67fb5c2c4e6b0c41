//! `keyloom delete`: deletes a record with everything that belongs to it.

use axum::http::Method;
use clap::Args;
use serde_json::json;

use crate::cli::GlobalOptions;
use crate::conditions::version;
use crate::exit::Failure;
use crate::output::{Screen, line, visible};
use crate::target::{Request, Target};

/// Delete a record, with every entry that indexes hold for it
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Delete {
    /// The collection
    collection: String,
    /// The record's key
    key: String,
    /// Delete only this version
    #[arg(long, value_name = "VERSION", value_parser = version)]
    if_match: Option<String>,
}

const EXAMPLES: &str = "\
Examples:
  keyloom delete note n1 --act-as ana
  keyloom delete template welcome --if-match 01kb3v4n7q9w2x5y8z1a3c5e7g.3

Ends with 1 if there is no such record, and with 4 if it has another version.";

impl Delete {
    pub(crate) fn run(self, place: &GlobalOptions) -> Result<(), Failure> {
        let path = ["collections", &self.collection, "records", &self.key];
        let request = Request::new(Method::DELETE, &path).if_match(self.if_match.as_deref());
        Target::open(place)?.ask(request)?;
        let screen = Screen::of(place);
        match screen.is_for_people() {
            true => line(&format!("deleted {}", visible(&self.key))),
            false => screen.json(&json!({ "key": self.key, "deleted": true })),
        }
    }
}
