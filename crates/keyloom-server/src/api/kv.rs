//! Plain keys and values.

use axum::Extension;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header as name};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use bytes::Bytes;
use keyloom::{Error, ErrorKind, Listed, Plain, Stopped};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use super::answer;
use super::conditions::if_none_match;
use super::record_body::ValueBody;
use super::weighed::Growing;
use crate::api::routes::Routes;
use crate::app::App;
use crate::auth::Verb;
use crate::caller::{Caller, unnamed};
use crate::guard::Arrival;
use crate::params::Params;
use crate::path::PathParts;
use crate::problem::Problem;

/// How many keys a listing has, unless the request says otherwise.
const LISTED: usize = 100;

pub(in crate::api) fn routes() -> Routes {
    Routes::new()
        .route("/kv", get(list_or_read).put(write).delete(remove))
        .route("/kv/{key}", get(read).put(write).delete(remove))
}

/// `GET /kv`, and `GET /kv?key_base64=` for keys that no path can have.
async fn list_or_read(
    State(app): State<App>,
    caller: Caller,
    path: PathParts,
    mut params: Params,
    headers: HeaderMap,
    Extension(arrival): Extension<Arrival>,
) -> Result<Response, Problem> {
    match key_of(&path, &mut params)? {
        Some(key) => read_at(&caller, &key, params, &headers).await,
        None => list(&app, &arrival, &caller, params).await,
    }
}

/// `GET /kv/{key}`
async fn read(
    caller: Caller,
    path: PathParts,
    mut params: Params,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let key = required(key_of(&path, &mut params)?)?;
    read_at(&caller, &key, params, &headers).await
}

async fn read_at(
    caller: &Caller,
    key: &[u8],
    mut params: Params,
    headers: &HeaderMap,
) -> Result<Response, Problem> {
    let plain = plain(caller, Verb::Read, &mut params)?;
    params.finish()?;
    let value = plain.get(key).await?.ok_or_else(nothing)?;
    let tag = tag(&value);
    let is_known = if_none_match(headers)?.is_some_and(|known| known.name(tag.trim_matches('"')));
    let etag = HeaderValue::from_str(&tag).map(|tag| [(name::ETAG, tag)]);
    let etag = etag.map_err(|_| Problem::invalid_request("the value has no tag"))?;
    if is_known {
        return Ok((StatusCode::NOT_MODIFIED, etag).into_response());
    }
    let media = [(name::CONTENT_TYPE, "application/octet-stream")];
    Ok((etag, media, value).into_response())
}

/// `PUT /kv/{key}`
async fn write(
    caller: Caller,
    path: PathParts,
    mut params: Params,
    headers: HeaderMap,
    ValueBody(value): ValueBody,
) -> Result<StatusCode, Problem> {
    let key = required(key_of(&path, &mut params)?)?;
    let plain = plain(&caller, Verb::Write, &mut params)?;
    params.finish()?;
    refuse_conditions(&headers)?;
    plain.put(key, value).await.map_err(told)?;
    Ok(StatusCode::NO_CONTENT)
}

/// `DELETE /kv/{key}`
async fn remove(
    caller: Caller,
    path: PathParts,
    mut params: Params,
    headers: HeaderMap,
) -> Result<StatusCode, Problem> {
    let key = required(key_of(&path, &mut params)?)?;
    let plain = plain(&caller, Verb::Delete, &mut params)?;
    params.finish()?;
    refuse_conditions(&headers)?;
    match plain.delete(key).await {
        Ok(Some(_)) => Ok(StatusCode::NO_CONTENT),
        Ok(None) => Err(nothing()),
        Err(error) if error.kind() == ErrorKind::NotFound => Err(nothing()),
        Err(error) => Err(told(error)),
    }
}

async fn list(
    app: &App,
    arrival: &Arrival,
    caller: &Caller,
    mut params: Params,
) -> Result<Response, Problem> {
    let plain = plain(caller, Verb::Read, &mut params)?;
    let prefix = match params.take("prefix_base64")? {
        Some(text) => decoded("prefix_base64", &text)?,
        None => Bytes::from(params.take("prefix")?.unwrap_or_default()),
    };
    let limit = params.take_number("limit")?.unwrap_or(LISTED);
    let mut cursor = params.take("cursor")?;
    params.finish()?;
    let most = app.config().limits.page_max;
    if !(1..=most).contains(&limit) {
        let detail = format!("the parameter limit is a number from 1 to {most}");
        return Err(Problem::invalid_request(detail).with("value", limit));
    }
    let mut list = Growing::new(app, arrival, limit, "{\"keys\":[");
    let mut problems = Vec::new();
    let stopped =
        loop {
            let listing = plain.list(&prefix, list.rows(), cursor.as_deref()).await?;
            let told = listing.problems.iter();
            problems.extend(told.map(
                |found| json!({"kind": "unreadable", "key": found.key, "reason": found.reason}),
            ));
            let keys = listing.entries.iter().map(|entry| listed(entry).to_string());
            list.add(listing.entries.len(), keys).await;
            cursor = listing.next.map(|next| next.to_string());
            if listing.stopped == Stopped::End {
                break "end";
            }
            if let Some(stopped) = list.stopped() {
                break stopped;
            }
        };
    let mut text = list.into_text();
    let problems = Value::from(problems);
    text.extend_from_slice(
        format!("],\"stopped\":\"{stopped}\",\"problems\":{problems}").as_bytes(),
    );
    if let Some(next) = cursor {
        text.extend_from_slice(format!(",\"next\":{}", Value::from(next)).as_bytes());
    }
    text.push(b'}');
    Ok(answer::text(text))
}

