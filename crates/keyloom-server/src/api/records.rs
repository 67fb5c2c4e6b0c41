//! Single records by their keys.

use axum::Router;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use keyloom::Document;

use crate::app::App;
use crate::auth::Verb;
use crate::caller::Caller;
use crate::params::Params;
use crate::path::PathParts;
use crate::problem::Problem;

pub(crate) fn routes() -> Router<App> {
    Router::new().route("/records/{key}", get(read))
}

/// `GET /records/{key}`
async fn read(caller: Caller, path: PathParts, params: Params) -> Result<Response, Problem> {
    params.finish()?;
    let collection = caller.collection(Verb::Read, path.get("collection")).await?;
    let key = collection.key_named(path.get("key")).await?;
    match collection.get_document(key).await? {
        Some(document) => Ok(answer(StatusCode::OK, document)),
        None => Err(Problem::not_found("the collection has no such record")),
    }
}

/// An answer with one record.
fn answer(status: StatusCode, document: Document) -> Response {
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static("application/json")),
        (header::ETAG, etag(&document)),
    ];
    (status, headers, document.into_text()).into_response()
}

/// The version of a record as an entity tag.
fn etag(document: &Document) -> HeaderValue {
    let text = format!("\"{}\"", document.version());
    HeaderValue::from_str(&text).unwrap_or_else(|_| HeaderValue::from_static("\"\""))
}
