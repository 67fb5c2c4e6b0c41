//! `keyloom get`: one record.

use clap::Args;
use serde_json::json;

use crate::cli::GlobalOptions;
use crate::exit::Failure;
use crate::fields::Fields;
use crate::output::{Screen, note};
use crate::target::{Request, Target};

/// Print a record
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Get {
    /// The collection
    collection: String,
    /// The record's key without the literal beginning of its template; with --by, the values of
    /// the unique index
    #[arg(required = true)]
    key: Vec<String>,
    /// Look it up by this unique index
    #[arg(long, value_name = "INDEX", conflicts_with_all = ["owner", "version", "at"])]
    by: Option<String>,
    /// Read a record of another user, if the collection lets everyone read
    #[arg(long, value_name = "USER")]
    owner: Option<String>,
    /// Read this version from the history
    #[arg(long, value_name = "VERSION", conflicts_with = "at")]
    version: Option<String>,
    /// Read the record as it was at this time: milliseconds since 1970, or an ISO-8601 time
    #[arg(long, value_name = "TIME")]
    at: Option<String>,
    #[command(flatten)]
    fields: Fields,
}

const EXAMPLES: &str = "\
Examples:
  keyloom get approval 01kb3v4n7q9w2x5y8z1a3c5e7g
  keyloom get approval --by code A-X7K9Q2
  keyloom get note n1 --act-as ana
  keyloom get preferences - --act-as ana        a record whose key is only the owner
  keyloom get approval 01kb3v4n7q9w2x5y8z1a3c5e7g --at 1767225600000
  keyloom get issue 5 --fields title,state
  keyloom get issue 5 --json | jq .record > issue.json

Values in keys are read as the declared type of their field: 5 for an integer, whose key has zeros
in front of it. Prints the record on a terminal, and its version, for --if-match, on stderr. As JSON
it is one line with key, version and record, as `query` prints each. Times are told as they are
stored. Ends with 1 if there is no such record.";

impl Get {
    pub(crate) fn run(self, place: &GlobalOptions) -> Result<(), Failure> {
        if self.by.is_none() && self.key.len() > 1 {
            return Err(Failure::new(crate::exit::USAGE, "a record has one key")
                .with_hint("as one word, as in web:5; several values go with --by INDEX"));
        }
        let target = Target::open(place)?;
        let mut parts = vec!["collections", &self.collection];
        match (&self.by, &self.owner) {
            (Some(index), _) => parts.extend(["unique", index]),
            (None, Some(owner)) => parts.extend(["owners", owner, "records"]),
            (None, None) => parts.push("records"),
        }
        parts.extend(self.key.iter().map(String::as_str));
        let request = Request::get(&parts)
            .param_if("version", self.version.as_ref())
            .param_if("at", self.at.as_ref());
        let answer = target.ask(request)?;
        let screen = Screen::of(place);
        // A look-up by another value also prints the record's key.
        let named = answer.located().or_else(|| self.key.first().cloned());
        let mut item =
            json!({ "key": named, "version": answer.version(), "record": answer.json()? });
        if let Some(owner) = &self.owner {
            // The item is an object, since it was built above.
            item["owner"] = owner.as_str().into();
        }
        self.fields.keep(&target, &self.collection, std::slice::from_mut(&mut item))?;
        if !screen.is_for_people() {
            return screen.json(&item);
        }
        screen.pretty(&item["record"])?;
        if let Some(version) = answer.version() {
            note(&format!("version {version}"));
        }
        Ok(())
    }
}
