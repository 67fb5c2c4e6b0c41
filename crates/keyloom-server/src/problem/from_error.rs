//! From the library's errors to problems: what the caller may know, and nothing else.

use axum::http::{HeaderValue, StatusCode, header};
use keyloom::{Document, Error, ErrorKind, Fate};
use serde_json::{Map, Value, json};

use super::Problem;
use super::kinds::{self, Kind};

/// What an error of the server's own may tell. All else goes to the log.
const TOLD_OF_SERVER_ERRORS: &[&str] = &["collection", "index", "aggregate", "advice"];

/// What no answer tells: where the store lies.
const NEVER_TOLD: &[&str] = &["path", "file", "folder", "address"];

/// How the library says that there is no such collection.
const UNKNOWN_COLLECTION: &str = "the schema has no collection of that name";

impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        if error.message() == UNKNOWN_COLLECTION {
            // The names of other collections are not for everyone.
            return Problem::not_found(UNKNOWN_COLLECTION);
        }
        let kind = kind_of(&error);
        let mut problem = Problem::of(kind, detail(&error, kind));
        if problem.status().is_server_error() {
            tracing::error!(error = ?error, "a request failed");
        }
        problem.fate = error.fate();
        // A version that is over does not come back.
        problem.retry = error.is_retryable() && error.kind() != ErrorKind::VersionConflict;
        if problem.status == StatusCode::SERVICE_UNAVAILABLE && problem.retry {
            problem = problem.with_header(header::RETRY_AFTER, HeaderValue::from_static("1"));
        }
        if let Some(current) = error.current() {
            problem = problem.with("current", shown(current));
        }
        problem.with("context", context(&error, kind))
    }
}

/// The type of an error. A write whose outcome is not known is told alike, whatever the cause.
fn kind_of(error: &Error) -> &'static Kind {
    match error.fate() {
        Fate::MayHaveHappened => kinds::named("outcome-unknown"),
        Fate::DidNotHappen => None,
    }
    .unwrap_or_else(|| kinds::of_error(error.kind()))
}

/// A record beside a problem; without its text if that is no JSON.
fn shown(document: &Document) -> Value {
    let version = document.version().to_string();
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

/// The sentence of the error, and what belongs to it.
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

/// What belongs to the error, by name. Several values of one name become an array.
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

/// Values of fields are shown as JSON in sentences, and are themselves in members.
fn value_of(name: &str, text: &str) -> Value {
    let parsed = if name == "value" { serde_json::from_str(text).ok() } else { None };
    parsed.unwrap_or_else(|| text.into())
}

/// Whether an error says that there is no such record.
pub(crate) fn is_missing(error: &Error) -> bool {
    error.kind() == ErrorKind::NotFound
}
