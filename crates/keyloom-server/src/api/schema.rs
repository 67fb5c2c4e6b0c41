//! The schema, and the keyspace that it documents.

use axum::Router;

use crate::app::App;

pub(crate) fn routes() -> Router<App> {
    Router::new()
}
