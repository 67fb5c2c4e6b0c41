//! `/problems/{type}`: what a problem means and what to do.

use axum::Router;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use maud::{DOCTYPE, Markup, html};

use super::Problem;
use super::kinds::{KINDS, named};
use crate::app::App;
use crate::path::PathParts;

pub(crate) fn routes() -> Router<App> {
    Router::new().route("/problems", get(all)).route("/problems/{type}", get(one))
}

async fn all() -> Response {
    page(
        "Problems",
        html! {
            ul { @for kind in KINDS {
                li { a href={ "/problems/" (kind.name) } { (kind.name) } " (" (kind.status) "): " (kind.title) }
            } }
        },
    )
}

async fn one(path: PathParts) -> Result<Response, Problem> {
    let kind = named(path.get("type"))
        .ok_or_else(|| Problem::not_found("there is no problem of that type"))?;
    Ok(page(
        kind.title,
        html! {
            p { code { (kind.name) } ", status " (kind.status) }
            p { (kind.meaning) }
            p { strong { "What to do: " } (kind.advice) }
            p { a href="/problems" { "All problems" } }
        },
    ))
}

fn page(title: &str, body: Markup) -> Response {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { (title) }
            }
            body { main { h1 { (title) } (body) } }
        }
    };
    ([(header::CONTENT_TYPE, "text/html; charset=utf-8")], page.into_string()).into_response()
}
