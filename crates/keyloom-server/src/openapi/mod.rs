//! The API, described for programs.

use axum::Router;

use crate::app::App;

pub(crate) fn routes() -> Router<App> {
    Router::new()
}
