//! The bodies of records, patches and plain values. A body that is longer than one record needs is
//! refused by its length.

use axum::extract::{FromRequest, Request};
use axum::http::{HeaderName, HeaderValue};
use bytes::Bytes;
use keyloom::read_json;
use serde_json::Value;

use crate::app::App;
use crate::body::{Arrived, JsonBody, RECORD_TEXT_BYTES_MAX, has_media_type};
use crate::problem::Problem;

const ACCEPT_PATCH: HeaderName = HeaderName::from_static("accept-patch");

/// The JSON text of a record, not parsed yet.
pub(super) struct RecordJson(pub(super) Bytes);

/// A record, or another JSON value that is not a patch.
pub(super) struct RecordBody(pub(super) Value);

/// A merge patch (RFC 7386).
pub(super) struct PatchBody(pub(super) Value);

/// The value of a plain key, which may be a record.
pub(super) struct ValueBody(pub(super) Bytes);

impl FromRequest<App> for ValueBody {
    type Rejection = Problem;

    async fn from_request(request: Request, app: &App) -> Result<Self, Problem> {
        let arrived = Arrived::read(request, app, RECORD_TEXT_BYTES_MAX).await?;
        match arrived.is_empty() {
            true => Ok(ValueBody(arrived.into_bytes(app).await)),
            false => Ok(ValueBody(arrived.json_text(app).await?)),
        }
    }
}

impl FromRequest<App> for RecordJson {
    type Rejection = Problem;

    async fn from_request(request: Request, app: &App) -> Result<Self, Problem> {
        if !has_media_type(request.headers(), &["application/json"]) {
            return Err(Problem::unsupported_media_type("application/json"));
        }
        let arrived = Arrived::read(request, app, RECORD_TEXT_BYTES_MAX).await?;
        Ok(RecordJson(arrived.json_text(app).await?))
    }
}

impl FromRequest<App> for RecordBody {
    type Rejection = Problem;

    async fn from_request(request: Request, app: &App) -> Result<Self, Problem> {
        let RecordJson(text) = RecordJson::from_request(request, app).await?;
        Ok(RecordBody(read_json(&text)?))
    }
}

impl FromRequest<App> for PatchBody {
    type Rejection = Problem;

    async fn from_request(request: Request, app: &App) -> Result<Self, Problem> {
        if !has_media_type(request.headers(), &["application/json", "application/merge-patch+json"])
        {
            let wanted = HeaderValue::from_static("application/merge-patch+json");
            return Err(Problem::unsupported_media_type("application/merge-patch+json")
                .with_header(ACCEPT_PATCH, wanted));
        }
        let JsonBody(value) = JsonBody::up_to(request, app, RECORD_TEXT_BYTES_MAX).await?;
        Ok(PatchBody(value))
    }
}
