//! Problems that the server finds by itself, where the library would find the same.

use axum::http::StatusCode;
use serde_json::Value;

use crate::problem::Problem;

/// Something is larger than the server takes.
pub(crate) fn limit_exceeded(detail: impl Into<String>) -> Problem {
    let title = "Something is larger than the limit";
    Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "limit-exceeded", title, detail)
}

/// A record that contradicts its own key.
pub(crate) fn invalid_record(detail: impl Into<String>) -> Problem {
    let title = "The record breaks its schema";
    Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "invalid-record", title, detail)
}

/// A condition of the request that does not hold, with the record as it is for those who may read
/// it.
pub(crate) fn precondition_failed(detail: impl Into<String>, current: Option<Value>) -> Problem {
    let title = "A condition of the request does not hold";
    let status = StatusCode::PRECONDITION_FAILED;
    let problem = Problem::new(status, "precondition-failed", title, detail);
    match current {
        Some(current) => problem.with("current", current),
        None => problem,
    }
}

/// The server is at its limit for now.
pub(crate) fn overloaded(detail: impl Into<String>) -> Problem {
    let title = "The server does enough already";
    Problem::new(StatusCode::SERVICE_UNAVAILABLE, "overloaded", title, detail).with_retry()
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
