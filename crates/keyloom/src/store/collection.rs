//! The records of one type.

use std::marker::PhantomData;
use std::sync::Arc;

use bytes::Bytes;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::fields::KeyFields;
use super::finite::not_finite;
use super::stored::Stored;
use crate::counted::{Fetched, fetch, fetch_one};
use crate::engine::{Address, ShowKey};
use crate::error::{Error, ErrorKind, Result};
use crate::query::{self, Near, Nearby, Page, Query};
use crate::record::{Document, Version, shown};
use crate::schema::{Collection as Declared, Index, IndexKind, Loaded, followed_key_of};
use crate::session::Session;
use crate::write::{self, Origin, Retry, Whole, Written, key_of_values};

/// The records of one type: a Rust type that derives `Record`, or
/// [`serde_json::Value`] for any collection as JSON.
///
/// A typed collection also has the `by_…` methods that the derive makes for its indexes; see
/// [`#[derive(Record)]`](macro@crate::Record).
pub struct Collection<T> {
    pub(super) session: Session,
    pub(super) name: Arc<str>,
    /// Whether its records come from a type or as JSON.
    origin: Origin,
    kind: PhantomData<fn() -> T>,
}

impl<T> Clone for Collection<T> {
    fn clone(&self) -> Self {
        let Collection { session, name, origin, kind } = self;
        Collection { session: session.clone(), name: name.clone(), origin: *origin, kind: *kind }
    }
}

impl<T> Collection<T> {
    pub(crate) fn new(session: Session, name: &str, origin: Origin) -> Self {
        Collection { session, name: name.into(), origin, kind: PhantomData }
    }

    /// The collection's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Deletes a record with every key that it owns. Gives the version that it had, or `None`
    /// when it was not there.
    pub async fn delete(&self, key: impl KeyFields) -> Result<Option<Version>> {
        let values = key.into_values();
        write::delete(&self.session, &self.name, |declared| key_of(declared, &values), None).await
    }

    /// Deletes a record if it is in this version.
    pub async fn delete_if(&self, key: impl KeyFields, version: Version) -> Result<()> {
        let values = key.into_values();
        let key = |declared: &Declared| key_of(declared, &values);
        write::delete(&self.session, &self.name, key, Some(version)).await.map(drop)
    }

    /// A record as it lies in the store, by the fields of its key. One read.
    pub async fn get_document(&self, key: impl KeyFields) -> Result<Option<Document>> {
        let loaded = self.session.loaded().await?;
        let declared = loaded.schema.collection(&self.name)?;
        let key = key_of(declared, &key.into_values())?;
        Ok(self.fetch(declared, &[key]).await?.pop().flatten())
    }

    /// A record as it lies in the store, by a unique index. Two reads.
    pub async fn get_document_by(
        &self,
        index: &str,
        values: impl KeyFields,
    ) -> Result<Option<Document>> {
        let values = values.into_values();
        let decided = self.session.decide(|loaded| {
            let declared = loaded.schema.collection(&self.name)?;
            let (index, claim) = unique_key(loaded, declared, index, &values)?;
            Ok((declared.clone(), index.clone(), claim))
        });
        let (declared, index, claim) = decided.await?;
        let (declared, index) = (&*declared, &*index);
        let claim = Address::new(index.area.clone(), claim);
        let retry = Retry::eager();
        for reads in 1.. {
            let cell = self
                .session
                .engine
                .get(&self.session.space, std::slice::from_ref(&claim))
                .await?
                .pop()
                .flatten();
            let Some(cell) = cell else { return Ok(None) };
            let key =
                cell.bytes().and_then(|value| followed_key_of(declared, index, &claim.key, value));
            let key = key.ok_or_else(|| {
                Error::new(ErrorKind::Corrupt, "a unique entry does not name a record")
                    .with("key", ShowKey(&claim.key))
            })?;
            let Fetched { cell: found, counted } = fetch_one(&self.session, declared, &key).await?;
            // Between the two reads the value may have passed to another record. The common
            // case, a record that was not written since, is told by the stamps alone.
            if let Some(found) = found
                && (found.stamp == cell.stamp
                    || query::has_entry(declared, index, &claim.key, &found))
                && let Some(text) = found.bytes()
            {
                let version = Version::from_stamp(found.stamp);
                let document = Document::new(key, version, text.clone());
                let counted = counted.as_ref().map(|counted| &counted.values);
                return Ok(Some(shown(&declared.counters, document, counted)));
            }
            if !retry.pause(reads).await {
                break;
            }
        }
        Err(Error::new(
            ErrorKind::Corrupt,
            "a unique entry leads to a record that does not have it; run verify",
        )
        .with("collection", &declared.name)
        .with("index", &index.name)
        .with("key", ShowKey(&claim.key)))
    }

    /// A page of records as they lie in the store: the JSON text, not looked at.
    pub async fn documents(&self, query: &Query) -> Result<Page<Document>> {
        query::documents(&self.session, &self.name, query).await
    }

    /// A page of the records' keys, from the index entries alone: the records are not read.
    pub async fn keys(&self, query: &Query) -> Result<Page<String>> {
        let page = query::keys(&self.session, &self.name, query).await?;
        Ok(page.map(|document| Ok(document.key().to_owned())))
    }

