//! The bodies that records and patches come in.

use axum::extract::{FromRequest, Request};
use axum::http::{HeaderName, HeaderValue};
use bytes::Bytes;
use keyloom::read_json;
use serde_json::Value;

use crate::app::App;
use crate::body::{JsonBody, RawBody, has_media_type};
use crate::problem::Problem;

const ACCEPT_PATCH: HeaderName = HeaderName::from_static("accept-patch");

/// The JSON text of a record, which nobody has looked at.
pub(super) struct RecordJson(pub(super) Bytes);

/// A record, or another JSON value that is no patch.
pub(super) struct RecordBody(pub(super) Value);

/// A merge patch (RFC 7386).
pub(super) struct PatchBody(pub(super) Value);

impl FromRequest<App> for RecordJson {
    type Rejection = Problem;

    async fn from_request(request: Request, app: &App) -> Result<Self, Problem> {
        if !has_media_type(request.headers(), &["application/json"]) {
            return Err(Problem::unsupported_media_type("application/json"));
        }
        Ok(RecordJson(RawBody::from_request(request, app).await?.json_text()?))
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
        let JsonBody(value) = JsonBody::from_request(request, app).await?;
        Ok(PatchBody(value))
    }
}
