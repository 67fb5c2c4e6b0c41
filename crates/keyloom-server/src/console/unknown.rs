//! Paths below the console without a page.

use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse, Redirect, Response};

use super::visit::Visit;
use crate::problem::Problem;

/// Answers a path without a page.
pub(super) async fn path(visit: Visit) -> Response {
    visit.refuse(Problem::unknown_path().await)
}

/// Answers a method that the page does not support, for instance if the target of a form is opened
/// as a page.
pub(super) async fn method(visit: Visit) -> Response {
    let title = "The path does not take this method";
    let detail = "this is where a form leads to, and no page by itself";
    let status = StatusCode::METHOD_NOT_ALLOWED;
    visit.refuse(Problem::new(status, "method-not-allowed", title, detail))
}

/// Redirects to the path with a trailing slash, for people who omit it.
pub(super) async fn with_slash(uri: Uri) -> Response {
    let query = uri.query().map(|query| format!("?{query}")).unwrap_or_default();
    Redirect::temporary(&format!("{}/{query}", uri.path())).into_response()
}
