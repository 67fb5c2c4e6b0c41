//! Due work of a collection.

use std::time::Duration;

use serde::de::DeserializeOwned;

use super::collection::Collection;
use super::stored::Stored;
use crate::due::{self, Due, DueItem};
use crate::error::Result;
use crate::query::{self, Problem};
use crate::record::Document;

/// What a worker got.
#[derive(Debug)]
pub struct Leased<R> {
    /// The work, earliest first. Empty if everything that is due belongs to others.
    pub items: Vec<DueItem<R>>,
    /// Records that cannot be read. Their leases run out by themselves, so that they do not come
    /// back at once.
    pub problems: Vec<Problem>,
}

impl<T> Collection<T> {
    /// As [`lease`](Self::lease), with the records as they lie in the store.
    pub async fn lease_documents(
        &self,
        due: &Due,
        worker: &str,
        duration: Duration,
    ) -> Result<Leased<Document>> {
        let items = due::lease_due(&self.session, &self.name, due, worker, duration).await?;
        Ok(Leased { items, problems: Vec::new() })
    }
}

impl<T: DeserializeOwned> Collection<T> {
    /// Gives a worker due work that nobody else has, for this long. Nobody else gets it in that
    /// time. After it, somebody else may, unless the worker [extends](crate::Lease::extend) the
    /// lease or [completes](crate::Transaction::complete) the work.
    pub async fn lease(
        &self,
        due: &Due,
        worker: &str,
        duration: Duration,
    ) -> Result<Leased<Stored<T>>> {
        let Leased { items, mut problems } = self.lease_documents(due, worker, duration).await?;
        let mut read = Vec::with_capacity(items.len());
        for DueItem { record, due_at, values, lease } in items {
            match Stored::read(&record) {
                Ok(record) => read.push(DueItem { record, due_at, values, lease }),
                Err(error) => problems.push(query::unreadable(record.key.bytes(), error)),
            }
        }
        Ok(Leased { items: read, problems })
    }
}
