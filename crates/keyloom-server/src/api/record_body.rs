//! The bodies that records and patches come in.

use axum::extract::{FromRequest, Request};
use axum::http::{HeaderName, HeaderValue};
use serde_json::Value;

use crate::app::App;
use crate::body::{JsonBody, media_type};
use crate::problem::Problem;

const ACCEPT_PATCH: HeaderName = HeaderName::from_static("accept-patch");

/// A record, or another JSON value that is no patch.
pub(super) struct RecordBody(pub(super) Value);

/// A merge patch (RFC 7386).
pub(super) struct PatchBody(pub(super) Value);

impl FromRequest<App> for RecordBody {
    type Rejection = Problem;

    async fn from_request(request: Request, app: &App) -> Result<Self, Problem> {
        if media_type(request.headers()).as_deref() != Some("application/json") {
            return Err(Problem::unsupported_media_type("application/json"));
        }
        let JsonBody(value) = JsonBody::from_request(request, app).await?;
        Ok(RecordBody(value))
    }
}

impl FromRequest<App> for PatchBody {
    type Rejection = Problem;

    async fn from_request(request: Request, app: &App) -> Result<Self, Problem> {
        let media = media_type(request.headers());
        if !matches!(media.as_deref(), Some("application/json" | "application/merge-patch+json")) {
            let wanted = HeaderValue::from_static("application/merge-patch+json");
            return Err(Problem::unsupported_media_type("application/merge-patch+json")
                .with_header(ACCEPT_PATCH, wanted));
        }
        let JsonBody(value) = JsonBody::from_request(request, app).await?;
        Ok(PatchBody(value))
    }
}
