//! Measures every request on its way through.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use axum::body::{Body, HttpBody};
use axum::extract::{MatchedPath, Request, State};
use axum::http::{Method, StatusCode};
use axum::middleware::Next;
use axum::response::Response;
use http_body_util::BodyExt;

use super::{Present, RouteLabel};
use crate::app::App;
use crate::auth::Verb;
use crate::path;

/// What stands between the space and the collection in the routes of records.
const COLLECTION: &str = "/v1/collections/";

/// Counts a request, and how long its answer took to begin.
pub(crate) async fn measure(State(app): State<App>, request: Request, next: Next) -> Response {
    let metrics = app.metrics();
    let started = Instant::now();
    let present = Present::new(&metrics.in_flight);
    let matched = request.extensions().get::<MatchedPath>().map(|path| path.as_str().to_owned());
    let label = RouteLabel {
        path: matched.unwrap_or_else(|| "unmatched".to_owned()),
        method: method_label(request.method()),
    };
    let asked = asked_of_collection(&label.path, request.uri().path(), request.method());
    let request = request.map(|body| counted(body, &metrics.bytes_received));
    let answer = next.run(request).await;
    metrics.answered(label, answer.status().as_u16(), started.elapsed());
    // An answer that is no refusal tells that the collection is there.
    if let Some((collection, verb)) = asked
        && (answer.status().is_success() || answer.status() == StatusCode::NOT_MODIFIED)
    {
        metrics.operation(&collection, verb);
    }
    drop(present);
    answer.map(|body| counted(body, &metrics.bytes_sent))
}

/// The collection of a request below `/collections/{collection}`, and what is asked of it.
fn asked_of_collection(route: &str, path: &str, method: &Method) -> Option<(String, Verb)> {
    route.contains("/v1/collections/{collection}").then_some(())?;
    let (_, rest) = path.split_once(COLLECTION)?;
    let name = path::decode(rest.split('/').next()?).ok()?;
    let verb = match *method {
        Method::GET | Method::HEAD => Verb::Read,
        Method::DELETE => Verb::Delete,
        _ => Verb::Write,
    };
    Some((name, verb))
}

/// Methods are as many as callers like, and their names are not.
fn method_label(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::HEAD => "HEAD",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::PATCH => "PATCH",
        Method::DELETE => "DELETE",
        Method::OPTIONS => "OPTIONS",
        _ => "other",
    }
}

/// Counts the bytes of a body: at once where its length is known, which it then keeps, and
/// otherwise as they pass.
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
        let path = "/s/a/v1/collections/no%74e/records/x";
        let asked = asked_of_collection(route, path, &Method::DELETE);
        assert_eq!(asked, Some(("note".to_owned(), Verb::Delete)));
        assert_eq!(asked_of_collection("/v1/kv/{key}", "/v1/collections/note", &Method::GET), None);
    }
}
