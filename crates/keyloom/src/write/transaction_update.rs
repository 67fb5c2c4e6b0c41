//! Parts of records, and guarded ends of records, within a transaction.

use std::sync::Arc;

use bytes::Bytes;
use serde_json::Value;

use super::operations::{WrittenDocument, expect, not_found};
use super::transaction::Transaction;
use super::update::{checked, patched, refuse_another_key, telling};
use crate::error::Result;
use crate::record::Version;
use crate::schema::Collection;

impl Transaction {
    /// Merges a patch into a record that must be there, and in this version if one is given.
    pub(crate) async fn update(
        &self,
        collection: &Arc<Collection>,
        key: Bytes,
        patch: &Value,
        expected: Option<Version>,
    ) -> Result<WrittenDocument> {
        let Some(current) = self.current(collection, &key).await? else {
            return Err(not_found(&collection.name, &key));
        };
        if let Some(expected) = expected.filter(|expected| *expected != current.version) {
            return Err(telling(collection, &key, Some(&current), expected));
        }
        let value = checked(collection, &key, &current, patched(collection, &current, patch)?)?;
        refuse_another_key(collection, &key, &value)?;
        self.leave(collection, key, Some(current), value, Vec::new())
    }

    /// Deletes a record that must be there, in this version.
    pub(crate) async fn delete_if(
        &self,
        collection: &Arc<Collection>,
        key: &Bytes,
        expected: Version,
    ) -> Result<()> {
        let current = self.current(collection, key).await?;
        expect(collection, key, current.as_ref(), Some(expected))?;
        self.delete(collection, key).await.map(drop)
    }
}
