//! Parses and writes one line of an import.

use std::collections::HashMap;

use keyloom::{CollectionDeclaration, Error, ErrorKind, Key, Store, Transaction};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::apart::LineEnd;
use crate::api::operation::remove_member;
use crate::api::template::{fields_of, take_key, value_at};
use crate::api::transaction::fingerprint;
use crate::problem::Problem;

/// The collections, as far as an import needs them.
pub(super) struct Collections(HashMap<String, Fields>);

/// The fields of a collection that an import handles specially.
struct Fields {
    /// The template of the key.
    key: String,
    /// Paths of counters, and of families of them, which end in `.*`.
    counters: Vec<String>,
}

/// One record to write.
pub(super) struct Import {
    collection: String,
    record: Value,
    /// The counters in the record, which are written separately.
    counters: Vec<(String, i64)>,
    /// The values of the record's key; `None` if the store generates it.
    key: Option<Vec<Value>>,
    /// Distinguishes the line from others with the same idempotency key.
    print: String,
}

/// What is stored under the key of a line.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct KeptLine {
    /// Distinguishes the written line from others.
    print: String,
    /// The report of the line, if it was refused.
    pub(super) refusal: Option<Value>,
}

impl KeptLine {
    /// A line that was refused, and stays so.
    pub(super) fn refused(refusal: &Value) -> Self {
        KeptLine { print: String::new(), refusal: Some(refusal.clone()) }
    }
}

/// Why a line was not written within a transaction.
pub(super) enum Unwritten {
    /// It was refused, and left nothing in the transaction.
    Whole(Error),
    /// Its record is part of the transaction, but the rest of the line is not.
    InPart(Error),
}

/// What to do about a record that already exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    Insert,
    Put,
}

impl Collections {
    pub(super) async fn of(store: &Store) -> Result<Self, Problem> {
        let declared = store.schema().await?.declaration().collections;
        let fields = |declared: CollectionDeclaration| Fields {
            key: declared.key,
            counters: declared.counters.into_keys().collect(),
        };
        Ok(Collections(declared.into_iter().map(|(name, found)| (name, fields(found))).collect()))
    }

    pub(super) fn check(&self, name: &str) -> Result<(), Problem> {
        self.fields(name).map(drop)
    }

    fn fields(&self, name: &str) -> Result<&Fields, Problem> {
        let missing = || Problem::not_found("the schema has no collection of that name");
        self.0.get(name).ok_or_else(|| missing().with("collection", name))
    }

    /// Parses a line: a record of the collection that the request names, or a line of an export.
    pub(super) async fn read(
        &self,
        store: &Store,
        text: &[u8],
        collection: Option<&str>,
    ) -> Result<Import, Problem> {
        let json = keyloom::read_json(text).map_err(|error| without_line(&error))?;
        let print = fingerprint(&json);
        let exported = match (collection, Exported::of(&json)) {
            (_, Some(exported)) => exported?,
            (Some(name), None) => Exported { collection: name.to_owned(), key: None, record: json },
            (None, None) => {
                let detail = "a line is {\"collection\", \"key\", \"version\", \"record\"}, as an \
                              export writes it, or a record alone where the import names their \
                              collection";
                return Err(Problem::invalid_request(detail));
            }
        };
        let Exported { collection: name, key, mut record } = exported;
        if collection.is_some_and(|wanted| wanted != name) {
            let detail = "the line is of another collection than the import";
            return Err(Problem::invalid_request(detail).with("collection", name));
        }
        let fields = self.fields(&name)?;
        if let Some(key) = key {
            let key = store.documents(&name).await?.key_named(&key).await?;
            take_key(&mut record, &fields.key, &key)?;
        }
        let counters = fields.take_counters(&mut record);
        let paths = fields_of(&fields.key).into_iter();
        let values = paths.map(|path| value_at(&record, path).cloned());
        let key = values.collect::<Option<Vec<Value>>>();
        Ok(Import { collection: name, record, counters, key, print })
    }
}

/// The fault in the JSON of a line, with its column only: the import itself reports the line.
fn without_line(error: &Error) -> Error {
    let bare = Error::new(error.kind(), error.message());
    let rest = error.context().filter(|(name, _)| *name != "line");
    rest.fold(bare, |bare, (name, value)| bare.with(name, value))
}

impl Fields {
    /// Takes the counters out of a record. A value that is not a whole number stays, and makes the
    /// record fail.
    fn take_counters(&self, record: &mut Value) -> Vec<(String, i64)> {
        let mut taken = Vec::new();
        for name in &self.counters {
            match name.strip_suffix(".*") {
                None => {
                    if let Some(value) = value_at(record, name).and_then(Value::as_i64) {
                        remove_member(record, name);
                        taken.push((name.clone(), value));
                    }
                }
                Some(family) => {
                    let members = value_at(record, family).and_then(Value::as_object);
                    let Some(members) = members.cloned() else { continue };
                    if members.values().all(Value::is_i64) {
                        remove_member(record, family);
                        let named = |(last, value): (String, Value)| {
                            Some((format!("{family}.{last}"), value.as_i64()?))
                        };
                        taken.extend(members.into_iter().filter_map(named));
                    }
                }
            }
        }
        taken
    }
}

