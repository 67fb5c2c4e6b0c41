//! Counts every request on its way through.

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use axum::body::{Body, HttpBody};
use axum::http::{Method, StatusCode, Uri};
use http_body_util::BodyExt;

use super::{METHODS, Metrics, Present};
use crate::auth::Verb;
use crate::path;

/// The prefix of the routes of one collection, after the space.
const OF_COLLECTION: &str = "/v1/collections/{collection}";

/// A request that was answered.
pub(crate) struct Answered<'r> {
    /// The route as the router names it; `None` if no route matches.
    pub(crate) route: Option<&'r str>,
    pub(crate) uri: &'r Uri,
    pub(crate) method: &'r Method,
    pub(crate) status: StatusCode,
    pub(crate) ended: Instant,
    /// The time until the answer began.
    pub(crate) took: Duration,
}

impl Metrics {
    /// Counts a request in flight, until the result is dropped.
    pub(crate) fn request(&self) -> Present {
        Present::new(&self.in_flight)
    }

    /// Counts the bytes of a request.
    pub(crate) fn receiving(&self, body: Body) -> Body {
        counted(body, &self.bytes_received)
    }

    /// Counts the bytes of an answer.
    pub(crate) fn sending(&self, body: Body) -> Body {
        counted(body, &self.bytes_sent)
    }

    /// Counts an answer.
    pub(crate) fn answered(&self, answered: &Answered<'_>) {
        let Answered { route, uri, method, status, ended, took } = answered;
        self.timed(route.unwrap_or("unmatched"), place_of(method), *status, *ended, *took);
        // An answer that is not an error proves that the collection exists.
        if (status.is_success() || *status == StatusCode::NOT_MODIFIED)
            && let Some((collection, verb)) =
                route.and_then(|route| asked_of_collection(route, uri.path(), method))
        {
            self.operation(&collection, verb);
        }
    }
}

/// Whether a route is of one collection, in the main space or in another.
pub(crate) fn is_of_collection(route: &str) -> bool {
    route.strip_prefix("/s/{space}").unwrap_or(route).starts_with(OF_COLLECTION)
}

/// The collection of a request below `/collections/{collection}`, and the verb that it needs.
fn asked_of_collection<'p>(
    route: &str,
    path: &'p str,
    method: &Method,
) -> Option<(Cow<'p, str>, Verb)> {
    is_of_collection(route).then_some(())?;
    // The third part of `/v1/collections/{collection}`; a space puts two more parts before it.
    let mut parts = path.split('/').skip(1);
    let in_space = parts.next() == Some("s");
    let part = parts.nth(if in_space { 3 } else { 1 })?;
    let name = match part.contains('%') {
        true => path::decode(part).ok()?.into(),
        false => part.into(),
    };
    let verb = match *method {
        Method::GET | Method::HEAD => Verb::Read,
        Method::DELETE => Verb::Delete,
        _ => Verb::Write,
    };
    Some((name, verb))
}

/// The place of a method. Callers can invent methods, so unknown ones count as the last.
fn place_of(method: &Method) -> usize {
    let known = METHODS.iter().position(|known| *known == method.as_str());
    known.unwrap_or(METHODS.len() - 1)
}

/// Counts the bytes of a body: at once if its length is known, which it then keeps, and otherwise
/// as they pass.
fn counted(body: Body, count: &Arc<AtomicU64>) -> Body {
    match body.size_hint().exact() {
        Some(bytes) => {
            count.fetch_add(bytes, Ordering::Relaxed);
            body
        }
        None => {
            let count = count.clone();
            Body::new(body.map_frame(move |frame| {
                let bytes = frame.data_ref().map_or(0, |data| data.len() as u64);
                count.fetch_add(bytes, Ordering::Relaxed);
                frame
            }))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_routes_of_collections_name_one() {
        let route = "/s/{space}/v1/collections/{collection}/records/{key}";
        for path in ["/s/a/v1/collections/no%74e/records/x", "/s/a/v1/collections/note/records/x"] {
            let asked = asked_of_collection(route, path, &Method::DELETE);
            assert_eq!(asked, Some(("note".into(), Verb::Delete)));
        }
        let route = "/v1/collections/{collection}/records";
        let asked = asked_of_collection(route, "/v1/collections/v1/records", &Method::POST);
        assert_eq!(asked, Some(("v1".into(), Verb::Write)));
        assert_eq!(asked_of_collection("/v1/kv/{key}", "/v1/collections/note", &Method::GET), None);
    }

    #[test]
    fn every_method_has_a_place() {
        for (place, name) in METHODS.iter().enumerate() {
            assert_eq!(name.parse().map(|method| place_of(&method)).ok(), Some(place));
        }
        assert_eq!(place_of(&Method::TRACE), METHODS.len() - 1);
    }
}
