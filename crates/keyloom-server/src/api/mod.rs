//! The API below `/v1`, and below `/s/{space}/v1` for other spaces.

mod admin;
mod batch;
mod changes;
mod count;
mod history;
mod kv;
mod near;
mod operation;
mod owned;
mod pages;
mod records;
mod schema;
mod transaction;
mod unique;

use axum::Router;

pub(crate) use changes::Streams;

use crate::app::App;

/// Every route of the API.
pub(crate) fn routes() -> Router<App> {
    Router::new().nest("/v1", in_space()).nest("/s/{space}/v1", in_space())
}

/// The routes of one space.
fn in_space() -> Router<App> {
    let collection = Router::new()
        .merge(records::routes())
        .merge(pages::routes())
        .merge(unique::routes())
        .merge(near::routes())
        .merge(count::routes())
        .merge(history::routes())
        .merge(owned::routes());
    Router::new()
        .nest("/collections/{collection}", collection)
        .nest("/admin", admin::routes())
        .merge(transaction::routes())
        .merge(batch::routes())
        .merge(changes::routes())
        .merge(kv::routes())
        .merge(schema::routes())
}
