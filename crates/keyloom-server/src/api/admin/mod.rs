//! What an operator needs of a running server.

use axum::Router;

use crate::app::App;

pub(crate) fn routes() -> Router<App> {
    Router::new()
}
