//! Collections for programs without an async runtime.

use std::borrow::Borrow;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::pages::Pages;
use super::runtime::Runtime;
use super::waits;
use crate::due::Due;
use crate::error::Result;
use crate::query::{
    Counted, GroupPage, GroupQuery, GroupTotal, HistoryEntry, Near, Nearby, Page, Query, TopGroups,
};
use crate::record::{Document, Key, Version};
use crate::schema::{CollectionDeclaration, IndexState};
use crate::space::Retry;
use crate::store::{KeyFields, Leased, Load, OwnedKey, Stored, Written};
use crate::write::Counters;

/// Defines methods that return blocking pages.
macro_rules! pages {
    ($(fn $name:ident(&self $(, $argument:ident: $kind:ty)*) -> $pages:ty;)*) => {$(
        #[doc = concat!(
            "As [`Collection::", stringify!($name), "`](crate::Collection::", stringify!($name),
            "), as an iterator."
        )]
        pub fn $name(&self $(, $argument: $kind)*) -> $pages {
            Pages::new(self.inner.$name($($argument),*), self.runtime.clone())
        }
    )*};
}

/// A [`Collection`](crate::Collection) for programs without an async runtime.
pub struct Collection<T> {
    inner: crate::Collection<T>,
    runtime: Arc<Runtime>,
}

impl<T> Clone for Collection<T> {
    fn clone(&self) -> Self {
        Collection { inner: self.inner.clone(), runtime: self.runtime.clone() }
    }
}

impl<T> Collection<T> {
    pub(super) fn new(inner: crate::Collection<T>, runtime: Arc<Runtime>) -> Self {
        Collection { inner, runtime }
    }

    /// As [`Collection::acting_as`](crate::Collection::acting_as).
    pub fn acting_as(&self, user: &str) -> Result<Self> {
        Ok(Collection::new(self.inner.acting_as(user)?, self.runtime.clone()))
    }

    /// The same collection, for async code.
    pub fn as_async(&self) -> &crate::Collection<T> {
        &self.inner
    }

    pub(crate) fn runtime(&self) -> &Arc<Runtime> {
        &self.runtime
    }

    /// The collection's name.
    pub fn name(&self) -> &str {
        self.inner.name()
    }

    /// As [`Collection::with_idempotency_key`](crate::Collection::with_idempotency_key).
    pub fn with_idempotency_key(&self, key: &str) -> Result<Self> {
        let inner = self.inner.with_idempotency_key(key)?;
        Ok(Collection { inner, runtime: self.runtime.clone() })
    }

    /// As [`Collection::with_retry`](crate::Collection::with_retry).
    pub fn with_retry(&self, retry: Retry) -> Self {
        Collection { inner: self.inner.with_retry(retry), runtime: self.runtime.clone() }
    }

