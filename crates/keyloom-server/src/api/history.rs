//! The versions of a record.

use axum::extract::State;
use axum::response::Response;
use axum::routing::get;
use keyloom::{Difference, HistoryEntry, HistoryKind};
use serde_json::{Map, Value, json};

use super::answer;
use super::asking::page_size;
use super::names::Names;
use super::page_text::kind as problem_kind;
use super::written_key::key_of;
use crate::api::routes::Routes;
use crate::app::App;
use crate::auth::Verb;
use crate::caller::Caller;
use crate::params::Params;
use crate::path::PathParts;
use crate::problem::Problem;

pub(in crate::api) fn routes() -> Routes {
    Routes::new()
        .route("/records//history", get(history))
        .route("/records/{key}/history", get(history))
}

/// `GET /records/{key}/history?limit=&cursor=`
async fn history(
    State(app): State<App>,
    caller: Caller,
    path: PathParts,
    mut params: Params,
) -> Result<Response, Problem> {
    let collection = caller.collection(Verb::Read, path.get("collection")).await?;
    let key = key_of(&collection, caller.user.as_deref(), path.get("key")).await?;
    let take = page_size(&mut params, &app.config().limits)?;
    let cursor = params.take("cursor")?;
    params.finish()?;
    let page = collection.history(key, take, cursor.as_deref()).await?;
    let mut names = Names::new(&app, &path, &caller, &collection);
    let mut versions = Vec::with_capacity(page.records.len());
    for entry in &page.records {
        let mut shown = shown(entry);
        // A record that was moved away may have gone to a key that the caller has no name for.
        if let Ok(name) = names.of(&entry.key).await {
            shown.insert("key".to_owned(), name.key.into());
        }
        versions.push(Value::Object(shown));
    }
    let problems: Value = page
        .problems
        .iter()
        .map(|it| json!({ "kind": problem_kind(it.kind), "key": it.key, "reason": it.reason }))
        .collect();
    let mut members = json!({ "versions": versions, "problems": problems });
    if let (Some(next), Value::Object(members)) = (page.next, &mut members) {
        members.insert("next".to_owned(), next.to_string().into());
    }
    Ok(answer::json(&members))
}

fn shown(entry: &HistoryEntry<Value>) -> Map<String, Value> {
    let mut members = Map::new();
    let mut add = |name: &str, value: Value| drop(members.insert(name.to_owned(), value));
    add("version", entry.version.to_string().into());
    add("kind", kind(entry.kind).into());
    add("at_ms", entry.at_ms.into());
    if let Some(by) = &entry.by {
        add("by", by.as_str().into());
    }
    add("stored_at", entry.key.as_str().into());
    if let Some(renamed_from) = &entry.renamed_from {
        add("renamed_from", renamed_from.as_str().into());
    }
    if let Some(record) = &entry.record {
        add("record", record.clone());
    }
    add("changes", entry.changes.iter().map(change).collect());
    members
}

fn change(change: &Difference) -> Value {
    let mut members = Map::from_iter([("path".to_owned(), json!(change.path))]);
    for (name, value) in [("before", &change.before), ("after", &change.after)] {
        if let Some(value) = value {
            members.insert(name.to_owned(), value.clone());
        }
    }
    members.into()
}

fn kind(kind: HistoryKind) -> &'static str {
    match kind {
        HistoryKind::Created => "created",
        HistoryKind::Updated => "updated",
        HistoryKind::Renamed => "renamed",
        HistoryKind::Deleted => "deleted",
        HistoryKind::Expired => "expired",
        _ => "other",
    }
}
