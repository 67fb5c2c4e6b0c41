//! The API, described for programs: an OpenAPI 3.1 document made from the schema of a space.
//!
//! Collections are written out, each with its own paths, so that their records are typed. Headers
//! that are the same everywhere (`If-Match`, `Idempotency-Key` and their like) are told in the
//! description and not as parameters of each operation.

mod collections;
mod fields;
mod keys;
mod operations;
mod parts;
mod space;

use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use keyloom::SchemaDeclaration;
use serde_json::{Map, Value, json};

use crate::app::App;
use crate::caller::Caller;
use crate::problem::Problem;

const ABOUT: &str = "Records and every index over them, kept consistent on a key-value store.\n\n\
    Headers that go with every operation: `Authorization: Bearer …` where access control is on; \
    `Keyloom-Act-As`, the acting user, percent-encoded. With every write: `Idempotency-Key`, which \
    makes it happen once however often it is sent. With the write of one record: `If-Match` with \
    the `ETag` of the record (412 and the current record where it has changed), and \
    `If-None-Match: *` to create only. With the read of one record: `If-None-Match` (304).";

pub(crate) fn routes() -> Router<App> {
    Router::new().route("/openapi.json", get(answer)).route("/s/{space}/openapi.json", get(answer))
}

/// `GET /openapi.json`: what the caller may see of the API.
async fn answer(caller: Caller) -> Result<Response, Problem> {
    let mut declared = caller.store.schema().await?.declaration();
    declared.collections.retain(|name, _| caller.grant.sees(name));
    Ok(Json(document(&declared, &caller.base)).into_response())
}

/// The whole document, for the space whose paths begin with `base`.
fn document(schema: &SchemaDeclaration, base: &str) -> Value {
    let mut paths = space::paths(schema);
    let mut schemas = parts::schemas();
    for (name, collection) in &schema.collections {
        paths.extend(collections::paths(name, collection));
        schemas.extend(collections::schemas(name, collection));
    }
    schemas.extend(operations::schemas(schema));
    let server = if base.is_empty() { "/" } else { base };
    json!({
        "openapi": "3.1.0",
        "info": { "title": "Keyloom", "version": env!("CARGO_PKG_VERSION"), "description": ABOUT },
        "servers": [{ "url": server }],
        "paths": paths,
        "components": { "schemas": schemas, "responses": parts::responses() },
    })
}

/// An object of named members, in their order.
fn object(members: impl IntoIterator<Item = (impl Into<String>, Value)>) -> Map<String, Value> {
    members.into_iter().map(|(name, value)| (name.into(), value)).collect()
}

/// A reference to a schema of the document.
fn schema_named(name: &str) -> Value {
    json!({ "$ref": format!("#/components/schemas/{name}") })
}
