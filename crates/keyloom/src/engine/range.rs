//! Ranges of keys within an area, and what a scan of one gives back.

use std::fmt;

use bytes::Bytes;

use super::address::{Area, ShowKey};
use super::cell::Cell;
use super::recipe::Recipe;

/// The order in which a scan gives keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// From the lowest key up.
    Forward,
    /// From the highest key down.
    Backward,
}

impl Direction {
    /// The other direction.
    #[must_use]
    pub fn reversed(self) -> Self {
        match self {
            Direction::Forward => Direction::Backward,
            Direction::Backward => Direction::Forward,
        }
    }
}

/// The keys of an area from `start` on and below `end`, by bytes.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Range {
    /// The area.
    pub area: Area,
    /// The lowest key that belongs to the range; empty for the area's first.
    pub start: Bytes,
    /// The lowest key that no longer belongs to it; `None` for none. A range whose end is not
    /// above its start is empty.
    pub end: Option<Bytes>,
}

impl Range {
    /// Every key of the area.
    pub fn all(area: Area) -> Self {
        Range { area, start: Bytes::new(), end: None }
    }

    /// Every key that begins with `prefix`.
    pub fn prefix(area: Area, prefix: impl Into<Bytes>) -> Self {
        let start: Bytes = prefix.into();
        Range { area, end: after_prefix(&start), start }
    }

    /// Whether `key` belongs to the range.
    pub fn contains(&self, key: &[u8]) -> bool {
        key >= &self.start[..] && self.end.as_ref().is_none_or(|end| key < &end[..])
    }

    /// Whether no key can belong to the range.
    pub fn is_empty(&self) -> bool {
        self.end.as_ref().is_some_and(|end| end <= &self.start)
    }

    /// What is left of the range once `key` was given in that direction.
    #[must_use]
    pub fn after(&self, key: &[u8], direction: Direction) -> Self {
        match direction {
            Direction::Forward => Range { start: successor(key), ..self.clone() },
            Direction::Backward => Range { end: Some(Bytes::copy_from_slice(key)), ..self.clone() },
        }
    }
}

impl fmt::Debug for Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}{}..", self.area, ShowKey(&self.start))?;
        self.end.as_ref().map_or(Ok(()), |end| write!(f, "{}", ShowKey(end)))
    }
}

/// The lowest key above `key`.
pub fn successor(key: &[u8]) -> Bytes {
    let mut next = Vec::with_capacity(key.len() + 1);
    next.extend_from_slice(key);
    next.push(0);
    next.into()
}

/// The lowest key above every key that begins with `prefix`; `None` when there is none, as for
/// a prefix of 0xff bytes only.
pub fn after_prefix(prefix: &[u8]) -> Option<Bytes> {
    let last = prefix.iter().rposition(|&byte| byte < 0xff)?;
    let mut end = prefix[..=last].to_vec();
    end[last] += 1;
    Some(end.into())
}

/// What a call gives back for one of its ranges.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stretch<R> {
    /// In the order that was asked for, at most as many as the limit. An engine may stop earlier.
    pub rows: Vec<R>,
    /// Whether the range may hold more after the last row. `false` is certain. When it is `true`
    /// there is at least one row to continue from.
    pub more: bool,
}

/// One key of a scan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// The key.
    pub key: Bytes,
    /// What is there.
    pub cell: Cell,
}

/// A range of index entries, and how each of them names its record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trail<'r> {
    /// The entries.
    pub range: Range,
    /// From an entry to its record. A union of indexes has one for each of its ranges.
    pub recipe: &'r Recipe,
}

/// One index entry of a `follow`, with the record that it names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// The index entry.
    pub entry: Row,
    /// The key that the recipe gave; `None` when the entry does not fit the recipe.
    pub target: Option<Bytes>,
    /// What is at that key; `None` when nothing is.
    pub record: Option<Cell>,
}
