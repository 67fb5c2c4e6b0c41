//! One pass over an index and its records.

use std::sync::Arc;

use bytes::Bytes;

use super::build::{Built, HearBuilt};
use super::group::Group;
use super::obstacle::{OBSTACLES_MAX, Obstacle};
use super::pair::{Pair, PairCells, owner};
use super::pair_repair::{Hand, Mended, Mender, NextStep, step_for};
use crate::engine::{Address, Outcome, Row, ShowKey};
use crate::error::{Error, ErrorKind, Result};
use crate::record::read_record;
use crate::schema::{Collection, Index};
use crate::space::{Chunk, Live, Loaded, Stage, Step, Under, Visitor};
use crate::write::entry_keys_of;

/// How many keys are read at once.
pub(super) const CHUNK_KEYS: usize = 256;

/// How often the attempts at one record are repeated while other writers win.
const ROUNDS: usize = 16;

/// The stage of entries. It comes first, so that entries that no record has do not obstruct
/// records that claim their keys.
const ENTRIES: usize = 0;

/// A pass under one state of the schema.
pub(super) struct Pass<'p> {
    mender: Mender<'p>,
    collection: &'p Arc<Collection>,
    index: &'p Arc<Index>,
    built: Built,
    /// The stage that was visited last.
    stage: usize,
    hear: HearBuilt<'p>,
    pub(super) obstacles: Vec<Obstacle>,
}

/// Pairs that are mended together, each with what becomes of it.
type Members = Group<(Pair, Mended)>;

impl<'p> Pass<'p> {
    /// A pass that goes on from this stage, after so much was done.
    pub(super) fn new(
        live: &'p Live,
        loaded: &'p Loaded,
        collection: &'p Arc<Collection>,
        index: &'p Arc<Index>,
        (stage, built): (usize, Built),
        hear: HearBuilt<'p>,
    ) -> Self {
        let mender = Mender { live, loaded };
        Pass { mender, collection, index, built, stage, hear, obstacles: Vec::new() }
    }

