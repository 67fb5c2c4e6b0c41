//! The schema, and the keyspace that it documents.

use axum::Router;
use axum::extract::State;
use axum::middleware::from_fn;
use axum::response::Response;
use axum::routing::get;
use keyloom::{CollectionDeclaration, IndexState, Store};
use serde_json::{Map, Value, json};

use super::accept::json_only;
use super::answer;
use super::names::program;
use crate::app::App;
use crate::caller::Caller;
use crate::params::Params;
use crate::path::PathParts;
use crate::problem::Problem;

pub(crate) fn routes() -> Router<App> {
    Router::new().route("/schema", get(schema).layer(from_fn(json_only)))
}

/// `GET /schema`: as much of it as the caller may know of.
async fn schema(
    State(app): State<App>,
    caller: Caller,
    path: PathParts,
    params: Params,
) -> Result<Response, Problem> {
    params.finish()?;
    let store = program(&app, &path)?;
    let mut declaration = store.schema().await?.declaration();
    declaration.collections.retain(|name, _| caller.grant.sees(name));
    let mut indexes = Map::new();
    for (name, collection) in &declaration.collections {
        indexes.insert(name.clone(), states(&store, &caller, name, collection).await?);
    }
    Ok(answer::json(&json!({ "schema": declaration, "indexes": indexes })))
}

/// The state of every index and aggregate of a collection.
async fn states(
    store: &Store,
    caller: &Caller,
    name: &str,
    collection: &CollectionDeclaration,
) -> Result<Value, Problem> {
    let indexes = collection.index.keys().chain(collection.unique.keys());
    let aggregates = collection.count.keys().chain(collection.sum.keys());
    let mut states = Map::new();
    for index in indexes.chain(collection.geo.keys()).chain(aggregates) {
        let state = store.index_state(name, index).await?;
        states.insert(index.clone(), shown(&state, caller.user.is_none()));
    }
    Ok(states.into())
}

/// Why a build failed may name records, which not every user may read.
fn shown(state: &IndexState, may_see_reason: bool) -> Value {
    match state {
        IndexState::Building => json!({ "state": "building" }),
        IndexState::Ready => json!({ "state": "ready" }),
        IndexState::Disabled => json!({ "state": "disabled" }),
        IndexState::Failed { reason } if may_see_reason => {
            json!({ "state": "failed", "reason": reason })
        }
        IndexState::Failed { .. } => json!({ "state": "failed" }),
    }
}
