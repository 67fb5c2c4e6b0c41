//! Answers of JSON.

use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::Value;

/// An answer of JSON.
pub(crate) fn json(status: StatusCode, value: &Value) -> Response {
    let media = [(header::CONTENT_TYPE, "application/json")];
    (status, media, value.to_string()).into_response()
}

/// An answer of JSON to a request that went well.
pub(crate) fn ok(value: &Value) -> Response {
    json(StatusCode::OK, value)
}
