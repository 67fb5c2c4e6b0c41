//! Removes what has expired.
//!
//! The index over the ends of records is the list of what there is to do, so that nothing has to
//! be remembered between two passes, and an interrupted one goes on by being run again. A record
//! goes with all that belongs to it in one batch, which rests on its version: one that was
//! prolonged since it was looked at stays.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;

use crate::engine::{Address, Direction, Range, Row};
use crate::error::{ErrorKind, Result};
use crate::query::{Stopped, swept_until};
use crate::schema::{Collection, EXPIRY_INDEX, Index, record_key_of};
use crate::side::{Change, Current, Work, sweep_leases};
use crate::space::{Interrupted, Loaded, Session, Under};
use crate::write::{self, stored_keys_of};

/// How a store is swept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SweepOptions {
    /// How many records are removed at most. The next pass goes on.
    pub records_max: usize,
    /// How many records one batch removes at most. Fewer where the engine's batches are small.
    pub batch_records: usize,
}

impl Default for SweepOptions {
    fn default() -> Self {
        SweepOptions { records_max: usize::MAX, batch_records: 32 }
    }
}

/// What a sweep did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Swept {
    /// How many expired records were removed.
    pub records: u64,
    /// How many leases were removed whose work is gone.
    pub leases: u64,
    /// The collections whose records expire, by name.
    pub collections: Vec<SweptCollection>,
    /// Why it ended: nothing is left that had expired when it began, or it reached its limit.
    pub stopped: Stopped,
}

/// How far a sweep came in one collection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SweptCollection {
    /// The collection.
    pub collection: String,
    /// How many of its records were removed.
    pub records: u64,
    /// No record that expired before this moment, in milliseconds since 1970, is left. Zero while
    /// the collection's index `expires_at` is not built.
    pub until: u64,
}

/// Sweeps a space once, until nothing is left, the limit is reached, or it is told to stop.
pub(crate) async fn sweep(
    session: &Session,
    options: &SweepOptions,
    goes_on: &(dyn Fn() -> bool + Send + Sync),
) -> Result<Swept> {
    let mut pass =
        Pass { session, options, goes_on, now: session.now(), left: options.records_max };
    let mut collections = Vec::new();
    let loaded = session.live.reload().await?;
    for collection in loaded.schema.collections.values().filter(|found| found.expiry.is_some()) {
        let records = pass.collection(&collection.name).await?;
        let until = swept_until(session, &loaded, collection).await?.unwrap_or_default();
        collections.push(SweptCollection { collection: collection.name.clone(), records, until });
    }
    let leases = sweep_leases(session, goes_on).await?;
    let records = collections.iter().map(|swept| swept.records).sum();
    let stopped = if pass.is_over() { Stopped::Limit } else { Stopped::End };
    Ok(Swept { records, leases, collections, stopped })
}

struct Pass<'p> {
    session: &'p Session,
    options: &'p SweepOptions,
    goes_on: &'p (dyn Fn() -> bool + Send + Sync),
    /// What expires after the pass began is for the next one, so that every pass ends.
    now: u64,
    /// How many records may still be removed.
    left: usize,
}

