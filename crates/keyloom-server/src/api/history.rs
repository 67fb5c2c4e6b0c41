//! The versions of a record.

use axum::Extension;
use axum::extract::State;
use axum::response::Response;
use axum::routing::get;
use keyloom::{Difference, HistoryEntry, HistoryKind};
use serde_json::{Map, Value, json};

use super::answer;
use super::asking::page_size;
use super::names::Names;
use super::page_text::kind as problem_kind;
use super::weighed::Growing;
use super::written_key::key_of;
use crate::api::routes::Routes;
use crate::app::App;
use crate::auth::Verb;
use crate::caller::Caller;
use crate::guard::Arrival;
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
    Extension(arrival): Extension<Arrival>,
) -> Result<Response, Problem> {
    let collection = caller.collection(Verb::Read, path.get("collection")).await?;
    let key = key_of(&collection, caller.user.as_deref(), path.get("key")).await?;
    let take = page_size(&mut params, &app.config().limits)?;
    let mut cursor = params.take("cursor")?;
    params.finish()?;
    let mut names = Names::new(&app, &path, &caller, &collection);
    let mut list = Growing::new(&app, &arrival, take, "{\"versions\":[");
    let mut problems = Vec::new();
    loop {
        let page = collection.history(key.clone(), list.rows(), cursor.as_deref()).await?;
        let mut versions = Vec::with_capacity(page.records.len());
        for entry in &page.records {
            let mut shown = shown(entry);
            // The record may have been moved to a key that the caller has no name for.
            if let Ok(name) = names.of(&entry.key).await {
                shown.insert("key".to_owned(), name.key.into());
            }
            versions.push(Value::Object(shown).to_string());
        }
        let told = page.problems.iter();
        problems.extend(told.map(
            |it| json!({ "kind": problem_kind(it.kind), "key": it.key, "reason": it.reason }),
        ));
        list.add(page.records.len(), versions).await;
        cursor = page.next.map(|next| next.to_string());
        if cursor.is_none() || list.stopped().is_some() {
            break;
        }
    }
    let mut text = list.into_text();
    text.extend_from_slice(format!("],\"problems\":{}", Value::from(problems)).as_bytes());
    if let Some(next) = cursor {
        text.extend_from_slice(format!(",\"next\":{}", Value::from(next)).as_bytes());
    }
    text.push(b'}');
    Ok(answer::text(text))
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
