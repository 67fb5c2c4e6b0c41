//! A single operation: either a whole request, or one item of a batch.

use std::slice::from_ref;

use keyloom::{Collection, Error, ErrorKind, Store, Version, Written};
use serde_json::{Map, Value, json};

use super::apply::{failed, in_the_way, nothing_to_match, put_status};
use super::{Action, Answered, NewRecord, Prepared, PutOnly, Versions};
use crate::api::answer::RecordText;
use crate::api::names::Names;
use crate::api::records::missing;
use crate::api::transaction::{Refused, fingerprint, run};
use crate::config::Limits;
use crate::problem::{Problem, is_missing};

impl Prepared {
    /// Does the operation; only once, if there is an idempotency key.
    pub(crate) async fn alone(
        &self,
        store: &Store,
        limits: &Limits,
        key: Option<&str>,
    ) -> Result<Answered, Refused> {
        if self.needs_transaction(key) {
            return self.in_transaction(store, limits, key).await;
        }
        let records = match key {
            Some(key) => &self.collection.with_idempotency_key(key)?,
            None => &self.collection,
        };
        match &self.operation.action {
            Action::Insert { record } => {
                let written = match record {
                    NewRecord::Text(text) => records.insert_json(text).await?,
                    NewRecord::Read(record) => records.insert(record).await?,
                };
                Ok(Answered::new(201).with_written(self, written))
            }
            Action::Put { record, only, .. } => {
                let written = self.put(records, record, only).await?;
                Ok(Answered::new(put_status(&written)).with_written(self, written))
            }
            Action::Patch { patch, versions, .. } => {
                let written = self.patch(records, patch, versions.as_ref()).await?;
                Ok(Answered::new(200).with_written(self, written))
            }
            Action::Delete { versions, .. } => self.delete(records, versions.as_ref()).await,
            Action::Increment { add, .. } => self.increment(records, add).await,
            Action::Get { .. } | Action::Check { .. } => self.get(records).await,
        }
    }

    /// Whether the operation needs a transaction. A test of fields needs one, so that the test and
    /// the write see the same record. And only a transaction can store the result of a read under
    /// an idempotency key.
    fn needs_transaction(&self, key: Option<&str>) -> bool {
        match &self.operation.action {
            Action::Patch { guard, .. } => !guard.is_empty(),
            Action::Check { .. } => true,
            Action::Get { .. } => key.is_some(),
            _ => false,
        }
    }

    async fn in_transaction(
        &self,
        store: &Store,
        limits: &Limits,
        key: Option<&str>,
    ) -> Result<Answered, Refused> {
        let request = key.map(|_| self.fingerprint()).unwrap_or_default();
        let done = run(store, limits, from_ref(self), key, request).await?;
        let status = done.statuses.first().copied().unwrap_or_default();
        if status == 404 {
            return Err(missing().into());
        }
        let version = done.versions.into_iter().next().flatten();
        let version = version.map(|version| version.parse::<Version>()).transpose()?;
        Ok(Answered::of_kept(status, version, &done.results.into_iter().next().unwrap_or_default()))
    }

    /// A fingerprint of the operation, since the library does not compare transactions.
    fn fingerprint(&self) -> String {
        let texts = |versions: &Option<Versions>| {
            versions.as_ref().map(|all| all.iter().map(Version::to_string).collect::<Vec<_>>())
        };
        let asked = match &self.operation.action {
            Action::Patch { patch, versions, guard, .. } => json!([patch, texts(versions), guard]),
            Action::Check { version, guard, exists, .. } => {
                json!([version.map(|version| version.to_string()), guard, exists])
            }
            _ => Value::Null,
        };
        let operation = &self.operation;
        fingerprint(&json!([operation.name(), operation.collection, self.key, asked]))
    }

