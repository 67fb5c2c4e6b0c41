//! What readers see: the last snapshot that was published, and the cache beside it.
//!
//! Reads run on the caller's thread. They share the snapshot by counting references, hold no
//! lock while they read, and never wait for a writer.

use std::sync::{Arc, PoisonError, RwLock};

use bytes::{Buf, Bytes};
use fjall::{Keyspace, Readable, Snapshot};

use super::super::{Address, Cell, Direction, Link, Range, Row, Space, Stretch, Trail, target_of};
use super::cache::RecordCache;
use super::{fault, layout};
use crate::error::{Error, ErrorKind, Result};

/// The place where the commit thread leaves snapshots and readers find them.
pub(super) struct View {
    published: RwLock<Option<Arc<Published>>>,
    cache: RecordCache,
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
    pub(super) fn new(first: Published, cache: RecordCache) -> Self {
        View { published: RwLock::new(Some(Arc::new(first))), cache }
    }

    /// The moment at which to read.
    pub(super) fn moment(&self) -> Result<Moment<'_>> {
        let published = self.published.read().unwrap_or_else(PoisonError::into_inner).clone();
        let published = published.ok_or_else(closed)?;
        Ok(Moment { published, cache: &self.cache })
    }

    /// Replaces what readers see from now on. The changes must be in the cache already.
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

    pub(super) fn cache(&self) -> &RecordCache {
        &self.cache
    }
}

/// The error of every call after `close`.
pub(super) fn closed() -> Error {
    Error::new(ErrorKind::Closed, "the store was closed")
}

/// Reads at one published moment.
pub(super) struct Moment<'v> {
    published: Arc<Published>,
    cache: &'v RecordCache,
}

impl Moment<'_> {
    /// Which commit was the last one before this moment.
    pub(super) fn commit(&self) -> u64 {
        self.published.commit
    }

    /// The cell at a stored key, from the cache or from fjall.
    pub(super) fn load(&self, stored_key: &[u8]) -> Result<Option<Cell>> {
        let Published { commit, snapshot, cells } = &*self.published;
        if let Some(stored) = self.cache.get(stored_key, *commit) {
            return layout::decode(stored_key, stored).map(Some);
        }
        let loaded = snapshot.get(cells, stored_key).map_err(fault::reading)?;
        loaded
            .map(|loaded| {
                self.cache.fill(stored_key, *commit, &loaded);
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
        let layout::StoredRange { start, end, prefix_bytes } = layout::stored_range(space, range);
        let Published { snapshot, cells, .. } = &*self.published;
        let mut found = snapshot.range(cells, start..end);
        let mut next = || match direction {
            Direction::Forward => found.next(),
            Direction::Backward => found.next_back(),
        };
        let mut rows = Vec::new();
        while let Some(guard) = next() {
            if rows.len() == limit {
                return Ok(Stretch { rows, more: true });
            }
            let (stored_key, stored) = guard.into_inner().map_err(fault::reading)?;
            let cell = layout::decode(&stored_key, stored.into())?;
            let mut key = Bytes::from(stored_key);
            key.advance(prefix_bytes);
            rows.push(row(Row { key, cell })?);
        }
        Ok(Stretch { rows, more: false })
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
