//! Single records by their keys. Each write is one operation, like the items of a batch.
//!
//! The router does not match empty parts, so the record with the empty name has routes of its own.

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, get, post};
use keyloom::{Collection, Version};
use serde_json::Value;

use super::answer::{self, RecordText, Validator, with_path};
use super::asking::equalities;
use super::conditions::{self, Tags, Unconditional, if_match, if_none_match};
use super::names::Names;
use super::operation::{Action, Answered, NewRecord, Operation, Prepared, PutOnly, whole};
use super::pages;
use super::record_body::{PatchBody, RecordBody, RecordJson};
use super::typed::timestamp;
use super::written_key::{key_of, key_of_owner};
use crate::api::routes::Routes;
use crate::app::App;
use crate::auth::Verb;
use crate::caller::Caller;
use crate::params::Params;
use crate::path::PathParts;
use crate::problem::Problem;

pub(in crate::api) fn routes() -> Routes {
    Routes::new()
        .route("/records", get(pages::list).post(insert))
        .route("/explain", get(pages::explain))
        .route("/records/", one())
        .route("/records/{key}", one())
        .route("/records//increment", post(increment))
        .route("/records/{key}/increment", post(increment))
        .route("/owners/{owner}/records/", get(read_of_owner))
        .route("/owners/{owner}/records/{key}", get(read_of_owner))
}

fn one() -> MethodRouter<App> {
    get(read).put(put).patch(patch).delete(delete)
}

/// `GET /records/{key}`
async fn read(
    caller: Caller,
    path: PathParts,
    params: Params,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let collection = caller.collection(Verb::Read, path.get("collection")).await?;
    let key = key_of(&collection, caller.user.as_deref(), path.get("key")).await?;
    found(&collection, key, params, &headers).await
}

/// `GET /owners/{owner}/records/{key}`
async fn read_of_owner(
    caller: Caller,
    path: PathParts,
    params: Params,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let collection = caller.collection(Verb::Read, path.get("collection")).await?;
    let key = key_of_owner(&collection, path.get("owner"), path.get("key")).await?;
    found(&collection, key, params, &headers).await
}

/// The answer with a record: the current one, a version, or the one at a time.
async fn found(
    collection: &Collection<Value>,
    key: Vec<Value>,
    mut params: Params,
    headers: &HeaderMap,
) -> Result<Response, Problem> {
    let (version, at) = (params.take("version")?, params.take("at")?);
    params.finish()?;
    let past = match (version, at) {
        (None, None) => {
            let document = collection.get_document(key).await?.ok_or_else(missing)?;
            let validator = Validator::of(&*collection.declaration().await?);
            return RecordText::of(document)?.into_conditional(headers, validator);
        }
        (Some(version), None) => collection.get_version(key, version.parse::<Version>()?).await?,
        (None, Some(at)) => collection.get_as_of(key, time(&at)?).await?,
        (Some(_), Some(_)) => {
            return Err(Problem::invalid_request("ask for a version or for a time, not for both"));
        }
    };
    let past = past.as_ref().map(RecordText::of_past).ok_or_else(missing)?;
    past.into_conditional(headers, Validator::Exact)
}

fn time(text: &str) -> Result<u64, Problem> {
    let read = timestamp(text).ok().and_then(|value| value.as_u64());
    read.ok_or_else(|| {
        let detail = "the parameter at is milliseconds since 1970, or an ISO-8601 time";
        Problem::invalid_request(detail).with("value", text)
    })
}

/// The answer for a record that does not exist, and for one that the caller may not see.
pub(super) fn missing() -> Problem {
    Problem::not_found("the collection has no such record")
}

/// `POST /records`
async fn insert(
    State(app): State<App>,
    caller: Caller,
    path: PathParts,
    params: Params,
    _: Unconditional,
    RecordJson(text): RecordJson,
) -> Result<Response, Problem> {
    params.finish()?;
    let collection = caller.collection(Verb::Write, path.get("collection")).await?;
    let action = Action::Insert { record: NewRecord::Text(text) };
    done(&app, &caller, &path, collection, action).await
}

/// `PUT /records/{key}`
async fn put(
    State(app): State<App>,
    caller: Caller,
    path: PathParts,
    params: Params,
    headers: HeaderMap,
    RecordBody(record): RecordBody,
) -> Result<Response, Problem> {
    params.finish()?;
    let only = match (if_match(&headers)?, if_none_match(&headers)?) {
        (None, None) => PutOnly::Always,
        (Some(tags), None) => tags.versions().map_or(PutOnly::IfPresent, PutOnly::IfMatch),
        (None, Some(Tags::Any)) => PutOnly::IfAbsent,
        (Some(_), Some(Tags::Any)) => {
            let detail = "no record is there, as If-Match asks, and absent, as If-None-Match does";
            return Err(Problem::precondition_failed(detail));
        }
        (_, Some(Tags::These(_))) => {
            let detail = "a write takes If-Match, or If-None-Match: *, and no other If-None-Match";
            return Err(Problem::invalid_request(detail));
        }
    };
    let collection = caller.collection(Verb::Write, path.get("collection")).await?;
    let action = Action::Put { key: path.get("key").to_owned(), record, only };
    done(&app, &caller, &path, collection, action).await
}

