//! Counts of ranges and of declared groups.

use axum::Router;

use crate::app::App;

pub(crate) fn routes() -> Router<App> {
    Router::new()
}
