//! Limits the size of a request's head.

use axum::extract::Request;
use axum::http::StatusCode;

use crate::problem::Problem;

/// Refuses a head that is too large. Far larger ones are refused while they arrive (`serve`), with
/// only a status.
pub(super) fn check(request: &Request, bytes_max: usize) -> Result<(), Problem> {
    // Each header has a colon, a space and a line end; the first line has about as many extra
    // bytes.
    let line = request.method().as_str().len() + length(request.uri()) + 12;
    let headers =
        request.headers().iter().map(|(name, value)| name.as_str().len() + value.len() + 4);
    if line + headers.sum::<usize>() <= bytes_max {
        return Ok(());
    }
    let title = "The head of the request is too large";
    let detail =
        format!("the path, the parameters and the headers have more than {bytes_max} bytes");
    Err(Problem::new(
        StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
        "too-large-headers",
        title,
        detail,
    ))
}

fn length(uri: &axum::http::Uri) -> usize {
    uri.path_and_query().map_or(0, |text| text.as_str().len())
        + uri.authority().map_or(0, |text| text.as_str().len())
}
