//! Several operations, all or nothing.

use std::sync::{Mutex, MutexGuard, PoisonError};

use axum::Extension;
use axum::extract::State;
use axum::response::Response;
use axum::routing::post;
use keyloom::engine::ShowKey;
use keyloom::{Error, ErrorKind, Store, Transaction};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::answer::{self, bodiless};
use super::operation::{
    Answered, Operation, Prepared, Preparing, Room, Told, apply, read_all, results,
};
use super::template::value_at;
use crate::api::routes::Routes;
use crate::app::App;
use crate::body::JsonBody;
use crate::caller::Caller;
use crate::config::Limits;
use crate::guard::Arrival;
use crate::memory::REQUEST_BYTES;
use crate::params::Params;
use crate::problem::Problem;

pub(in crate::api) fn routes() -> Routes {
    Routes::new().route("/transaction", post(transact))
}

/// `POST /transaction`
async fn transact(
    State(app): State<App>,
    caller: Caller,
    params: Params,
    Extension(arrival): Extension<Arrival>,
    JsonBody(body): JsonBody,
) -> Result<Response, Problem> {
    params.finish()?;
    let limits = &app.config().limits;
    go_aside_with(&body, &arrival).await;
    let print = fingerprint(&body);
    let operations = read_all(body, limits)?;
    make_room(&app, &arrival, &operations).await;
    let mut preparing = Preparing::new(&caller);
    let mut prepared = Vec::with_capacity(operations.len());
    for (number, operation) in operations.into_iter().enumerate() {
        prepared.push(preparing.prepare(number, operation).await?);
    }
    for done in &prepared {
        app.metrics().operation(&done.operation.collection, done.operation.verb());
    }
    let done = run(&caller.store, limits, &prepared, caller.key.as_deref(), print).await;
    let done = done.map_err(|refused| refused.told(&prepared))?;
    Ok(answer::text(results(done.results)))
}

/// Requests with more operations than this are processed aside, however few bytes they have.
const OPERATIONS_SMALL: usize = 32;

/// Moves a request with many operations aside.
pub(super) async fn go_aside_with(body: &Value, arrival: &Arrival) {
    if body["operations"].as_array().is_some_and(|all| all.len() > OPERATIONS_SMALL) {
        arrival.go_aside().await;
    }
}

/// Takes memory for the possible answers of the operations, if the request's own share is too
/// small.
pub(super) async fn make_room(app: &App, arrival: &Arrival, operations: &[Operation]) {
    let expected = Room::new(&app.config().limits).expected(operations);
    if expected > REQUEST_BYTES / 2 {
        arrival.expect_large(app.memory(), expected).await;
    }
}

/// The result of a transaction, as stored under its idempotency key.
#[derive(Serialize, Deserialize)]
pub(super) struct Done {
    /// The fingerprint of the request, so that another request with the same key is detected.
    request: String,
    /// The status that each operation would have as a request of its own.
    pub(super) statuses: Vec<u16>,
    /// The version that each operation left.
    pub(super) versions: Vec<Option<String>>,
    /// The answer of each operation.
    pub(super) results: Vec<Told>,
}

impl Done {
    /// The same result for a caller with these rights. The caller who repeats a request with its
    /// key may differ from the one who sent it first, and must not learn more than from a fresh
    /// answer.
    fn seen_with(mut self, prepared: &[Prepared]) -> Self {
        let answers = self.results.iter_mut().zip(&mut self.statuses);
        for (prepared, (result, status)) in prepared.iter().zip(answers) {
            if !prepared.may_read {
                *result = result.withheld();
                *status = bodiless(*status);
            }
        }
        self
    }
}

/// Does all operations or none; only once, if there is a key.
pub(super) async fn run(
    store: &Store,
    limits: &Limits,
    prepared: &[Prepared],
    key: Option<&str>,
    request: String,
) -> Result<Done, Refused> {
    let written = Records::default();
    let attempt =
        |transaction: Transaction| attempt(prepared, limits, transaction, &written, &request);
    let done = match key {
        Some(key) => store.transaction_once(key, attempt).await,
        None => store.transaction(attempt).await,
    };
    let done = match done {
        Ok(done) => done,
        Err(refused) => return Err(refused.traced(prepared, &written).await),
    };
    match done.request == request {
        true => Ok(done.seen_with(prepared)),
        false => {
            let message = "the idempotency key belongs to another transaction";
            Err(Error::new(ErrorKind::IdempotencyConflict, message).into())
        }
    }
}

