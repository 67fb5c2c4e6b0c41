//! The engine in memory: keeps everything in this process, for tests, caches and trials.

mod pinned;
mod state;

use std::num::NonZeroU64;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use async_trait::async_trait;
use bytes::Bytes;

use super::decide::{Decision, decide, writes};
use super::log::check_entries;
use super::log_waiters::LogWaiters;
use super::quantum::{pay_for, pay_for_log, rows_of};
use super::{
    Address, Area, Batch, Capabilities, Cause, Cell, Committed, Condition, Direction, Engine, Link,
    LogBounds, LogSlice, Outcome, Position, Range, Reading, Rejection, Row, Space, Stretch, Trail,
};
use crate::error::{Error, ErrorKind, Result};
use pinned::Pins;
use state::State;

/// An engine in memory. It reads snapshots, and its content ends with it.
///
/// One lock guards all cells. A read holds it shared from its first cell to its last, and a commit
/// holds it exclusively from its first check to its last write. So every answer comes from one
/// snapshot. No call waits for anything else, but each one yields to the other tasks on its thread.
///
/// A [pinned snapshot](Engine::pin) shares everything with the store. While a snapshot is pinned,
/// the first write to an area copies the map of that area, which takes time in proportion to its
/// cells. The first append does the same for a log.
#[derive(Debug)]
pub struct Memory {
    capabilities: Capabilities,
    store: RwLock<Open>,
    log_waiters: LogWaiters,
    pins: Pins,
    /// If set, one in this many commits that require an unchanged cell is refused.
    conflicts_every: Option<NonZeroU64>,
}

/// The data that the lock guards.
#[derive(Debug, Default)]
struct Open {
    state: State,
    /// How many commits required an unchanged cell, while conflicts are injected.
    guarded_commits: u64,
    is_closed: bool,
}

impl Memory {
    /// An empty store.
    pub fn new() -> Self {
        let capabilities = Capabilities {
            engine: "memory",
            reading: Reading::Snapshot,
            batch_entries_max: 10_000,
            batch_bytes_max: 64 * 1024 * 1024,
            adds_spread: 1,
            is_shared: false,
            persistent: false,
            keeps_log: true,
            pins: true,
        };
        let (store, log_waiters, pins) =
            (RwLock::default(), LogWaiters::default(), Pins::default());
        Memory { capabilities, store, log_waiters, pins, conflicts_every: None }
    }

    /// The same store, which refuses one in `every` commits that require a record to be unchanged,
    /// as if another writer had been faster. In memory, writers hardly ever conflict, so a
    /// program's tests do not show how it handles conflicts. With this they do, and always at the
    /// same commits. With 1, no such commit would ever succeed.
    #[must_use]
    pub fn with_conflicts(self, every: NonZeroU64) -> Self {
        Memory { conflicts_every: Some(every), ..self }
    }

    /// Writes are applied after everything was decided and cannot panic half-way, so even a
    /// poisoned lock guards whole batches.
    fn read(&self) -> Result<RwLockReadGuard<'_, Open>> {
        let store = self.store.read().unwrap_or_else(PoisonError::into_inner);
        if store.is_closed { Err(closed()) } else { Ok(store) }
    }

    fn write(&self) -> Result<RwLockWriteGuard<'_, Open>> {
        let store = self.store.write().unwrap_or_else(PoisonError::into_inner);
        if store.is_closed { Err(closed()) } else { Ok(store) }
    }
}

impl Default for Memory {
    fn default() -> Self {
        Memory::new()
    }
}

fn closed() -> Error {
    Error::new(ErrorKind::Closed, "the store was closed")
}

impl Open {
    /// The injected rejection of a commit that requires an unchanged cell, if it is this one's
    /// turn. Keyloom's own cells in the area `~` are exempt, since they have their own rules.
    fn conflict(&mut self, batch: &Batch, every: NonZeroU64) -> Option<Rejection> {
        let entry = batch.entries.iter().position(|entry| {
            matches!(entry.condition, Some(Condition::Unchanged(_)))
                && entry.address.area != Area::own()
        })?;
        self.guarded_commits += 1;
        let found = self.state.cell(&batch.space, &batch.entries[entry].address).cloned();
        (self.guarded_commits % every == 0)
            .then_some(Rejection { cause: Cause::Condition { entry }, found })
    }
}

