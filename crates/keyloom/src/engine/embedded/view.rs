//! What readers see: the last snapshot that was published, and the caches beside it.
//!
//! Reads run on the caller's thread. They share the snapshot by counting references, hold no
//! lock while they read, and never wait for a writer.

use std::sync::{Arc, PoisonError, RwLock};

use bytes::{Buf, Bytes};
use fjall::{Keyspace, Readable, Snapshot};

use super::super::{Address, Cell, Direction, Link, Range, Row, Space, Stretch, Trail, target_of};
use super::cache::RecordCache;
use super::options::Options;
use super::stretches::{KeptStretch, StretchCache};
use super::{fault, layout};
use crate::error::{Error, ErrorKind, Result};

/// The place where the commit thread leaves snapshots and readers find them.
pub(super) struct View {
    published: RwLock<Option<Arc<Published>>>,
    caches: Caches,
}

/// What is kept in memory beside the snapshots.
pub(super) struct Caches {
    records: RecordCache,
    stretches: StretchCache,
}

impl Caches {
    pub(super) fn new(options: &Options) -> Self {
        Caches {
            records: RecordCache::new(options.record_cache_bytes),
            stretches: StretchCache::new(options.list_cache_bytes),
        }
    }

    /// Notes what a commit changes, before the commit is published.
    pub(super) fn change(&self, commit: u64, changes: &[(Bytes, Option<Bytes>)]) {
        for (key, stored) in changes {
            self.records.change(key, commit, stored.as_deref());
        }
        self.stretches.change(commit, changes.iter().map(|(key, _)| &key[..]));
    }
}

/// One published moment of the store.
pub(super) struct Published {
    /// How many groups were published before it since the store was opened.
    pub(super) commit: u64,
    snapshot: Snapshot,
    cells: Keyspace,
}

impl Published {
    pub(super) fn new(commit: u64, snapshot: Snapshot, cells: Keyspace) -> Self {
        Published { commit, snapshot, cells }
    }
}

impl View {
    pub(super) fn new(first: Published, caches: Caches) -> Self {
        View { published: RwLock::new(Some(Arc::new(first))), caches }
    }

    /// The moment at which to read.
    pub(super) fn moment(&self) -> Result<Moment<'_>> {
        let published = self.published.read().unwrap_or_else(PoisonError::into_inner).clone();
        let published = published.ok_or_else(closed)?;
        Ok(Moment { published, caches: &self.caches })
    }

    /// Replaces what readers see from now on. The caches must know of the changes already.
    pub(super) fn publish(&self, next: Published) {
        let next = Some(Arc::new(next));
        let mut published = self.published.write().unwrap_or_else(PoisonError::into_inner);
        let last = std::mem::replace(&mut *published, next);
        // Dropping a snapshot takes locks of fjall's, so it is done outside of ours.
        drop(published);
        drop(last);
    }

    /// Ends all reading.
    pub(super) fn close(&self) {
        let last = self.published.write().unwrap_or_else(PoisonError::into_inner).take();
        drop(last);
    }

    pub(super) fn is_closed(&self) -> bool {
        self.published.read().unwrap_or_else(PoisonError::into_inner).is_none()
    }

    pub(super) fn caches(&self) -> &Caches {
        &self.caches
    }
}

/// The error of every call after `close`.
pub(super) fn closed() -> Error {
    Error::new(ErrorKind::Closed, "the store was closed")
}

/// Reads at one published moment.
pub(super) struct Moment<'v> {
    published: Arc<Published>,
    caches: &'v Caches,
}

