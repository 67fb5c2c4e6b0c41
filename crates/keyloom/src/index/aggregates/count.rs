//! One pass over the records that counts those which are not counted yet.

use std::sync::Arc;

use bytes::Bytes;

use super::super::build::{Built, HearBuilt};
use super::super::mend::Mender;
use super::super::obstacle::{OBSTACLES_MAX, Obstacle};
use super::SHOWN_WITHIN;
use crate::engine::{Address, Cause, Cell, Condition, Effect, Outcome, Reading, ShowKey, Stamp};
use crate::error::{ErrorKind, Result};
use crate::record::Version;
use crate::schema::{Aggregate, Collection, Generation};
use crate::space::Rows;
use crate::space::{Live, Loaded};
use crate::write::{Additions, Retry, Share, read_record, share};

/// How many records are read at once.
const CHUNK_KEYS: usize = 256;

/// How many records are counted by one batch: enough to share a sync, few enough for one that
/// changed meanwhile not to spoil much. Each needs up to three entries of the batch.
const GROUP_RECORDS: usize = 40;

/// How often the attempts at one record are repeated while other writers win.
const ROUNDS: usize = 16;

async fn until_all_show() {
    let pause = SHOWN_WITHIN;
    Retry { attempts: 2, first_pause: pause, longest_pause: pause, jitter: 0.0 }.pause(1).await;
}

/// How a pass ended.
pub(super) enum End {
    Complete,
    /// The schema changed.
    StaleSchema,
    /// There are records that cannot be counted.
    Obstructed(Vec<Obstacle>),
}

/// A pass under one state of the schema.
pub(super) struct Count<'p> {
    mender: Mender<'p>,
    collection: &'p Collection,
    aggregate: &'p Arc<Aggregate>,
    generation: Generation,
    built: &'p mut Built,
    hear: HearBuilt<'p>,
    obstacles: Vec<Obstacle>,
}

/// A record that is to be counted.
struct Uncounted {
    key: Bytes,
    stamp: Stamp,
    share: Option<Share>,
}

/// What became of a batch.
enum Done {
    Counted,
    /// A record changed, or somebody else counted it.
    Moved,
    /// A sum would not fit.
    Overflow,
    StaleSchema,
}

impl<'p> Count<'p> {
    pub(super) fn new(
        live: &'p Live,
        loaded: &'p Loaded,
        collection: &'p Collection,
        aggregate: &'p Arc<Aggregate>,
        generation: Generation,
        built: &'p mut Built,
        hear: HearBuilt<'p>,
    ) -> Self {
        let mender = Mender { live, loaded };
        Count { mender, collection, aggregate, generation, built, hear, obstacles: Vec::new() }
    }

    pub(super) async fn run(mut self) -> Result<End> {
        // Where batches show cell by cell, a record that was committed before the aggregate was
        // declared may show only after it was looked for. A second look finds it, after a time in
        // which every batch has shown.
        let looks = match self.mender.live.engine.capabilities().reading {
            Reading::Snapshot => 1,
            Reading::Validated => 2,
        };
        for look in 1..=looks {
            if look > 1 {
                until_all_show().await;
            }
            self.built.records = 0;
            let mut rows = Rows::new(&self.collection.key, self.collection.record_range()?);
            while let Some(chunk) = rows.next(self.mender.live, CHUNK_KEYS).await? {
                self.built.records += chunk.len() as u64;
                let keys: Vec<Bytes> = chunk.iter().map(|row| row.key.clone()).collect();
                let records = chunk.into_iter().map(|row| Some(row.cell)).collect();
                if !self.count_chunk(keys, records).await? {
                    return Ok(End::StaleSchema);
                }
                (self.hear)(*self.built);
                if self.obstacles.len() >= OBSTACLES_MAX {
                    self.obstacles.truncate(OBSTACLES_MAX);
                    break;
                }
            }
            if !self.obstacles.is_empty() {
                return Ok(End::Obstructed(self.obstacles));
            }
        }
        Ok(End::Complete)
    }

