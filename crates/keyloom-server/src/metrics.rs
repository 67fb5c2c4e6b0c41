//! What the server did, counted for Prometheus, and whether it is well.

use std::sync::atomic::{AtomicU64, Ordering};

use axum::Router;
use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use axum::routing::get;

use crate::app::App;

/// Everything that is counted.
#[derive(Debug, Default)]
pub(crate) struct Metrics {
    requests: AtomicU64,
}

impl Metrics {
    /// Counts a request.
    pub(crate) fn request(&self) {
        self.requests.fetch_add(1, Ordering::Relaxed);
    }
}

pub(crate) fn routes() -> Router<App> {
    Router::new().route("/health", get(health)).route("/metrics", get(metrics))
}

/// The process answers.
async fn health() -> &'static str {
    "ok\n"
}

async fn metrics(State(app): State<App>) -> Response {
    let requests = app.metrics().requests.load(Ordering::Relaxed);
    let text =
        format!("# TYPE keyloom_requests_total counter\nkeyloom_requests_total {requests}\n");
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4")], text).into_response()
}
