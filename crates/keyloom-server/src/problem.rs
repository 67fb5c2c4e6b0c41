//! Errors as HTTP tells them: RFC 9457 problems.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use keyloom::{Error, ErrorKind, Fate};
use serde_json::{Map, Value, json};

/// A refusal, as the caller sees it. What only the operator may see goes to the log.
#[derive(Debug)]
pub(crate) struct Problem {
    status: StatusCode,
    /// The last part of the type's URL.
    kind: &'static str,
    title: &'static str,
    detail: String,
    fate: Fate,
    retry: bool,
    /// Further members.
    more: Map<String, Value>,
    headers: Vec<(header::HeaderName, HeaderValue)>,
}

impl Problem {
    /// A problem that changed nothing and will not go away by itself.
    pub(crate) fn new(
        status: StatusCode,
        kind: &'static str,
        title: &'static str,
        detail: impl Into<String>,
    ) -> Self {
        Problem {
            status,
            kind,
            title,
            detail: detail.into(),
            fate: Fate::DidNotHappen,
            retry: false,
            more: Map::new(),
            headers: Vec::new(),
        }
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

    pub(crate) fn status(&self) -> StatusCode {
        self.status
    }

    /// A request that cannot be understood.
    pub(crate) fn invalid_request(detail: impl Into<String>) -> Self {
        let title = "The request cannot be understood";
        Problem::new(StatusCode::BAD_REQUEST, "invalid-request", title, detail)
    }

    /// What is not there, and what the caller may not see.
    pub(crate) fn not_found(detail: impl Into<String>) -> Self {
        Problem::new(StatusCode::NOT_FOUND, "not-found", "There is nothing here", detail)
    }

    /// What the caller may see and not do.
    pub(crate) fn forbidden(detail: impl Into<String>) -> Self {
        let title = "The caller may not do this";
        Problem::new(StatusCode::FORBIDDEN, "forbidden", title, detail)
    }

    /// A caller who did not say, or not convincingly, who they are.
    pub(crate) fn unauthenticated(detail: impl Into<String>) -> Self {
        let title = "A valid token is needed";
        Problem::new(StatusCode::UNAUTHORIZED, "unauthenticated", title, detail)
            .with_header(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"))
    }

    /// A body of a kind that is not taken here.
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

    /// A body that broke off or is too large.
    pub(crate) fn unread_body(error: &axum::Error, bytes_max: usize) -> Self {
        use std::error::Error as _;
        let is_too_large =
            error.source().is_some_and(|source| source.is::<http_body_util::LengthLimitError>());
        if !is_too_large {
            return Problem::invalid_request("the body broke off");
        }
        let title = "Something is larger than the limit";
        let detail = format!("the body has more than {bytes_max} bytes");
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
            members.extend(self.more.clone());
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

impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        let (status, kind, title) = told(&error);
        if status.is_server_error() {
            tracing::error!(error = ?error, "a request failed");
        }
        let context: Map<String, Value> =
            error.context().map(|(name, value)| (name.to_owned(), value.into())).collect();
        let mut problem = Problem::new(status, kind, title, error.to_string());
        problem.fate = error.fate();
        problem.retry = error.is_retryable();
        if status == StatusCode::SERVICE_UNAVAILABLE && problem.retry {
            problem = problem.with_header(header::RETRY_AFTER, HeaderValue::from_static("1"));
        }
        problem.with("context", context)
    }
}

/// The status, type and title of an error. A write whose outcome is not known is told alike,
/// whatever the cause.
fn told(error: &Error) -> (StatusCode, &'static str, &'static str) {
    use ErrorKind as Kind;
    use StatusCode as Status;
    if error.fate() == Fate::MayHaveHappened {
        let title = "The write may have happened";
        return (Status::GATEWAY_TIMEOUT, "outcome-unknown", title);
    }
    let is_unknown_collection = error.kind() == Kind::InvalidArgument
        && error.message() == "the schema has no collection of that name";
    match error.kind() {
        _ if is_unknown_collection => (Status::NOT_FOUND, "not-found", "There is nothing here"),
        Kind::InvalidSchema => {
            (Status::UNPROCESSABLE_ENTITY, "invalid-schema", "The schema cannot be loaded")
        }
        Kind::IncompatibleSchema => {
            (Status::CONFLICT, "incompatible-schema", "The schema contradicts the stored one")
        }
        Kind::InvalidKey => (Status::BAD_REQUEST, "invalid-key", "This cannot be a key"),
        Kind::InvalidRecord => {
            (Status::UNPROCESSABLE_ENTITY, "invalid-record", "The record breaks its schema")
        }
        Kind::InvalidQuery => {
            (Status::BAD_REQUEST, "invalid-query", "The query cannot be asked in this form")
        }
        Kind::InvalidCursor => (
            Status::BAD_REQUEST,
            "invalid-cursor",
            "The cursor was altered or belongs to another query",
        ),
        Kind::InvalidArgument => {
            (Status::BAD_REQUEST, "invalid-argument", "A value is outside what is allowed")
        }
        Kind::NoIndex => (Status::BAD_REQUEST, "no-index", "No index serves this query"),
        Kind::IndexNotReady => {
            (Status::SERVICE_UNAVAILABLE, "index-not-ready", "The index may not be read now")
        }
        Kind::Forbidden => (Status::FORBIDDEN, "forbidden", "The caller may not do this"),
        Kind::NotFound => (Status::NOT_FOUND, "not-found", "There is nothing here"),
        Kind::AlreadyExists => {
            (Status::CONFLICT, "already-exists", "A record with this key is there already")
        }
        Kind::UniqueConflict => {
            (Status::CONFLICT, "unique-conflict", "Another record holds this unique value")
        }
        Kind::VersionConflict => {
            (Status::PRECONDITION_FAILED, "version-conflict", "The record has changed since")
        }
        Kind::LeaseLost => (Status::CONFLICT, "lease-lost", "The lease is over"),
        Kind::IllegalTransition => {
            (Status::CONFLICT, "illegal-transition", "The declared transitions do not allow this")
        }
        Kind::OutOfBounds => {
            (Status::CONFLICT, "out-of-bounds", "The addition would leave the counter's bounds")
        }
        Kind::LimitExceeded => {
            (Status::PAYLOAD_TOO_LARGE, "limit-exceeded", "Something is larger than the limit")
        }
        Kind::Contention => {
            (Status::SERVICE_UNAVAILABLE, "contention", "Other writers won every attempt")
        }
        Kind::StaleSchema => {
            (Status::SERVICE_UNAVAILABLE, "stale-schema", "The schema changed under the request")
        }
        Kind::Locked => (Status::SERVICE_UNAVAILABLE, "locked", "Another process holds the store"),
        Kind::UnknownFormat => {
            (Status::INTERNAL_SERVER_ERROR, "unknown-format", "The store has an unknown format")
        }
        Kind::ReadOnly => (Status::SERVICE_UNAVAILABLE, "read-only", "The store is read-only"),
        Kind::Corrupt => {
            (Status::INTERNAL_SERVER_ERROR, "corrupt", "What is stored cannot be understood")
        }
        Kind::LogTrimmed => (Status::GONE, "log-trimmed", "The log does not go back so far"),
        Kind::Unsupported => {
            (Status::NOT_IMPLEMENTED, "unsupported", "The engine underneath cannot do this")
        }
        Kind::Closed => (Status::SERVICE_UNAVAILABLE, "closed", "The store is closed"),
        Kind::Unavailable => {
            (Status::SERVICE_UNAVAILABLE, "unavailable", "The store cannot be reached")
        }
        Kind::IdempotencyConflict => (
            Status::UNPROCESSABLE_ENTITY,
            "idempotency-conflict",
            "The idempotency key belongs to another request",
        ),
        Kind::NotKept => (Status::GONE, "not-kept", "This is older than what is kept"),
        Kind::Aborted => (Status::CONFLICT, "aborted", "The transaction was given up"),
        _ => (Status::INTERNAL_SERVER_ERROR, "internal", "Keyloom has a defect"),
    }
}
