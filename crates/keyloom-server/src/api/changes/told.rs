//! A commit of the log as JSON.

use keyloom::{Became, Logged, LoggedChange};
use serde_json::{Value, json};

/// One commit.
pub(super) fn commit(logged: Logged) -> Value {
    let Logged { position, at, by, changes, is_schema_change } = logged;
    json!({
        "position": position.to_string(),
        "at": at,
        "by": by,
        "is_schema_change": is_schema_change,
        "changes": changes.into_iter().map(change).collect::<Vec<Value>>(),
    })
}

fn change(change: LoggedChange) -> Value {
    let LoggedChange { collection, key, before, became, increments } = change;
    let mut told = json!({
        "collection": collection,
        "stored_at": key,
        "before": before.map(|version| version.to_string()),
    });
    match became {
        Became::Written(document) => {
            told["became"] = "written".into();
            told["version"] = document.version.to_string().into();
            match document.json() {
                Ok(record) => told["record"] = record,
                Err(error) => told["problem"] = error.to_string().into(),
            }
        }
        Became::Deleted => told["became"] = "deleted".into(),
        Became::Untouched => told["became"] = "untouched".into(),
    }
    if !increments.is_empty() {
        told["increments"] = json!(increments);
    }
    told
}