    waits! { "Collection":
        fn to_build(&self) -> Result<BTreeMap<String, IndexState>>;
        fn declaration(&self) -> Result<Arc<CollectionDeclaration>>;
        fn delete(&self, key: impl KeyFields) -> Result<Option<Version>>;
        fn delete_if(&self, key: impl KeyFields, version: Version) -> Result<()>;
        fn insert_json(&self, text: impl AsRef<[u8]>) -> Result<Written<T>>;
        fn get_document(&self, key: impl KeyFields) -> Result<Option<Document>>;
        fn get_document_by(&self, index: &str, values: impl KeyFields) -> Result<Option<Document>>;
        fn name_of(&self, key: &str) -> Result<String>;
        fn key_named(&self, name: &str) -> Result<Vec<Value>>;
        fn key_of_owner_named(&self, owner: &str, name: &str) -> Result<Vec<Value>>;
        fn owned_keys(&self, key: impl KeyFields) -> Result<Option<Vec<OwnedKey>>>;
        fn documents(&self, query: &Query) -> Result<Page<Document>>;
        fn keys(&self, query: &Query) -> Result<Page<Key>>;
        fn near_documents(&self, near: &Near) -> Result<Page<Nearby<Document>>>;
        fn count(&self, query: &Query) -> Result<usize>;
        fn count_entries(&self, query: &Query) -> Result<Counted>;
        fn explain(&self, query: &Query) -> Result<String>;
        fn lease_documents(&self, due: &Due, worker: &str, duration: Duration)
            -> Result<Leased<Document>>;
        fn counted(&self, aggregate: &str, group: impl KeyFields) -> Result<i64>;
        fn summed(&self, aggregate: &str, group: impl KeyFields) -> Result<i64>;
        fn group(&self, aggregate: &str, group: impl KeyFields) -> Result<GroupTotal>;
        fn groups(&self, query: &GroupQuery) -> Result<GroupPage>;
        fn top_groups(&self, query: &GroupQuery, count: usize) -> Result<TopGroups>;
        fn min(&self, query: &Query, field: &str) -> Result<Option<Value>>;
        fn max(&self, query: &Query, field: &str) -> Result<Option<Value>>;
        fn update(&self, key: impl KeyFields, patch: &Value, version: Version) -> Result<Written<T>>;
        fn update_with_retry(&self, key: impl KeyFields, patch: &Value) -> Result<Written<T>>;
        fn increment(
            &self,
            key: impl KeyFields,
            deltas: impl IntoIterator<Item = (impl Into<String>, i64)>
        ) -> Result<Counters>;
        fn increment_many(
            &self,
            records: impl IntoIterator<
                Item = (impl KeyFields, impl IntoIterator<Item = (impl Into<String>, i64)>),
            >
        ) -> Result<Vec<Counters>>;
    }
}

impl<T: 'static> Collection<T> {
    pages! {
        fn document_pages(&self, query: &Query) -> Pages<Document>;
        fn key_pages(&self, query: &Query) -> Pages<Key>;
    }
}

impl<T: DeserializeOwned + 'static> Collection<T> {
    pages! {
        fn pages(&self, query: &Query) -> Pages<Stored<T>>;
        fn near_pages(&self, near: &Near) -> Pages<Nearby<Stored<T>>>;
        fn history_pages(&self, key: impl KeyFields, take: usize) -> Pages<HistoryEntry<T>>;
    }
}

impl<T: DeserializeOwned> Collection<T> {
    waits! { "Collection":
        fn get(&self, key: impl KeyFields) -> Result<Option<Stored<T>>>;
        fn get_many(&self, keys: impl IntoIterator<Item = impl KeyFields>)
            -> Result<Vec<Option<Stored<T>>>>;
        fn get_by(&self, index: &str, values: impl KeyFields) -> Result<Option<Stored<T>>>;
        fn page(&self, query: &Query) -> Result<Page<Stored<T>>>;
        fn near(&self, near: &Near) -> Result<Page<Nearby<Stored<T>>>>;
        fn lease(&self, due: &Due, worker: &str, duration: Duration) -> Result<Leased<Stored<T>>>;
        fn history(&self, key: impl KeyFields, take: usize, cursor: Option<&str>)
            -> Result<Page<HistoryEntry<T>>>;
        fn get_version(&self, key: impl KeyFields, version: Version) -> Result<Option<Stored<T>>>;
        fn get_as_of(&self, key: impl KeyFields, time_ms: u64) -> Result<Option<Stored<T>>>;
    }
}

impl<T: Serialize + 'static> Collection<T> {
    waits! { "Collection":
        fn insert(&self, record: &T) -> Result<Written<T>>;
        fn upsert(&self, record: &T) -> Result<Written<T>>;
        fn replace(&self, record: &T) -> Result<Written<T>>;
        fn replace_if(&self, record: &T, version: Version) -> Result<Written<T>>;
        fn load(&self, records: impl IntoIterator<Item = impl Borrow<T>>) -> Result<Load>;
    }
}

impl<T: Serialize + DeserializeOwned + 'static> Collection<T> {
    waits! { "Collection":
        fn modify(&self, key: impl KeyFields, change: impl FnMut(&mut T) -> Result<()>)
            -> Result<Written<T>>;
        fn upsert_with(&self, record: &T, change: impl FnMut(&mut T) -> Result<()>)
            -> Result<Written<T>>;
        fn rename(&self, key: impl KeyFields, change: impl FnMut(&mut T) -> Result<()>)
            -> Result<Written<T>>;
    }
}
