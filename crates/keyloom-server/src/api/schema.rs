//! The schema, and the keyspace that follows from it.

use std::collections::BTreeMap;

use axum::extract::State;
use axum::response::Response;
use axum::routing::get;
use keyloom::{CollectionDeclaration, IndexState, StoredSchema};
use serde_json::{Map, Value, json};

use super::answer;
use super::names::program;
use crate::api::routes::Routes;
use crate::app::App;
use crate::caller::Caller;
use crate::params::Params;
use crate::path::PathParts;
use crate::problem::Problem;

pub(in crate::api) fn routes() -> Routes {
    Routes::new().route("/schema", get(schema))
}

/// `GET /schema`: the part of it that the caller may see.
async fn schema(
    State(app): State<App>,
    caller: Caller,
    path: PathParts,
    params: Params,
) -> Result<Response, Problem> {
    params.finish()?;
    let store = program(&app, &path)?;
    let StoredSchema { schema, states, .. } = store.stored_schema().await?;
    let mut declaration = schema.declaration();
    declaration.collections.retain(|name, _| caller.grant.sees(name));
    let mut keyspace = schema.keyspace();
    keyspace.retain(|key| key.collection.as_ref().is_none_or(|name| caller.grant.sees(name)));
    let (mut indexes, mut failures) = (Map::new(), Map::new());
    for (name, collection) in &declaration.collections {
        let states = declared_states(collection, states.get(name));
        let told = states.iter().map(|(index, state)| (index.clone(), told(state).into()));
        indexes.insert(name.clone(), Value::Object(told.collect()));
        // The reason why a build failed may name records, which not everyone may read.
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

/// The state of every index and aggregate that a collection declares.
pub(super) fn declared_states(
    collection: &CollectionDeclaration,
    states: Option<&BTreeMap<String, IndexState>>,
) -> Vec<(String, IndexState)> {
    let indexes = collection.index.keys().chain(collection.unique.keys());
    let aggregates = collection.count.keys().chain(collection.sum.keys());
    let names = indexes.chain(collection.geo.keys()).chain(aggregates);
    names.filter_map(|name| Some((name.clone(), states?.get(name)?.clone()))).collect()
}

pub(super) fn told(state: &IndexState) -> &'static str {
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
