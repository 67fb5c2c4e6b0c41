//! One pass over the records that counts those which are not counted yet.

use std::sync::Arc;

use bytes::Bytes;

use super::super::build::{Built, HearBuilt};
use super::super::obstacle::{OBSTACLES_MAX, Obstacle};
use super::super::pair_repair::Mender;
use crate::engine::{
    Address, Cause, Cell, Condition, Effect, Outcome, Rejection, Row, ShowKey, Stamp,
};
use crate::error::{ErrorKind, Result};
use crate::record::{Version, read_record};
use crate::schema::{Aggregate, Collection, Generation};
use crate::side::{Additions, SHOWN_WITHIN, Share, share};
use crate::space::{Chunk, Live, Loaded, Retry, Stage, Step, Task, Under, Visitor};

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

/// A pass under one state of the schema.
pub(super) struct Count<'p> {
    mender: Mender<'p>,
    collection: &'p Collection,
    aggregate: &'p Arc<Aggregate>,
    generation: Generation,
    built: Built,
    /// The look that records were visited in last.
    look: usize,
    hear: HearBuilt<'p>,
    pub(super) obstacles: Vec<Obstacle>,
}

/// A record that is to be counted.
struct Uncounted {
    key: Bytes,
    stamp: Stamp,
    share: Option<Share>,
}

/// How a batch stands to its chunk.
enum How<'h, 's, 'l> {
    /// It is one record that did not go through with others.
    Alone,
    Among(&'h mut Step<'s, 'l, Built>),
    /// With the last one the task moves on.
    Last(&'h mut Step<'s, 'l, Built>),
}

/// What became of a batch.
enum Done {
    Counted,
    /// A record changed, or somebody else counted it.
    Moved,
    /// A sum would not fit.
    Overflow,
}

impl<'p> Count<'p> {
    /// A pass that goes on in this look, after so much was done.
    pub(super) fn new(
        live: &'p Live,
        loaded: &'p Loaded,
        collection: &'p Collection,
        aggregate: &'p Arc<Aggregate>,
        generation: Generation,
        (look, built): (usize, Built),
        hear: HearBuilt<'p>,
    ) -> Self {
        let mender = Mender { live, loaded };
        let obstacles = Vec::new();
        Count { mender, collection, aggregate, generation, built, look, hear, obstacles }
    }

    /// Goes over what is left, and gives up where something stands in the way. Where batches show
    /// cell by cell, a record that was committed before the aggregate was declared may show only
    /// after it was looked for. A second look finds it, after a time in which every batch has
    /// shown.
    pub(super) async fn run(&mut self, task: &mut Task<'_, Built>) -> Under<()> {
        let (live, loaded) = (self.mender.live, self.mender.loaded);
        for look in task.position().stage..live.looks() {
            if look > 0 {
                until_all_show().await;
            }
            task.go_on(loaded, self.looks(look)?, CHUNK_KEYS, self).await?;
            if !self.obstacles.is_empty() {
                break;
            }
        }
        Ok(())
    }

    /// All looks up to this one; those before it are done.
    fn looks(&self, last: usize) -> Result<Vec<Stage<'p>>> {
        let looks = (0..=last)
            .map(|_| Ok(Stage::of(&self.collection.key, self.collection.record_range()?)));
        looks.collect()
    }

    /// Counts what is not counted in as few batches as possible, and one by one what does not go
    /// through that way.
    async fn count_chunk(&mut self, step: &mut Step<'_, '_, Built>, rows: Vec<Row>) -> Under<()> {
        let marks: Vec<Address> = rows.iter().map(|row| self.mark(&row.key)).collect();
        let marked = self.mender.live.get(&marks).await?;
        let mut uncounted = Vec::new();
        for (row, mark) in rows.into_iter().zip(marked) {
            if mark.is_none() {
                uncounted.extend(self.uncounted(row.key, &row.cell));
            }
        }
        if !self.obstacles.is_empty() {
            step.hold();
        }
        // Each record needs up to three entries, and the task's cell one.
        let allowed =
            self.mender.live.engine.capabilities().batch_entries_max.saturating_sub(1) / 3;
        let size = GROUP_RECORDS.min(allowed).max(1);
        let last = uncounted.len().div_ceil(size);
        let mut alone = Vec::new();
        for (place, group) in uncounted.chunks(size).enumerate() {
            let is_last = place + 1 == last && alone.is_empty();
            let how = if is_last { How::Last(step) } else { How::Among(step) };
            match self.commit(group, how).await? {
                Done::Counted => {}
                Done::Moved | Done::Overflow => alone.extend(group),
            }
        }
        for one in alone {
            self.count_one(&one.key).await?;
        }
        Ok(())
    }

    /// Counts one record as it is now, if it is there and not counted.
    async fn count_one(&mut self, key: &Bytes) -> Under<()> {
        let retry = Retry::eager();
        let record = Address::new(self.collection.area.clone(), key.clone());
        let addresses = [record, self.mark(key)];
        for _ in 0..ROUNDS {
            let mut made = 0;
            loop {
                let live = self.mender.live;
                let mut cells = live.get(&addresses).await?.into_iter();
                let (record, mark) = (cells.next().flatten(), cells.next().flatten());
                let (Some(record), None) = (record, mark) else { return Ok(()) };
                let Some(one) = self.uncounted(key.clone(), &record) else { return Ok(()) };
                match self.commit(std::slice::from_ref(&one), How::Alone).await? {
                    Done::Counted => return Ok(()),
                    Done::Overflow => {
                        let kind = ErrorKind::LimitExceeded;
                        let reason = "the sum of its group would not fit into 64 bits";
                        self.obstruct(kind, key, reason.to_owned());
                        return Ok(());
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
        let error = self.aggregate.about(ErrorKind::Contention, message);
        Err(error.with("key", ShowKey(key)).into())
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
    async fn commit(&mut self, records: &[Uncounted], how: How<'_, '_, '_>) -> Under<Done> {
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
        let after = Built { put: self.built.put + records.len() as u64, ..self.built };
        let outcome = match how {
            How::Alone => self.mender.outcome(batch).await?,
            How::Among(step) => step.commit(batch).await?,
            How::Last(step) => step.commit_last(batch, after).await?,
        };
        Ok(match outcome {
            Outcome::Committed(_) => {
                self.built = after;
                Done::Counted
            }
            Outcome::Rejected(Rejection { cause: Cause::Overflow { .. }, .. }) => Done::Overflow,
            Outcome::Rejected(_) => Done::Moved,
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

impl Visitor<Built> for Count<'_> {
    async fn visit(&mut self, step: &mut Step<'_, '_, Built>, chunk: Chunk) -> Under<bool> {
        if chunk.stage != self.look {
            // Records are counted as the last look found them.
            (self.look, self.built.records) = (chunk.stage, 0);
        }
        self.built.records += chunk.rows.len() as u64;
        self.count_chunk(step, chunk.rows).await?;
        if !self.obstacles.is_empty() {
            step.hold();
        }
        (self.hear)(self.built);
        self.obstacles.truncate(OBSTACLES_MAX);
        Ok(self.obstacles.len() < OBSTACLES_MAX)
    }

    fn progress(&self) -> Built {
        self.built
    }
}
