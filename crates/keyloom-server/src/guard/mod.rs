//! The guards: every request passes them on its way in, and every answer on its way back.
//!
//! | step | file |
//! | --- | --- |
//! | shared state is attached to the request | `arrival.rs` |
//! | it gets an id, and a line in the log | `log.rs` |
//! | it is counted, with the time it took | `metrics` |
//! | the head is not too large, the path is text | `head.rs`, `path.rs` |
//! | the host is ours, the requesting page is ours or allowed | `host.rs`, `origin.rs` |
//! | a caller of the API accepts JSON | `api/accept.rs` |
//! | requests at one time and their duration are limited | `flight.rs` |
//! | memory for the request and its answer | `memory` |
//! | long computations are moved aside | `aside.rs` |
//! | a panic becomes an answer | here |
//! | headers that restrict browsers | `headers.rs` |

mod arrival;
mod flight;
mod head;
mod headers;
mod host;
mod log;
mod origin;

use std::convert::Infallible;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Instant;

use axum::Router;
use axum::body::HttpBody as _;
use axum::extract::{MatchedPath, Request};
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::Route;
use futures_util::FutureExt as _;
use keyloom::{Error, ErrorKind, Fate};
use tokio::sync::Semaphore;
use tower::layer::layer_fn;
use tower::{ServiceExt as _, service_fn};

pub(crate) use self::arrival::{Arrival, Peer};
pub(crate) use self::flight::Overloaded;
pub(crate) use self::headers::HEADERS_MAX;

use self::flight::Flight;
use crate::api::{is_json_only, takes_json};
use crate::app::App;
use crate::aside;
use crate::auth::session;
use crate::console;
use crate::memory::NoRoom;
use crate::metrics::Answered;
use crate::path;
use crate::problem::Problem;
use crate::refusal;

/// The side of the server that a request is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    /// The pages for people.
    Console,
    /// Everything else.
    Api,
}

/// The guards of one application.
struct Guard {
    app: App,
    /// One permit for each request that may run at one time.
    permits: Arc<Semaphore>,
}

/// Puts the guards around the routes. Refused requests are counted too.
pub(crate) fn around(routes: Router<App>, app: &App) -> Router<App> {
    let places = app.config().limits.requests_max.min(Semaphore::MAX_PERMITS);
    let permits = Arc::new(Semaphore::new(places));
    guarded(routes, Guard { app: app.clone(), permits })
}

/// Every layer costs each request a few allocations. So there is a single one, written by hand: a
/// layer that axum makes from a function costs as many again.
fn guarded(routes: Router<App>, guard: Guard) -> Router<App> {
    let guard = Arc::new(guard);
    routes.layer(layer_fn(move |route: Route| {
        let guard = guard.clone();
        service_fn(move |request| pass(guard.clone(), route.clone(), request))
    }))
}

async fn pass(
    guard: Arc<Guard>,
    next: Route,
    mut request: Request,
) -> Result<Response, Infallible> {
    let begun = Instant::now();
    let (config, metrics) = (guard.app.config(), guard.app.metrics());
    let present = metrics.request();
    let peer = request.extensions().get::<Peer>().copied();
    let arrival = Arrival::new(request.uri().clone(), peer);
    let (method, id) = (request.method().clone(), log::id(request.headers()));
    let route = route_of(&request).cloned();
    let side = arrival.side();
    let origin = origin::allowed(config, side, request.headers());
    let wanted = wanted_page(side, &request);
    let takes_page = side == Side::Console && takes_html(request.headers());
    request.extensions_mut().insert(arrival.clone());
    let request = request.map(|body| metrics.receiving(body));
    let answered = guard.answer(request, next, &arrival).await;
    let mut response = answered.unwrap_or_else(|problem| match takes_page {
        true => console::refused(problem),
        false => problem.into_response(),
    });
    if let (StatusCode::UNAUTHORIZED, Some(wanted)) = (response.status(), wanted) {
        response = session::login_for(&wanted);
    }
    headers::secure(response.headers_mut(), side);
    origin::permit(config, response.headers_mut(), origin.as_ref());
    let (ended, status) = (Instant::now(), response.status());
    let route = route.as_ref().map(MatchedPath::as_str);
    let took = ended - begun;
    log::line(&id, &method, route.unwrap_or("-"), &arrival, status.as_u16(), took);
    response.headers_mut().insert(log::REQUEST_ID, id);
    metrics.answered(&Answered { route, uri: arrival.uri(), method: &method, status, ended, took });
    drop(present);
    Ok(response.map(|body| metrics.sending(body)))
}

