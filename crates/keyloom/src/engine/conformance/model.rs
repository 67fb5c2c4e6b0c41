//! The contract in its simplest form: one sorted map, and one operation after another.
//!
//! It shares no code with any engine, so an engine and the model cannot have the same bug.

use std::collections::BTreeMap;

use bytes::Bytes;

use super::super::{
    Address, Batch, Cause, Cell, Committed, Condition, Content, Direction, Effect, Integers,
    LogEntry, Outcome, Position, Range, Rejection, Row, Space,
};

/// The content of a store.
#[derive(Default)]
pub(super) struct Model {
    cells: BTreeMap<(Space, Address), Cell>,
    logs: BTreeMap<Space, Vec<Bytes>>,
}

impl Model {
    pub(super) fn cell(&self, space: &Space, address: &Address) -> Option<&Cell> {
        self.cells.get(&(space.clone(), address.clone()))
    }

    /// All rows of a range.
    pub(super) fn rows(&self, space: &Space, range: &Range, direction: Direction) -> Vec<Row> {
        let mut rows: Vec<Row> = self
            .cells
            .iter()
            .filter(|((in_space, address), _)| {
                in_space == space && address.area == range.area && range.contains(&address.key)
            })
            .map(|((_, address), cell)| Row { key: address.key.clone(), cell: cell.clone() })
            .collect();
        if direction == Direction::Backward {
            rows.reverse();
        }
        rows
    }

    /// Commits a batch that is within all limits.
    pub(super) fn commit(&mut self, batch: &Batch) -> Outcome {
        match self.first_failure(batch) {
            Some(rejection) => Outcome::Rejected(rejection),
            None => {
                let integers = self.apply(batch);
                let position = batch.append.clone().map(|bytes| {
                    let log = self.logs.entry(batch.space.clone()).or_default();
                    log.push(bytes);
                    numbered(log.len())
                });
                Outcome::Committed(Committed { integers, position })
            }
        }
    }

    /// The whole log of a space.
    pub(super) fn log(&self, space: &Space) -> Vec<LogEntry> {
        let entries = self.logs.get(space).into_iter().flatten();
        let entry = |(place, bytes): (usize, &Bytes)| LogEntry {
            position: numbered(place + 1),
            bytes: bytes.clone(),
        };
        entries.enumerate().map(entry).collect()
    }

    fn first_failure(&self, batch: &Batch) -> Option<Rejection> {
        if let Some(fence) = &batch.fence {
            let found = self.cell(&batch.space, &fence.address);
            if found.map(|cell| cell.stamp) != Some(fence.stamp) {
                return Some(Rejection { cause: Cause::Fence, found: found.cloned() });
            }
        }
        batch.entries.iter().enumerate().find_map(|(place, entry)| {
            let found = self.cell(&batch.space, &entry.address);
            let holds = match entry.condition {
                None => true,
                Some(Condition::Absent) => found.is_none(),
                Some(Condition::Present) => found.is_some(),
                Some(Condition::Unchanged(stamp)) => found.map(|cell| cell.stamp) == Some(stamp),
            };
            let cause = match &entry.effect {
                _ if !holds => Some(Cause::Condition { entry: place }),
                Some(effect @ Effect::Add { .. }) => failed_addition(place, effect, found),
                Some(Effect::Put { .. } | Effect::Delete) | None => None,
            };
            cause.map(|cause| Rejection { cause, found: found.cloned() })
        })
    }

    fn apply(&mut self, batch: &Batch) -> Vec<Integers> {
        let mut sums = Vec::new();
        for entry in &batch.entries {
            let place = (batch.space.clone(), entry.address.clone());
            match &entry.effect {
                None => {}
                Some(Effect::Delete) => {
                    self.cells.remove(&place);
                }
                Some(Effect::Put { stamp, bytes }) => {
                    let content = Content::Bytes(bytes.clone());
                    self.cells.insert(place, Cell { stamp: *stamp, content });
                }
                Some(Effect::Add { stamp, additions }) => {
                    let before = self.cells.get(&place).and_then(Cell::integers);
                    let mut integers = before.cloned().unwrap_or_default();
                    for addition in additions {
                        *integers.entry(addition.name.clone()).or_insert(0) += addition.delta;
                    }
                    sums.push(integers.clone());
                    let content = Content::Integers(integers);
                    self.cells.insert(place, Cell { stamp: *stamp, content });
                }
            }
        }
        sums
    }
}

fn numbered(number: usize) -> Position {
    Position::from_number(number as u64).expect("a number from 1 on")
}

fn failed_addition(entry: usize, effect: &Effect, found: Option<&Cell>) -> Option<Cause> {
    let Effect::Add { additions, .. } = effect else { return None };
    if found.is_some_and(|cell| cell.bytes().is_some()) {
        return Some(Cause::NotIntegers { entry });
    }
    additions.iter().find_map(|addition| {
        let before = found.and_then(Cell::integers).and_then(|all| all.get(&addition.name));
        // 128 bits, so that the model's own sum cannot overflow.
        let sum = i128::from(*before.unwrap_or(&0)) + i128::from(addition.delta);
        let name = addition.name.clone();
        if i64::try_from(sum).is_err() {
            Some(Cause::Overflow { entry, name })
        } else if addition.min.is_some_and(|min| sum < min.into())
            || addition.max.is_some_and(|max| sum > max.into())
        {
            Some(Cause::Bound { entry, name })
        } else {
            None
        }
    })
}
