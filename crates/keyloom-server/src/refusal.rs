//! Problems that the server finds by itself, where the library would find the same.

use axum::http::{HeaderValue, StatusCode, header};

use crate::problem::Problem;

/// Something is larger than the server takes.
pub(crate) fn limit_exceeded(detail: impl Into<String>) -> Problem {
    let title = "Something is larger than the limit";
    Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "limit-exceeded", title, detail)
}

/// The server is at its limit for now.
pub(crate) fn overloaded(detail: impl Into<String>) -> Problem {
    let title = "The server does enough already";
    Problem::new(StatusCode::SERVICE_UNAVAILABLE, "overloaded", title, detail).with_retry()
}

/// Every connection is busy, and this one has a place of the reserve.
pub(crate) fn no_connection() -> Problem {
    let detail = "as many connections as the limit allows are busy, or as many of this address as \
                  is its share; connect again soon";
    overloaded(detail).with_header(header::RETRY_AFTER, HeaderValue::from_static("1"))
}

/// A defect of the server.
pub(crate) fn internal(detail: impl Into<String>) -> Problem {
    let title = "Keyloom has a defect";
    Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", title, detail)
}

/// The server is about to end.
pub(crate) fn stopping() -> Problem {
    let title = "The server is about to stop";
    let detail = "ask again in a moment";
    Problem::new(StatusCode::SERVICE_UNAVAILABLE, "closed", title, detail).with_retry()
}