/// `PATCH /records/{key}`
async fn patch(
    State(app): State<App>,
    caller: Caller,
    path: PathParts,
    mut params: Params,
    headers: HeaderMap,
    PatchBody(patch): PatchBody,
) -> Result<Response, Problem> {
    if if_none_match(&headers)?.is_some() {
        return Err(Problem::invalid_request("a patch takes If-Match, and not If-None-Match"));
    }
    let versions = if_match(&headers)?.and_then(|tags| tags.versions());
    let collection = caller.collection(Verb::Write, path.get("collection")).await?;
    let guard = equalities(&mut params, "if", &*collection.declaration().await?)?;
    params.finish()?;
    let action = Action::Patch { key: path.get("key").to_owned(), patch, versions, guard };
    done(&app, &caller, &path, collection, action).await
}

/// `DELETE /records/{key}`
async fn delete(
    State(app): State<App>,
    caller: Caller,
    path: PathParts,
    params: Params,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    params.finish()?;
    if if_none_match(&headers)?.is_some() {
        return Err(Problem::invalid_request("a deletion takes If-Match, and not If-None-Match"));
    }
    let versions = if_match(&headers)?.and_then(|tags| tags.versions());
    let collection = caller.collection(Verb::Delete, path.get("collection")).await?;
    let action = Action::Delete { key: path.get("key").to_owned(), versions };
    done(&app, &caller, &path, collection, action).await
}

/// `POST /records/{key}/increment`
async fn increment(
    State(app): State<App>,
    caller: Caller,
    path: PathParts,
    params: Params,
    headers: HeaderMap,
    RecordBody(body): RecordBody,
) -> Result<Response, Problem> {
    params.finish()?;
    if conditions::are_there(&headers)? {
        let detail = "an increment has no conditions: additions never conflict; use a transaction \
                      with a check for those";
        return Err(Problem::invalid_request(detail));
    }
    let add = deltas(&body)?;
    let collection = caller.collection(Verb::Write, path.get("collection")).await?;
    let action = Action::Increment { key: path.get("key").to_owned(), add };
    done(&app, &caller, &path, collection, action).await
}

fn deltas(body: &Value) -> Result<Vec<(String, i64)>, Problem> {
    let wrong = || {
        let detail = "an increment is an object of counters and whole numbers, such as \
                      {\"stats.running\": 1}";
        Problem::invalid_request(detail)
    };
    let members = body.as_object().filter(|members| !members.is_empty()).ok_or_else(wrong)?;
    let delta = |(name, value): (&String, &Value)| {
        let delta = whole(value).ok_or_else(|| wrong().with("counter", name.as_str()))?;
        Ok((name.clone(), delta))
    };
    members.iter().map(delta).collect()
}

/// Does the single operation of a request, and answers.
async fn done(
    app: &App,
    caller: &Caller,
    path: &PathParts,
    collection: Collection<Value>,
    action: Action,
) -> Result<Response, Problem> {
    let operation = Operation { collection: collection.name().to_owned(), action };
    let prepared = Prepared::new(caller, collection, operation).await?;
    let mut names = Names::new(app, path, caller, &prepared.collection);
    let limits = &app.config().limits;
    match prepared.alone(&caller.store, limits, caller.key.as_deref()).await {
        Ok(answered) => answer(&mut names, answered).await,
        Err(refused) => Err(prepared.refusal(refused, &mut names).await),
    }
}

async fn answer(names: &mut Names<'_>, answered: Answered) -> Result<Response, Problem> {
    let status = StatusCode::from_u16(answered.status).unwrap_or(StatusCode::OK);
    let location = match (status, &answered.stored_at) {
        (StatusCode::CREATED, Some(stored_at)) => Some(names.path(stored_at).await?),
        _ => None,
    };
    let response = match (answered.version, answered.record, answered.values) {
        (Some(version), Some(text), _) => RecordText { version, text }.into_answer(status),
        (Some(version), None, _) => answer::untold(status, version),
        (None, _, Some(values)) => answer::json(&values.into()),
        (None, ..) => status.into_response(),
    };
    Ok(match location {
        Some(location) => with_path(response, header::LOCATION, location),
        None => response,
    })
}
