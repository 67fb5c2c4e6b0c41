//! Single records by their keys: read, insert, replace, delete.
//!
//! A router matches no empty part, so that the record with the empty name has routes of its own.

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, get, post};
use keyloom::{Collection, Effect, Error, ErrorKind, Version};
use serde_json::{Value, json};

use super::answer::{RecordText, Validator, with_path};
use super::conditions::{Tags, Unconditional, if_match, if_none_match};
use super::names::Names;
use super::record_body::{RecordBody, RecordJson};
use super::template::take_key;
use super::typed::timestamp;
use super::written_key::{key_of, key_of_owner};
use super::{pages, patch};
use crate::api::routes::Routes;
use crate::app::App;
use crate::auth::Verb;
use crate::caller::Caller;
use crate::params::Params;
use crate::path::PathParts;
use crate::problem::{Problem, Sent, is_missing, to_writer};

pub(in crate::api) fn routes() -> Routes {
    Routes::new()
        .route("/records", get(pages::list).post(insert))
        .route("/explain", get(pages::explain))
        .route("/records/", one())
        .route("/records/{key}", one())
        .route("/records//increment", post(patch::increment))
        .route("/records/{key}/increment", post(patch::increment))
        .route("/owners/{owner}/records/", get(read_of_owner))
        .route("/owners/{owner}/records/{key}", get(read_of_owner))
}

fn one() -> MethodRouter<App> {
    get(read).put(put).patch(patch::patch).delete(delete)
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

/// The answer with the record at a key: as it is, in a version, or at a time.
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

/// The answer for what is not there, and for what the caller may not see.
pub(super) fn missing() -> Problem {
    Problem::not_found("the collection has no such record")
}

/// An error about one record. Whether it is not there or not for this caller is told alike, and
/// what the record has is told to those who may read it.
pub(super) async fn told(
    names: &mut Names<'_>,
    may_read: bool,
    sent: Sent,
    error: Error,
) -> Problem {
    match (is_missing(&error), may_read) {
        (true, _) => missing(),
        (false, true) => names.problem(error).await,
        (false, false) => to_writer(error, sent),
    }
}

/// `POST /records`
async fn insert(
    State(app): State<App>,
    caller: Caller,
    path: PathParts,
    params: Params,
    _: Unconditional,
    RecordJson(record): RecordJson,
) -> Result<Response, Problem> {
    params.finish()?;
    let collection = caller.collection(Verb::Write, path.get("collection")).await?;
    let may_read = caller.may_read(collection.name());
    let mut names = Names::new(&app, &path, &caller, &collection);
    let written = match collection.insert_json(&record).await {
        Ok(written) => written,
        Err(error) => return Err(told(&mut names, may_read, Sent::Whole, error).await),
    };
    let location = names.path(&written.key).await?;
    let answer = RecordText::of_write(written).into_written(StatusCode::CREATED, may_read);
    Ok(with_path(answer, header::LOCATION, location))
}

/// `PUT /records/{key}`
async fn put(
    State(app): State<App>,
    caller: Caller,
    path: PathParts,
    params: Params,
    headers: HeaderMap,
    RecordBody(mut record): RecordBody,
) -> Result<Response, Problem> {
    params.finish()?;
    let (expected, unwanted) = (if_match(&headers)?, if_none_match(&headers)?);
    let collection = caller.collection(Verb::Write, path.get("collection")).await?;
    let key = key_of(&collection, caller.user.as_deref(), path.get("key")).await?;
    take_key(&mut record, &collection.declaration().await?.key, &key)?;
    let may_read = caller.may_read(collection.name());
    let mut names = Names::new(&app, &path, &caller, &collection);
    let written = match (expected, unwanted) {
        (None, None) => collection.upsert(&record).await,
        (Some(Tags::Any), None) => collection.replace(&record).await,
        (Some(tags), None) => {
            let attempt = |version| collection.replace_if(&record, version);
            match match_one(&tags, attempt).await {
                Some(written) => written,
                None => return Err(unmatched(&caller, &collection, key, nothing_to_match()).await),
            }
        }
        (None, Some(Tags::Any)) => collection.insert(&record).await,
        (Some(_), Some(Tags::Any)) => {
            let detail = "no record is there, as If-Match asks, and absent, as If-None-Match does";
            return Err(Problem::precondition_failed(detail));
        }
        (_, Some(Tags::These(_))) => {
            let detail = "a write takes If-Match, or If-None-Match: *, and no other If-None-Match";
            return Err(Problem::invalid_request(detail));
        }
    };
    let written = match written {
        Ok(written) => written,
        // Without its conditions the request would have succeeded.
        Err(error) if is_missing(&error) => {
            return Err(nothing_to_match());
        }
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            return Err(Problem::precondition_failed("there is a record at this key already"));
        }
        Err(error) => return Err(told(&mut names, may_read, Sent::Whole, error).await),
    };
    if written.effect != Effect::Created {
        return Ok(RecordText::of_write(written).into_written(StatusCode::OK, may_read));
    }
    let location = names.path(&written.key).await?;
    let answer = RecordText::of_write(written).into_written(StatusCode::CREATED, may_read);
    Ok(with_path(answer, header::LOCATION, location))
}

