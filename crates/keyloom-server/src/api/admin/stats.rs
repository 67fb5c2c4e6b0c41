//! How much a space holds, and how the entries of its indexes are distributed.

use axum::extract::State;
use axum::response::Response;
use axum::routing::get;
use keyloom::{Amount, CollectionStats, IndexShare, IndexState, IndexStats, StatsOptions};
use serde_json::{Value, json};

use super::keys::budget;
use crate::api::answer;
use crate::api::routes::Routes;
use crate::app::App;
use crate::caller::Caller;
use crate::metrics::Moment;
use crate::params::Params;
use crate::path::PathParts;
use crate::problem::Problem;

/// How many keys of each collection and index are counted, unless the request says otherwise.
const COUNTED: usize = 10_000;

pub(in crate::api) fn routes() -> Routes {
    Routes::new()
        .route("/stats", get(stats))
        .route("/rates", get(rates))
        .route("/distribution/{collection}/{index}", get(distribution))
}

/// `GET /admin/stats`
async fn stats(
    State(app): State<App>,
    caller: Caller,
    mut params: Params,
) -> Result<Response, Problem> {
    let store = caller.admin()?;
    let keys_max = budget(&mut params, &app.config().limits, COUNTED)?;
    let collection = params.take("collection")?;
    params.finish()?;
    let stats = store.stats(&StatsOptions { keys_max, collection }).await?;
    Ok(answer::json(&json!({
        "engine": stats.engine,
        "is_persistent": stats.is_persistent,
        "collections": stats.collections.iter().map(collection_stats).collect::<Vec<Value>>(),
        "figures": stats.figures,
    })))
}

/// `GET /admin/rates`
async fn rates(
    State(app): State<App>,
    caller: Caller,
    params: Params,
) -> Result<Response, Problem> {
    caller.admin()?;
    params.finish()?;
    let moments: Vec<Value> = app.metrics().moments().iter().map(moment).collect();
    Ok(answer::json(&json!({"step_s": Moment::STEP.as_secs(), "moments": moments})))
}

fn moment(moment: &Moment) -> Value {
    json!({
        "requests_per_s": moment.requests_per_second,
        "errors_per_s": moment.errors_per_second,
        "p50_us": moment.p50_us,
        "p99_us": moment.p99_us,
    })
}

/// `GET /admin/distribution/{collection}/{index}`
async fn distribution(
    State(app): State<App>,
    caller: Caller,
    path: PathParts,
    mut params: Params,
) -> Result<Response, Problem> {
    let store = caller.admin()?;
    let budget = budget(&mut params, &app.config().limits, COUNTED)?;
    let segments = params.take_number("segments")?.unwrap_or(1);
    params.finish()?;
    let (collection, index) = (path.get("collection"), path.get("index"));
    let found = store.distribution(collection, index, segments, budget).await?;
    let shares: Vec<Value> = found.shares.iter().map(share).collect();
    Ok(answer::json(&json!({
        "shares": shares,
        "has_all_values": found.has_all_values,
        "is_exact": found.is_exact,
    })))
}

fn collection_stats(stats: &CollectionStats) -> Value {
    let indexes: Vec<Value> = stats.indexes.iter().map(index_stats).collect();
    json!({"name": stats.name, "records": amount(&stats.records), "indexes": indexes})
}

fn index_stats(stats: &IndexStats) -> Value {
    let mut told = json!({"name": stats.name, "entries": amount(&stats.entries)});
    let (state, reason) = state(&stats.state);
    told["state"] = state.into();
    if let Some(reason) = reason {
        told["reason"] = reason.into();
    }
    told
}

/// The state of an index as a word, and the reason if it has failed.
fn state(state: &IndexState) -> (&'static str, Option<&str>) {
    match state {
        IndexState::Building => ("building", None),
        IndexState::Ready => ("ready", None),
        IndexState::Disabled => ("disabled", None),
        IndexState::Failed { reason } => ("failed", Some(reason)),
    }
}

fn share(share: &IndexShare) -> Value {
    json!({"values": share.values, "entries": amount(&share.entries)})
}

fn amount(amount: &Amount) -> Value {
    json!({"keys": amount.keys, "bytes": amount.bytes, "is_exact": amount.is_exact})
}