/// Bytes that are text are shown as text, others in Base64.
fn listed(entry: &Listed) -> Value {
    let mut told = Map::new();
    match std::str::from_utf8(&entry.key) {
        Ok(key) => told.insert("key".to_owned(), key.into()),
        Err(_) => told.insert("key_base64".to_owned(), URL_SAFE_NO_PAD.encode(&entry.key).into()),
    };
    match std::str::from_utf8(&entry.value) {
        Ok(value) => told.insert("value".to_owned(), value.into()),
        Err(_) => told.insert("value_base64".to_owned(), STANDARD.encode(&entry.value).into()),
    };
    told.into()
}

/// The keys that the caller sees. Only the library knows which collection a key belongs to, so
/// tokens for only some collections are refused here.
fn plain(caller: &Caller, verb: Verb, params: &mut Params) -> Result<Plain, Problem> {
    if !caller.grant.allows(verb, "*") {
        let detail = "plain keys are for tokens that allow this on every collection";
        return Err(Problem::forbidden(detail));
    }
    if caller.lacks_user() {
        return Err(unnamed());
    }
    let plain = caller.store.plain();
    let plain = match params.take("area")?.filter(|area| !area.is_empty()) {
        Some(area) => plain.in_area(&area)?,
        None => plain,
    };
    Ok(match &caller.key {
        Some(key) if verb != Verb::Read => plain.with_idempotency_key(key)?,
        _ => plain,
    })
}

/// The key of the path, or of `key_base64`.
fn key_of(path: &PathParts, params: &mut Params) -> Result<Option<Bytes>, Problem> {
    let in_path = path.get("key");
    match params.take("key_base64")? {
        Some(_) if !in_path.is_empty() => {
            Err(Problem::invalid_request("a key comes in the path or as key_base64, not as both"))
        }
        Some(text) => Ok(Some(decoded("key_base64", &text)?)),
        None => Ok(Some(in_path).filter(|key| !key.is_empty()).map(|key| key.to_owned().into())),
    }
}

fn required(key: Option<Bytes>) -> Result<Bytes, Problem> {
    key.ok_or_else(|| Problem::invalid_request("name the key: /kv/{key}, or /kv?key_base64="))
}

fn decoded(name: &str, text: &str) -> Result<Bytes, Problem> {
    let bytes = URL_SAFE_NO_PAD.decode(text.trim_end_matches('='));
    bytes.map(Bytes::from).map_err(|_| {
        Problem::invalid_request(format!("the parameter {name} is no Base64 for URLs"))
    })
}

/// Refuses conditional headers: ignoring a condition would be worse than not supporting it.
fn refuse_conditions(headers: &HeaderMap) -> Result<(), Problem> {
    let has = |name| headers.contains_key(name);
    if has(name::IF_MATCH) || has(name::IF_NONE_MATCH) {
        let detail = "plain keys are written without conditions; write the record for If-Match";
        return Err(Problem::invalid_request(detail));
    }
    Ok(())
}

/// The tag of a value, made from its bytes: a plain key has no version that its readers see.
fn tag(value: &[u8]) -> String {
    let hash = Sha256::digest(value);
    format!("\"{}\"", URL_SAFE_NO_PAD.encode(hash.get(..16).unwrap_or_default()))
}

fn nothing() -> Problem {
    Problem::not_found("there is nothing at this key")
}

/// The key of an index entry is valid, but only its records may write it: that is a conflict, not
/// an invalid key.
fn told(error: Error) -> Problem {
    if error.kind() != ErrorKind::InvalidKey || error.context_value("index").is_none() {
        return error.into();
    }
    let context: Map<String, Value> =
        error.context().map(|(name, value)| (name.to_owned(), value.into())).collect();
    let title = "The key belongs to an index";
    Problem::new(StatusCode::CONFLICT, "belongs-to-index", title, error.to_string())
        .with("context", context)
}
