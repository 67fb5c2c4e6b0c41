//! The content of a store in memory, as values that are cheap to copy as a whole.
//!
//! A state and its copies share the cells of each area, and the entries of each log, until one of
//! them changes. The first write then copies the one map that it changes. Only the map is copied,
//! not keys and contents. That takes time in proportion to the map's size, once for each map and
//! copy.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;
use std::sync::Arc;

use bytes::Bytes;

use super::super::log::Allowance;
use super::super::{
    Address, Area, Cell, Direction, Link, LogBounds, LogEntry, LogSlice, Position, Range, Row,
    Space, Stretch, Trail, target_of,
};
use crate::error::Result;

type Cells = BTreeMap<Bytes, Cell>;

/// The content of a store.
#[derive(Clone, Debug, Default)]
pub(super) struct State {
    spaces: BTreeMap<Space, BTreeMap<Area, Arc<Cells>>>,
    logs: BTreeMap<Space, Arc<Log>>,
}

/// The log of one space.
#[derive(Clone, Debug)]
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

impl State {
    fn cells(&self, space: &Space, area: &Area) -> Option<&Cells> {
        self.spaces.get(space)?.get(area).map(|cells| &**cells)
    }

    pub(super) fn cell(&self, space: &Space, address: &Address) -> Option<&Cell> {
        self.cells(space, &address.area)?.get(&address.key)
    }

    pub(super) fn get(&self, space: &Space, addresses: &[Address]) -> Vec<Option<Cell>> {
        addresses.iter().map(|address| self.cell(space, address).cloned()).collect()
    }

    pub(super) fn scan(
        &self,
        space: &Space,
        ranges: &[Range],
        limit: usize,
        direction: Direction,
    ) -> Vec<Stretch<Row>> {
        ranges.iter().map(|range| self.stretch(space, range, limit, direction, |row| row)).collect()
    }

    pub(super) fn follow(
        &self,
        space: &Space,
        trails: &[Trail<'_>],
        limit: usize,
        direction: Direction,
    ) -> Vec<Stretch<Link>> {
        let follow = |trail: &Trail<'_>| {
            self.stretch(space, &trail.range, limit, direction, |entry| {
                let target = target_of(trail.recipe, &entry);
                let record = target.as_ref().and_then(|target| self.cell(space, target)).cloned();
                Link { entry, target: target.map(|target| target.key), record }
            })
        };
        trails.iter().map(follow).collect()
    }

    pub(super) fn areas(&self, space: &Space) -> Vec<Area> {
        let areas = self.spaces.get(space).into_iter().flatten();
        areas.filter(|(_, cells)| !cells.is_empty()).map(|(area, _)| area.clone()).collect()
    }

    /// The rows of one range, each converted by `row`.
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

    pub(super) fn apply(
        &mut self,
        space: &Space,
        writes: impl Iterator<Item = (Address, Option<Cell>)>,
    ) {
        let areas = self.spaces.entry(space.clone()).or_default();
        for (address, cell) in writes {
            match cell {
                Some(cell) => {
                    let cells = areas.entry(address.area).or_default();
                    Arc::make_mut(cells).insert(address.key, cell);
                }
                None => {
                    let cells = areas.get_mut(&address.area);
                    // Deleting an absent cell must not copy the map.
                    let cells = cells.filter(|cells| cells.contains_key(&address.key));
                    cells.and_then(|cells| Arc::make_mut(cells).remove(&address.key));
                }
            }
        }
    }

    pub(super) fn log_bounds(&self, space: &Space) -> LogBounds {
        self.logs.get(space).map_or(LogBounds::EMPTY, |log| log.bounds())
    }

    pub(super) fn read_log(
        &self,
        space: &Space,
        from: Position,
        entries_max: usize,
        bytes_max: usize,
    ) -> Result<LogSlice> {
        let bounds = self.log_bounds(space);
        let allowance = Allowance::new(entries_max, bytes_max);
        if allowance.is_left() {
            bounds.check(space, from)?;
        }
        let entries = self.logs.get(space).map(|log| log.read(from, allowance));
        Ok(LogSlice { bounds, entries: entries.unwrap_or_default() })
    }

    pub(super) fn append(&mut self, space: &Space, bytes: Bytes) -> Position {
        self.log_mut(space).append(bytes)
    }

    pub(super) fn extend_log(
        &mut self,
        space: &Space,
        at: Position,
        entries: &[Bytes],
    ) -> Result<()> {
        let bounds = self.log_bounds(space);
        bounds.check_extension(space, at)?;
        let log = self.log_mut(space);
        if at > bounds.next {
            log.oldest = at;
        }
        log.entries.extend(entries.iter().cloned());
        Ok(())
    }

    pub(super) fn trim_log(&mut self, space: &Space, before: Position, entries_max: usize) {
        if let Some(log) = self.logs.get_mut(space) {
            Arc::make_mut(log).trim(before, entries_max);
        }
    }

    fn log_mut(&mut self, space: &Space) -> &mut Log {
        Arc::make_mut(self.logs.entry(space.clone()).or_default())
    }
}

/// The first `limit` items as rows, and whether more follow.
fn cut_off<I: Iterator, R>(
    mut items: I,
    limit: usize,
    to_row: impl Fn(I::Item) -> R,
) -> Stretch<R> {
    let rows = items.by_ref().take(limit).map(to_row).collect();
    Stretch::new(rows, items.next().is_some())
}
