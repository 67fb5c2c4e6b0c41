//! One pass over an index and its records.

use std::sync::Arc;

use bytes::Bytes;

use super::build::{Built, HearBuilt};
use super::group::Group;
use super::mend::{Hand, Held, Mended, Mender, Sighted, at_sight};
use super::obstacle::{OBSTACLES_MAX, Obstacle};
use super::pair::{Pair, Sight, owner};
use crate::engine::{Address, Cell, Row, ShowKey};
use crate::error::{Error, ErrorKind, Result};
use crate::schema::{Collection, Index};
use crate::space::Rows;
use crate::space::{Live, Loaded};
use crate::write::{entry_keys_of, read_record};

/// How many keys are read at once.
const CHUNK_KEYS: usize = 256;

/// How often the attempts at one record are repeated while other writers win.
const ROUNDS: usize = 16;

/// How a pass ended.
pub(super) enum End {
    Complete,
    /// The schema changed.
    StaleSchema,
    /// There is something that the index cannot hold.
    Obstructed(Vec<Obstacle>),
}

/// A pass under one state of the schema.
pub(super) struct Pass<'p> {
    live: &'p Live,
    mender: Mender<'p>,
    collection: &'p Arc<Collection>,
    index: &'p Arc<Index>,
    built: &'p mut Built,
    hear: HearBuilt<'p>,
    obstacles: Vec<Obstacle>,
}

/// Whether a pass goes on.
#[derive(PartialEq, Eq)]
enum Go {
    On,
    StaleSchema,
}

impl<'p> Pass<'p> {
    pub(super) fn new(
        live: &'p Live,
        loaded: &'p Loaded,
        collection: &'p Arc<Collection>,
        index: &'p Arc<Index>,
        built: &'p mut Built,
        hear: HearBuilt<'p>,
    ) -> Self {
        let mender = Mender { live, loaded };
        Pass { live, mender, collection, index, built, hear, obstacles: Vec::new() }
    }

    pub(super) async fn run(mut self) -> Result<End> {
        if self.sweep_entries().await? == Go::StaleSchema {
            return Ok(End::StaleSchema);
        }
        for _ in 0..self.live.looks() {
            if self.fill_records().await? == Go::StaleSchema {
                return Ok(End::StaleSchema);
            }
            if !self.obstacles.is_empty() {
                return Ok(End::Obstructed(self.obstacles));
            }
        }
        Ok(End::Complete)
    }

    /// Removes entries that no record has. It comes first, so that they do not obstruct records
    /// that claim their keys.
    async fn sweep_entries(&mut self) -> Result<Go> {
        let mut rows = Rows::new(&self.index.key, self.index.entry_range()?);
        while let Some(chunk) = rows.next(self.live, CHUNK_KEYS).await? {
            let pairs: Vec<(Pair, Row)> = chunk
                .into_iter()
                .filter_map(|row| {
                    let record = owner(self.collection, self.index, &row.key, &row.cell)?;
                    Some((self.pair(record, row.key.clone()), row))
                })
                .collect();
            let records = self.get(pairs.iter().map(|(pair, _)| pair.record_address())).await?;
            let seen = pairs.into_iter().zip(records).map(|((pair, row), record)| {
                let sight = Sight { record, entry: Some(row.cell) };
                (pair, sight)
            });
            if self.mend_chunk(seen.collect()).await? != Go::On {
                return Ok(Go::StaleSchema);
            }
            (self.hear)(*self.built);
        }
        Ok(Go::On)
    }

