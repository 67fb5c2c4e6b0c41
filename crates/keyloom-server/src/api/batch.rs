//! Many independent operations in one round trip.

use axum::Router;

use crate::app::App;

pub(crate) fn routes() -> Router<App> {
    Router::new()
}
