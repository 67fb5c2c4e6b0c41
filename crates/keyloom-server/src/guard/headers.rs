//! Headers of every answer that restrict what browsers do with it.

use axum::http::{HeaderMap, HeaderName, HeaderValue, header};

use super::Side;

/// An answer of the API loads nothing, runs nothing and is shown in no frame, even if a person
/// opens it in a browser.
const POLICY: &str = "default-src 'none'; frame-ancestors 'none'";

const ALWAYS: [(HeaderName, &str); 5] = [
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::X_FRAME_OPTIONS, "DENY"),
    (header::REFERRER_POLICY, "no-referrer"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
];

/// Room for these headers and those of most answers, so that a handler can reserve it at once.
pub(crate) const HEADERS_MAX: usize = 16;

/// Adds missing headers. A handler may have set a policy or a lifetime of its own.
pub(super) fn secure(answer: &mut HeaderMap, side: Side) {
    answer.reserve(HEADERS_MAX);
    for (name, value) in ALWAYS {
        answer.insert(name, HeaderValue::from_static(value));
    }
    if side == Side::Console {
        // With `no-referrer`, browsers would omit `Origin` from forms, or send it empty.
        answer.insert(header::REFERRER_POLICY, HeaderValue::from_static("same-origin"));
    }
    answer.entry(header::CONTENT_SECURITY_POLICY).or_insert(HeaderValue::from_static(POLICY));
    if answer.contains_key(header::CACHE_CONTROL) {
        return;
    }
    // An answer with a version may be cached by its reader, who checks whether it is still current.
    let lifetime = if answer.contains_key(header::ETAG) { "private, no-cache" } else { "no-store" };
    answer.insert(header::CACHE_CONTROL, HeaderValue::from_static(lifetime));
    answer.append(header::VARY, HeaderValue::from_static("Authorization, Keyloom-Act-As, Cookie"));
}