/// A line as an export writes it.
struct Exported {
    collection: String,
    key: Option<String>,
    record: Value,
}

impl Exported {
    /// The line, if it has this form: exactly these members. A line that reports a problem is
    /// refused.
    fn of(json: &Value) -> Option<Result<Self, Problem>> {
        let members = json.as_object()?;
        let known = ["collection", "key", "version", "record", "problem"];
        let is_known = members.keys().all(|name| known.contains(&name.as_str()));
        let text = |name: &str| members.get(name).and_then(Value::as_str).map(str::to_owned);
        if is_known && let Some(problem) = members.get("problem") {
            let detail = "the export could not read this record, so that there is none to write";
            return Some(Err(Problem::invalid_request(detail).with("problem", problem.clone())));
        }
        let record = members.get("record").filter(|record| record.is_object())?.clone();
        let (collection, key) = (text("collection")?, text("key"));
        is_known.then_some(Ok(Exported { collection, key, record }))
    }
}

impl Import {
    /// Identifies the record: the same text for the same record.
    pub(super) fn subject(&self) -> Option<String> {
        let key: Vec<String> = self.key.as_ref()?.iter().map(Value::to_string).collect();
        Some(format!("{} {}", self.collection, key.join(" ")))
    }

    /// Writes the record with its counters in one step; only once, if there is an idempotency key.
    pub(super) async fn write(&self, store: &Store, mode: Mode, once: Option<&str>) -> LineEnd {
        let attempt = |transaction| self.attempt(store, transaction, mode);
        let kept = match once {
            Some(key) => store.transaction_once(key, attempt).await,
            None => store.transaction(attempt).await,
        };
        match kept {
            Err(error) => LineEnd::Refused(error.into()),
            Ok(KeptLine { refusal: Some(refusal), .. }) => LineEnd::StaysRefused(refusal),
            Ok(KeptLine { print, .. }) if print == self.print => LineEnd::Written,
            Ok(_) => {
                let message = "the idempotency key belongs to another line";
                LineEnd::Refused(Error::new(ErrorKind::IdempotencyConflict, message).into())
            }
        }
    }

    async fn attempt(
        &self,
        store: &Store,
        transaction: Transaction,
        mode: Mode,
    ) -> Result<KeptLine, Error> {
        match self.write_within(store, &transaction, mode).await {
            Ok(()) => Ok(KeptLine { print: self.print.clone(), refusal: None }),
            Err(Unwritten::Whole(error) | Unwritten::InPart(error)) => Err(error),
        }
    }

    /// Writes the record with its counters as part of a transaction.
    pub(super) async fn write_within(
        &self,
        store: &Store,
        transaction: &Transaction,
        mode: Mode,
    ) -> Result<(), Unwritten> {
        let (key, now) = self.write_record(transaction, mode).await.map_err(Unwritten::Whole)?;
        let counted = self.write_counters(store, transaction, &key, &now).await;
        counted.map_err(Unwritten::InPart)
    }

    /// Writes the record. If counters are set, gives its key and the record that was there before.
    async fn write_record(
        &self,
        transaction: &Transaction,
        mode: Mode,
    ) -> Result<(Key, Value), Error> {
        let records = transaction.documents(&self.collection)?;
        let mut now = Value::Null;
        if let Some(key) = self.key.clone().filter(|_| !self.counters.is_empty()) {
            now = records.get(key).await?.map_or(Value::Null, |found| found.value);
        }
        let written = match mode {
            Mode::Insert => records.insert(&self.record).await?,
            Mode::Put => records.upsert(&self.record).await?,
        };
        Ok((written.key, now))
    }

    async fn write_counters(
        &self,
        store: &Store,
        transaction: &Transaction,
        key: &Key,
        now: &Value,
    ) -> Result<(), Error> {
        let mut deltas = Vec::new();
        for (name, wanted) in &self.counters {
            let there = value_at(now, name).and_then(Value::as_i64).unwrap_or(0);
            let delta = wanted.checked_sub(there).ok_or_else(|| {
                let message = "the counter is too far from its value for one addition";
                Error::new(ErrorKind::OutOfBounds, message).with("counter", name)
            })?;
            if delta != 0 {
                deltas.push((name.clone(), delta));
            }
        }
        if deltas.is_empty() {
            return Ok(());
        }
        let collection = store.documents(&self.collection).await?;
        let key = collection.key_named(&collection.name_of(key).await?).await?;
        transaction.documents(&self.collection)?.increment(key, deltas).await
    }
}