    /// Counts what is not counted in as few batches as possible, and one by one what does not go
    /// through that way; `false` when the schema changed.
    async fn count_chunk(&mut self, keys: Vec<Bytes>, records: Vec<Option<Cell>>) -> Result<bool> {
        let marks: Vec<Address> = keys.iter().map(|key| self.mark(key)).collect();
        let marked = self.mender.live.get(&marks).await?;
        let mut uncounted = Vec::new();
        for ((key, record), mark) in keys.into_iter().zip(records).zip(marked) {
            if let (Some(record), None) = (record, mark) {
                uncounted.extend(self.uncounted(key, &record));
            }
        }
        let allowed = self.mender.live.engine.capabilities().batch_entries_max / 3;
        for group in uncounted.chunks(GROUP_RECORDS.min(allowed).max(1)) {
            match self.commit(group).await? {
                Done::Counted => {}
                Done::StaleSchema => return Ok(false),
                Done::Moved | Done::Overflow => {
                    for one in group {
                        if !self.count_one(&one.key).await? {
                            return Ok(false);
                        }
                    }
                }
            }
        }
        Ok(true)
    }

    /// Counts one record as it is now, if it is there and not counted; `false` when the schema
    /// changed.
    async fn count_one(&mut self, key: &Bytes) -> Result<bool> {
        let retry = Retry::eager();
        let record = Address::new(self.collection.area.clone(), key.clone());
        let addresses = [record, self.mark(key)];
        for _ in 0..ROUNDS {
            let mut made = 0;
            loop {
                let live = self.mender.live;
                let mut cells = live.get(&addresses).await?.into_iter();
                let (record, mark) = (cells.next().flatten(), cells.next().flatten());
                let (Some(record), None) = (record, mark) else { return Ok(true) };
                let Some(one) = self.uncounted(key.clone(), &record) else { return Ok(true) };
                match self.commit(std::slice::from_ref(&one)).await? {
                    Done::Counted => return Ok(true),
                    Done::StaleSchema => return Ok(false),
                    Done::Overflow => {
                        let kind = ErrorKind::LimitExceeded;
                        let reason = "the sum of its group would not fit into 64 bits";
                        self.obstruct(kind, key, reason.to_owned());
                        return Ok(true);
                    }
                    Done::Moved => {}
                }
                made += 1;
                if !retry.pause(made).await {
                    break;
                }
            }
        }
        let message = "other writers won every attempt to count a record";
        Err(self.aggregate.about(ErrorKind::Contention, message).with("key", ShowKey(key)))
    }

    /// A record with what it gives; `None` when it stands in the way.
    fn uncounted(&mut self, key: Bytes, record: &Cell) -> Option<Uncounted> {
        let shared = read_record(self.collection, &key, record)
            .map_err(|reason| (ErrorKind::Corrupt, reason))
            .and_then(|(value, _)| {
                share(self.collection, self.aggregate, &value)
                    .map_err(|error| (error.kind(), error.to_string()))
            });
        match shared {
            Ok(share) => Some(Uncounted { key, stamp: record.stamp, share }),
            Err((kind, reason)) => {
                self.obstruct(kind, &key, reason);
                None
            }
        }
    }

    /// Counts and marks records, if they are as they were read and nobody else has counted them.
    async fn commit(&mut self, records: &[Uncounted]) -> Result<Done> {
        // Not a record's version: its writer may have stamped the same cell with that.
        let stamp = Version::first().stamp();
        let mut batch = self.mender.batch();
        let mut additions = Additions::default();
        for Uncounted { key, stamp: read, share } in records {
            let record = Address::new(self.collection.area.clone(), key.clone());
            batch.push(record, Some(Condition::Unchanged(*read)), None);
            let put = Effect::Put { stamp, bytes: Bytes::new() };
            batch.push(self.mark(key), Some(Condition::Absent), Some(put));
            if let Some(share) = share {
                additions.add(self.aggregate, self.generation, key, share, 1);
            }
        }
        for effect in additions.effects(stamp) {
            let Ok((address, effect, _)) = effect else { return Ok(Done::Overflow) };
            batch.push(address, None, Some(effect));
        }
        Ok(match self.mender.commit_logged(batch).await? {
            Outcome::Committed(_) => {
                self.built.put += records.len() as u64;
                Done::Counted
            }
            Outcome::Rejected(rejection) => match rejection.cause {
                Cause::Fence => Done::StaleSchema,
                Cause::Overflow { .. } => Done::Overflow,
                _ => Done::Moved,
            },
        })
    }

    fn mark(&self, key: &Bytes) -> Address {
        self.aggregate.mark(self.generation.number, key)
    }

    fn obstruct(&mut self, kind: ErrorKind, key: &Bytes, reason: String) {
        let record = ShowKey(key).to_string();
        self.obstacles.push(Obstacle::Unfit { kind, record, reason });
    }
}
