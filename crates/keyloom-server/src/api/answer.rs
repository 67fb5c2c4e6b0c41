//! Answers of JSON, and of one record.

use std::fmt::Write as _;

use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use keyloom::{CollectionDeclaration, Document, Stored, Version};
use serde::de::IgnoredAny;
use serde_json::Value;

use super::conditions;
use crate::guard::HEADERS_MAX;
use crate::problem::Problem;
use crate::repeats;

const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// JSON that was put together.
pub(super) fn json(value: &Value) -> Response {
    text(value.to_string())
}

/// JSON that was written.
pub(super) fn text(text: impl Into<Body>) -> Response {
    ([(header::CONTENT_TYPE, JSON)], text.into()).into_response()
}

/// A record in a version, as text.
pub(super) struct RecordText {
    pub(super) version: Version,
    pub(super) text: axum::body::Bytes,
}

/// Whether a version stands for the whole text of a record. Counters are shown in a record and
/// change without its version, so that a caller who has the version may not have the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Validator {
    Exact,
    WithoutCounters,
}

impl Validator {
    pub(super) fn of(declaration: &CollectionDeclaration) -> Self {
        match declaration.counters.is_empty() {
            true => Validator::Exact,
            false => Validator::WithoutCounters,
        }
    }
}

impl RecordText {
    /// A record as it is stored. One that is no JSON cannot be sent as such.
    pub(super) fn of(document: Document) -> Result<Self, Problem> {
        match is_json(document.text()) {
            true => Ok(RecordText { version: document.version, text: document.into_text() }),
            false => {
                repeats::error("a stored record is no JSON; keyloom verify finds it");
                Err(Problem::corrupt("the record in the store is no JSON"))
            }
        }
    }

    /// A record that was read from a history.
    pub(super) fn of_past(stored: &Stored<Value>) -> Self {
        RecordText { version: stored.version, text: stored.value.to_string().into() }
    }

    /// The answer with the record.
    pub(super) fn into_answer(self, status: StatusCode) -> Response {
        let mut answer = Response::new(Body::from(self.text));
        *answer.status_mut() = status;
        let headers = answer.headers_mut();
        headers.reserve(HEADERS_MAX);
        headers.insert(header::CONTENT_TYPE, JSON);
        headers.insert(header::ETAG, etag(self.version));
        answer
    }

    /// The answer to a read, which may depend on what the caller has.
    pub(super) fn into_conditional(
        self,
        headers: &HeaderMap,
        validator: Validator,
    ) -> Result<Response, Problem> {
        let version = self.version;
        if let Some(tags) = conditions::if_match(headers)?
            && !tags.match_strongly(version)
        {
            let detail = "the record is in none of the versions that If-Match names";
            return Err(Problem::precondition_failed(detail).with("version", version.to_string()));
        }
        match conditions::if_none_match(headers)? {
            Some(tags) if validator == Validator::Exact && tags.match_weakly(version) => {
                Ok((StatusCode::NOT_MODIFIED, [(header::ETAG, etag(version))]).into_response())
            }
            _ => Ok(self.into_answer(StatusCode::OK)),
        }
    }
}

/// The answer to a write of a record that the caller may not read: its version only.
pub(super) fn untold(status: StatusCode, version: Version) -> Response {
    (status, [(header::ETAG, etag(version))]).into_response()
}

/// The status of an answer that has no body, as a code or as a number.
pub(super) fn bodiless<S: PartialEq<StatusCode> + From<StatusCode>>(status: S) -> S {
    if status == StatusCode::OK { StatusCode::NO_CONTENT.into() } else { status }
}

/// Whether a text is JSON.
pub(super) fn is_json(text: &[u8]) -> bool {
    serde_json::from_slice::<IgnoredAny>(text).is_ok()
}

/// A version as an entity tag.
fn etag(version: Version) -> HeaderValue {
    let mut tag = String::with_capacity(64);
    // Writing into memory cannot fail, and hex digits and a hyphen are always a header's value.
    let _ = write!(tag, "\"{version}\"");
    HeaderValue::try_from(tag).unwrap_or(HeaderValue::from_static("\"\""))
}

/// Adds a header with a path, which is ASCII.
pub(super) fn with_path(mut answer: Response, name: header::HeaderName, path: String) -> Response {
    if let Ok(value) = HeaderValue::try_from(path) {
        answer.headers_mut().insert(name, value);
    }
    answer
}