async fn attempt(
    prepared: &[Prepared],
    limits: &Limits,
    transaction: Transaction,
    written: &Records,
    request: &str,
) -> Result<Done, Refused> {
    written.list().clear();
    let mut done = Done {
        request: request.to_owned(),
        statuses: Vec::new(),
        versions: Vec::new(),
        results: Vec::new(),
    };
    let room = Room::new(limits);
    for (place, operation) in prepared.iter().enumerate() {
        let answered = apply(operation, &transaction).await?;
        let told =
            operation.body(&answered).await.and_then(|body| room.fit(&operation.operation, body));
        let told = told.map_err(|problem| operation.numbered(problem))?;
        written.note(place, &answered);
        done.statuses.push(answered.status);
        done.versions.push(answered.version.map(|version| version.to_string()));
        done.results.push(told);
    }
    Ok(done)
}

/// A fingerprint of a request: equal JSON has equal fingerprints.
pub(super) fn fingerprint(request: &Value) -> String {
    let hash = Sha256::digest(request.to_string());
    hash.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The records that an attempt wrote: the place of the operation, the record's key in the store,
/// and the answer. If the commit is refused because of a key or a value, this finds the operation.
#[derive(Default)]
struct Records(Mutex<Vec<(usize, String, Answered)>>);

impl Records {
    fn list(&self) -> MutexGuard<'_, Vec<(usize, String, Answered)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note(&self, place: usize, answered: &Answered) {
        if let Some(key) = &answered.stored_at {
            self.list().push((place, key.clone(), answered.clone()));
        }
    }
}

/// Why the operations did not happen.
pub(super) enum Refused {
    /// One of them was refused.
    Operation(Problem),
    /// The store refused them: because of this operation, if it can be found.
    Commit(Error, Option<usize>),
}

impl From<Error> for Refused {
    fn from(error: Error) -> Self {
        Refused::Commit(error, None)
    }
}

impl From<Problem> for Refused {
    fn from(problem: Problem) -> Self {
        Refused::Operation(problem)
    }
}

impl Refused {
    /// Adds the place of the operation that the store refused.
    async fn traced(self, prepared: &[Prepared], written: &Records) -> Self {
        match self {
            Refused::Commit(error, None) => {
                let place = match guilty(&error, prepared, written) {
                    None => about(&error, prepared).await,
                    place => place,
                };
                Refused::Commit(error, place)
            }
            traced => traced,
        }
    }

    fn told(self, prepared: &[Prepared]) -> Problem {
        let (error, place) = match self {
            Refused::Operation(problem) => return problem,
            Refused::Commit(error, place) => (error, place),
        };
        let guilty = place.and_then(|place| prepared.get(place));
        // In doubt, the error is shown as for an operation whose record the caller may not read.
        let shown_as = guilty.or_else(|| prepared.iter().find(|prepared| !prepared.may_read));
        let problem = match shown_as {
            Some(prepared) => prepared.told(error),
            None => error.into(),
        };
        match guilty {
            Some(prepared) => prepared.numbered(problem),
            None => problem,
        }
    }
}

/// The operation whose record the commit refused, if it can be found.
fn guilty(error: &Error, prepared: &[Prepared], written: &Records) -> Option<usize> {
    let collection = error.context_value("collection")?;
    let key = error.context_value("key")?;
    let is_there = |place: usize| {
        prepared.get(place).is_some_and(|prepared| prepared.operation.collection == collection)
    };
    let written = written.list();
    let of_collection = || written.iter().filter(|(place, ..)| is_there(*place));
    if error.kind() == ErrorKind::UniqueConflict {
        let of_values = of_collection().find(|(.., answered)| has_values(answered, error));
        return of_values.map(|(place, ..)| *place);
    }
    let is_of_key = |stored_at: &String| ShowKey(stored_at.as_bytes()).to_string() == key;
    let by_record = of_collection().find(|(_, stored_at, _)| is_of_key(stored_at));
    by_record.map(|(place, ..)| *place)
}

/// The first operation on the record that the commit refused.
async fn about(error: &Error, prepared: &[Prepared]) -> Option<usize> {
    let (collection, key) = (error.context_value("collection")?, error.context_value("key")?);
    for (place, prepared) in prepared.iter().enumerate() {
        if prepared.operation.collection == collection && prepared.is_about(key).await {
            return Some(place);
        }
    }
    None
}

/// Whether the record of an answer has the values that a conflict names.
fn has_values(answered: &Answered, error: &Error) -> bool {
    let record = answered.record();
    let named: Vec<(&str, &str)> = error.context().collect();
    named.windows(2).all(|pair| match pair {
        [("field", path), ("value", value)] => {
            value_at(&record, path).map(Value::to_string).as_deref() == Some(*value)
        }
        _ => true,
    })
}
