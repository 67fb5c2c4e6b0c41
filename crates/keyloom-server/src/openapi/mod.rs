//! Describes the API for programs: an OpenAPI 3.1 document made from the schema of a space.
//!
//! Each collection has paths of its own, so that its records are typed. A document describes only
//! what its caller may see: no other collections, administration only for administrators, and names
//! without the owner for an acting user.
//!
//! Every described parameter is safe to use: a request of the described form succeeds, unless
//! something stored or declared prevents it. Some parameters are described only in words: fields in
//! the names of parameters (`if.FIELD`), and places in the past (`version`, `at`). A caller cannot
//! invent their values, but takes them from the schema and from earlier answers.

mod admin;
mod collections;
mod fields;
mod keys;
mod operations;
mod parts;
mod questions;
mod server;
mod shared;
mod space;
mod there;

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use keyloom::SchemaDeclaration;
use serde_json::{Map, Value, json};

use crate::app::App;
use crate::auth::{Role, Verb};
use crate::caller::Caller;
use crate::config::Limits;
use crate::problem::Problem;

const ABOUT: &str = "Records and every index over them, kept consistent on a key-value store.\n\n\
    Headers that go with every operation: `Authorization: Bearer …` where access control is on; \
    `Keyloom-Act-As`, the acting user, percent-encoded. With every write: `Idempotency-Key`, which \
    makes it happen once however often it is sent. With the write of one record: `If-Match` with \
    the `ETag` of the record (412 and the current record where it has changed), and \
    `If-None-Match: *` to create only. With the read of one record: `If-None-Match` (304).\n\n\
    A key has at most 900 bytes in the store, of which its template takes some, and a record at \
    most 380 KB; more is refused with 413.";

pub(crate) fn routes() -> Router<App> {
    Router::new().route("/openapi.json", get(answer)).route("/s/{space}/openapi.json", get(answer))
}

/// The caller of a document.
struct Scope<'c> {
    /// The prefix of the paths: nothing, or `/s/{space}`.
    base: &'c str,
    is_admin: bool,
    /// Whether the caller acts as a user, whose own records have names without the owner.
    is_user: bool,
    /// Whether the caller may read stored records, also in the answers to writes.
    may_read: bool,
    /// Whether the caller may read every key.
    reads_keys: bool,
    /// Whether access control is on.
    is_guarded: bool,
    limits: &'c Limits,
}

/// `GET /openapi.json`: what the caller may see of the API.
async fn answer(State(app): State<App>, caller: Caller) -> Result<Response, Problem> {
    let mut declared = caller.store.schema().await?.declaration();
    declared.collections.retain(|name, _| caller.grant.sees(name));
    let scope = Scope {
        base: &caller.base,
        is_admin: caller.grant.role == Role::Admin && caller.user.is_none(),
        is_user: caller.user.is_some(),
        may_read: caller.grant.verbs.contains(&Verb::Read),
        reads_keys: caller.reads_keys(),
        is_guarded: !app.config().authority.is_open(),
        limits: &app.config().limits,
    };
    Ok(Json(document(&declared, &scope)).into_response())
}

/// The whole document.
fn document(schema: &SchemaDeclaration, scope: &Scope) -> Value {
    let mut paths = there::paths(schema);
    paths.extend(space::paths(schema, scope));
    let mut schemas = shared::schemas();
    schemas.extend(there::schemas());
    for (name, collection) in &schema.collections {
        paths.extend(collections::paths(name, collection, scope));
        schemas.extend(collections::schemas(name, collection, scope));
    }
    schemas.extend(operations::schemas(schema, scope));
    if scope.is_admin {
        paths.extend(admin::paths(schema, scope));
        schemas.extend(admin::schemas());
    }
    if scope.base.is_empty() {
        paths.extend(server::paths());
    }
    let mut components = json!({
        "schemas": schemas, "responses": shared::responses(), "parameters": shared::headers(),
    });
    let mut document = json!({
        "openapi": "3.1.0",
        "info": { "title": "Keyloom", "version": env!("CARGO_PKG_VERSION"), "description": ABOUT },
        "servers": [{ "url": if scope.base.is_empty() { "/" } else { scope.base } }],
        "paths": paths,
    });
    // Both are objects.
    if scope.is_guarded {
        components["securitySchemes"] = json!({ "bearer": { "type": "http", "scheme": "bearer" } });
        document["security"] = json!([{ "bearer": [] }]);
    }
    document["components"] = components;
    document
}

/// An object with these members, in this order.
fn object(members: impl IntoIterator<Item = (impl Into<String>, Value)>) -> Map<String, Value> {
    members.into_iter().map(|(name, value)| (name.into(), value)).collect()
}

/// A reference to a schema of the document.
fn schema_named(name: &str) -> Value {
    json!({ "$ref": format!("#/components/schemas/{name}") })
}
