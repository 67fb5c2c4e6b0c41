//! The API below `/v1`, and below `/s/{space}/v1` for other spaces.

mod accept;
mod admin;
mod answer;
mod asking;
mod batch;
mod changes;
mod conditions;
mod count;
mod history;
mod kv;
mod names;
mod near;
mod operation;
mod owned;
mod page_text;
mod pages;
mod patch;
mod record_body;
mod records;
mod schema;
mod template;
mod transaction;
mod typed;
mod unique;

use axum::Router;
use axum::middleware::from_fn;

pub(crate) use asking::page as asked_page;
pub(crate) use changes::Streams;
pub(crate) use near::asked as asked_near;

use crate::app::App;

/// Every route of the API.
pub(crate) fn routes() -> Router<App> {
    Router::new().nest("/v1", in_space()).nest("/s/{space}/v1", in_space())
}

/// The routes of one space.
fn in_space() -> Router<App> {
    let collection = Router::new()
        .merge(records::routes())
        .merge(unique::routes())
        .merge(near::routes())
        .merge(count::routes())
        .merge(history::routes())
        .merge(owned::routes())
        .layer(from_fn(accept::json_only));
    Router::new()
        .nest("/collections/{collection}", collection)
        .nest("/admin", admin::routes())
        .merge(transaction::routes())
        .merge(batch::routes())
        .merge(changes::routes())
        .merge(kv::routes())
        .merge(schema::routes())
}
