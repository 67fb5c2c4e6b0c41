//! A collection within a transaction.

use std::borrow::Cow;
use std::marker::PhantomData;
use std::sync::Arc;

use bytes::Bytes;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::collection::{if_there, in_indexes, key_of, to_json, unique_key};
use super::fields::KeyFields;
use super::increment::owned;
use super::stored::Stored;
use super::written::Written;
use crate::error::{Error, ErrorKind, Result};
use crate::query::{Page, Query};
use crate::record::{Document, Version};
use crate::schema::Collection as Declared;
use crate::typed::Record;
use crate::write::{Origin, Transaction, Whole};

/// A collection within one attempt at a transaction. Records that it reads must still be the same
/// at the commit. Its writes are visible to its own later reads, and to nobody else before the
/// commit.
pub struct TransactionCollection<T> {
    transaction: Transaction,
    declared: Arc<Declared>,
    /// Whether the records come from a Rust type or as JSON.
    origin: Origin,
    kind: PhantomData<fn() -> T>,
}

impl Transaction {
    /// The collection of a Rust type. The stored schema must already have it.
    pub fn collection<T: Record>(&self) -> Result<TransactionCollection<T>> {
        self.named(T::COLLECTION, Origin::Type)
    }

    /// A collection with records as JSON.
    pub fn documents(&self, name: &str) -> Result<TransactionCollection<Value>> {
        self.named(name, Origin::Json)
    }

    fn named<T>(&self, name: &str, origin: Origin) -> Result<TransactionCollection<T>> {
        let (transaction, declared) = (self.clone(), self.declared(name)?);
        Ok(TransactionCollection { transaction, declared, origin, kind: PhantomData })
    }
}

impl<T> TransactionCollection<T> {
    /// A record as stored, by the fields of its key.
    pub async fn get_document(&self, key: impl KeyFields) -> Result<Option<Document>> {
        match if_there(self.key_of(key))? {
            Some(key) => self.transaction.get(&self.declared, &key).await,
            None => Ok(None),
        }
    }

    /// Deletes a record with every key that it owns. Gives the version that it had, or `None` if
    /// there was no record.
    pub async fn delete(&self, key: impl KeyFields) -> Result<Option<Version>> {
        match if_there(self.key_of(key))? {
            Some(key) => self.transaction.delete(&self.declared, &key).await,
            None => Ok(None),
        }
    }

    /// Deletes a record if it has this version. It fails as
    /// [`Collection::delete_if`](super::Collection::delete_if) does.
    pub async fn delete_if(&self, key: impl KeyFields, version: Version) -> Result<()> {
        let key = self.key_of(key)?;
        self.transaction.delete_if(&self.declared, &key, version).await
    }

    /// Merges a patch (RFC 7386) into a record as the transaction sees it: named members change,
    /// `null` removes, all others stay. The record must exist. It fails as
    /// [`Collection::update`](super::Collection::update) does.
    pub async fn update(&self, key: impl KeyFields, patch: &Value) -> Result<Written<T>> {
        self.patch(key, patch, None).await
    }

    /// As [`update`](Self::update), if the record has this version. Otherwise the error is a
    /// [`VersionConflict`](ErrorKind::VersionConflict) with the current record
    /// ([`Error::current`]), and the closure does not run again because of it.
    pub async fn update_if(
        &self,
        key: impl KeyFields,
        patch: &Value,
        version: Version,
    ) -> Result<Written<T>> {
        self.patch(key, patch, Some(version)).await
    }

    async fn patch(
        &self,
        key: impl KeyFields,
        patch: &Value,
        version: Option<Version>,
    ) -> Result<Written<T>> {
        let key = self.key_of(key)?;
        let updated = self.transaction.update(&self.declared, key, patch, version).await;
        self.transaction.judged(updated).map(Written::from)
    }

    fn key_of(&self, key: impl KeyFields) -> Result<Bytes> {
        let key = key_of(self.transaction.session(), &self.declared, &key.into_values());
        self.transaction.judged(key)
    }

    /// Adds to counters of a record at the commit, when the record must exist. Later reads of this
    /// transaction show the new counters. Increments of other writers do not conflict; once this
    /// transaction has read the record, it does not see them.
    pub async fn increment(
        &self,
        key: impl KeyFields,
        deltas: impl IntoIterator<Item = (impl Into<String>, i64)>,
    ) -> Result<()> {
        let key = self.key_of(key)?;
        self.transaction.increment(&self.declared, &key, &owned(deltas))
    }

    /// Always refused: a range that is read here could change unnoticed before the commit.
    pub async fn page(&self, _query: &Query) -> Result<Page<Stored<T>>> {
        Err(Error::new(
            ErrorKind::InvalidQuery,
            "a transaction cannot read ranges yet; read the page outside and each record by its key inside",
        )
        .with("collection", &self.declared.name))
    }
}

impl<T: DeserializeOwned> TransactionCollection<T> {
    /// A record by the fields of its key.
    pub async fn get(&self, key: impl KeyFields) -> Result<Option<Stored<T>>> {
        self.get_document(key).await?.as_ref().map(Stored::read).transpose()
    }

    /// A record by a unique index.
    pub async fn get_by(&self, index: &str, values: impl KeyFields) -> Result<Option<Stored<T>>> {
        let loaded = self.transaction.loaded();
        let (session, values) = (self.transaction.session(), values.into_values());
        let wanted = unique_key(session, loaded, &self.declared, index, &values);
        let (index, claim) = self.transaction.judged(wanted)?;
        let found = self.transaction.get_by(&self.declared, index, claim).await?;
        found.as_ref().map(Stored::read).transpose()
    }
}

impl<T: Serialize + 'static> TransactionCollection<T> {
    fn json_of(&self, record: &T) -> Result<Value> {
        let json = to_json(&self.declared.name, record);
        json.map(Cow::into_owned).map_err(|error| in_indexes(error, &self.declared))
    }

    /// Creates a record. A taken key is refused at once, with
    /// [`AlreadyExists`](ErrorKind::AlreadyExists), so that the closure can do something else. The
    /// commit refuses a taken unique value, unless the closure looks it up with
    /// [`get_by`](Self::get_by). One read, and none if the key is generated.
    pub async fn insert(&self, record: &T) -> Result<Written<T>> {
        let record = self.json_of(record)?;
        let inserted = self.transaction.insert(&self.declared, record).await;
        self.transaction.judged(inserted).map(Written::from)
    }

    /// Creates a record, or replaces the one with its key.
    pub async fn upsert(&self, record: &T) -> Result<Written<T>> {
        let value = &self.json_of(record)?;
        let whole = Whole { value, origin: self.origin };
        let written = self.transaction.upsert(&self.declared, whole).await;
        self.transaction.judged(written).map(Written::from)
    }

    /// Replaces the record with its key, which must exist.
    pub async fn replace(&self, record: &T) -> Result<Written<T>> {
        self.put(record, None).await
    }

    /// Replaces the record with its key if it has this version.
    pub async fn replace_if(&self, record: &T, version: Version) -> Result<Written<T>> {
        self.put(record, Some(version)).await
    }

    async fn put(&self, record: &T, version: Option<Version>) -> Result<Written<T>> {
        let value = &self.json_of(record)?;
        let whole = Whole { value, origin: self.origin };
        let written = self.transaction.replace(&self.declared, whole, version).await;
        self.transaction.judged(written).map(Written::from)
    }
}
