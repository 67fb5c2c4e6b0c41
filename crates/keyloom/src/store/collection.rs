//! The records of one type.

use std::any::Any;
use std::borrow::Cow;
use std::marker::PhantomData;
use std::sync::Arc;

use bytes::Bytes;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::fields::KeyFields;
use super::finite::not_finite;
use super::stored::Stored;
use super::written::Written;
use crate::engine::ShowKey;
use crate::error::{Error, ErrorKind, Result};
use crate::index;
use crate::json::read_json;
use crate::query::{self, Counted, Near, Nearby, Page, Query};
use crate::record::{Document, Key, Version, key_of_values, shown, with_indexes_of};
use crate::schema::{Collection as Declared, CollectionDeclaration, Index, IndexKind};
use crate::side::{Fetched, fetch};
use crate::space::{Loaded, Retry, Session};
use crate::write::{self, Origin, Request, Whole, once};

/// The records of one type: a Rust type that derives `Record`, or
/// [`serde_json::Value`] for any collection as JSON.
///
/// A typed collection also has the `by_…` methods that the derive makes for its indexes; see
/// [`#[derive(Record)]`](macro@crate::Record).
pub struct Collection<T> {
    pub(super) session: Session,
    pub(super) name: Arc<str>,
    /// Whether the records come from a Rust type or as JSON.
    origin: Origin,
    /// How often a change is tried again when others change the record meanwhile.
    pub(super) retry: Retry,
    kind: PhantomData<fn() -> T>,
}

impl<T> Clone for Collection<T> {
    fn clone(&self) -> Self {
        let Collection { session, name, origin, retry, kind } = self;
        Collection {
            session: session.clone(),
            name: name.clone(),
            origin: *origin,
            retry: *retry,
            kind: *kind,
        }
    }
}

impl<T> Collection<T> {
    pub(crate) fn new(session: Session, name: &str, origin: Origin) -> Self {
        let retry = Retry::patient();
        Collection { session, name: name.into(), origin, retry, kind: PhantomData }
    }

    /// The same collection, on behalf of a user.
    pub fn acting_as(&self, user: &str) -> Result<Self> {
        Ok(Collection { session: self.session.acting_as(user)?, ..self.clone() })
    }

    /// The collection's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The collection's declaration, as this process last saw it. Shared, not copied.
    pub async fn declaration(&self) -> Result<Arc<CollectionDeclaration>> {
        let loaded = self.session.live.loaded().await?;
        Ok(loaded.schema.collection(&self.name)?.declaration.clone())
    }

    /// The same collection, for one idempotent write. However often the same acting user sends it
    /// with the same key to the same space, it happens once. A repetition changes nothing and gives
    /// the first answer. Another write with the key is refused with
    /// [`IdempotencyConflict`](ErrorKind::IdempotencyConflict). A write that fails leaves its key
    /// free. The schema says for how long keys are remembered; a day unless set.
    ///
    /// If the outcome of a write is unknown, the call repeats it by itself.
    pub fn with_idempotency_key(&self, key: &str) -> Result<Self> {
        Ok(Collection { session: self.session.with_key(key)?, ..self.clone() })
    }

    /// The same collection with another limit of attempts, for changes that are tried again when
    /// others change the record meanwhile: [`modify`](Self::modify),
    /// [`upsert_with`](Self::upsert_with), [`rename`](Self::rename) and
    /// [`update_with_retry`](Self::update_with_retry). [`Retry::patient`] is the limit unless set.
    pub fn with_retry(&self, retry: Retry) -> Self {
        Collection { retry, ..self.clone() }
    }