    /// Puts the entries that records lack.
    async fn fill_records(&mut self) -> Result<Go> {
        self.built.records = 0;
        let mut rows = Rows::new(&self.collection.key, self.collection.record_range()?);
        while let Some(chunk) = rows.next(self.live, CHUNK_KEYS).await? {
            let mut pairs = Vec::new();
            for row in chunk {
                self.built.records += 1;
                match self.keys_of(&row) {
                    Ok(keys) => pairs.extend(
                        keys.into_iter()
                            .map(|key| (self.pair(row.key.clone(), key), row.cell.clone())),
                    ),
                    Err(obstacle) => self.obstacles.push(obstacle),
                }
            }
            let entries = self.get(pairs.iter().map(|(pair, _)| pair.entry_address())).await?;
            let seen = pairs
                .into_iter()
                .zip(entries)
                .map(|((pair, record), entry)| (pair, Sight { record: Some(record), entry }));
            if self.mend_chunk(seen.collect()).await? != Go::On {
                return Ok(Go::StaleSchema);
            }
            (self.hear)(*self.built);
            if self.obstacles.len() >= OBSTACLES_MAX {
                self.obstacles.truncate(OBSTACLES_MAX);
                break;
            }
        }
        Ok(Go::On)
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

    /// Mends what is wrong in as few batches as possible. What does not go through that way is
    /// mended pair by pair.
    async fn mend_chunk(&mut self, seen: Vec<(Pair, Sight)>) -> Result<Go> {
        let mut alone = Vec::new();
        let mut group = Group::new(&self.mender);
        for (pair, sight) in seen {
            match at_sight(&pair, &sight) {
                Sighted::Settled(Mended::Sound) => {}
                // Two records of the chunk may claim one key. The second finds out by itself.
                Sighted::Step(step) if group.fits(&step) => {
                    group.add(&step, Hand::Real, (pair, step.mended.clone()));
                }
                Sighted::Settled(_) | Sighted::Step(_) | Sighted::Held { .. } => alone.push(pair),
            }
            if group.is_full(self.live.engine.capabilities()) {
                let full = std::mem::replace(&mut group, Group::new(&self.mender));
                if self.flush(full, &mut alone).await? != Go::On {
                    return Ok(Go::StaleSchema);
                }
            }
        }
        if self.flush(group, &mut alone).await? != Go::On {
            return Ok(Go::StaleSchema);
        }
        for pair in alone {
            if self.mend(&pair).await? != Go::On {
                return Ok(Go::StaleSchema);
            }
        }
        Ok(Go::On)
    }

    async fn flush(&mut self, group: Group<(Pair, Mended)>, alone: &mut Vec<Pair>) -> Result<Go> {
        let (batch, members) = group.into_parts();
        if members.is_empty() {
            return Ok(Go::On);
        }
        match self.mender.commit(batch).await? {
            Held::Yes => members.iter().for_each(|(_, mended)| self.count(mended)),
            Held::No => alone.extend(members.into_iter().map(|(pair, _)| pair)),
            Held::StaleSchema => return Ok(Go::StaleSchema),
        }
        Ok(Go::On)
    }

    fn count(&mut self, mended: &Mended) {
        match mended {
            Mended::Put | Mended::Rewritten => self.built.put += 1,
            Mended::Removed => self.built.removed += 1,
            _ => {}
        }
    }

    async fn mend(&mut self, pair: &Pair) -> Result<Go> {
        for _ in 0..ROUNDS {
            match self.mender.mend(pair, Hand::Real).await? {
                Mended::Contended => continue,
                Mended::StaleSchema => return Ok(Go::StaleSchema),
                mended @ (Mended::Sound | Mended::Put | Mended::Rewritten | Mended::Removed) => {
                    self.count(&mended);
                }
                Mended::Clash { holder } => {
                    self.obstacles.push(Obstacle::duplicate(pair, &holder));
                }
                Mended::Unreadable => self.obstacles.push(Obstacle::Unfit {
                    kind: ErrorKind::Corrupt,
                    record: ShowKey(&pair.record).to_string(),
                    reason: format!("what is at its key {} names no record", ShowKey(&pair.entry)),
                }),
            }
            return Ok(Go::On);
        }
        Err(Error::new(ErrorKind::Contention, "other writers won every attempt")
            .with("collection", &self.collection.name)
            .with("index", &self.index.name)
            .with("key", ShowKey(&pair.record)))
    }

    fn pair(&self, record: Bytes, entry: Bytes) -> Pair {
        Pair { collection: self.collection.clone(), index: self.index.clone(), record, entry }
    }

    async fn get(&self, addresses: impl Iterator<Item = Address>) -> Result<Vec<Option<Cell>>> {
        let addresses: Vec<Address> = addresses.collect();
        if addresses.is_empty() {
            return Ok(Vec::new());
        }
        self.live.get(&addresses).await
    }
}
