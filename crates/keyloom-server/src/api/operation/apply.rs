//! Operations happen: within a transaction, or one by itself.

use keyloom::{Effect, ErrorKind, Stored, Transaction, TransactionCollection, Version, Written};
use serde_json::{Map, Value, json};

use super::guard::broken;
use super::{Action, Answered, Guard, Prepared, PutOnly};
use crate::api::answer::RecordText;
use crate::api::records::missing;
use crate::problem::{Problem, Sent, to_writer};
use crate::refusal;

/// Does an operation within a transaction. Refusals carry its number.
pub(crate) async fn apply(
    prepared: &Prepared,
    transaction: &Transaction,
) -> Result<Answered, Problem> {
    let applied = within(prepared, transaction).await;
    applied.map_err(|problem| problem.with("operation", prepared.number))
}

async fn within(prepared: &Prepared, transaction: &Transaction) -> Result<Answered, Problem> {
    let records = transaction.documents(&prepared.operation.collection)?;
    let key = || prepared.key.clone();
    let answered = |status| Answered::new(status, prepared, prepared.operation.key().unwrap_or(""));
    match &prepared.operation.action {
        Action::Insert { record } => {
            let inserted = records.insert(record).await;
            let written = inserted.map_err(|error| prepared.told(error))?;
            let name = prepared.collection.name_of(&written.key).await?;
            Ok(Answered::new(201, prepared, &name).with_written(prepared, written))
        }
        Action::Put { record, only, .. } => {
            let written = put(prepared, &records, record, *only).await?;
            let status = if written.effect == Effect::Created { 201 } else { 200 };
            Ok(answered(status).with_written(prepared, written))
        }
        Action::Patch { patch, version, guard, .. } => {
            if !guard.is_empty() {
                hold(prepared, records.get(key()).await?, None, guard, *version)?;
            }
            let written = match version {
                Some(version) => records.update_if(key(), patch, *version).await,
                None => records.update(key(), patch).await,
            };
            let written = written.map_err(|error| unmatched(prepared, error, *version))?;
            Ok(answered(200).with_written(prepared, written))
        }
        Action::Delete { version, .. } => {
            let deleted = match version {
                Some(version) => records.delete_if(key(), *version).await.map(|()| Some(*version)),
                None => records.delete(key()).await,
            };
            match deleted.map_err(|error| unmatched(prepared, error, *version))? {
                Some(_) => Ok(answered(204)),
                None => Err(missing()),
            }
        }
        Action::Increment { add, .. } => {
            let added = records.increment(key(), add.iter().cloned()).await;
            added.map_err(|error| prepared.told(error))?;
            Ok(answered(200))
        }
        Action::Check { version, guard, exists, .. } => {
            let found = records.get(key()).await?;
            let seen = found.as_ref().map(|found| found.version);
            hold(prepared, found, *exists, guard, *version)?;
            Ok(match seen {
                Some(version) => answered(200).with_version(version),
                None => answered(200),
            })
        }
        Action::Get { .. } => Ok(match records.get_document(key()).await? {
            Some(found) => answered(200).with_version(found.version).with_record(found.into_text()),
            None => answered(404).with_no_record(),
        }),
    }
}

async fn put(
    prepared: &Prepared,
    records: &TransactionCollection<Value>,
    record: &Value,
    only: PutOnly,
) -> Result<Written<Value>, Problem> {
    let told = |error| prepared.told(error);
    match only {
        PutOnly::Always => Ok(records.upsert(record).await.map_err(told)?),
        PutOnly::IfMatch(version) => {
            let replaced = records.replace_if(record, version).await;
            replaced.map_err(|error| unmatched(prepared, error, Some(version)))
        }
        PutOnly::IfAbsent => match records.get(prepared.key.clone()).await? {
            Some(found) => {
                Err(failed(prepared, "a record with this key is there already", Some(found)))
            }
            None => Ok(records.upsert(record).await.map_err(told)?),
        },
    }
}

