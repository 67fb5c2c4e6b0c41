//! `keyloom put`: a whole record.

use axum::http::Method;
use clap::Args;

use super::written;
use crate::cli::GlobalOptions;
use crate::conditions::version;
use crate::exit::{Failure, USAGE};
use crate::input;
use crate::target::{Request, Target};

/// Insert a record, or replace the one at a key
#[derive(Debug, Args)]
#[command(
    after_help = EXAMPLES,
    override_usage = "keyloom put COLLECTION RECORD\n       keyloom put COLLECTION KEY RECORD"
)]
pub(crate) struct Put {
    /// The collection
    collection: String,
    /// The key, to replace the record at it; then the record: JSON, @FILE, or -
    #[arg(required = true, num_args = 1..=2, value_names = ["KEY", "RECORD"])]
    rest: Vec<String>,
    /// Replace only this version
    #[arg(long, value_name = "VERSION", conflicts_with = "if_absent", value_parser = version)]
    if_match: Option<String>,
    /// Write only if there is no record at the key
    #[arg(long)]
    if_absent: bool,
}

const EXAMPLES: &str = r#"Examples:
  keyloom put approval '{"requester_id":"ana","approver_id":"ben","created_at":1767225600000,"status":"pending"}'
  keyloom put note n1 '{"text":"milk"}' --act-as ana
  keyloom put template welcome @welcome.json --if-absent
  jq -c . big.json | keyloom put config limits -

Without a KEY the record is inserted, and what its key needs is in the record or generated.
With a KEY it creates or replaces; the fields of the key may be left out of the record.
Ends with 4 if something is in the way: the key, a unique value, another version."#;

impl Put {
    pub(crate) fn run(self, place: &GlobalOptions) -> Result<(), Failure> {
        let Put { collection, rest, if_match, if_absent } = self;
        let (key, record) = match rest.as_slice() {
            [record] => (None, record),
            [key, record] => (Some(key), record),
            _ => return Err(Failure::new(USAGE, "a record is missing")),
        };
        let record = input::json(record)?;
        let target = Target::open(place)?;
        let Some(key) = key else {
            if if_match.is_some() {
                return Err(Failure::new(USAGE, "--if-match goes with the KEY of a record")
                    .with_hint("keyloom put COLLECTION KEY RECORD --if-match VERSION"));
            }
            let path = ["collections", &collection, "records"];
            let answer = target.ask(Request::new(Method::POST, &path).json(record))?;
            let key = answer.located().unwrap_or_default();
            return written::tell(place, "created", &key, &answer);
        };
        let path = ["collections", &collection, "records", key];
        let mut request =
            Request::new(Method::PUT, &path).json(record).if_match(if_match.as_deref());
        if if_absent {
            request = request.header("if-none-match", "*");
        }
        let answer = target.ask(request)?;
        let what = if answer.status == 201 { "created" } else { "replaced" };
        written::tell(place, what, key, &answer)
    }
}
