//! Problems (RFC 9457): errors in the form that HTTP sends.

mod from_error;
mod kinds;
mod pages;
#[cfg(test)]
mod tests;

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use keyloom::Fate;
use serde_json::{Map, Value, json};

pub(crate) use from_error::{Sent, is_missing, to_writer};
use kinds::Kind;
pub use kinds::{Kind as ProblemType, of_error as problem_type, problem_types};
pub(crate) use pages::routes;

/// The library's message for an unknown collection.
const UNKNOWN_COLLECTION: &str = "the schema has no collection of that name";

/// An error as the caller sees it. Details that only the operator may see go to the log.
#[derive(Debug)]
pub(crate) struct Problem {
    status: StatusCode,
    /// The last part of the type's URL.
    kind: &'static str,
    title: &'static str,
    detail: String,
    fate: Fate,
    retry: bool,
    /// Further members; boxed, so that results that carry a problem stay small.
    more: Box<Map<String, Value>>,
    headers: Vec<(header::HeaderName, HeaderValue)>,
}

impl Problem {
    /// A problem that changed nothing and cannot be solved by a retry.
    pub(crate) fn new(
        status: StatusCode,
        kind: &'static str,
        title: &'static str,
        detail: impl Into<String>,
    ) -> Self {
        debug_assert!(
            kinds::named(kind).is_some_and(|known| known.status == status.as_u16()),
            "{kind} has no page, or another status there"
        );
        Problem {
            status,
            kind,
            title,
            detail: detail.into(),
            fate: Fate::DidNotHappen,
            retry: false,
            more: Box::default(),
            headers: Vec::new(),
        }
    }

    /// A problem of a known type.
    fn of(kind: &'static Kind, detail: impl Into<String>) -> Self {
        let status = StatusCode::from_u16(kind.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        Problem::new(status, kind.name, kind.title, detail)
    }

    /// Adds a member.
    pub(crate) fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.more.insert(name.to_owned(), value.into());
        self
    }

    /// Adds a header to the answer.
    pub(crate) fn with_header(mut self, name: header::HeaderName, value: HeaderValue) -> Self {
        self.headers.push((name, value));
        self
    }

    /// Says that the same request may succeed later.
    pub(crate) fn with_retry(mut self) -> Self {
        self.retry = true;
        self
    }

    /// The same without the conflicting record.
    pub(crate) fn brief(mut self) -> Self {
        self.more.shift_remove("current");
        self
    }

    /// Sets what became of the write.
    pub(crate) fn with_fate(mut self, fate: Fate) -> Self {
        self.fate = fate;
        self
    }

    pub(crate) fn status(&self) -> StatusCode {
        self.status
    }

    /// What happened, in words for the caller.
    pub(crate) fn detail(&self) -> &str {
        &self.detail
    }