    /// The entries, and then the records, as often as it takes to see all of them.
    pub(super) fn stages(&self) -> Result<Vec<Stage<'p>>> {
        let mut stages = vec![Stage::of(&self.index.key, self.index.entry_range()?)];
        for _ in 0..self.mender.live.looks() {
            stages.push(Stage::of(&self.collection.key, self.collection.record_range()?));
        }
        Ok(stages)
    }

    /// Entries as they are, each with the record that it names.
    async fn pairs_of_entries(&self, rows: Vec<Row>) -> Result<Vec<(Pair, PairCells)>> {
        let pairs: Vec<(Pair, Row)> = rows
            .into_iter()
            .filter_map(|row| {
                let record = owner(self.collection, self.index, &row.key, &row.cell)?;
                Some((self.pair(record, row.key.clone()), row))
            })
            .collect();
        let records = self.get(pairs.iter().map(|(pair, _)| pair.record_address())).await?;
        let seen = pairs
            .into_iter()
            .zip(records)
            .map(|((pair, row), record)| (pair, PairCells { record, entry: Some(row.cell) }));
        Ok(seen.collect())
    }

    /// Records as they are, each with every entry that it should have.
    async fn pairs_of_records(&mut self, rows: Vec<Row>) -> Result<Vec<(Pair, PairCells)>> {
        let mut pairs = Vec::new();
        for row in rows {
            self.built.records += 1;
            match self.keys_of(&row) {
                Ok(keys) => pairs.extend(
                    keys.into_iter().map(|key| (self.pair(row.key.clone(), key), row.cell.clone())),
                ),
                Err(obstacle) => self.obstacles.push(obstacle),
            }
        }
        let entries = self.get(pairs.iter().map(|(pair, _)| pair.entry_address())).await?;
        let seen = pairs
            .into_iter()
            .zip(entries)
            .map(|((pair, record), entry)| (pair, PairCells { record: Some(record), entry }));
        Ok(seen.collect())
    }

    /// The keys that the index holds for a record, or why it cannot hold the record.
    fn keys_of(&self, row: &Row) -> Result<Vec<Bytes>, Obstacle> {
        let unfit =
            |kind, reason| Obstacle::Unfit { kind, record: ShowKey(&row.key).to_string(), reason };
        let (value, _) = read_record(self.collection, &row.key, &row.cell)
            .map_err(|reason| unfit(ErrorKind::Corrupt, reason))?;
        entry_keys_of(self.collection, self.index, &value)
            .map_err(|error| unfit(error.kind(), error.to_string()))
    }

    /// What can be mended in few batches, and what has to be mended by itself.
    fn grouped(&self, seen: Vec<(Pair, PairCells)>) -> (Vec<Members>, Vec<Pair>) {
        let (mut groups, mut alone) = (Vec::new(), Vec::new());
        let mut group = Group::new(&self.mender);
        for (pair, pair_cells) in seen {
            match step_for(&pair, &pair_cells) {
                NextStep::Settled(Mended::Sound) => {}
                // Two records of the chunk may claim one key. The second finds out by itself.
                NextStep::Step(step) if group.fits(&step) => {
                    group.add(&step, Hand::Real, (pair, step.mended.clone()));
                }
                NextStep::Settled(_) | NextStep::Step(_) | NextStep::Held { .. } => {
                    alone.push(pair)
                }
            }
            if group.is_full(self.mender.live.engine.capabilities()) {
                groups.push(std::mem::replace(&mut group, Group::new(&self.mender)));
            }
        }
        if !group.is_empty() {
            groups.push(group);
        }
        (groups, alone)
    }

    /// Mends what is wrong in as few batches as possible. What does not go through that way is
    /// mended pair by pair.
    async fn mend_chunk(
        &mut self,
        step: &mut Step<'_, '_, Built>,
        seen: Vec<(Pair, PairCells)>,
    ) -> Under<()> {
        let (groups, mut alone) = self.grouped(seen);
        let count = groups.len();
        for (place, group) in groups.into_iter().enumerate() {
            let (batch, members) = group.into_parts();
            let after = members.iter().fold(self.built, |built, (_, mended)| built.with(mended));
            let is_last = place + 1 == count && alone.is_empty();
            let outcome = match is_last {
                true => step.commit_last(batch, after).await?,
                false => step.commit(batch).await?,
            };
            match outcome {
                Outcome::Committed(_) => self.built = after,
                Outcome::Rejected(_) => alone.extend(members.into_iter().map(|(pair, _)| pair)),
            }
        }
        for pair in alone {
            self.mend(&pair).await?;
        }
        Ok(())
    }

    async fn mend(&mut self, pair: &Pair) -> Under<()> {
        for _ in 0..ROUNDS {
            match self.mender.mend(pair, Hand::Real).await? {
                Mended::Contended => continue,
                Mended::Clash { holder } => {
                    self.obstacles.push(Obstacle::duplicate(pair, &holder));
                }
                Mended::Unreadable => self.obstacles.push(Obstacle::Unfit {
                    kind: ErrorKind::Corrupt,
                    record: ShowKey(&pair.record).to_string(),
                    reason: format!("what is at its key {} names no record", ShowKey(&pair.entry)),
                }),
                mended => self.built = self.built.with(&mended),
            }
            return Ok(());
        }
        let error = Error::new(ErrorKind::Contention, "other writers won every attempt")
            .with("collection", &self.collection.name)
            .with("index", &self.index.name)
            .with("key", ShowKey(&pair.record));
        Err(error.into())
    }

    fn pair(&self, record: Bytes, entry: Bytes) -> Pair {
        Pair { collection: self.collection.clone(), index: self.index.clone(), record, entry }
    }

    async fn get(
        &self,
        addresses: impl Iterator<Item = Address>,
    ) -> Result<Vec<Option<crate::engine::Cell>>> {
        self.mender.live.get(&addresses.collect::<Vec<_>>()).await
    }
}

impl Visitor<Built> for Pass<'_> {
    async fn visit(&mut self, step: &mut Step<'_, '_, Built>, chunk: Chunk) -> Under<bool> {
        if chunk.stage != self.stage {
            // Records are counted as the last look found them.
            (self.stage, self.built.records) = (chunk.stage, 0);
            if !self.obstacles.is_empty() {
                return Ok(false);
            }
        }
        let seen = match chunk.stage {
            ENTRIES => self.pairs_of_entries(chunk.rows).await?,
            _ => self.pairs_of_records(chunk.rows).await?,
        };
        if !self.obstacles.is_empty() {
            step.hold();
        }
        self.mend_chunk(step, seen).await?;
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
