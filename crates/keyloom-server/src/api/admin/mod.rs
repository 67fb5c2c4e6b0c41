//! What an operator needs of a running server.

mod export;
mod import;
mod jobs;
mod keys;
mod line;
mod lines;
mod stats;

use axum::Router;

use crate::app::App;

pub(crate) fn routes() -> Router<App> {
    Router::new()
        .merge(keys::routes())
        .merge(stats::routes())
        .merge(jobs::routes())
        .merge(import::routes())
        .merge(export::routes())
}
