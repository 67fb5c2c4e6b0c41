//! Turns the library's errors into problems, with only the details that the caller may see.

use axum::http::{HeaderValue, StatusCode, header};
use keyloom::{Document, Error, ErrorKind, Fate};
use serde_json::{Map, Value, json};

use super::kinds::{self, Kind};
use super::{Problem, UNKNOWN_COLLECTION};
use crate::repeats;

/// The details of a server error that a caller may see.
const TOLD_OF_SERVER_ERRORS: &[&str] = &["collection", "index", "aggregate", "advice"];

/// The further details that are logged. They never include keys, values or paths: more people read
/// a log than the store, and logs are kept longer. `keyloom verify` finds the record.
const LOGGED: &[&str] =
    &["space", "engine", "failed to", "format", "known", "understood", "attempts", "counter"];

/// Details that no answer has, since they show where the store is.
const NEVER_TOLD: &[&str] = &["path", "file", "folder", "address"];

/// The details for a caller who may not read the record: names, and no values.
const TOLD_OF_UNREAD: &[&str] = &["collection", "index", "aggregate", "field", "counter", "advice"];

/// How much of a record a writer sent, and therefore knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sent {
    Whole,
    Part,
}

/// The time after which a retry makes sense if an operator must act first.
const OPERATOR_SECONDS: &str = "60";

impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        if error.message() == UNKNOWN_COLLECTION {
            // Not everyone may learn the names of other collections.
            return Problem::unknown_collection();
        }
        let kind = kind_of(&error);
        let mut problem = Problem::of(kind, detail(&error, kind));
        // If a space does not keep a history or a log, nothing has failed.
        let is_failure = problem.status() != StatusCode::NOT_IMPLEMENTED;
        if problem.status().is_server_error() && is_failure {
            repeats::error(&logged(&error));
        }
        problem.fate = error.fate();
        let is_read_only = error.kind() == ErrorKind::ReadOnly;
        // An outdated version never becomes current again. A store does recover, once its operator
        // has opened it anew.
        problem.retry = match error.kind() {
            ErrorKind::VersionConflict => false,
            _ => error.is_retryable() || is_read_only,
        };
        if problem.status == StatusCode::SERVICE_UNAVAILABLE && problem.retry {
            let seconds = if is_read_only { OPERATOR_SECONDS } else { "1" };
            problem = problem.with_header(header::RETRY_AFTER, HeaderValue::from_static(seconds));
        }
        if let Some(current) = error.current() {
            problem = problem.with("current", shown(current));
        }
        problem.with("context", context(&error, kind))
    }
}

/// An error of a write, for a caller who may not read the record. It leaves out the conflicting
/// record, and values that the caller did not send.
pub(crate) fn to_writer(error: Error, sent: Sent) -> Problem {
    let is_about_stored = match error.kind() {
        ErrorKind::VersionConflict
        | ErrorKind::UniqueConflict
        | ErrorKind::IllegalTransition
        | ErrorKind::OutOfBounds => true,
        ErrorKind::InvalidRecord => sent == Sent::Part,
        _ => false,
    };
    if !is_about_stored {
        return error.into();
    }
    let bare = Error::new(error.kind(), error.message())
        .with_fate(error.fate())
        .with_retry(error.is_retryable());
    let names = error.context().filter(|(name, _)| TOLD_OF_UNREAD.contains(name));
    names.fold(bare, |bare, (name, value)| bare.with(name, value)).into()
}

/// The type of an error. Writes with an unknown outcome have one type, whatever the cause.
fn kind_of(error: &Error) -> &'static Kind {
    match error.fate() {
        Fate::MayHaveHappened => kinds::named("outcome-unknown"),
        Fate::DidNotHappen => None,
    }
    .unwrap_or_else(|| kinds::of_error(error.kind()))
}

/// An error as it is logged.
fn logged(error: &Error) -> String {
    let is_told = |name: &str, value: &str| match name {
        "reason" => is_of_system(error.kind()) && !could_name_file(value),
        name => TOLD_OF_SERVER_ERRORS.contains(&name) || LOGGED.contains(&name),
    };
    let told = error.context().filter(|(name, value)| is_told(name, value));
    let mut text = format!("{:?}: {}", error.kind(), error.message());
    if error.fate() == Fate::MayHaveHappened {
        text.push_str("; the write may have happened");
    }
    for (name, value) in told {
        text.push_str(&format!("; {name}: {value}"));
    }
    text
}

/// Whether the reason of an error comes from the operating system, such as a full disk or a file
/// that cannot be opened. The operator needs to know it. Other reasons may quote stored data.
fn is_of_system(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::Unavailable | ErrorKind::ReadOnly)
}

fn could_name_file(text: &str) -> bool {
    text.contains(['/', '\\'])
}

/// A record for a problem; without its text if that is not JSON.
fn shown(document: &Document) -> Value {
    let version = document.version.to_string();
    match document.json() {
        Ok(record) => json!({ "version": version, "record": record }),
        Err(_) => json!({ "version": version }),
    }
}

fn told<'e>(error: &'e Error, kind: &'e Kind) -> impl Iterator<Item = (&'static str, &'e str)> {
    let is_told = |name: &str| match kind.status {
        500.. => TOLD_OF_SERVER_ERRORS.contains(&name),
        _ => !NEVER_TOLD.contains(&name),
    };
    error.context().filter(move |(name, _)| is_told(name))
}

/// The error's message with its details.
fn detail(error: &Error, kind: &Kind) -> String {
    let mut detail = error.message().to_owned();
    for (name, value) in told(error, kind) {
        detail.push_str("; ");
        detail.push_str(name);
        detail.push_str(": ");
        detail.push_str(value);
    }
    detail
}

/// The error's details by name. Several values of one name become an array.
fn context(error: &Error, kind: &Kind) -> Map<String, Value> {
    let mut context: Map<String, Value> = Map::new();
    for (name, text) in told(error, kind) {
        let value = value_of(name, text);
        match context.entry(name.replace(' ', "_")) {
            serde_json::map::Entry::Vacant(place) => drop(place.insert(value)),
            serde_json::map::Entry::Occupied(mut place) => match place.get_mut() {
                Value::Array(values) => values.push(value),
                first => *first = json!([first.take(), value]),
            },
        }
    }
    context
}

/// Values of fields are JSON in sentences, and become JSON values in members.
fn value_of(name: &str, text: &str) -> Value {
    let parsed = if name == "value" { serde_json::from_str(text).ok() } else { None };
    parsed.unwrap_or_else(|| text.into())
}

/// Whether an error says that the record does not exist.
pub(crate) fn is_missing(error: &Error) -> bool {
    error.kind() == ErrorKind::NotFound
}
