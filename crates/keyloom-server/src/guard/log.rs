//! One line in the log for each request, and the id by which both sides can speak of it.
//!
//! A line has the route and not the path, so that no key, value or parameter gets into the log.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, OnceLock};
use std::time::Instant;

use axum::extract::{MatchedPath, Request};
use axum::http::{HeaderName, HeaderValue, Method};
use axum::response::Response;

use crate::auth::random_text;

/// The id of a request: the caller's own, or one that was made here.
pub(super) const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

const ID_BYTES_MAX: usize = 64;

/// Where whoever recognises the caller leaves the name for the log.
#[derive(Clone, Default)]
pub(crate) struct CallerName(Arc<OnceLock<String>>);

impl CallerName {
    pub(crate) fn set(&self, name: &str) {
        // The first one stays: a request has one caller.
        drop(self.0.set(name.to_owned()));
    }
}

/// A request, as its line in the log will tell of it.
pub(super) struct Entry {
    id: HeaderValue,
    method: Method,
    route: Option<MatchedPath>,
    caller: CallerName,
    begun: Instant,
}

impl Entry {
    pub(super) fn begin(request: &mut Request) -> Self {
        let caller = CallerName::default();
        request.extensions_mut().insert(caller.clone());
        let given = request.headers().get(REQUEST_ID).filter(|id| is_plain(id));
        Entry {
            id: given.cloned().unwrap_or_else(next_id),
            method: request.method().clone(),
            route: request.extensions().get::<MatchedPath>().cloned(),
            caller,
            begun: Instant::now(),
        }
    }

    pub(super) fn end(self, response: &mut Response) {
        tracing::info!(
            target: "keyloom::access",
            id = self.id.to_str().unwrap_or_default(),
            method = known_method(&self.method),
            route = self.route.as_ref().map_or("-", MatchedPath::as_str),
            caller = self.caller.0.get().map_or("-", String::as_str),
            status = response.status().as_u16(),
            micros = self.begun.elapsed().as_micros() as u64,
        );
        response.headers_mut().insert(REQUEST_ID, self.id);
    }
}

/// A method is the caller's own text, unless it is one of these.
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

/// Only ids that cannot be mistaken for something else in a log are taken over.
fn is_plain(id: &HeaderValue) -> bool {
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.".contains(byte);
    (1..=ID_BYTES_MAX).contains(&id.len()) && id.as_bytes().iter().all(is_plain)
}

/// Unique in this process, and most likely among all.
fn next_id() -> HeaderValue {
    static PROCESS: LazyLock<String> = LazyLock::new(|| {
        random_text().chars().filter(char::is_ascii_alphanumeric).take(8).collect()
    });
    static NEXT: AtomicU64 = AtomicU64::new(1);
    let text = format!("{}-{}", *PROCESS, NEXT.fetch_add(1, Ordering::Relaxed));
    // Letters, digits and a hyphen are always a header's value.
    HeaderValue::from_str(&text).unwrap_or_else(|_| HeaderValue::from_static("-"))
}
