//! The entry points of the API, for a caller who only knows its address.

use std::collections::BTreeMap;

use axum::extract::State;
use axum::response::Response;
use axum::routing::get;
use keyloom::{CollectionDeclaration, IndexState, StoredSchema};
use serde_json::{Map, Value, json};

use super::answer;
use super::names::program;
use super::schema::{declared_states, told};
use crate::api::routes::Routes;
use crate::app::App;
use crate::caller::Caller;
use crate::params::Params;
use crate::path::{PathParts, encode};
use crate::problem::Problem;

pub(in crate::api) fn routes() -> Routes {
    Routes::new()
        .route("", get(beginning))
        .route("/", get(beginning))
        .route("/collections", get(collections))
        .route("/collections/{collection}", get(collection))
}

/// `GET /v1`: the paths that the caller may follow.
async fn beginning(
    State(app): State<App>,
    caller: Caller,
    path: PathParts,
    params: Params,
) -> Result<Response, Problem> {
    params.finish()?;
    let stored = program(&app, &path)?.stored_schema().await?;
    let has_log = stored.schema.declaration().log.is_some();
    let base = &caller.base;
    let mut members = json!({
        "keyloom": env!("CARGO_PKG_VERSION"),
        "space": caller.store.space_name(),
        "collections": format!("{base}/v1/collections"),
        "schema": format!("{base}/v1/schema"),
        "transaction": format!("{base}/v1/transaction"),
        "batch": format!("{base}/v1/batch"),
        "description": format!("{base}/openapi.json"),
        "problems": "/problems",
    });
    for (name, is_there) in
        [("changes", has_log && caller.user.is_none()), ("kv", caller.reads_keys())]
    {
        if is_there {
            // The value is an object, since it was built above.
            members[name] = format!("{base}/v1/{name}").into();
        }
    }
    Ok(answer::json(&members))
}

/// `GET /v1/collections`: the collections that the caller may see.
async fn collections(
    State(app): State<App>,
    caller: Caller,
    path: PathParts,
    params: Params,
) -> Result<Response, Problem> {
    params.finish()?;
    let StoredSchema { schema, states, .. } = program(&app, &path)?.stored_schema().await?;
    let declaration = schema.declaration();
    let seen = declaration.collections.iter().filter(|(name, _)| caller.grant.sees(name));
    let shown: Vec<Value> = seen
        .map(|(name, declared)| shown(&caller.base, name, declared, states.get(name)))
        .collect();
    Ok(answer::json(&json!({ "collections": shown })))
}

/// `GET /v1/collections/{collection}`
async fn collection(
    State(app): State<App>,
    caller: Caller,
    path: PathParts,
    params: Params,
) -> Result<Response, Problem> {
    params.finish()?;
    let StoredSchema { schema, states, .. } = program(&app, &path)?.stored_schema().await?;
    let name = path.get("collection");
    let declaration = schema.declaration();
    let declared = declaration.collections.get(name).filter(|_| caller.grant.sees(name));
    let declared = declared.ok_or_else(Problem::unknown_collection)?;
    Ok(answer::json(&shown(&caller.base, name, declared, states.get(name))))
}

/// A description of a collection, with its paths, for programs.
fn shown(
    base: &str,
    name: &str,
    declared: &CollectionDeclaration,
    states: Option<&BTreeMap<String, IndexState>>,
) -> Value {
    let url = format!("{base}/v1/collections/{}", encode(name));
    let states: BTreeMap<String, IndexState> =
        declared_states(declared, states).into_iter().collect();
    let of_kinds = [
        ("index", &declared.index, "records?index="),
        ("unique", &declared.unique, "unique/"),
        ("geo", &declared.geo, "near?index="),
    ];
    let indexes = of_kinds.into_iter().flat_map(|(kind, indexes, way)| {
        let (url, states) = (&url, &states);
        indexes.iter().map(move |(index, declared)| {
            let mut members = about(kind, index, states.get(index), declared.condition_text());
            members.insert("key".to_owned(), declared.key.as_str().into());
            members.insert("url".to_owned(), format!("{url}/{way}{}", encode(index)).into());
            Value::Object(members)
        })
    });
    let of_kinds = [("count", &declared.count), ("sum", &declared.sum)];
    let aggregates = of_kinds.into_iter().flat_map(|(kind, aggregates)| {
        let (url, states) = (&url, &states);
        aggregates.iter().map(move |(aggregate, declared)| {
            let state = states.get(aggregate);
            let mut members = about(kind, aggregate, state, declared.condition_text());
            members.insert("group".to_owned(), json!(declared.group));
            members.insert("url".to_owned(), format!("{url}/groups/{}", encode(aggregate)).into());
            Value::Object(members)
        })
    });
    let mut shown = json!({
        "name": name,
        "url": &url,
        "records": format!("{url}/records"),
        "key": declared.key,
        "fields": declared.fields,
        "indexes": indexes.collect::<Vec<_>>(),
        "aggregates": aggregates.collect::<Vec<_>>(),
    });
    let access = declared.access.map(|access| access.to_string());
    for (name, said) in [("access", &access), ("owner", &declared.owner)] {
        if let Some(said) = said {
            // The value is an object, since it was built above.
            shown[name] = said.as_str().into();
        }
    }
    shown
}

/// The common part of indexes and aggregates.
fn about(
    kind: &str,
    name: &str,
    state: Option<&IndexState>,
    condition: Option<String>,
) -> Map<String, Value> {
    let text = |name: &str, value: &str| (name.to_owned(), Value::from(value));
    let mut members = Map::from_iter([text("name", name), text("kind", kind)]);
    members.extend(state.map(|state| text("state", told(state))));
    members.extend(condition.map(|condition| text("where", &condition)));
    members
}
