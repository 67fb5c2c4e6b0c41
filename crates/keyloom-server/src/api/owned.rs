//! Every key that a record owns.

use axum::response::Response;
use axum::routing::get;
use keyloom::{OwnedKey, OwnedKind};
use serde_json::{Value, json};

use super::answer;
use super::records::missing;
use super::written_key::key_of;
use crate::api::routes::Routes;
use crate::auth::Verb;
use crate::caller::Caller;
use crate::params::Params;
use crate::path::PathParts;
use crate::problem::Problem;

pub(in crate::api) fn routes() -> Routes {
    Routes::new()
        .route("/records//entries", get(entries))
        .route("/records/{key}/entries", get(entries))
}

/// `GET /records/{key}/entries`
async fn entries(caller: Caller, path: PathParts, params: Params) -> Result<Response, Problem> {
    params.finish()?;
    let collection = caller.collection(Verb::Read, path.get("collection")).await?;
    let key = key_of(&collection, caller.user.as_deref(), path.get("key")).await?;
    let owned = collection.owned_keys(key).await?.ok_or_else(missing)?;
    let keys: Value = owned.iter().map(shown).collect();
    Ok(answer::json(&json!({ "keys": keys })))
}

fn shown(owned: &OwnedKey) -> Value {
    let (kind, of) = match &owned.kind {
        OwnedKind::Record => ("record", None),
        OwnedKind::Entry { index } => ("entry", Some(("index", index))),
        OwnedKind::Counters => ("counters", None),
        OwnedKind::History => ("history", None),
        OwnedKind::Lease { index } => ("lease", Some(("index", index))),
        OwnedKind::Mark { aggregate } => ("mark", Some(("aggregate", aggregate))),
        // Kinds that a newer library adds are keys beside the record, too.
        _ => ("other", None),
    };
    let mut shown = json!({
        "area": owned.area,
        "key": owned.key,
        "value": owned.value,
        "kind": kind,
        "is_present": owned.is_present,
    });
    if let (Some((name, of)), Value::Object(members)) = (of, &mut shown) {
        members.insert(name.to_owned(), of.as_str().into());
    }
    shown
}