#[async_trait]
impl Engine for Memory {
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    async fn get(&self, space: &Space, addresses: &[Address]) -> Result<Vec<Option<Cell>>> {
        addresses.iter().try_for_each(Address::check)?;
        let cells = self.read()?.state.get(space, addresses);
        pay_for(cells.len()).await;
        Ok(cells)
    }

    async fn scan(
        &self,
        space: &Space,
        ranges: &[Range],
        limit: usize,
        direction: Direction,
    ) -> Result<Vec<Stretch<Row>>> {
        let stretches = self.read()?.state.scan(space, ranges, limit, direction);
        pay_for(rows_of(&stretches)).await;
        Ok(stretches)
    }

    async fn follow(
        &self,
        space: &Space,
        trails: &[Trail<'_>],
        limit: usize,
        direction: Direction,
    ) -> Result<Vec<Stretch<Link>>> {
        let stretches = self.read()?.state.follow(space, trails, limit, direction);
        pay_for(rows_of(&stretches)).await;
        Ok(stretches)
    }

    async fn areas(&self, space: &Space) -> Result<Vec<Area>> {
        Ok(self.read()?.state.areas(space))
    }

    async fn pin(&self) -> Result<Arc<dyn Engine>> {
        let store = self.read()?;
        // Still under the lock: so whoever closes the store next also ends this snapshot.
        Ok(self.pins.add(&self.capabilities, store.state.clone()))
    }

    async fn commit(&self, mut batch: Batch) -> Result<Outcome> {
        batch.check(&self.capabilities)?;
        pay_for(batch.entries.len()).await;
        let mut store = self.write()?;
        let space = batch.space.clone();
        let append = batch.append.take();
        let mut decision =
            decide(&batch, |_, address| Ok(store.state.cell(&space, address).cloned()))?;
        if let (Decision::Apply(_), Some(every)) = (&decision, self.conflicts_every)
            && let Some(rejection) = store.conflict(&batch, every)
        {
            decision = Decision::Reject(rejection);
        }
        Ok(match decision {
            Decision::Apply(integers) => {
                store.state.apply(&space, writes(batch, &integers));
                let position = append.map(|bytes| store.state.append(&space, bytes));
                drop(store);
                if position.is_some() {
                    self.log_waiters.wake(&space);
                }
                Outcome::Committed(Committed { integers, position })
            }
            Decision::Reject(rejection) => Outcome::Rejected(rejection),
        })
    }

    async fn read_log(
        &self,
        space: &Space,
        from: Position,
        entries_max: usize,
        bytes_max: usize,
    ) -> Result<LogSlice> {
        let slice = self.read()?.state.read_log(space, from, entries_max, bytes_max)?;
        pay_for_log(&slice).await;
        Ok(slice)
    }

    async fn trim_log(
        &self,
        space: &Space,
        before: Position,
        entries_max: usize,
    ) -> Result<LogBounds> {
        let mut store = self.write()?;
        store.state.trim_log(space, before, entries_max);
        Ok(store.state.log_bounds(space))
    }

    async fn extend_log(
        &self,
        space: &Space,
        at: Position,
        entries: &[Bytes],
    ) -> Result<LogBounds> {
        check_entries(&self.capabilities, entries)?;
        let mut store = self.write()?;
        store.state.extend_log(space, at, entries)?;
        let bounds = store.state.log_bounds(space);
        drop(store);
        self.log_waiters.wake(space);
        Ok(bounds)
    }

    async fn wait_log(&self, space: &Space, beyond: Position) -> Result<Position> {
        self.log_waiters
            .wait(space, || {
                let next = self.read()?.state.log_bounds(space).next;
                Ok((next > beyond).then_some(next))
            })
            .await
    }

    async fn close(&self) -> Result<()> {
        self.store.write().unwrap_or_else(PoisonError::into_inner).is_closed = true;
        self.pins.end();
        self.log_waiters.end();
        Ok(())
    }
}
