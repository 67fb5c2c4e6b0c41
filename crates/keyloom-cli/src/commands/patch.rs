//! `keyloom patch`: a part of a record.

use axum::http::Method;
use clap::Args;

use super::written;
use crate::cli::GlobalOptions;
use crate::conditions::{assignment, version};
use crate::exit::Failure;
use crate::input;
use crate::target::{Request, Target};

/// Change a part of a record
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Patch {
    /// The collection
    collection: String,
    /// The record's key
    key: String,
    /// The change, as a JSON merge patch (RFC 7386): JSON, @FILE, or - for stdin
    patch: String,
    /// Change only this version, in one attempt
    #[arg(long, value_name = "VERSION", value_parser = version)]
    if_match: Option<String>,
    /// Change only if a field has this value; may be repeated
    #[arg(long = "if", value_name = "FIELD=VALUE")]
    guards: Vec<String>,
}

const EXAMPLES: &str = r#"Examples:
  keyloom patch approval 01kb3v4n7q9w2x5y8z1a3c5e7g '{"status":"approved"}'
  keyloom patch approval 01kb3v4n7q9w2x5y8z1a3c5e7g '{"status":"denied"}' --if status=pending
  keyloom patch run 'daily-report:r17' '{"awaitingSteps":{"approve":null}}'

Members of the patch replace those of the record, objects are merged, and null removes.
Without --if-match it is tried again when somebody else writes at the same time.
Ends with 4 if the version or a guard does not hold, or a transition is not allowed."#;

impl Patch {
    pub(crate) fn run(self, place: &GlobalOptions) -> Result<(), Failure> {
        let patch = input::json(&self.patch)?;
        let path = ["collections", &self.collection, "records", &self.key];
        let mut request = Request::new(Method::PATCH, &path)
            .body("application/merge-patch+json", patch)
            .if_match(self.if_match.as_deref());
        for guard in &self.guards {
            let (field, value) = assignment(guard)?;
            request = request.param(format!("if.{field}"), value);
        }
        let answer = Target::open(place)?.ask(request)?;
        written::tell(place, "changed", &self.key, &answer)
    }
}