    /// The request that an idempotency key is bound to. Its payload is built only if there is a
    /// key: nothing else compares requests.
    pub(super) fn request(
        &self,
        operation: &'static str,
        payload: impl FnOnce() -> Value,
    ) -> Request<'_> {
        let payload = self.session.key().map_or(Value::Null, |_| payload());
        Request::new(operation, &self.name, payload)
    }

    /// Deletes a record with every key that it owns. Gives the version that it had, or `None` if
    /// there was no record.
    ///
    /// A record that cannot be decoded does not tell which keys it owns. It can still be deleted:
    /// the call then reads every entry of the collection to find its keys.
    pub async fn delete(&self, key: impl KeyFields) -> Result<Option<Version>> {
        let values = key.into_values();
        let key = |declared: &Declared| key_of(&self.session, declared, &values);
        once!(&self.session, self.request("delete", || json!(values)), |session| async {
            let deleted = index::delete(&session, &self.name, key, None).await;
            Ok(if_there(deleted)?.flatten())
        })
    }

    /// Deletes a record if it has this version.
    pub async fn delete_if(&self, key: impl KeyFields, version: Version) -> Result<()> {
        let values = key.into_values();
        let key = |declared: &Declared| key_of(&self.session, declared, &values);
        let payload = || json!([values, version.to_string()]);
        let deleted: Result<Option<Version>> =
            once!(&self.session, self.request("delete_if", payload), |session| {
                index::delete(&session, &self.name, key, Some(version))
            });
        deleted.map(drop)
    }

    /// As [`insert`](Self::insert), from JSON text. The text is read as strictly as by
    /// [`read_json`].
    pub async fn insert_json(&self, text: impl AsRef<[u8]>) -> Result<Written<T>> {
        let read = || read_json(text.as_ref()).map(Cow::Owned);
        self.insert_value(read()?, read).await
    }

    /// Inserts a record. The first attempt consumes it without a copy; for every further attempt it
    /// is made `again`.
    async fn insert_value<'v>(
        &self,
        mut value: Cow<'v, Value>,
        again: impl Fn() -> Result<Cow<'v, Value>>,
    ) -> Result<Written<T>> {
        if self.session.key().is_none() {
            let known = self.session.live.loaded().await?;
            match write::insert(&self.session, &self.name, value).await {
                Err(refusal) if self.session.is_outdated(&known, &refusal).await => {}
                inserted => return inserted.map(Written::from),
            }
            value = again()?;
        }
        once!(&self.session, self.request("insert", || value.clone().into_owned()), |session| {
            write::insert(&session, &self.name, Cow::Borrowed(&*value))
        })
        .map(Written::from)
    }

    /// A record as stored, by the fields of its key. One read.
    pub async fn get_document(&self, key: impl KeyFields) -> Result<Option<Document>> {
        let (declared, keys) = self.keys_of(&[key.into_values()]).await?;
        Ok(self.fetch(&declared, &keys).await?.pop().flatten())
    }

    /// A record as stored, by a unique index. One read, and one more if the record has counters.
    pub async fn get_document_by(
        &self,
        index: &str,
        values: impl KeyFields,
    ) -> Result<Option<Document>> {
        let values = values.into_values();
        let mut attempts = self.session.live.reads();
        loop {
            let found = self.look_up(index, &values).await;
            if let Some(found) = attempts.settle(found).await? {
                return Ok(found);
            }
        }
    }

    /// The record keys for these values; `None` for each key that the caller may not read.
    async fn keys_of(&self, keys: &[Vec<Value>]) -> Result<(Arc<Declared>, Vec<Option<Bytes>>)> {
        let decided = self.session.live.decide(|loaded| {
            let declared = loaded.schema.collection(&self.name)?;
            let keys = keys.iter().map(|key| if_there(key_of(&self.session, declared, key)));
            Ok((declared.clone(), keys.collect::<Result<_>>()?))
        });
        decided.await
    }

    async fn look_up(&self, index: &str, values: &[Value]) -> Result<Option<Document>> {
        let decided = self.session.live.decide(|loaded| {
            let declared = loaded.schema.collection(&self.name)?;
            let (index, entry) = unique_key(&self.session, loaded, declared, index, values)?;
            Ok((loaded.clone(), declared.clone(), index.clone(), entry))
        });
        let (loaded, declared, index, entry) = decided.await?;
        query::look_up(&self.session, loaded, declared, index, entry).await
    }

    /// A page of records as stored: their JSON text, not parsed.
    pub async fn documents(&self, query: &Query) -> Result<Page<Document>> {
        query::documents(&self.session, &self.name, query).await
    }

    /// A page of the records' keys, from the index entries alone, without reading records. If
    /// records of the collection expire, the page says up to when it was swept.
    pub async fn keys(&self, query: &Query) -> Result<Page<Key>> {
        let page = query::keys(&self.session, &self.name, query).await?;
        Ok(page.map(|document| Ok(document.key)))
    }

    /// A page of records around a place, nearest first, as stored.
    pub async fn near_documents(&self, near: &Near) -> Result<Page<Nearby<Document>>> {
        query::near(&self.session, &self.name, near).await
    }

    /// How many records all pages of the query would give, whatever its page size and cursor. A
    /// range over elements counts a record once for each of its entries.
    ///
    /// If a declared count has exactly these records as a group, it answers in one round trip,
    /// whatever the `limit`. It counts all of them, even those that a sparse index leaves out of
    /// pages. Otherwise the call reads every entry, and also every record if records expire. A
    /// `limit` that is too small is an error, so the number is never wrong.
    pub async fn count(&self, query: &Query) -> Result<usize> {
        query::count(&self.session, &self.name, query).await
    }

    /// As [`count`](Self::count), from the index entries alone, even if records expire. The answer
    /// then says up to when the collection was swept.
    pub async fn count_entries(&self, query: &Query) -> Result<Counted> {
        query::count_entries(&self.session, &self.name, query).await
    }

    /// The plan of the query, in words.
    pub async fn explain(&self, query: &Query) -> Result<String> {
        query::explained(&self.session, &self.name, query).await
    }

    /// The records at these keys, in the order of the keys.
    async fn fetch(
        &self,
        declared: &Declared,
        keys: &[Option<Bytes>],
    ) -> Result<Vec<Option<Document>>> {
        let there: Vec<Bytes> = keys.iter().flatten().cloned().collect();
        let mut fetched = fetch(&self.session, declared, &there).await?.into_iter();
        keys.iter()
            .map(|key| {
                let Some(key) = key else { return Ok(None) };
                let Some(Fetched { cell: Some(cell), counted }) = fetched.next() else {
                    return Ok(None);
                };
                let text = cell.bytes().ok_or_else(|| {
                    Error::new(ErrorKind::Corrupt, "a record's key holds integers")
                        .with("key", ShowKey(key))
                })?;
                let version = Version::from_stamp(cell.stamp);
                let document = Document::new(key.clone(), version, text.clone());
                let counted = counted.as_ref().map(|counted| &counted.values);
                let document = self.unless_expired(declared, document);
                Ok(document.map(|found| shown(&declared.counters, found, counted)))
            })
            .collect()
    }

    fn unless_expired(&self, declared: &Declared, document: Document) -> Option<Document> {
        // Where nothing expires, the clock is not read.
        let is_expired = declared.expiry.is_some()
            && declared.is_text_expired(document.text(), self.session.now());
        (!is_expired).then_some(document)
    }
}

