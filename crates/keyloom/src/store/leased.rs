//! Leases due work of a collection to workers.

use std::time::Duration;

use serde::de::DeserializeOwned;

use super::collection::Collection;
use super::stored::Stored;
use crate::due::{self, Due, DueItem};
use crate::error::Result;
use crate::query::{self, Problem};
use crate::record::Document;

/// The answer to a worker that asked for due work.
#[derive(Debug)]
pub struct Leased<R> {
    /// The work, earliest first. Empty if others hold the leases of everything that is due.
    pub items: Vec<DueItem<R>>,
    /// Records that cannot be decoded. Their leases run out by themselves, so these records do not
    /// come back at once.
    pub problems: Vec<Problem>,
}

impl<T> Collection<T> {
    /// As [`lease`](Self::lease), with the records as stored.
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
    /// Leases due work to a worker for this long. Nobody else gets the work in that time.
    /// Afterwards somebody else may, unless the worker [extends](crate::Lease::extend) the lease or
    /// [completes](crate::Transaction::complete) the work.
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
