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
mod kept_pages;
mod kv;
mod names;
mod near;
mod operation;
mod owned;
mod page_text;
mod pages;
mod record_body;
mod records;
mod routes;
mod schema;
mod template;
mod there;
mod transaction;
mod typed;
mod unique;
mod weighed;
mod written_key;

use axum::Router;

pub(crate) use accept::{is_json_only, takes_json};
pub(crate) use asking::page as asked_page;
pub(crate) use kept_pages::KeptPages;
pub(crate) use near::asked as asked_near;
pub(crate) use written_key::{key_of, key_of_owner};

use crate::app::App;
use routes::Routes;

/// Every route of the API.
pub(crate) fn routes() -> Router<App> {
    Routes::new().nest("/v1", in_space()).nest("/s/{space}/v1", in_space()).into_router()
}

/// The routes of one space.
fn in_space() -> Routes {
    let collection = Routes::new()
        .merge(records::routes())
        .merge(unique::routes())
        .merge(near::routes())
        .merge(count::routes())
        .merge(history::routes())
        .merge(owned::routes());
    Routes::new()
        .nest("/collections/{collection}", collection)
        .nest("/admin", admin::routes())
        .merge(transaction::routes())
        .merge(batch::routes())
        .merge(changes::routes())
        .merge(kv::routes())
        .merge(schema::routes())
        .merge(there::routes())
}
