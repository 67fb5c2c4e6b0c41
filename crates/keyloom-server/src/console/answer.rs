//! Sends pages as answers, with headers that restrict them.

use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};

use super::frame::{self, Frame};
use super::page::Page;
use crate::problem::Problem;

/// Nothing is loaded from elsewhere, only our script runs, no page is framed, and forms lead only
/// to the console.
const POLICY: &str = "default-src 'none'; style-src 'self'; script-src 'self'; \
    img-src 'self' data:; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/// The headers of every page. The guards add those of all answers.
const OWN: [(HeaderName, HeaderValue); 2] = [
    (header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY)),
    (header::VARY, HeaderValue::from_static("Accept")),
];

/// A page as HTML.
pub(super) fn html(page: &impl Page, frame: &Frame<'_>) -> Response {
    let text = frame::around(page, frame).into_string();
    let media = (header::CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
    guarded(page.status(), media, text)
}

/// A page's model as JSON.
pub(super) fn json(page: &impl Page) -> Response {
    match serde_json::to_string(page) {
        Ok(text) => {
            let media = (header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
            guarded(page.status(), media, text)
        }
        Err(error) => {
            // The error's message may quote the page.
            tracing::error!(kind = ?error.classify(), "a page of the console has no JSON form");
            let title = "Keyloom has a defect";
            let status = StatusCode::INTERNAL_SERVER_ERROR;
            Problem::new(status, "internal", title, "the page has no JSON form").into_response()
        }
    }
}

fn guarded(status: StatusCode, media: (HeaderName, HeaderValue), text: String) -> Response {
    let mut response = (status, [media], text).into_response();
    response.headers_mut().extend(OWN);
    response
}
