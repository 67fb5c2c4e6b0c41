//! Changes of parts of records: merge patches, guards and counters.

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use keyloom::{Collection, Store, Version, Written, same_value};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use super::answer::{self, RecordText};
use super::asking::equalities;
use super::conditions::{self, Tags, if_match, if_none_match};
use super::names::Names;
use super::operation::whole;
use super::record_body::{PatchBody, RecordBody};
use super::records::{match_one, missing, told, unmatched};
use super::template::value_at;
use super::transaction::Refused;
use super::written_key::key_of;
use crate::app::App;
use crate::auth::Verb;
use crate::caller::Caller;
use crate::params::Params;
use crate::path::PathParts;
use crate::problem::{Problem, Sent, to_writer};

/// `PATCH /records/{key}`
pub(super) async fn patch(
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
    let expected = if_match(&headers)?;
    let collection = caller.collection(Verb::Write, path.get("collection")).await?;
    let guards = equalities(&mut params, "if", &*collection.declaration().await?)?;
    params.finish()?;
    let key = key_of(&collection, caller.user.as_deref(), path.get("key")).await?;
    let may_read = caller.may_read(collection.name());
    if !guards.is_empty() {
        let collection = collection.name();
        let guarded = Guarded { collection, key, patch, expected, guards, may_read };
        let done = guarded.run(&caller.store, caller.key.as_deref()).await?;
        return Ok(done.into_written(StatusCode::OK, may_read));
    }
    let written = match expected {
        None | Some(Tags::Any) => {
            // Other callers patch the same record at their own pace; what is lost is time only.
            collection.update_with_retry(key, &patch).await
        }
        Some(tags) => {
            let attempt = |version| collection.update(key.clone(), &patch, version);
            match match_one(&tags, attempt).await {
                Some(written) => written,
                None => return Err(unmatched(&caller, &collection, key, missing()).await),
            }
        }
    };
    match written {
        Ok(written) => Ok(RecordText::of_write(written).into_written(StatusCode::OK, may_read)),
        Err(error) => {
            let mut names = Names::new(&app, &path, &caller, &collection);
            Err(told(&mut names, may_read, Sent::Part, error).await)
        }
    }
}

/// A patch that is made only while fields have certain values: a transaction, so that nothing
/// changes between the look and the write.
struct Guarded<'c> {
    collection: &'c str,
    key: Vec<Value>,
    patch: Value,
    expected: Option<Tags>,
    guards: Vec<(String, Value)>,
    /// Whether the caller may see the record as it is.
    may_read: bool,
}

/// What a guarded patch leaves, as it is kept for an idempotency key.
#[derive(Serialize, Deserialize)]
struct Done {
    /// Which request it answers. A transaction is not compared by the library.
    asked: String,
    version: String,
    record: Value,
}

impl Guarded<'_> {
    async fn run(&self, store: &Store, key: Option<&str>) -> Result<RecordText, Problem> {
        let asked = self.fingerprint();
        let closure = |transaction: keyloom::Transaction| {
            let asked = asked.clone();
            async move {
                let records = transaction.documents(self.collection)?;
                let current = records.get(self.key.clone()).await?;
                let current = current.ok_or_else(|| Refused::Operation(missing()))?;
                self.check(&current.value, current.version).map_err(Refused::Operation)?;
                let written = records.update(self.key.clone(), &self.patch).await?;
                let record = read(&written).map_err(Refused::Operation)?;
                let version = written.version.to_string();
                Ok::<_, Refused>(Done { asked, version, record })
            }
        };
        let done = match key {
            Some(key) => store.transaction_once(key, closure).await,
            None => store.transaction(closure).await,
        };
        let done = done.map_err(|refused| match refused {
            Refused::Operation(problem) => problem,
            Refused::Commit(error) if self.may_read => error.into(),
            Refused::Commit(error) => to_writer(error, Sent::Part),
        })?;
        if done.asked != asked {
            return Err(Problem::idempotency_conflict());
        }
        let version: Version = done.version.parse()?;
        Ok(RecordText { version, text: done.record.to_string().into() })
    }

    /// Refuses a record that is in another state than the request rests on.
    fn check(&self, record: &Value, version: Version) -> Result<(), Problem> {
        let refused = |detail: String| {
            let problem = Problem::precondition_failed(detail);
            let current = || json!({ "version": version.to_string(), "record": record });
            Err(if self.may_read { problem.with("current", current()) } else { problem })
        };
        if self.expected.as_ref().is_some_and(|tags| !tags.match_strongly(version)) {
            let detail = "the record is in none of the versions that If-Match names";
            return refused(detail.to_owned());
        }
        let differs = self.guards.iter().find(|(path, wanted)| {
            let found = value_at(record, path).unwrap_or(&Value::Null);
            !same_value(found, wanted)
        });
        match differs {
            None => Ok(()),
            Some((path, wanted)) => refused(format!("the field {path} is not {wanted}")),
        }
    }

    /// The same text for the same request.
    fn fingerprint(&self) -> String {
        let versions: Option<Vec<String>> = self.expected.as_ref().map(|tags| {
            let versions = tags.versions();
            versions.iter().map(Version::to_string).collect()
        });
        let asked = json!([self.collection, self.key, self.patch, versions, self.guards]);
        let digest = Sha256::digest(asked.to_string());
        digest.iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

fn read(written: &Written<Value>) -> Result<Value, Problem> {
    Ok(written.value()?)
}

/// `POST /records/{key}/increment`
pub(super) async fn increment(
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
    let deltas = deltas(&body)?;
    let collection = caller.collection(Verb::Write, path.get("collection")).await?;
    let key = key_of(&collection, caller.user.as_deref(), path.get("key")).await?;
    let may_read = caller.may_read(collection.name());
    match add(&collection, key, &deltas).await {
        Ok(values) if may_read => Ok(answer::json(&values.into())),
        Ok(_) => Ok(StatusCode::NO_CONTENT.into_response()),
        Err(error) => {
            let mut names = Names::new(&app, &path, &caller, &collection);
            Err(told(&mut names, may_read, Sent::Part, error).await)
        }
    }
}

/// Adds, and gives the values of the counters that were added to.
async fn add(
    collection: &Collection<Value>,
    key: Vec<Value>,
    deltas: &[(String, i64)],
) -> Result<Map<String, Value>, keyloom::Error> {
    let counters = collection.increment(key, deltas.iter().cloned()).await?;
    let value = |(name, _): &(String, i64)| {
        let value = counters.get(name).copied().unwrap_or_default();
        (name.clone(), Value::from(value))
    };
    Ok(deltas.iter().map(value).collect())
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
