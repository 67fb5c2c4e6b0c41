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
    let schema = store.schema().await?;
    let mut declaration = schema.declaration();
    declaration.collections.retain(|name, _| caller.grant.sees(name));
    let mut keyspace = schema.keyspace();
    keyspace.retain(|key| key.collection.as_ref().is_none_or(|name| caller.grant.sees(name)));
    let (mut indexes, mut failures) = (Map::new(), Map::new());
    for (name, collection) in &declaration.collections {
        let states = states(&store, name, collection).await?;
        let told = states.iter().map(|(index, state)| (index.clone(), told(state).into()));
        indexes.insert(name.clone(), Value::Object(told.collect()));
        // Why a build failed may name records, which not everyone may read.
        let reads_all = caller.user.is_none() && !caller.lacks_user() && caller.may_read(name);
        let reasons = states.into_iter().filter(|_| reads_all).filter_map(reason);
        let reasons: Map<String, Value> = reasons.collect();
        if !reasons.is_empty() {
            failures.insert(name.clone(), reasons.into());
        }
    }
    let mut members = json!({ "schema": declaration, "keyspace": keyspace, "indexes": indexes });
    if let (false, Value::Object(members)) = (failures.is_empty(), &mut members) {
        members.insert("failures".to_owned(), failures.into());
    }
    Ok(answer::json(&members))
}

/// The state of every index and aggregate of a collection.
async fn states(
    store: &Store,
    name: &str,
    collection: &CollectionDeclaration,
) -> Result<Vec<(String, IndexState)>, Problem> {
    let indexes = collection.index.keys().chain(collection.unique.keys());
    let aggregates = collection.count.keys().chain(collection.sum.keys());
    let mut states = Vec::new();
    for index in indexes.chain(collection.geo.keys()).chain(aggregates) {
        states.push((index.clone(), store.index_state(name, index).await?));
    }
    Ok(states)
}

fn told(state: &IndexState) -> &'static str {
    match state {
        IndexState::Building => "building",
        IndexState::Ready => "ready",
        IndexState::Disabled => "disabled",
        IndexState::Failed { .. } => "failed",
    }
}

fn reason((index, state): (String, IndexState)) -> Option<(String, Value)> {
    match state {
        IndexState::Failed { reason } => Some((index, reason.into())),
        IndexState::Building | IndexState::Ready | IndexState::Disabled => None,
    }
}