/// The answer to a `PUT` that asks for a version of what is not there.
fn nothing_to_match() -> Problem {
    Problem::precondition_failed("there is no record that If-Match could fit")
}

/// Tries a write with each version that it may meet. At most one of them is the current one, so
/// that at most one attempt writes. With an idempotency key the attempt that wrote before is
/// found again, whichever it was: the others are refused as other requests. `None` where no tag
/// is a version.
pub(super) async fn match_one<T, Fut>(
    tags: &Tags,
    attempt: impl Fn(Version) -> Fut,
) -> Option<Result<T, Error>>
where
    Fut: Future<Output = Result<T, Error>>,
{
    let mut refused = None;
    for version in tags.versions() {
        match attempt(version).await {
            Err(error)
                if matches!(
                    error.kind(),
                    ErrorKind::VersionConflict | ErrorKind::IdempotencyConflict
                ) =>
            {
                refused = Some(error);
            }
            settled => return Some(settled),
        }
    }
    refused.map(Err)
}

/// The refusal of a write whose `If-Match` no record could meet, with the record that is there.
pub(super) async fn unmatched(
    caller: &Caller,
    collection: &Collection<Value>,
    key: Vec<Value>,
    absent: Problem,
) -> Problem {
    let current = match collection.get(key).await {
        Ok(Some(current)) => current,
        Ok(None) => return absent,
        Err(error) => return error.into(),
    };
    let detail = "If-Match names no version; the ETag of a record does, in its quotes";
    let problem = Problem::precondition_failed(detail);
    match caller.may_read(collection.name()) {
        true => problem.with(
            "current",
            json!({ "version": current.version.to_string(), "record": current.value }),
        ),
        false => problem,
    }
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
    let collection = caller.collection(Verb::Delete, path.get("collection")).await?;
    let key = key_of(&collection, caller.user.as_deref(), path.get("key")).await?;
    let may_read = caller.may_read(collection.name());
    let mut names = Names::new(&app, &path, &caller, &collection);
    let deleted = match if_match(&headers)? {
        None | Some(Tags::Any) => collection.delete(key).await.map(|version| version.is_some()),
        Some(tags) => {
            let attempt = |version| collection.delete_if(key.clone(), version);
            match match_one(&tags, attempt).await {
                Some(deleted) => deleted.map(|()| true),
                None => return Err(unmatched(&caller, &collection, key, missing()).await),
            }
        }
    };
    match deleted {
        Ok(true) => Ok(StatusCode::NO_CONTENT.into_response()),
        Ok(false) => Err(missing()),
        Err(error) => Err(told(&mut names, may_read, Sent::Whole, error).await),
    }
}