    /// The last part of its type's URL.
    pub(crate) fn kind(&self) -> &'static str {
        self.kind
    }

    /// An invalid request.
    pub(crate) fn invalid_request(detail: impl Into<String>) -> Self {
        let title = "The request cannot be understood";
        Problem::new(StatusCode::BAD_REQUEST, "invalid-request", title, detail)
    }

    /// A valid query that the collection cannot answer in this form.
    pub(crate) fn invalid_query(detail: impl Into<String>) -> Self {
        let title = "The query cannot be asked in this form";
        Problem::new(StatusCode::CONFLICT, "invalid-query", title, detail)
    }

    /// A record that breaks its schema, or does not fit the path that it was sent to.
    pub(crate) fn invalid_record(detail: impl Into<String>) -> Self {
        let title = "The record breaks its schema";
        Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "invalid-record", title, detail)
    }

    /// A failed condition of the request.
    pub(crate) fn precondition_failed(detail: impl Into<String>) -> Self {
        let title = "A condition of the request does not hold";
        Problem::new(StatusCode::PRECONDITION_FAILED, "precondition-failed", title, detail)
    }

    /// A stored record that cannot be decoded.
    pub(crate) fn corrupt(detail: impl Into<String>) -> Self {
        let title = "What is stored cannot be understood";
        Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "corrupt", title, detail)
    }

    /// An answer in a form that the caller does not accept.
    pub(crate) fn not_acceptable() -> Self {
        let title = "The answer has no form that the caller accepts";
        let detail = "the answer is application/json; accept it, or leave Accept out";
        Problem::new(StatusCode::NOT_ACCEPTABLE, "not-acceptable", title, detail)
    }

    /// An idempotency key that was used for another request.
    pub(crate) fn idempotency_conflict() -> Self {
        let title = "The idempotency key belongs to another request";
        let detail = "the key was sent before, with something else; use a new one for each write";
        Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "idempotency-conflict", title, detail)
    }

    /// A batch of an import whose predecessor this store does not know.
    pub(crate) fn unknown_batch(detail: impl Into<String>) -> Self {
        let title = "The store does not know the batch before this one";
        Problem::new(StatusCode::CONFLICT, "unknown-batch", title, detail)
    }

    /// A path without a handler.
    pub(crate) async fn unknown_path() -> Self {
        Problem::not_found(
            "there is nothing at this path; /v1 names what there is, and /openapi.json describes it",
        )
    }

    /// A method that the path does not support. The router adds `Allow`.
    pub(crate) async fn method_not_allowed() -> Self {
        let title = "The path does not take this method";
        let detail = "use one of the methods in the header Allow";
        Problem::new(StatusCode::METHOD_NOT_ALLOWED, "method-not-allowed", title, detail)
    }

    /// Something that does not exist, or that the caller may not see.
    pub(crate) fn not_found(detail: impl Into<String>) -> Self {
        Problem::new(StatusCode::NOT_FOUND, "not-found", "There is nothing here", detail)
    }

    /// A collection that does not exist, or that the caller may not see.
    pub(crate) fn unknown_collection() -> Self {
        Problem::not_found(UNKNOWN_COLLECTION)
    }

    /// Something that the caller may see, but may not do.
    pub(crate) fn forbidden(detail: impl Into<String>) -> Self {
        let title = "The caller may not do this";
        Problem::new(StatusCode::FORBIDDEN, "forbidden", title, detail)
    }

    /// A caller without valid credentials.
    pub(crate) fn unauthenticated(detail: impl Into<String>) -> Self {
        let title = "A valid token is needed";
        Problem::new(StatusCode::UNAUTHORIZED, "unauthenticated", title, detail)
            .with_header(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"))
    }

    /// A body of an unsupported media type.
    pub(crate) fn unsupported_media_type(wanted: &str) -> Self {
        let title = "The body is of a kind that is not taken here";
        let detail = format!("send {wanted}");
        let status = StatusCode::UNSUPPORTED_MEDIA_TYPE;
        Problem::new(status, "unsupported-media-type", title, detail)
    }

    /// A request that did not arrive in time.
    pub(crate) fn request_timeout() -> Self {
        let title = "The request did not arrive in time";
        let detail = "the connection is too slow, or the limit too low";
        Problem::new(StatusCode::REQUEST_TIMEOUT, "request-timeout", title, detail).with_retry()
    }

    /// A body over the limit.
    pub(crate) fn too_long_body(bytes_max: usize) -> Self {
        let title = "Something is larger than the limit";
        let detail = format!("the body has more than {bytes_max} bytes, the most that fits here");
        Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "limit-exceeded", title, detail)
    }

    /// The problem as JSON.
    pub(crate) fn to_json(&self) -> Value {
        let outcome = match self.fate {
            Fate::DidNotHappen => "did_not_happen",
            Fate::MayHaveHappened => "may_have_happened",
        };
        let mut json = json!({
            "type": format!("/problems/{}", self.kind),
            "title": self.title,
            "status": self.status.as_u16(),
            "detail": self.detail,
            "outcome": outcome,
            "retry": self.retry,
        });
        if let Value::Object(members) = &mut json {
            members.extend((*self.more).clone());
        }
        json
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let media = [(header::CONTENT_TYPE, "application/problem+json")];
        let mut response = (self.status, media, self.to_json().to_string()).into_response();
        response.headers_mut().extend(self.headers);
        response
    }
}