impl<T: DeserializeOwned> Collection<T> {
    /// A record by the fields of its key.
    pub async fn get(&self, key: impl KeyFields) -> Result<Option<Stored<T>>> {
        self.get_document(key).await?.as_ref().map(Stored::read).transpose()
    }

    /// Many records in one round trip, in the order of the keys.
    pub async fn get_many<K: KeyFields>(
        &self,
        keys: impl IntoIterator<Item = K>,
    ) -> Result<Vec<Option<Stored<T>>>> {
        let keys: Vec<Vec<Value>> = keys.into_iter().map(KeyFields::into_values).collect();
        let (declared, keys) = self.keys_of(&keys).await?;
        let documents = self.fetch(&declared, &keys).await?;
        documents.iter().map(|document| document.as_ref().map(Stored::read).transpose()).collect()
    }

    /// A record by a unique index.
    pub async fn get_by(&self, index: &str, values: impl KeyFields) -> Result<Option<Stored<T>>> {
        self.get_document_by(index, values).await?.as_ref().map(Stored::read).transpose()
    }

    /// A page of records. Records that cannot be decoded are listed among the problems.
    pub async fn page(&self, query: &Query) -> Result<Page<Stored<T>>> {
        let page = self.documents(query).await?;
        Ok(page.map(|document| {
            Stored::read(&document).map_err(|error| query::unreadable(document.key.bytes(), error))
        }))
    }
}

impl<T: DeserializeOwned> Collection<T> {
    /// A page of records around a place, nearest first.
    pub async fn near(&self, near: &Near) -> Result<Page<Nearby<Stored<T>>>> {
        let page = self.near_documents(near).await?;
        Ok(page.map(|Nearby { record, distance_m }| {
            let read = Stored::read(&record);
            read.map(|record| Nearby { record, distance_m })
                .map_err(|error| query::unreadable(record.key.bytes(), error))
        }))
    }
}