impl Moment<'_> {
    /// Which commit was the last one before this moment.
    pub(super) fn commit(&self) -> u64 {
        self.published.commit
    }

    /// The cell at a stored key, from the cache or from fjall.
    pub(super) fn load(&self, stored_key: &[u8]) -> Result<Option<Cell>> {
        let Published { commit, snapshot, cells } = &*self.published;
        if let Some(stored) = self.caches.records.get(stored_key, *commit) {
            return layout::decode(stored_key, stored).map(Some);
        }
        let loaded = snapshot.get(cells, stored_key).map_err(fault::reading)?;
        loaded
            .map(|loaded| {
                self.caches.records.fill(stored_key, *commit, &loaded);
                layout::decode(stored_key, loaded.into())
            })
            .transpose()
    }

    /// Many cells.
    pub(super) fn get(&self, space: &Space, addresses: &[Address]) -> Result<Vec<Option<Cell>>> {
        let mut buffer = Vec::new();
        addresses
            .iter()
            .map(|address| {
                layout::stored_key(space, &address.area, &address.key, &mut buffer);
                self.load(&buffer)
            })
            .collect()
    }

    /// The rows of one range, each through `row`.
    pub(super) fn stretch<R>(
        &self,
        space: &Space,
        range: &Range,
        limit: usize,
        direction: Direction,
        mut row: impl FnMut(Row) -> Result<R>,
    ) -> Result<Stretch<R>> {
        if limit == 0 || range.is_empty() {
            return Ok(Stretch { rows: Vec::new(), more: false });
        }
        let stored_range = layout::stored_range(space, range);
        let Published { commit, snapshot, cells } = &*self.published;
        let kept = self.caches.stretches.get(&stored_range, limit, direction, *commit);
        if let Some(kept) = kept {
            return replay(&kept, stored_range.prefix_bytes, limit, row);
        }
        let layout::StoredRange { start, end, prefix_bytes } = &stored_range;
        let mut found = snapshot.range(cells, &start[..]..&end[..]);
        let mut next = || match direction {
            Direction::Forward => found.next(),
            Direction::Backward => found.next_back(),
        };
        let mut recorder = self.caches.stretches.recorder(limit);
        let mut stretch = Stretch { rows: Vec::new(), more: false };
        while let Some(guard) = next() {
            if stretch.rows.len() == limit {
                if let Some(recorder) = &mut recorder {
                    recorder.stop_before(&guard.key().map_err(fault::reading)?);
                }
                stretch.more = true;
                break;
            }
            let (stored_key, stored) = guard.into_inner().map_err(fault::reading)?;
            if let Some(recorder) = &mut recorder {
                recorder.add(&stored_key, &stored);
            }
            stretch.rows.push(row(decode_row(stored_key.into(), stored.into(), *prefix_bytes)?)?);
        }
        if let Some(recorder) = recorder {
            let stretches = &self.caches.stretches;
            stretches.fill(recorder, stored_range, direction, *commit);
        }
        Ok(stretch)
    }

    /// The entries of one range with the records that they name, all of this moment.
    pub(super) fn follow(
        &self,
        space: &Space,
        trail: &Trail<'_>,
        limit: usize,
        direction: Direction,
    ) -> Result<Stretch<Link>> {
        let mut buffer = Vec::new();
        self.stretch(space, &trail.range, limit, direction, |entry| {
            let target = target_of(trail.recipe, &entry);
            let record = match &target {
                Some(target) => {
                    layout::stored_key(space, &target.area, &target.key, &mut buffer);
                    self.load(&buffer)?
                }
                None => None,
            };
            Ok(Link { entry, target: target.map(|target| target.key), record })
        })
    }
}

/// The rows of a stretch that was kept, each through `row`.
fn replay<R>(
    kept: &KeptStretch,
    prefix_bytes: usize,
    limit: usize,
    mut row: impl FnMut(Row) -> Result<R>,
) -> Result<Stretch<R>> {
    let rows = kept
        .rows()
        .take(limit)
        .map(|(stored_key, stored)| row(decode_row(stored_key, stored, prefix_bytes)?))
        .collect::<Result<_>>()?;
    Ok(Stretch { rows, more: kept.has_more_than(limit) })
}

fn decode_row(stored_key: Bytes, stored: Bytes, prefix_bytes: usize) -> Result<Row> {
    let cell = layout::decode(&stored_key, stored)?;
    let mut key = stored_key;
    key.advance(prefix_bytes);
    Ok(Row { key, cell })
}
