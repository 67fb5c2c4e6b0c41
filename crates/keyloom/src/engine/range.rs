//! Ranges of keys within an area, and the results of scanning them.

use std::fmt;

use bytes::Bytes;

use super::address::{Area, ShowKey};
use super::cell::Cell;
use super::recipe::Recipe;
use super::witness::Witness;

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

/// The keys of an area from `start` up to, but without, `end`, in byte order.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Range {
    /// The area.
    pub area: Area,
    /// The lowest key in the range; empty for the area's first key.
    pub start: Bytes,
    /// The lowest key after the range; `None` if it is unbounded. A range whose end is not above
    /// its start is empty.
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

    /// The only key that can belong to the range, if there is just one.
    pub fn only_key(&self) -> Option<&Bytes> {
        let (last, rest) = self.end.as_ref()?.split_last()?;
        (*last == 0 && rest == &self.start[..]).then_some(&self.start)
    }

    /// Whether no key can belong to the range.
    pub fn is_empty(&self) -> bool {
        self.end.as_ref().is_some_and(|end| end <= &self.start)
    }

    /// The rest of the range after `key`, in this direction.
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

/// The lowest key above every key that begins with `prefix`; `None` if there is none, as for a
/// prefix of only 0xff bytes.
pub fn after_prefix(prefix: &[u8]) -> Option<Bytes> {
    let last = prefix.iter().rposition(|&byte| byte < 0xff)?;
    let mut end = prefix[..=last].to_vec();
    end[last] += 1;
    Some(end.into())
}

/// The result of a call for one of its ranges.
#[derive(Clone, Debug)]
pub struct Stretch<R> {
    /// The rows in the requested order, at most as many as the limit. An engine may stop earlier.
    pub rows: Vec<R>,
    /// Whether the range may have more rows. `false` is certain. If it is `true`, there is at least
    /// one row to continue from.
    pub more: bool,
    /// A witness that a later call would give the same rows (and, for `follow`, the same records),
    /// if the engine has one.
    pub witness: Option<Witness>,
}

impl<R> Stretch<R> {
    /// Rows without a witness.
    pub fn new(rows: Vec<R>, more: bool) -> Self {
        Stretch { rows, more, witness: None }
    }
}

/// Compares the rows, and not the witness.
impl<R: PartialEq> PartialEq for Stretch<R> {
    fn eq(&self, other: &Self) -> bool {
        self.rows == other.rows && self.more == other.more
    }
}

impl<R: Eq> Eq for Stretch<R> {}

/// One key of a scan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// The key.
    pub key: Bytes,
    /// The cell at the key.
    pub cell: Cell,
}

/// A range of index entries, and the recipe that leads from each of them to its record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trail<'r> {
    /// The entries.
    pub range: Range,
    /// The recipe. In a union of indexes, each range has its own.
    pub recipe: &'r Recipe,
}

/// One index entry of a `follow`, with the record that it leads to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// The index entry.
    pub entry: Row,
    /// The key that the recipe gave; `None` if the entry does not fit the recipe.
    pub target: Option<Bytes>,
    /// The cell at that key; `None` if it is absent.
    pub record: Option<Cell>,
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Keys of few different bytes, so that they are often equal, or prefixes of one another.
    fn key() -> impl Strategy<Value = Vec<u8>> {
        proptest::collection::vec(
            proptest::sample::select(vec![0x00, 0x01, b'a', 0xfe, 0xff]),
            0..5,
        )
    }

    fn range() -> impl Strategy<Value = Range> {
        (key(), proptest::option::of(key())).prop_map(|(start, end)| Range {
            area: Area::default_area(),
            start: start.into(),
            end: end.map(Bytes::from),
        })
    }

    proptest! {
        #[test]
        fn a_prefix_holds_what_begins_with_it(prefix in key(), key in key()) {
            let range = Range::prefix(Area::default_area(), prefix.clone());
            prop_assert_eq!(range.contains(&key), key.starts_with(&prefix));
        }

        #[test]
        fn nothing_lies_between_a_key_and_its_successor(low in key(), other in key()) {
            let next = successor(&low);
            prop_assert!(low[..] < next[..]);
            prop_assert_eq!(other > low, other[..] >= next[..]);
        }

        #[test]
        fn after_a_key_comes_what_is_beyond_it(range in range(), given in key(), other in key()) {
            let forward = range.after(&given, Direction::Forward);
            let backward = range.after(&given, Direction::Backward);
            // A range is continued only from one of its own keys.
            if range.contains(&given) {
                let within = range.contains(&other);
                prop_assert_eq!(forward.contains(&other), within && other > given);
                prop_assert_eq!(backward.contains(&other), within && other < given);
            }
        }

        #[test]
        fn an_empty_range_holds_nothing_and_another_holds_its_start(
            range in range(),
            key in key(),
        ) {
            prop_assert_eq!(range.is_empty(), !range.contains(&range.start));
            prop_assert!(!range.is_empty() || !range.contains(&key));
        }
    }

    #[test]
    fn ranges_are_shown_as_text() {
        assert_eq!(format!("{:?}", Range::prefix(Area::own(), "a:")), "[~]a:..a;");
        assert_eq!(format!("{:?}", Range::all(Area::default_area())), "[]..");
        assert_eq!(Direction::Forward.reversed(), Direction::Backward);
        assert_eq!(Direction::Backward.reversed(), Direction::Forward);
    }
}