impl<T: Serialize + 'static> Collection<T> {
    /// The record as JSON. An error names the indexes that the value would have gone into.
    pub(super) async fn json_of<'v>(&self, record: &'v T) -> Result<Cow<'v, Value>> {
        match to_json(&self.name, record) {
            Ok(json) => Ok(json),
            Err(error) => {
                let loaded = self.session.live.loaded().await?;
                Err(in_indexes(error, loaded.schema.collection(&self.name)?))
            }
        }
    }

    /// Creates a record without reading anything. Fails if its key, or one of its unique values, is
    /// taken. Missing fields that are declared `generate` are generated.
    pub async fn insert(&self, record: &T) -> Result<Written<T>> {
        let value = self.json_of(record).await?;
        self.insert_value(value, || to_json(&self.name, record)).await
    }

    /// Creates a record, or replaces the one with its key.
    pub async fn upsert(&self, record: &T) -> Result<Written<T>> {
        let record = self.json_of(record).await?;
        once!(&self.session, self.request("upsert", || record.clone().into_owned()), |session| {
            write::upsert(&session, &self.name, Whole { value: &record, origin: self.origin })
        })
        .map(Written::from)
    }

    /// Replaces the record with its key, which must exist.
    pub async fn replace(&self, record: &T) -> Result<Written<T>> {
        let record = self.json_of(record).await?;
        once!(&self.session, self.request("replace", || record.clone().into_owned()), |session| {
            let whole = Whole { value: &record, origin: self.origin };
            write::replace(&session, &self.name, whole, None)
        })
        .map(Written::from)
    }

    /// Replaces the record with its key if it has this version.
    pub async fn replace_if(&self, record: &T, version: Version) -> Result<Written<T>> {
        let record = self.json_of(record).await?;
        let payload = || json!([record, version.to_string()]);
        once!(&self.session, self.request("replace_if", payload), |session| {
            let whole = Whole { value: &record, origin: self.origin };
            write::replace(&session, &self.name, whole, Some(version))
        })
        .map(Written::from)
    }
}

/// Adds the indexes that the value would have gone into to an error of [`to_json`].
pub(super) fn in_indexes(error: Error, declared: &Declared) -> Error {
    match error.context_value("field").map(str::to_owned) {
        Some(field) => with_indexes_of(error, declared, &field),
        None => error,
    }
}

/// The record as JSON. A value that is JSON already is borrowed.
pub(super) fn to_json<'v, T: Serialize + 'static>(
    collection: &str,
    record: &'v T,
) -> Result<Cow<'v, Value>> {
    if let Some(json) = (record as &dyn Any).downcast_ref::<Value>() {
        return Ok(Cow::Borrowed(json));
    }
    let json = serde_json::to_value(record).map_err(|error| {
        Error::new(ErrorKind::InvalidRecord, "the record cannot be written as JSON")
            .with("collection", collection)
            .with("reason", &error)
            .with_source(error)
    })?;
    match not_finite(record, &json) {
        None => Ok(Cow::Owned(json)),
        Some((field, number)) => {
            let message =
                "JSON has neither NaN nor infinities; use an Option for what may be unknown";
            Err(Error::new(ErrorKind::InvalidRecord, message)
                .with("collection", collection)
                .with("field", field)
                .with("value", number))
        }
    }
}

/// The key of a record that the caller may read. For a record that they may not read, the answer is
/// always that it does not exist.
pub(super) fn key_of(session: &Session, declared: &Declared, values: &[Value]) -> Result<Bytes> {
    let values = session.imply_owner(declared, &declared.key, values);
    let key = key_of_values(declared, &values.iter().collect::<Vec<_>>())?;
    match session.may_read(declared, &key) {
        true => Ok(key),
        false => Err(write::not_found(&declared.name, &key)),
    }
}

/// What was found; `None` if the error says that the record does not exist.
pub(super) fn if_there<T>(found: Result<T>) -> Result<Option<T>> {
    match found {
        Ok(found) => Ok(Some(found)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// The key of an entry in a unique index that may be read, for these values.
pub(super) fn unique_key<'s>(
    session: &Session,
    loaded: &Loaded,
    declared: &'s Declared,
    index: &str,
    values: &[Value],
) -> Result<(&'s Arc<Index>, Bytes)> {
    let index = declared.index(index)?;
    let about = |kind, message| {
        Error::new(kind, message).with("collection", &declared.name).with("index", &index.name)
    };
    if index.kind != IndexKind::Unique {
        return Err(about(
            ErrorKind::InvalidQuery,
            "only a unique index names one record; query this one",
        ));
    }
    session.check_readable(loaded, declared, index)?;
    let values = session.imply_owner(declared, &index.key, values);
    if values.len() != index.key.segments().count() {
        return Err(about(
            ErrorKind::InvalidArgument,
            "the unique index has another number of fields",
        )
        .with("key", &index.key.source)
        .with("values given", values.len()));
    }
    let key = index.key.encode(&values.iter().collect::<Vec<_>>()).map_err(|refusal| {
        refusal.into_query_error().with("collection", &declared.name).with("index", &index.name)
    })?;
    Ok((index, key))
}
