//! What every request passes before it is answered, and every answer on its way back.
//!
//! | step | file |
//! | --- | --- |
//! | an id, and a line in the log | `log.rs` |
//! | the head is not too large, the path is text | `head.rs`, `path.rs` |
//! | the host is ours, the page that asks is one of ours or allowed | `host.rs`, `origin.rs` |
//! | not too many requests at once, an answer in time | `flight.rs` |
//! | a panic is an answer too | here |
//! | headers that make browsers careful | `headers.rs` |

mod flight;
mod head;
mod headers;
mod host;
mod log;
mod origin;

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::{Method, StatusCode, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use futures_util::FutureExt as _;
use keyloom::{Error, ErrorKind, Fate};
use tokio::sync::Semaphore;

pub(crate) use self::flight::Overloaded;
pub(crate) use self::log::CallerName;

use self::flight::Flight;
use self::log::Entry;
use crate::app::App;
use crate::auth::session;
use crate::metrics::measure;
use crate::path;
use crate::problem::Problem;

/// Which side of the server a request came to; the guards tell it to those who answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    /// The pages for people.
    Console,
    /// Everything else.
    Api,
}

/// The guards of one application.
#[derive(Clone)]
struct Guard {
    app: App,
    /// One permit for each request that may be worked on at one time.
    permits: Arc<Semaphore>,
}

/// Puts the guards around the routes. What they refuse is counted too.
pub(crate) fn around(routes: Router<App>, app: &App) -> Router<App> {
    let permits = Arc::new(Semaphore::new(app.config().limits.requests_max));
    routes
        .layer(from_fn_with_state(Guard { app: app.clone(), permits }, pass))
        .layer(from_fn_with_state(app.clone(), measure))
}

async fn pass(State(guard): State<Guard>, mut request: Request, next: Next) -> Response {
    let entry = Entry::begin(&mut request);
    let side = Side::of(request.uri().path());
    request.extensions_mut().insert(side);
    let origin = origin::allowed(guard.app.config(), side, request.headers());
    let wanted = wanted_page(side, &request);
    let mut response = guard.answer(request, next, side).await;
    if let (StatusCode::UNAUTHORIZED, Some(wanted)) = (response.status(), wanted) {
        response = session::login_for(&wanted);
    }
    headers::secure(response.headers_mut(), side);
    origin::permit(guard.app.config(), response.headers_mut(), origin.as_ref());
    entry.end(&mut response);
    response
}

impl Guard {
    async fn answer(&self, request: Request, next: Next, side: Side) -> Response {
        let config = self.app.config();
        let checked = head::check(&request, config.limits.head_bytes_max)
            .and_then(|()| path::check(request.uri().path()))
            .and_then(|()| host::check(&request, config))
            .and_then(|()| origin::check(&request, config, side));
        if let Err(problem) = checked {
            return problem.into_response();
        }
        if let Some(preflight) = origin::preflight(&request, config, side) {
            return preflight;
        }
        if is_about_the_server(request.uri().path()) {
            return next.run(request).await;
        }
        let fate = fate_unknown(request.method());
        let (flight, request) = match Flight::begin(&self.permits, request) {
            Ok(begun) => begun,
            Err(Overloaded) => return Overloaded.into_problem().into_response(),
        };
        // Nothing of a request is used after its handler panicked, so that nothing is half-made.
        let answering = AssertUnwindSafe(next.run(request)).catch_unwind();
        tokio::select! {
            biased;
            answered = answering => answered.unwrap_or_else(|_| panicked(fate)),
            () = flight.out_of_time(config.limits.answer_timeout) => late(fate),
        }
    }
}

impl Side {
    fn of(path: &str) -> Self {
        let is_console = path == "/console" || path.starts_with("/console/");
        if is_console { Side::Console } else { Side::Api }
    }
}

/// Whether a method promises to change nothing.
fn is_safe(method: &Method) -> bool {
    matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS | Method::TRACE)
}

/// Those who watch over the server ask by its address and when it is busy, and learn nothing of
/// what is in it.
fn is_about_the_server(path: &str) -> bool {
    matches!(path, "/health" | "/ready")
}

/// What is known of a request that was left before its answer.
fn fate_unknown(method: &Method) -> Fate {
    if is_safe(method) { Fate::DidNotHappen } else { Fate::MayHaveHappened }
}

fn panicked(fate: Fate) -> Response {
    let error = Error::new(ErrorKind::Internal, "the server has a defect, which is in its log");
    Problem::from(error.with_fate(fate)).into_response()
}

fn late(fate: Fate) -> Response {
    let error = Error::new(ErrorKind::Unavailable, "the answer was not ready in time");
    Problem::from(error.with_fate(fate)).into_response()
}

/// The page that a person wants to see and may have to sign in for.
fn wanted_page(side: Side, request: &Request) -> Option<String> {
    let accept = request.headers().get(header::ACCEPT)?.to_str().ok()?;
    let is_page = side == Side::Console && *request.method() == Method::GET;
    (is_page && accept.contains("text/html")).then(|| request.uri().to_string())
}

#[cfg(test)]
mod tests;
