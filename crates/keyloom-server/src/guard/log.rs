//! Logs one line for each request, with an id that caller and operator can refer to.
//!
//! A line has the route instead of the path, so that no key, value or parameter gets into the log.
//!
//! | status | level |
//! | --- | --- |
//! | 401, 403 | warning: it may be an attack |
//! | 500, 504 and others of the server's own | warning, beside the line that says what went wrong |
//! | 501, 503 | information: refused for now; the reason is logged once for all of them |
//! | all others | information |

use std::fmt::Write as _;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use axum::http::{HeaderMap, HeaderName, HeaderValue, Method};
use tracing::field::display;

use super::Arrival;
use crate::auth::random_text;

/// The id of a request: the caller's own, or a generated one.
pub(super) const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

const ID_BYTES_MAX: usize = 64;

const TARGET: &str = "keyloom::access";

/// The line of a request that was answered.
pub(super) fn line(
    id: &HeaderValue,
    method: &Method,
    route: &str,
    arrival: &Arrival,
    status: u16,
    took: Duration,
) {
    let (id, method) = (id.to_str().unwrap_or_default(), known_method(method));
    let (caller, micros) = (arrival.caller(), took.as_micros() as u64);
    let from = arrival.peer().map(|peer| display(peer.address));
    match status {
        401 | 403 | 500 | 502 | 504.. => {
            tracing::warn!(target: TARGET, id, from, method, route, caller, status, micros);
        }
        _ => tracing::info!(target: TARGET, id, from, method, route, caller, status, micros),
    }
}

/// The id from the caller, or a new one.
pub(super) fn id(headers: &HeaderMap) -> HeaderValue {
    let given = headers.get(REQUEST_ID).filter(|id| is_plain(id));
    given.cloned().unwrap_or_else(next_id)
}

/// A method that is safe to log: unknown methods are text from the caller.
fn known_method(method: &Method) -> &str {
    match *method {
        Method::GET
        | Method::HEAD
        | Method::POST
        | Method::PUT
        | Method::PATCH
        | Method::DELETE
        | Method::OPTIONS => method.as_str(),
        _ => "other",
    }
}

/// Whether an id is safe to log: it must not look like anything else.
fn is_plain(id: &HeaderValue) -> bool {
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.".contains(byte);
    (1..=ID_BYTES_MAX).contains(&id.len()) && id.as_bytes().iter().all(is_plain)
}

/// An id that is unique in this process, and almost certainly among all.
fn next_id() -> HeaderValue {
    static PROCESS: LazyLock<String> = LazyLock::new(|| {
        random_text().chars().filter(char::is_ascii_alphanumeric).take(8).collect()
    });
    static NEXT: AtomicU64 = AtomicU64::new(1);
    let mut text = String::with_capacity(32);
    // Writing into memory cannot fail.
    let _ = write!(text, "{}-{}", *PROCESS, NEXT.fetch_add(1, Ordering::Relaxed));
    // Letters, digits and a hyphen are always valid in a header.
    HeaderValue::try_from(text).unwrap_or_else(|_| HeaderValue::from_static("-"))
}
