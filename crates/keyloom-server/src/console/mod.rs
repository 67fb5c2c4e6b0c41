//! The console: pages for people, rendered by the server and fully usable without a script.
//!
//! A page has a model, which one function makes, and a view, which draws it. Its JSON twin
//! (`?format=json`, or `Accept: application/json`) is the model itself. Content of records never
//! becomes markup: `maud` makes the views and escapes every value.

mod answer;
mod assets;
mod browse;
mod changes;
mod declared;
mod differences;
mod draw;
mod edit;
mod frame;
mod index;
mod keys;
mod links;
mod once;
mod overview;
mod page;
mod record;
mod refusal;
mod remove;
mod schema;
mod toml;
mod unknown;
mod verify;
mod visit;

use axum::Router;
use axum::response::Redirect;
use axum::routing::{any, get, post};

pub(crate) use self::visit::refused;

use crate::app::App;

/// The path of the console.
const ROOT: &str = "/console";

/// Every route of the console.
pub(crate) fn routes() -> Router<App> {
    let to_console = || async { Redirect::temporary("/console/") };
    Router::new()
        .route("/", get(to_console))
        .route(ROOT, get(to_console))
        .route("/console/assets/{file}", get(assets::file))
        .route("/console/open", get(overview::open_space))
        .route("/console/s/{space}", get(unknown::with_slash))
        .merge(in_space("/console"))
        .merge(in_space("/console/s/{space}"))
        .method_not_allowed_fallback(unknown::method)
}

/// The URL of the stylesheet, for pages outside the console.
pub(crate) fn style_url() -> String {
    assets::url(&assets::STYLE)
}

/// The pages of one space. They are not nested, since a nested `/` would lose its slash.
fn in_space(root: &str) -> Router<App> {
    let at = |path: &str| format!("{root}{path}");
    let below = |path: &str| format!("{root}/collections/{{collection}}{path}");
    Router::new()
        .route(&at("/"), get(overview::page))
        .route(&at("/schema"), get(schema::page))
        .route(&at("/keys"), get(keys::page))
        .route(&at("/changes"), get(changes::page))
        .route(&at("/verify"), get(verify::page).post(verify::verify))
        .route(&at("/verify/{id}"), get(verify::job_page))
        .route(&at("/verify/{id}/stop"), post(verify::stop))
        .route(&at("/repair"), post(verify::repair))
        .route(&at("/{*unknown}"), any(unknown::path))
        .route(&below(""), get(unknown::with_slash))
        .route(&below("/"), get(browse::page))
        .route(&below("/indexes/{index}"), get(index::page))
        .route(&below("/indexes/{index}/build"), post(index::build))
        .route(&below("/new"), get(edit::new_page).post(edit::insert))
        .route(&below("/record"), get(record::page))
        .route(&below("/record/edit"), get(edit::page).post(edit::save))
        .route(&below("/record/delete"), get(remove::page).post(remove::delete))
        .route(&below("/record/increment"), post(record::increment))
}