    async fn put(
        &self,
        records: &Collection<Value>,
        record: &Value,
        only: &PutOnly,
    ) -> Result<Written<Value>, Refused> {
        let written = match only {
            PutOnly::Always => records.upsert(record).await,
            PutOnly::IfPresent => records.replace(record).await,
            PutOnly::IfMatch(versions) => {
                let attempt = |version| records.replace_if(record, version);
                match match_one(versions, attempt).await {
                    Some(written) => written,
                    None => {
                        return Err(self
                            .unmatched()
                            .await?
                            .unwrap_or_else(nothing_to_match)
                            .into());
                    }
                }
            }
            PutOnly::IfAbsent => match records.insert(record).await {
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                    return Err(
                        in_the_way(self, self.collection.get(self.key.clone()).await?).into()
                    );
                }
                written => written,
            },
        };
        written.map_err(|error| match is_missing(&error) {
            true => nothing_to_match().into(),
            false => error.into(),
        })
    }

    async fn patch(
        &self,
        records: &Collection<Value>,
        patch: &Value,
        versions: Option<&Versions>,
    ) -> Result<Written<Value>, Refused> {
        let key = || self.key.clone();
        let Some(versions) = versions else {
            // Other callers may patch the same record as often as they like; a retry costs only
            // time.
            return Ok(records.update_with_retry(key(), patch).await?);
        };
        match match_one(versions, |version| records.update(key(), patch, version)).await {
            Some(written) => Ok(written?),
            None => Err(self.unmatched().await?.unwrap_or_else(missing).into()),
        }
    }

    async fn delete(
        &self,
        records: &Collection<Value>,
        versions: Option<&Versions>,
    ) -> Result<Answered, Refused> {
        let key = || self.key.clone();
        let is_deleted = match versions {
            None => records.delete(key()).await?.is_some(),
            Some(versions) => {
                match match_one(versions, |version| records.delete_if(key(), version)).await {
                    Some(deleted) => deleted.map(|()| true)?,
                    None => return Err(self.unmatched().await?.unwrap_or_else(missing).into()),
                }
            }
        };
        match is_deleted {
            true => Ok(Answered::new(204)),
            false => Err(missing().into()),
        }
    }

    async fn increment(
        &self,
        records: &Collection<Value>,
        add: &[(String, i64)],
    ) -> Result<Answered, Refused> {
        let counters = records.increment(self.key.clone(), add.iter().cloned()).await?;
        if !self.may_read {
            return Ok(Answered::new(200).without_body());
        }
        let value = |(name, _): &(String, i64)| {
            let value = counters.get(name).copied().unwrap_or_default();
            (name.clone(), Value::from(value))
        };
        Ok(Answered::new(200).with_values(add.iter().map(value).collect::<Map<_, _>>()))
    }

    async fn get(&self, records: &Collection<Value>) -> Result<Answered, Refused> {
        let found = records.get_document(self.key.clone()).await?;
        let found = found.map(RecordText::of).transpose()?.ok_or_else(missing)?;
        Ok(Answered::new(200).with_version(found.version).with_record(found.text))
    }

    /// The refusal of a write whose `If-Match` names no valid version; `None` if there is no
    /// record.
    async fn unmatched(&self) -> Result<Option<Problem>, Error> {
        let current = self.collection.get(self.key.clone()).await?;
        let detail = "If-Match names no version; the ETag of a record does, in its quotes";
        Ok(current.map(|current| failed(self, detail, Some(current))))
    }

    /// The refusal for the caller. A conflicting record is named as in URLs.
    pub(crate) async fn refusal(&self, refused: Refused, names: &mut Names<'_>) -> Problem {
        match refused {
            Refused::Operation(problem) => problem,
            Refused::Commit(error, _) if self.may_read && error.holder().is_some() => {
                names.problem(error).await
            }
            Refused::Commit(error, _) => self.told(error),
        }
    }
}

/// Tries a write with each version that it accepts. At most one of them is the current version, so
/// at most one attempt writes. If an earlier request with the same idempotency key has written, the
/// attempt with its version finds that again; the others are refused as different requests. `None`
/// without versions.
async fn match_one<T, Fut>(
    versions: &Versions,
    attempt: impl Fn(Version) -> Fut,
) -> Option<Result<T, Error>>
where
    Fut: Future<Output = Result<T, Error>>,
{
    let is_other =
        |kind| matches!(kind, ErrorKind::VersionConflict | ErrorKind::IdempotencyConflict);
    let mut refused = None;
    for &version in versions {
        match attempt(version).await {
            Err(error) if is_other(error.kind()) => refused = Some(error),
            settled => return Some(settled),
        }
    }
    refused.map(Err)
}