impl Pass<'_> {
    fn is_over(&self) -> bool {
        self.left == 0 || !(self.goes_on)()
    }

    /// Removes the expired records of a collection; gives how many.
    async fn collection(&mut self, name: &str) -> Result<u64> {
        let mut removed = 0;
        let mut after: Option<Bytes> = None;
        let message = "the schema kept changing while expired records were removed";
        let mut attempts = self.session.live.attempts(message);
        while !self.is_over() {
            let loaded = self.session.live.loaded().await?;
            let collection = loaded.schema.collection(name)?;
            let Some((index, mut range)) = self.due(&loaded, collection)? else { break };
            if let Some(after) = &after {
                range = range.after(after, Direction::Forward);
            }
            let size = self.batch_size(collection);
            let live = &self.session.live;
            let stretch = live.scan_one(&range, size, Direction::Forward).await?;
            let Some(last) = stretch.rows.last().map(|row| row.key.clone()) else { break };
            let changes = self.expired(collection, &index, &stretch.rows).await?;
            let gone = self.remove(&loaded, &changes).await;
            let Some(gone) = attempts.settle(gone).await? else { continue };
            attempts.begin_anew();
            removed += gone;
            self.left = self.left.saturating_sub(usize::try_from(gone).unwrap_or(usize::MAX));
            after = Some(last);
        }
        Ok(removed)
    }

    /// The index over the ends of records, and the range of what has ended. `None` if nobody keeps
    /// the index; while it is being built, what is in it is enough to go by.
    fn due(&self, loaded: &Loaded, collection: &Collection) -> Result<Option<(Arc<Index>, Range)>> {
        let Some(expiry) = &collection.expiry else { return Ok(None) };
        let index = collection.index(EXPIRY_INDEX)?;
        if !loaded.is_maintained(collection, index) {
            return Ok(None);
        }
        let range = index.key.range(&[], Some(&expiry.form.up_to(self.now)));
        let range = range.map_err(|refusal| refusal.into_query_error())?;
        Ok(Some((index.clone(), range.in_area(index.area.clone()))))
    }

    fn batch_size(&self, collection: &Collection) -> usize {
        let entries_max = self.session.live.engine.capabilities().batch_entries_max;
        let fitting = entries_max / collection.batch_entries_worst().max(1);
        self.options.batch_records.min(fitting).min(self.left).max(1)
    }

    /// The removals of those records that these entries name, and that have expired.
    async fn expired(
        &self,
        collection: &Arc<Collection>,
        index: &Index,
        rows: &[Row],
    ) -> Result<Vec<Change<'static>>> {
        // Where answers mix moments, a record that was just prolonged may show two ends.
        let mut named: BTreeMap<Bytes, Vec<&Bytes>> = BTreeMap::new();
        for row in rows {
            let value = row.cell.bytes();
            let record = value.and_then(|value| record_key_of(collection, index, &row.key, value));
            if let Some(record) = record {
                named.entry(record).or_default().push(&row.key);
            }
        }
        let addresses: Vec<Address> = named
            .keys()
            .map(|record| Address::new(collection.area.clone(), record.clone()))
            .collect();
        let cells = self.session.live.get(&addresses).await?;
        let removals = named.into_iter().zip(cells).filter_map(|((key, entries), cell)| {
            // What cannot be read, and an entry that its record does not have, is for verify.
            let current = Current::from_cell(collection, &key, &cell?, None).ok()?;
            let own = stored_keys_of(collection, index, &current.value).ok()?;
            let is_its = entries.iter().any(|entry| own.contains(*entry));
            let is_expired = collection.is_expired(&current.value, self.now);
            (is_its && is_expired).then(|| Change::expiry(collection, key, current))
        });
        Ok(removals.collect())
    }

    /// Removes records together, or each by itself if one of them changed meanwhile. Gives how
    /// many.
    async fn remove(&self, loaded: &Loaded, changes: &[Change<'_>]) -> Under<u64> {
        if changes.is_empty() || self.is_removed(loaded, changes).await? {
            return Ok(changes.len() as u64);
        }
        let mut removed = 0;
        for change in changes {
            // Somebody may have prolonged, replaced or removed it.
            let is_removed = self.is_removed(loaded, std::slice::from_ref(change)).await?;
            removed += u64::from(is_removed);
        }
        Ok(removed)
    }

    async fn is_removed(&self, loaded: &Loaded, changes: &[Change<'_>]) -> Under<bool> {
        match write::commit(self.session, loaded, Work::of(changes)).await {
            Ok(None) => Ok(true),
            Ok(Some(_)) => Ok(false),
            Err(Interrupted::Failed(error))
                if error.kind() == ErrorKind::LimitExceeded && changes.len() > 1 =>
            {
                Ok(false)
            }
            Err(interrupted) => Err(interrupted),
        }
    }
}