/// Refuses a record that is not as the conditions say.
fn hold(
    prepared: &Prepared,
    found: Option<Stored<Value>>,
    exists: Option<bool>,
    guard: &Guard,
    version: Option<Version>,
) -> Result<(), Problem> {
    let Some(found) = found else {
        return match exists {
            Some(false) => Ok(()),
            _ => Err(failed(prepared, "there is no record with this key", None)),
        };
    };
    if exists == Some(false) {
        let detail = "a record with this key is there";
        return Err(failed(prepared, detail, Some(found)));
    }
    if version.is_some_and(|version| version != found.version) {
        let detail = "the record is in another version";
        return Err(failed(prepared, detail, Some(found)));
    }
    match broken(guard, &found.value) {
        None => Ok(()),
        Some(field) => {
            let detail = format!("the field {field} has another value");
            Err(failed(prepared, &detail, Some(found)))
        }
    }
}

/// A condition that does not hold, with the record as it is for those who may read it.
fn failed(prepared: &Prepared, detail: &str, current: Option<Stored<Value>>) -> Problem {
    let problem = Problem::precondition_failed(detail);
    match current.filter(|_| prepared.may_read) {
        Some(Stored { version, value, .. }) => {
            problem.with("current", json!({"version": version.to_string(), "record": value}))
        }
        None => problem,
    }
}

/// The refusal of a write that asked for a version: a record that is not there does not have it.
fn unmatched(prepared: &Prepared, error: keyloom::Error, version: Option<Version>) -> Problem {
    if version.is_some() && error.kind() == ErrorKind::NotFound {
        return failed(prepared, "there is no record with this key", None);
    }
    prepared.told(error)
}

impl Prepared {
    /// An error of the store. What is in the way is told to those who may read it.
    pub(crate) fn told(&self, error: keyloom::Error) -> Problem {
        if self.may_read {
            return error.into();
        }
        let sent = match self.operation.action {
            Action::Insert { .. } | Action::Put { .. } => Sent::Whole,
            _ => Sent::Part,
        };
        to_writer(error, sent)
    }

    /// Whether the operation is best done without a transaction: additions then answer the new
    /// values, records that cannot be read can be deleted, and one that is read is not taken apart.
    /// What is read for an idempotency key is kept, and needs one.
    pub(crate) fn is_direct(&self, key: Option<&str>) -> bool {
        match self.operation.action {
            Action::Increment { .. } | Action::Delete { .. } => true,
            Action::Get { .. } => key.is_none(),
            _ => false,
        }
    }

    /// Does such an operation, once where there is a key.
    pub(crate) async fn do_direct(&self, key: Option<&str>) -> Result<Answered, Problem> {
        let collection = match key {
            Some(key) => self.collection.with_idempotency_key(key)?,
            None => self.collection.clone(),
        };
        let answered = |status| Answered::new(status, self, self.operation.key().unwrap_or(""));
        match &self.operation.action {
            Action::Increment { add, .. } => {
                let values = collection.increment(self.key.clone(), add.iter().cloned()).await;
                let values = values.map_err(|error| self.told(error))?;
                if !self.may_read {
                    return Ok(answered(200).without_body());
                }
                let asked = add.iter().filter_map(|(name, _)| {
                    values.get(name).map(|value| (name.clone(), Value::from(*value)))
                });
                Ok(answered(200).with_values(asked.collect::<Map<_, _>>()))
            }
            Action::Delete { version: Some(version), .. } => {
                let deleted = collection.delete_if(self.key.clone(), *version).await;
                deleted.map_err(|error| unmatched(self, error, Some(*version)))?;
                Ok(answered(204))
            }
            Action::Delete { version: None, .. } => {
                match collection.delete(self.key.clone()).await? {
                    Some(_) => Ok(answered(204)),
                    None => Err(missing()),
                }
            }
            Action::Get { .. } => {
                let found = collection.get_document(self.key.clone()).await?;
                let found = found.map(RecordText::of).transpose()?.ok_or_else(missing)?;
                Ok(answered(200).with_version(found.version).with_record(found.text))
            }
            _ => Err(refusal::internal("the operation needs a transaction")),
        }
    }
}