    /// A page of records around a place, nearest first, as they lie in the store.
    pub async fn near_documents(&self, near: &Near) -> Result<Page<Nearby<Document>>> {
        query::near(&self.session, &self.name, near).await
    }

    /// How many records answer the query, whatever its page and its cursor are. Where a declared
    /// count has exactly these records as a group, one round trip; otherwise reads every entry. A
    /// query with a `limit` that is too small for it is an error, so that no wrong number is
    /// ever given.
    pub async fn count(&self, query: &Query) -> Result<usize> {
        match query::count(&self.session, &self.name, query).await? {
            (counted, true) => Ok(counted),
            (counted, false) => Err(Error::new(
                ErrorKind::LimitExceeded,
                "there is more to count than the limit allows",
            )
            .with("collection", &self.name)
            .with("counted", counted)),
        }
    }

    /// How the query would be answered, in words.
    pub async fn explain(&self, query: &Query) -> Result<String> {
        query::explained(&self.session, &self.name, query).await
    }

    async fn fetch(&self, declared: &Declared, keys: &[Bytes]) -> Result<Vec<Option<Document>>> {
        let fetched = fetch(&self.session, declared, keys).await?;
        keys.iter()
            .zip(fetched)
            .map(|(key, Fetched { cell, counted })| {
                let Some(cell) = cell else { return Ok(None) };
                let text = cell.bytes().ok_or_else(|| {
                    Error::new(ErrorKind::Corrupt, "a record's key holds integers")
                        .with("key", ShowKey(key))
                })?;
                let version = Version::from_stamp(cell.stamp);
                let document = Document::new(key.clone(), version, text.clone());
                let counted = counted.as_ref().map(|counted| &counted.values);
                Ok(Some(shown(&declared.counters, document, counted)))
            })
            .collect()
    }
}

impl<T: DeserializeOwned> Collection<T> {
    /// A record by the fields of its key.
    pub async fn get(&self, key: impl KeyFields) -> Result<Option<Stored<T>>> {
        self.get_document(key).await?.as_ref().map(Stored::read).transpose()
    }

    /// Many records in one round trip, each in its place.
    pub async fn get_many<K: KeyFields>(
        &self,
        keys: impl IntoIterator<Item = K>,
    ) -> Result<Vec<Option<Stored<T>>>> {
        let loaded = self.session.loaded().await?;
        let declared = loaded.schema.collection(&self.name)?;
        let keys: Vec<Bytes> = keys
            .into_iter()
            .map(|key| key_of(declared, &key.into_values()))
            .collect::<Result<_>>()?;
        let documents = self.fetch(declared, &keys).await?;
        documents.iter().map(|document| document.as_ref().map(Stored::read).transpose()).collect()
    }

    /// A record by a unique index.
    pub async fn get_by(&self, index: &str, values: impl KeyFields) -> Result<Option<Stored<T>>> {
        self.get_document_by(index, values).await?.as_ref().map(Stored::read).transpose()
    }

    /// A page of records. One that cannot be read is told among the problems.
    pub async fn page(&self, query: &Query) -> Result<Page<Stored<T>>> {
        let page = self.documents(query).await?;
        Ok(page.map(|document| {
            Stored::read(&document)
                .map_err(|error| query::unreadable(document.key().as_bytes(), error))
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
                .map_err(|error| query::unreadable(record.key().as_bytes(), error))
        }))
    }
}

impl<T: Serialize> Collection<T> {
    /// Creates a record without reading anything. Fails if its key, or one of its unique values,
    /// is taken. Fields that are declared so are generated where they are missing.
    pub async fn insert(&self, record: &T) -> Result<Document> {
        write::insert(&self.session, &self.name, to_json(&self.name, record)?).await
    }

    /// Creates a record, or replaces the one with its key.
    pub async fn upsert(&self, record: &T) -> Result<Written> {
        let value = &to_json(&self.name, record)?;
        let whole = Whole { value, origin: self.origin };
        write::upsert(&self.session, &self.name, whole).await
    }

    /// Replaces the record with its key, which must be there.
    pub async fn replace(&self, record: &T) -> Result<Written> {
        self.put(record, None).await
    }

    /// Replaces the record with its key if it is in this version.
    pub async fn replace_if(&self, record: &T, version: Version) -> Result<Written> {
        self.put(record, Some(version)).await
    }

    async fn put(&self, record: &T, version: Option<Version>) -> Result<Written> {
        let value = &to_json(&self.name, record)?;
        let whole = Whole { value, origin: self.origin };
        write::replace(&self.session, &self.name, whole, version).await
    }
}

pub(super) fn to_json<T: Serialize>(collection: &str, record: &T) -> Result<Value> {
    let json = serde_json::to_value(record).map_err(|error| {
        Error::new(ErrorKind::InvalidRecord, "the record cannot be written as JSON")
            .with("collection", collection)
            .with("reason", &error)
            .with_source(error)
    })?;
    match not_finite(record, &json) {
        None => Ok(json),
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

pub(super) fn key_of(declared: &Declared, values: &[Value]) -> Result<Bytes> {
    key_of_values(declared, &values.iter().collect::<Vec<_>>())
}

/// A unique index that may be read, and the key of its entry for these values.
pub(super) fn unique_key<'s>(
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
    loaded.check_readable(declared, index)?;
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
