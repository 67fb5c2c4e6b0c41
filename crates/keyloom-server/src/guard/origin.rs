//! Checks from which page a browser sends a request.
//!
//! Other sites cannot read answers (no CORS), and must not be able to change anything either. A
//! form or a script of theirs could send requests from the browser of somebody who can reach this
//! server. Browsers state where such a request comes from; other programs state nothing.

use axum::extract::Request;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};

use super::{Side, host, is_safe};
use crate::config::Config;
use crate::problem::Problem;

const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// What pages of allowed origins may send and read.
const METHODS: &str = "GET, HEAD, POST, PUT, PATCH, DELETE";
const HEADERS: &str = "authorization, content-type, if-match, if-none-match, idempotency-key, \
                       keyloom-act-as, last-event-id, x-request-id";
const EXPOSED: &str = "etag, location, content-location, retry-after, allow, x-request-id";

/// Refuses a change that a page of another site requests.
pub(super) fn check(request: &Request, config: &Config, side: Side) -> Result<(), Problem> {
    let headers = request.headers();
    if is_safe(request.method()) || allowed(config, side, headers).is_some() {
        return Ok(());
    }
    let site = headers.get(SEC_FETCH_SITE).map(HeaderValue::as_bytes);
    let is_elsewhere = match site {
        None => false,
        Some(b"same-origin" | b"none") => false,
        Some(_) => true,
    };
    let origin = headers.get(header::ORIGIN);
    let is_foreign = origin.is_some_and(|origin| !is_own(origin, request));
    // People change things with forms on the console's own pages, and browsers state that.
    let is_unsaid = side == Side::Console && origin.is_none() && site.is_none();
    if is_elsewhere || is_foreign || is_unsaid {
        return Err(Problem::forbidden("a page of another site may not change anything here"));
    }
    Ok(())
}

/// Whether an origin is this server, by the name used in this request. Behind a proxy, the page may
/// have come over TLS, so the scheme proves nothing.
fn is_own(origin: &HeaderValue, request: &Request) -> bool {
    let Ok(origin) = origin.to_str() else { return false };
    let origin = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
    let host = host::header_host(request.headers()).ok().flatten();
    let host = request.uri().authority().map(|authority| authority.as_str()).or(host);
    matches!((origin, host), (Some(origin), Some(host)) if origin.eq_ignore_ascii_case(host))
}

/// The origin of a request, if the operator allows its pages to use the API.
pub(super) fn allowed(config: &Config, side: Side, headers: &HeaderMap) -> Option<HeaderValue> {
    let origin = headers.get(header::ORIGIN)?;
    let is_listed = config.origins.iter().any(|allowed| allowed.as_bytes() == origin.as_bytes());
    (side == Side::Api && is_listed).then(|| origin.clone())
}

/// The answer to a preflight request of an allowed page. Others get none: the routes answer them
/// like any unknown method.
pub(super) fn preflight(request: &Request, config: &Config, side: Side) -> Option<Response> {
    let is_question = *request.method() == Method::OPTIONS
        && request.headers().contains_key(header::ACCESS_CONTROL_REQUEST_METHOD);
    allowed(config, side, request.headers()).filter(|_| is_question)?;
    let permissions = [
        (header::ACCESS_CONTROL_ALLOW_METHODS, METHODS),
        (header::ACCESS_CONTROL_ALLOW_HEADERS, HEADERS),
        (header::ACCESS_CONTROL_MAX_AGE, "600"),
    ];
    Some((StatusCode::NO_CONTENT, permissions).into_response())
}

/// Lets pages of an allowed origin read the answer, but never with cookies.
pub(super) fn permit(config: &Config, answer: &mut HeaderMap, origin: Option<&HeaderValue>) {
    if !config.origins.is_empty() {
        answer.append(header::VARY, HeaderValue::from_static("Origin"));
    }
    if let Some(origin) = origin {
        answer.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone());
        answer.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static(EXPOSED));
    }
}
