//! `/problems/{type}`: explains a problem and what to do about it.

use axum::Router;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use maud::{DOCTYPE, Markup, html};

use super::Problem;
use super::kinds::{KINDS, named};
use crate::app::App;
use crate::path::PathParts;

/// The pages use the console's style, and load nothing else.
const POLICY: &str =
    "default-src 'none'; style-src 'self'; base-uri 'none'; frame-ancestors 'none'";

pub(crate) fn routes() -> Router<App> {
    Router::new().route("/problems", get(all)).route("/problems/{type}", get(one))
}

async fn all() -> Response {
    page(
        "Problems",
        html! {
            p.lead { "Every answer that is a refusal names one of these as its type." }
            div.scroll { table {
                thead { tr {
                    th scope="col" { "Type" } th scope="col" { "Status" } th scope="col" { "Meaning" }
                } }
                tbody { @for kind in KINDS { tr {
                    th scope="row" { a href={ "/problems/" (kind.name) } { (kind.name) } }
                    td { (kind.status) }
                    td { (kind.title) }
                } } }
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
                title { (title) " · Keyloom" }
                link rel="stylesheet" href=(crate::console::style_url());
            }
            body.alone.read { main { h1 { (title) } (body) } }
        }
    };
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8")),
        (header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY)),
    ];
    (headers, page.into_string()).into_response()
}
