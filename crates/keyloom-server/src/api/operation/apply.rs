//! Does operations within a transaction.

use keyloom::{Effect, ErrorKind, Stored, Transaction, TransactionCollection, Version, Written};
use serde_json::{Value, json};

use super::guard::broken;
use super::{Action, Answered, Guard, NewRecord, Prepared, PutOnly, Versions};
use crate::api::records::missing;
use crate::problem::{Problem, Sent, is_missing, to_writer};

/// Does an operation within a transaction. Refusals have its number.
pub(crate) async fn apply(
    prepared: &Prepared,
    transaction: &Transaction,
) -> Result<Answered, Problem> {
    let applied = within(prepared, transaction).await;
    applied.map_err(|problem| prepared.numbered(problem))
}

async fn within(prepared: &Prepared, transaction: &Transaction) -> Result<Answered, Problem> {
    let records = transaction.documents(&prepared.operation.collection)?;
    let key = || prepared.key.clone();
    let told = |error| prepared.told(error);
    match &prepared.operation.action {
        Action::Insert { record } => {
            let inserted = match record {
                NewRecord::Read(record) => records.insert(record).await,
                NewRecord::Text(text) => records.insert(&keyloom::read_json(text)?).await,
            };
            Ok(Answered::new(201).with_written(prepared, inserted.map_err(told)?))
        }
        Action::Put { record, only, .. } => {
            let written = put(prepared, &records, record, only).await?;
            Ok(Answered::new(put_status(&written)).with_written(prepared, written))
        }
        Action::Patch { patch, versions, guard, .. } => {
            if guard.is_empty()
                && let Some([version]) = versions.as_deref()
            {
                let written = records.update_if(key(), patch, *version).await.map_err(told)?;
                return Ok(Answered::new(200).with_written(prepared, written));
            }
            if versions.is_some() || !guard.is_empty() {
                let found = records.get(key()).await?.ok_or_else(missing)?;
                hold(prepared, &found, guard, versions.as_ref())?;
            }
            let written = records.update(key(), patch).await.map_err(told)?;
            Ok(Answered::new(200).with_written(prepared, written))
        }
        Action::Delete { versions, .. } => {
            let deleted = match versions.as_deref() {
                None => records.delete(key()).await.map(|found| found.map(drop)),
                Some([version]) => records.delete_if(key(), *version).await.map(Some),
                Some(_) => {
                    let found = records.get(key()).await?.ok_or_else(missing)?;
                    hold(prepared, &found, &Guard::new(), versions.as_ref())?;
                    records.delete(key()).await.map(|found| found.map(drop))
                }
            };
            let () = deleted.map_err(told)?.ok_or_else(missing)?;
            Ok(Answered::new(204))
        }
        Action::Increment { add, .. } => {
            let added = records.increment(key(), add.iter().cloned()).await;
            added.map_err(told)?;
            Ok(Answered::new(200))
        }
        Action::Check { version, guard, exists, .. } => {
            check(prepared, records.get(key()).await?, *exists, guard, *version)
        }
        Action::Get { .. } => Ok(match records.get_document(key()).await? {
            Some(found) => {
                let answered = Answered::new(200).with_version(found.version);
                answered.with_record(found.into_text())
            }
            None => Answered::new(404).with_no_record(),
        }),
    }
}

async fn put(
    prepared: &Prepared,
    records: &TransactionCollection<Value>,
    record: &Value,
    only: &PutOnly,
) -> Result<Written<Value>, Problem> {
    let replaced = match only {
        PutOnly::Always => records.upsert(record).await,
        PutOnly::IfPresent => records.replace(record).await,
        PutOnly::IfMatch(versions) => match versions.as_slice() {
            [version] => records.replace_if(record, *version).await,
            _ => {
                let found = records.get(prepared.key.clone()).await?;
                let found = found.ok_or_else(nothing_to_match)?;
                hold(prepared, &found, &Guard::new(), Some(versions))?;
                records.replace(record).await
            }
        },
        PutOnly::IfAbsent => match records.get(prepared.key.clone()).await? {
            Some(found) => return Err(in_the_way(prepared, Some(found))),
            None => records.upsert(record).await,
        },
    };
    replaced.map_err(|error| prepared.told_of_put(error))
}

/// The status of a put, which says whether it created the record.
pub(super) fn put_status(written: &Written<Value>) -> u16 {
    if written.effect == Effect::Created { 201 } else { 200 }
}

fn check(
    prepared: &Prepared,
    found: Option<Stored<Value>>,
    exists: Option<bool>,
    guard: &Guard,
    version: Option<Version>,
) -> Result<Answered, Problem> {
    match (found, exists) {
        (None, Some(false)) => Ok(Answered::new(200)),
        (None, _) => Err(failed(prepared, "there is no record with this key", None)),
        (Some(found), Some(false)) => {
            Err(failed(prepared, "a record with this key is there", Some(found)))
        }
        (Some(found), _) => {
            let versions = version.map(|version| vec![version]);
            hold(prepared, &found, guard, versions.as_ref())?;
            Ok(Answered::new(200).with_version(found.version))
        }
    }
}

/// Refuses a record that does not meet the conditions.
fn hold(
    prepared: &Prepared,
    found: &Stored<Value>,
    guard: &Guard,
    versions: Option<&Versions>,
) -> Result<(), Problem> {
    if versions.is_some_and(|versions| !versions.contains(&found.version)) {
        let detail = "the record is in another version";
        return Err(failed(prepared, detail, Some(found.clone())));
    }
    match broken(guard, &found.value) {
        None => Ok(()),
        Some((path, wanted)) => {
            let detail = format!("the field {path} is not {wanted}");
            Err(failed(prepared, &detail, Some(found.clone())))
        }
    }
}

/// A failed condition, with the current record if the caller may read it.
pub(super) fn failed(prepared: &Prepared, detail: &str, current: Option<Stored<Value>>) -> Problem {
    let problem = Problem::precondition_failed(detail);
    match current.filter(|_| prepared.may_read) {
        Some(Stored { version, value, .. }) => {
            problem.with("current", json!({"version": version.to_string(), "record": value}))
        }
        None => problem,
    }
}

/// The answer to a put that requires a version of a missing record. Without the condition, it would
/// have created the record.
pub(super) fn nothing_to_match() -> Problem {
    Problem::precondition_failed("there is no record that If-Match could fit")
}

/// The answer to a put that requires that there is no record, if there is one.
pub(super) fn in_the_way(prepared: &Prepared, found: Option<Stored<Value>>) -> Problem {
    failed(prepared, "there is a record at this key already", found)
}

impl Prepared {
    /// An error of the store. A record that does not exist and one that the caller may not see give
    /// the same answer. Its content is shown only to callers who may read it.
    pub(crate) fn told(&self, error: keyloom::Error) -> Problem {
        if is_missing(&error) {
            return missing();
        }
        if self.may_read {
            return error.into();
        }
        let sent = match self.operation.action {
            Action::Insert { .. } | Action::Put { .. } => Sent::Whole,
            _ => Sent::Part,
        };
        to_writer(error, sent)
    }

    /// An error of a put.
    pub(super) fn told_of_put(&self, error: keyloom::Error) -> Problem {
        match error.kind() {
            ErrorKind::NotFound => nothing_to_match(),
            _ => self.told(error),
        }
    }
}