impl Guard {
    /// The answer of the handler, or the reason why it was not called or did not finish.
    async fn answer(
        &self,
        request: Request,
        next: Route,
        arrival: &Arrival,
    ) -> Result<Response, Problem> {
        let (config, side) = (self.app.config(), arrival.side());
        head::check(&request, config.limits.head_bytes_max)
            .and_then(|()| path::check(request.uri().path()))
            .and_then(|()| host::check(&request, config))
            .and_then(|()| origin::check(&request, config, side))?;
        if let Some(preflight) = origin::preflight(&request, config, side) {
            return Ok(preflight);
        }
        if route_of(&request).is_some_and(|route| is_json_only(route.as_str()))
            && !takes_json(request.headers())
        {
            return Err(Problem::not_acceptable());
        }
        if is_about_the_server(request.uri().path()) {
            return next.oneshot(request).await.map_err(never);
        }
        if arrival.peer().is_some_and(|peer| peer.is_reserved) {
            return Err(refusal::no_connection());
        }
        let fate = fate_unknown(request.method());
        let (flight, request) =
            Flight::begin(&self.permits, request).map_err(Overloaded::into_problem)?;
        let response = tokio::select! {
            biased;
            answered = self.work(request, next, arrival) => {
                answered.ok_or_else(|| panicked(fate))?.map_err(never)?
            }
            () = flight.out_of_time(config.limits.answer_timeout) => return Err(late(fate)),
        };
        let bytes_max = config.limits.answer_bytes_max;
        match self.app.memory().send(response, arrival.take_holding(), fate) {
            Ok(response) => Ok(response),
            Err(NoRoom { bytes }) if bytes > bytes_max => {
                Err(refusal::large_answer(bytes_max, fate))
            }
            Err(NoRoom { .. }) => Err(refusal::no_room_for_answer(fate)),
        }
    }

    /// Runs the handler, aside if it asks for that; `None` if it panicked. After a panic, nothing
    /// of the request is used any more.
    async fn work(
        &self,
        request: Request,
        next: Route,
        arrival: &Arrival,
    ) -> Option<Result<Response, Infallible>> {
        // A request with a body takes its memory once the body has arrived.
        if request.body().is_end_stream() {
            arrival.hold_request(self.app.memory().request().await);
        }
        let mut answering = Box::pin(AssertUnwindSafe(next.oneshot(request)).catch_unwind());
        tokio::select! {
            biased;
            answered = &mut answering => return answered.ok(),
            () = arrival.wants_aside() => {}
        }
        aside::finish(answering).await.and_then(Result::ok)
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

/// Whether the path is for monitors. They may call the server by its address and while it is busy,
/// and learn nothing about its content.
fn is_about_the_server(path: &str) -> bool {
    matches!(path, "/health" | "/ready")
}

/// The fate of a request that was abandoned before its answer.
fn fate_unknown(method: &Method) -> Fate {
    if is_safe(method) { Fate::DidNotHappen } else { Fate::MayHaveHappened }
}

/// Routes cannot fail; they always answer.
fn never(cannot_be: Infallible) -> Problem {
    match cannot_be {}
}

fn panicked(fate: Fate) -> Problem {
    let error = Error::new(ErrorKind::Internal, "the server has a defect, which is in its log");
    Problem::from(error.with_fate(fate))
}

fn late(fate: Fate) -> Problem {
    let error = Error::new(ErrorKind::Unavailable, "the answer was not ready in time");
    Problem::from(error.with_fate(fate))
}

fn route_of(request: &Request) -> Option<&MatchedPath> {
    request.extensions().get()
}

/// The console page that a person wants to see, and may have to sign in for.
fn wanted_page(side: Side, request: &Request) -> Option<String> {
    let is_page = side == Side::Console && *request.method() == Method::GET;
    (is_page && takes_html(request.headers())).then(|| request.uri().to_string())
}

/// Whether the caller is a browser. Programs that accept everything get JSON.
fn takes_html(headers: &HeaderMap) -> bool {
    let accept = headers.get(header::ACCEPT).and_then(|accept| accept.to_str().ok());
    accept.is_some_and(|accept| accept.contains("text/html"))
}

#[cfg(test)]
mod tests;
