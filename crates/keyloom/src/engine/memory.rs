//! The engine that keeps everything in this process, for tests, caches and trials.

use std::collections::{BTreeMap, VecDeque};
use std::num::NonZeroU64;
use std::ops::Bound;
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use async_trait::async_trait;
use bytes::Bytes;

use super::bell::Bells;
use super::decide::{Decision, decide, writes};
use super::log::Allowance;
use super::{
    Address, Area, Batch, Capabilities, Cause, Cell, Committed, Condition, Direction, Engine, Link,
    LogBounds, LogEntry, LogSlice, Outcome, Position, Range, Reading, Rejection, Row, Space,
    Stretch, Trail, target_of,
};
use crate::error::{Error, ErrorKind, Result};

/// An engine in memory. It reads snapshots, and forgets everything when it is dropped.
///
/// One lock guards all cells: a read holds it shared from its first cell to its last, and a
/// commit holds it alone from its first check to its last write, so that every answer is of one
/// moment. No call waits for anything else.
#[derive(Debug)]
pub struct Memory {
    capabilities: Capabilities,
    state: RwLock<State>,
    bells: Bells,
    /// One in so many commits that rest on something unchanged is refused.
    conflicts_every: Option<NonZeroU64>,
}

#[derive(Debug, Default)]
struct State {
    spaces: BTreeMap<Space, BTreeMap<Area, BTreeMap<Bytes, Cell>>>,
    logs: BTreeMap<Space, Log>,
    /// How many commits rested on something unchanged, while conflicts are asked for.
    guarded_commits: u64,
    is_closed: bool,
}

/// The log of one space.
#[derive(Debug)]
struct Log {
    oldest: Position,
    entries: VecDeque<Bytes>,
}

impl Default for Log {
    fn default() -> Self {
        Log { oldest: Position::FIRST, entries: VecDeque::new() }
    }
}

impl Log {
    fn bounds(&self) -> LogBounds {
        LogBounds { oldest: self.oldest, next: self.oldest.plus(self.entries.len() as u64) }
    }

    fn append(&mut self, bytes: Bytes) -> Position {
        let position = self.bounds().next;
        self.entries.push_back(bytes);
        position
    }

    fn read(&self, from: Position, mut allowance: Allowance) -> Vec<LogEntry> {
        let skipped = from.number().saturating_sub(self.oldest.number());
        let skipped = usize::try_from(skipped).unwrap_or(usize::MAX);
        let mut entries = Vec::new();
        for (place, bytes) in self.entries.iter().enumerate().skip(skipped) {
            if !allowance.is_left() {
                break;
            }
            allowance.take(bytes.len());
            let position = self.oldest.plus(place as u64);
            entries.push(LogEntry { position, bytes: bytes.clone() });
        }
        entries
    }

    fn trim(&mut self, before: Position, entries_max: usize) {
        let wanted = before.number().saturating_sub(self.oldest.number());
        let wanted = usize::try_from(wanted).unwrap_or(usize::MAX);
        let count = wanted.min(entries_max).min(self.entries.len());
        self.entries.drain(..count);
        self.oldest = self.oldest.plus(count as u64);
    }
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
            persistent: false,
            keeps_log: true,
        };
        let (state, bells) = (RwLock::default(), Bells::default());
        Memory { capabilities, state, bells, conflicts_every: None }
    }

    /// The same store, in which one of so many commits that rest on a record as it was read is
    /// refused, as if another writer had been faster. In memory writers hardly ever meet, so that
    /// a program's tests do not show what it does when they do; with this they show it, and
    /// always at the same commits. With 1 no such commit would ever succeed.
    #[must_use]
    pub fn with_conflicts(self, every: NonZeroU64) -> Self {
        Memory { conflicts_every: Some(every), ..self }
    }

    /// Writes are applied after everything was decided and cannot panic half-way, so that a
    /// poisoned lock still guards whole batches.
    fn read(&self) -> Result<RwLockReadGuard<'_, State>> {
        let state = self.state.read().unwrap_or_else(PoisonError::into_inner);
        if state.is_closed { Err(closed()) } else { Ok(state) }
    }

    fn write(&self) -> Result<RwLockWriteGuard<'_, State>> {
        let state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        if state.is_closed { Err(closed()) } else { Ok(state) }
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

impl State {
    fn cells(&self, space: &Space, area: &Area) -> Option<&BTreeMap<Bytes, Cell>> {
        self.spaces.get(space)?.get(area)
    }

    /// The refusal of a commit that rests on something unchanged, if it is this one's turn. What
    /// Keyloom keeps for itself in the area `~` has its own rules.
    fn conflict(&mut self, batch: &Batch, every: NonZeroU64) -> Option<Rejection> {
        let entry = batch.entries.iter().position(|entry| {
            matches!(entry.condition, Some(Condition::Unchanged(_)))
                && entry.address.area != Area::own()
        })?;
        self.guarded_commits += 1;
        let found = self.cell(&batch.space, &batch.entries[entry].address).cloned();
        (self.guarded_commits % every == 0)
            .then_some(Rejection { cause: Cause::Condition { entry }, found })
    }

