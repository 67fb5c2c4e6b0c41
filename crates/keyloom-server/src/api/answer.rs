//! Answers with JSON, and with one record.

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

/// An answer with a JSON value.
pub(super) fn json(value: &Value) -> Response {
    text(value.to_string())
}

/// An answer with JSON text.
pub(super) fn text(text: impl Into<Body>) -> Response {
    ([(header::CONTENT_TYPE, JSON)], text.into()).into_response()
}

/// A record in a version, as text.
pub(super) struct RecordText {
    pub(super) version: Version,
    pub(super) text: axum::body::Bytes,
}

/// Whether a version determines the whole text of a record. Counters are part of the text but
/// change without the version, so a caller who has the version may have an outdated text.
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
    /// A stored record. If its text is not JSON, it cannot be sent.
    pub(super) fn of(document: Document) -> Result<Self, Problem> {
        match is_json(document.text()) {
            true => Ok(RecordText { version: document.version, text: document.into_text() }),
            false => {
                repeats::error("a stored record is no JSON; keyloom verify finds it");
                Err(Problem::corrupt("the record in the store is no JSON"))
            }
        }
    }

    /// A record from the history.
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

    /// The answer to a read, which is shorter if the caller already has this version.
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

/// The answer to a write of a record that the caller may not read: only its version.
pub(super) fn untold(status: StatusCode, version: Version) -> Response {
    (status, [(header::ETAG, etag(version))]).into_response()
}

/// The status of an answer without a body, as a code or as a number.
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
    // Writing into memory cannot fail, and hex digits and a hyphen are always valid in a header.
    let _ = write!(tag, "\"{version}\"");
    HeaderValue::try_from(tag).unwrap_or(HeaderValue::from_static("\"\""))
}

/// Adds a header with a path, which is always ASCII.
pub(super) fn with_path(mut answer: Response, name: header::HeaderName, path: String) -> Response {
    if let Ok(value) = HeaderValue::try_from(path) {
        answer.headers_mut().insert(name, value);
    }
    answer
}
