//! The past of records: earlier versions, and records that no longer exist.

use serde::de::DeserializeOwned;

use super::Store;
use super::collection::{Collection, if_there, key_of};
use super::fields::KeyFields;
use super::stored::Stored;
use crate::error::Result;
use crate::query::{self, HistoryEntry, Page};
use crate::record::Version;
use crate::schema::Collection as Declared;
use crate::side::HISTORY;
use crate::space::{PurgeOptions, Purged};

/// The past of records, in a collection that declares a `history`. The key of a record leads to all
/// of it, even if the record no longer exists.
impl<T: DeserializeOwned> Collection<T> {
    /// The versions of the record at a key, newest first, at most `take`, from the start or from a
    /// cursor of the same key. Earlier records at the key, deleted or moved away since, follow. A
    /// record that was moved to this key brings its past along.
    pub async fn history(
        &self,
        key: impl KeyFields,
        take: usize,
        cursor: Option<&str>,
    ) -> Result<Page<HistoryEntry<T>>> {
        let values = key.into_values();
        let key = |declared: &Declared| key_of(&self.session, declared, &values);
        let page = query::history(&self.session, &self.name, key, take, cursor).await;
        Ok(if_there(page)?.unwrap_or_else(Page::nothing).map(|entry| {
            let key = entry.key.clone();
            let read = entry.map(|document| document.read());
            read.map_err(|error| query::unreadable(key.as_bytes(), error))
        }))
    }

    /// A record in one of its versions. `None` if the version is not kept, if it belongs to no
    /// record that was at this key, or if it marks the record's deletion.
    pub async fn get_version(
        &self,
        key: impl KeyFields,
        version: Version,
    ) -> Result<Option<Stored<T>>> {
        let values = key.into_values();
        let key = |declared: &Declared| key_of(&self.session, declared, &values);
        let found = query::at_version(&self.session, &self.name, key, version).await;
        if_there(found)?.flatten().as_ref().map(Stored::read).transpose()
    }

    /// The record that was at a key at a time, in milliseconds since 1970; `None` if there was
    /// none. If the history does not reach back so far, the error is of kind
    /// [`NotKept`](crate::ErrorKind::NotKept).
    pub async fn get_as_of(&self, key: impl KeyFields, time_ms: u64) -> Result<Option<Stored<T>>> {
        let values = key.into_values();
        let key = |declared: &Declared| key_of(&self.session, declared, &values);
        let found = query::as_of(&self.session, &self.name, key, time_ms).await;
        if_there(found)?.flatten().as_ref().map(Stored::read).transpose()
    }
}

impl Store {
    /// Removes versions that exceed the declared bounds of this space's histories: those that are
    /// too old, and those beyond the number to keep. Writers may go on meanwhile, and it is safe to
    /// run twice.
    pub async fn purge_history(&self, options: &PurgeOptions) -> Result<Purged> {
        self.session().program()?;
        HISTORY.purge(self.session(), options, &|| true).await
    }
}