    fn log_bounds(&self, space: &Space) -> LogBounds {
        self.logs.get(space).map_or(LogBounds::EMPTY, Log::bounds)
    }

    fn cell(&self, space: &Space, address: &Address) -> Option<&Cell> {
        self.cells(space, &address.area)?.get(&address.key)
    }

    /// The rows of one range, each through `row`.
    fn stretch<R>(
        &self,
        space: &Space,
        range: &Range,
        limit: usize,
        direction: Direction,
        row: impl Fn(Row) -> R,
    ) -> Stretch<R> {
        let cells = self.cells(space, &range.area).filter(|_| limit > 0 && !range.is_empty());
        let Some(cells) = cells else {
            return Stretch::new(Vec::new(), false);
        };
        let start = Bound::Included(&range.start);
        let end = range.end.as_ref().map_or(Bound::Unbounded, Bound::Excluded);
        let found = cells.range::<Bytes, _>((start, end));
        let to_row =
            |(key, cell): (&Bytes, &Cell)| row(Row { key: key.clone(), cell: cell.clone() });
        match direction {
            Direction::Forward => cut_off(found, limit, to_row),
            Direction::Backward => cut_off(found.rev(), limit, to_row),
        }
    }

    fn apply(&mut self, space: &Space, writes: impl Iterator<Item = (Address, Option<Cell>)>) {
        let areas = self.spaces.entry(space.clone()).or_default();
        for (address, cell) in writes {
            match cell {
                Some(cell) => {
                    areas.entry(address.area).or_default().insert(address.key, cell);
                }
                None => {
                    areas.get_mut(&address.area).and_then(|cells| cells.remove(&address.key));
                }
            }
        }
    }
}

/// The first `limit` items as rows, and whether there are more.
fn cut_off<I: Iterator, R>(
    mut items: I,
    limit: usize,
    to_row: impl Fn(I::Item) -> R,
) -> Stretch<R> {
    let rows = items.by_ref().take(limit).map(to_row).collect();
    Stretch::new(rows, items.next().is_some())
}

#[async_trait]
impl Engine for Memory {
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    async fn get(&self, space: &Space, addresses: &[Address]) -> Result<Vec<Option<Cell>>> {
        addresses.iter().try_for_each(Address::check)?;
        let state = self.read()?;
        Ok(addresses.iter().map(|address| state.cell(space, address).cloned()).collect())
    }

    async fn scan(
        &self,
        space: &Space,
        ranges: &[Range],
        limit: usize,
        direction: Direction,
    ) -> Result<Vec<Stretch<Row>>> {
        let state = self.read()?;
        let scan = |range| state.stretch(space, range, limit, direction, |row| row);
        Ok(ranges.iter().map(scan).collect())
    }

    async fn follow(
        &self,
        space: &Space,
        trails: &[Trail<'_>],
        limit: usize,
        direction: Direction,
    ) -> Result<Vec<Stretch<Link>>> {
        let state = self.read()?;
        let follow = |trail: &Trail<'_>| {
            state.stretch(space, &trail.range, limit, direction, |entry| {
                let target = target_of(trail.recipe, &entry);
                let record = target.as_ref().and_then(|target| state.cell(space, target)).cloned();
                Link { entry, target: target.map(|target| target.key), record }
            })
        };
        Ok(trails.iter().map(follow).collect())
    }

    async fn commit(&self, mut batch: Batch) -> Result<Outcome> {
        batch.check(&self.capabilities)?;
        let mut state = self.write()?;
        let space = batch.space.clone();
        let append = batch.append.take();
        let mut decision = decide(&batch, |_, address| Ok(state.cell(&space, address).cloned()))?;
        if let (Decision::Apply(_), Some(every)) = (&decision, self.conflicts_every)
            && let Some(rejection) = state.conflict(&batch, every)
        {
            decision = Decision::Reject(rejection);
        }
        Ok(match decision {
            Decision::Apply(integers) => {
                state.apply(&space, writes(batch, &integers));
                let position =
                    append.map(|bytes| state.logs.entry(space.clone()).or_default().append(bytes));
                drop(state);
                if position.is_some() {
                    self.bells.ring(&space);
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
        let state = self.read()?;
        let bounds = state.log_bounds(space);
        let allowance = Allowance::new(entries_max, bytes_max);
        if allowance.is_left() {
            bounds.check(space, from)?;
        }
        let entries = state.logs.get(space).map(|log| log.read(from, allowance));
        Ok(LogSlice { bounds, entries: entries.unwrap_or_default() })
    }

    async fn trim_log(
        &self,
        space: &Space,
        before: Position,
        entries_max: usize,
    ) -> Result<LogBounds> {
        let mut state = self.write()?;
        state.logs.get_mut(space).into_iter().for_each(|log| log.trim(before, entries_max));
        Ok(state.log_bounds(space))
    }

    async fn wait_log(&self, space: &Space, beyond: Position) -> Result<Position> {
        self.bells
            .wait(space, || {
                let next = self.read()?.log_bounds(space).next;
                Ok((next > beyond).then_some(next))
            })
            .await
    }

    async fn close(&self) -> Result<()> {
        self.state.write().unwrap_or_else(PoisonError::into_inner).is_closed = true;
        self.bells.end();
        Ok(())
    }
}
