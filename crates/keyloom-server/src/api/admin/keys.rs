//! The keys of a space as stored.

use axum::Extension;
use axum::extract::State;
use axum::response::Response;
use axum::routing::get;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use keyloom::{Branch, BranchOptions, RawKey, RawKind, RawList};
use serde_json::{Value, json};

use crate::api::answer;
use crate::api::routes::Routes;
use crate::api::weighed::Growing;
use crate::app::App;
use crate::caller::Caller;
use crate::config::Limits;
use crate::guard::Arrival;
use crate::params::Params;
use crate::problem::Problem;

/// How many keys a page has, unless the request says otherwise.
const PAGE: usize = 100;

pub(in crate::api) fn routes() -> Routes {
    Routes::new().route("/keys", get(keys)).route("/branches", get(branches))
}

/// `GET /admin/keys`
async fn keys(
    State(app): State<App>,
    caller: Caller,
    mut params: Params,
    Extension(arrival): Extension<Arrival>,
) -> Result<Response, Problem> {
    let store = caller.admin()?;
    let limit = limit(&mut params, &app.config().limits)?;
    let mut list = RawList::new();
    if let Some(area) = params.take("area")? {
        list = list.area(area);
    }
    if let Some(prefix) = params.take("prefix")? {
        list = list.prefix(prefix);
    }
    let mut cursor = params.take("cursor")?;
    if params.take_flag("values")? {
        list = list.values();
    }
    params.finish()?;
    let mut found = Growing::new(&app, &arrival, limit, "{\"keys\":[");
    loop {
        let part = list.clone().take(found.rows()).from_cursor(cursor.as_deref());
        let page = store.raw_keys()?.list(&part).await?;
        found.add(page.keys.len(), page.keys.iter().map(|raw| key(raw).to_string())).await;
        cursor = page.next.map(|next| next.to_string());
        if cursor.is_none() || found.stopped().is_some() {
            break;
        }
    }
    let mut text = found.into_text();
    text.push(b']');
    if let Some(next) = cursor {
        text.extend_from_slice(format!(",\"next\":{}", Value::from(next)).as_bytes());
    }
    text.push(b'}');
    Ok(answer::text(text))
}

/// `GET /admin/branches`
async fn branches(
    State(app): State<App>,
    caller: Caller,
    mut params: Params,
) -> Result<Response, Problem> {
    let store = caller.admin()?;
    let limits = &app.config().limits;
    let defaults = BranchOptions::default();
    let options = BranchOptions {
        keys_max: budget(&mut params, limits, defaults.keys_max)?,
        branches_max: limit(&mut params, limits)?,
        after: params.take("after")?.map(Into::into),
        ..defaults
    };
    let area = params.take("area")?.unwrap_or_default();
    let prefix = params.take("prefix")?.unwrap_or_default();
    params.finish()?;
    let found = store.raw_keys()?.branches(&area, &prefix, &options).await?;
    let branches: Vec<Value> = found.branches.iter().map(branch).collect();
    Ok(answer::json(&json!({"branches": branches, "more": found.more})))
}

fn key(raw: &RawKey) -> Value {
    let mut told = json!({"area": raw.area, "key": raw.text, "bytes": raw.bytes});
    if std::str::from_utf8(&raw.key).is_err() {
        told["key_base64"] = URL_SAFE_NO_PAD.encode(&raw.key).into();
    }
    let (kind, more) = match &raw.kind {
        RawKind::Record { collection } => ("record", json!({"collection": collection})),
        RawKind::Entry { collection, index } => {
            ("entry", json!({"collection": collection, "index": index}))
        }
        RawKind::Counters => ("counters", json!({})),
        RawKind::Own => ("own", json!({})),
        RawKind::Free => ("free", json!({})),
        RawKind::Stray { template } => ("stray", json!({"template": template})),
        _ => ("other", json!({})),
    };
    told["kind"] = kind.into();
    for (name, value) in more.as_object().into_iter().flatten() {
        told[name] = value.clone();
    }
    if let Some(value) = &raw.value {
        told["value"] = value.as_str().into();
    }
    told
}

fn branch(found: &Branch) -> Value {
    json!({
        "text": found.text, "keys": found.keys, "bytes": found.bytes,
        "is_key": found.is_key, "is_exact": found.is_exact,
    })
}

/// How many keys or branches an answer has.
fn limit(params: &mut Params, limits: &Limits) -> Result<usize, Problem> {
    let limit = params.take_number("limit")?.unwrap_or(PAGE);
    match (1..=limits.page_max).contains(&limit) {
        true => Ok(limit),
        false => {
            let detail = format!("the parameter limit is a number from 1 to {}", limits.page_max);
            Err(Problem::invalid_request(detail).with("value", limit))
        }
    }
}

/// How many keys may be read for an answer.
pub(super) fn budget(
    params: &mut Params,
    limits: &Limits,
    unless_set: usize,
) -> Result<usize, Problem> {
    let budget = params.take_number("budget")?.unwrap_or(unless_set.min(limits.read_max));
    match (1..=limits.read_max).contains(&budget) {
        true => Ok(budget),
        false => {
            let detail = format!("the parameter budget is a number from 1 to {}", limits.read_max);
            Err(Problem::invalid_request(detail).with("value", budget))
        }
    }
}
