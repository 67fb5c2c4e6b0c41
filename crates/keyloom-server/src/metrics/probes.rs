//! `/health`, `/ready` and `/metrics`.

use axum::Router;
use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use keyloom::engine::{Batch, Space, Unit};

use super::text::{Text, server};
use crate::app::App;
use crate::auth::Role;
use crate::caller::Recognised;
use crate::params::Params;
use crate::problem::Problem;
use crate::refusal;

/// A key that nobody uses, to test whether the store answers.
const NOBODY: &str = "\u{1}keyloom:ready";

pub(crate) fn routes() -> Router<App> {
    Router::new()
        .route("/health", get(health))
        .route("/ready", get(ready))
        .route("/metrics", get(metrics))
}

/// Succeeds if the process answers.
async fn health() -> &'static str {
    "ok\n"
}

/// Succeeds if the store answers and accepts writes, and the server is not about to stop.
async fn ready(State(app): State<App>) -> Result<&'static str, Problem> {
    if app.is_stopping() {
        return Err(refusal::stopping());
    }
    let store = app.store();
    store.plain().get(NOBODY).await?;
    // An empty batch writes nothing, but a store that cannot be written to refuses it.
    store.engine().commit(Batch::new(Space::main())).await?;
    Ok("ready\n")
}

/// All metrics, of all spaces. Metrics of a collection are shown only to callers who may see it.
async fn metrics(
    State(app): State<App>,
    Recognised { grant, user }: Recognised,
    params: Params,
) -> Result<Response, Problem> {
    params.finish()?;
    if grant.role == Role::User || user.is_some() {
        return Err(Problem::forbidden("users do not see how the server fares"));
    }
    let mut text = Text::new();
    server(app.metrics(), &mut text, |collection| grant.sees(collection));
    let streams = app.streams().open();
    text.single("keyloom_streams_open", "gauge", "Streams of changes that are open.", streams);
    text.family("keyloom_engine", "gauge", "What the engine knows of itself, of all spaces.");
    for figure in app.store().engine().figures() {
        let unit = if figure.unit == Unit::Bytes { "bytes" } else { "count" };
        text.sample("keyloom_engine", &[("figure", figure.name), ("unit", unit)], figure.value);
    }
    let media = "text/plain; version=0.0.4; charset=utf-8";
    Ok(([(header::CONTENT_TYPE, media)], text.into_string()).into_response())
}
