//! The body of a request: whole, bounded, in time, and strict JSON.

use std::error::Error as StdError;

use axum::body::{Body, HttpBody as _, to_bytes};
use axum::extract::{FromRequest, Request};
use axum::http::{HeaderMap, header};
use bytes::Bytes;
use keyloom::read_json;
use serde_json::Value;

use crate::app::App;
use crate::guard::Overloaded;
use crate::problem::Problem;

/// The bytes of a body.
pub(crate) struct RawBody(pub(crate) Bytes);

/// A body of JSON: no duplicate names, no number that would be changed by reading it.
pub(crate) struct JsonBody(pub(crate) Value);

impl FromRequest<App> for RawBody {
    type Rejection = Problem;

    async fn from_request(request: Request, app: &App) -> Result<Self, Problem> {
        refuse_encodings(request.headers())?;
        Ok(RawBody(read(request.into_body(), app).await?))
    }
}

impl FromRequest<App> for JsonBody {
    type Rejection = Problem;

    async fn from_request(request: Request, app: &App) -> Result<Self, Problem> {
        refuse_encodings(request.headers())?;
        let media = media_type(request.headers());
        if !matches!(media.as_deref(), Some("application/json" | "application/merge-patch+json")) {
            return Err(Problem::unsupported_media_type("application/json"));
        }
        let bytes = read(request.into_body(), app).await?;
        Ok(JsonBody(read_json(&bytes)?))
    }
}

/// The media type of a body, in lower case and without parameters.
pub(crate) fn media_type(headers: &HeaderMap) -> Option<String> {
    let text = headers.get(header::CONTENT_TYPE)?.to_str().ok()?;
    Some(text.split(';').next().unwrap_or(text).trim().to_ascii_lowercase())
}

async fn read(body: Body, app: &App) -> Result<Bytes, Problem> {
    let limits = &app.config().limits;
    // What is too long by its own word is refused before it is sent.
    if body.size_hint().lower() > limits.body_bytes_max as u64 {
        return Err(Problem::too_long_body(limits.body_bytes_max));
    }
    let reading = to_bytes(body, limits.body_bytes_max);
    match tokio::time::timeout(limits.body_timeout, reading).await {
        Ok(Ok(bytes)) => Ok(bytes),
        Ok(Err(error)) => Err(match overload(&error) {
            Some(overloaded) => overloaded.into_problem(),
            None => Problem::unread_body(&error, limits.body_bytes_max),
        }),
        Err(_) => Err(Problem::request_timeout()),
    }
}

/// Whether a body was refused because the server has too much to do.
fn overload(error: &axum::Error) -> Option<Overloaded> {
    let mut cause: Option<&dyn StdError> = Some(error);
    while let Some(error) = cause {
        if let Some(overloaded) = error.downcast_ref::<Overloaded>() {
            return Some(*overloaded);
        }
        cause = error.source();
    }
    None
}

/// Nothing is decompressed, so that a small body never becomes a large one.
pub(crate) fn refuse_encodings(headers: &HeaderMap) -> Result<(), Problem> {
    let mut encodings = headers.get_all(header::CONTENT_ENCODING).iter();
    if encodings.all(|encoding| encoding.as_bytes().eq_ignore_ascii_case(b"identity")) {
        return Ok(());
    }
    Err(Problem::unsupported_media_type("a body without Content-Encoding"))
}
