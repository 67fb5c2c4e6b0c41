//! The log of each space, which lies beside the cells and is written with them.
//!
//! | what | key | value |
//! | --- | --- | --- |
//! | an entry | `00`, space, `00`, its position (8 bytes, highest first) | the entry's bytes as they are |
//! | where the log begins | `00`, space, `00`, eight `00` | the oldest position kept (8 bytes, highest first); absent as long as nothing was trimmed |
//!
//! Names of spaces hold no `00` and are not empty, so that no cell has such a key. Entries stand
//! without a gap from where the log begins, and the next position is the one after the last of
//! them, or where the log begins when there is none. So no position is given twice, although
//! nothing counts them on disk but the entries themselves.

use std::collections::HashMap;

use bytes::Bytes;

use super::super::log::Allowance;
use super::super::{LogBounds, LogEntry, LogSlice, Position, ShowKey, Space, successor};
use super::fjall::Rows;
use super::view::Moment;
use crate::error::{Error, ErrorKind, Result};

const POSITION_BYTES: usize = size_of::<u64>();

/// The place of the number 0, which no entry has.
const BEGINNING: u64 = 0;

fn stored_key(space: &Space, number: u64) -> Bytes {
    let name = space.name().as_bytes();
    let mut key = Vec::with_capacity(2 + name.len() + POSITION_BYTES);
    key.push(0);
    key.extend_from_slice(name);
    key.push(0);
    key.extend_from_slice(&number.to_be_bytes());
    key.into()
}

/// The position at the end of a key, or in the value of the beginning.
fn read_position(stored_key: &[u8], bytes: &[u8]) -> Result<Position> {
    let number = bytes.last_chunk().map(|number| u64::from_be_bytes(*number));
    number.and_then(Position::from_number).ok_or_else(|| {
        Error::new(ErrorKind::Corrupt, "a position of the log cannot be understood")
            .with("stored key", ShowKey(stored_key))
    })
}

/// What is kept at a moment.
pub(super) fn bounds(moment: &Moment<'_>, space: &Space) -> Result<LogBounds> {
    let oldest = oldest(moment, space)?;
    Ok(LogBounds { oldest, next: next(moment, space, oldest)? })
}

fn oldest(moment: &Moment<'_>, space: &Space) -> Result<Position> {
    let key = stored_key(space, BEGINNING);
    match moment.stored().get(&key)? {
        Some(value) => read_position(&key, &value),
        None => Ok(Position::FIRST),
    }
}

fn next(moment: &Moment<'_>, space: &Space, oldest: Position) -> Result<Position> {
    match from(moment, space, oldest).next_back().transpose()? {
        None => Ok(oldest),
        Some((key, _)) => Ok(read_position(&key, &key)?.next()),
    }
}

/// The stored entries from a position on.
fn from(moment: &Moment<'_>, space: &Space, position: Position) -> Rows {
    let last = stored_key(space, u64::MAX);
    moment.stored().range(&stored_key(space, position.number()), &successor(&last))
}

/// Entries from a position on.
pub(super) fn read(
    moment: &Moment<'_>,
    space: &Space,
    position: Position,
    mut allowance: Allowance,
) -> Result<LogSlice> {
    let bounds = bounds(moment, space)?;
    let mut entries = Vec::new();
    if !allowance.is_left() {
        return Ok(LogSlice { bounds, entries });
    }
    bounds.check(space, position)?;
    let mut found = from(moment, space, position);
    while allowance.is_left() {
        let Some((key, bytes)) = found.next().transpose()? else { break };
        allowance.take(bytes.len());
        entries.push(LogEntry { position: read_position(&key, &key)?, bytes });
    }
    Ok(LogSlice { bounds, entries })
}

/// The changes that trim a log, and what is kept after them.
pub(super) fn trim(
    moment: &Moment<'_>,
    space: &Space,
    before: Position,
    entries_max: usize,
) -> Result<(LogBounds, Changes)> {
    let LogBounds { oldest, next } = bounds(moment, space)?;
    let end = before.min(next).min(oldest.plus(entries_max as u64));
    if end <= oldest {
        return Ok((LogBounds { oldest, next }, Vec::new()));
    }
    let removed = (oldest.number()..end.number()).map(|number| (stored_key(space, number), None));
    let beginning = Bytes::copy_from_slice(&end.number().to_be_bytes());
    let changes = removed.chain([(stored_key(space, BEGINNING), Some(beginning))]).collect();
    Ok((LogBounds { oldest: end, next }, changes))
}

/// The changes that add entries to a log from a position on, and what is kept after them.
pub(super) fn extend(
    moment: &Moment<'_>,
    space: &Space,
    at: Position,
    entries: &[Bytes],
) -> Result<(LogBounds, Changes)> {
    let bounds = bounds(moment, space)?;
    bounds.check_extension(space, at)?;
    let mut changes = Changes::new();
    let mut oldest = bounds.oldest;
    if at > bounds.next {
        oldest = at;
        let beginning = Bytes::copy_from_slice(&at.number().to_be_bytes());
        changes.push((stored_key(space, BEGINNING), Some(beginning)));
    }
    let added = (at.number()..).zip(entries);
    changes.extend(added.map(|(number, entry)| (stored_key(space, number), Some(entry.clone()))));
    Ok((LogBounds { oldest, next: at.plus(entries.len() as u64) }, changes))
}

/// What is written: keys with their values, or `None` where they are removed.
pub(super) type Changes = Vec<(Bytes, Option<Bytes>)>;

/// The next position of every space that was appended to since the store was opened. Only the
/// commit thread has it, since nobody else gives positions.
#[derive(Debug, Default)]
pub(super) struct Positions(HashMap<Space, Position>);

impl Positions {
    /// Has the next append look where the log ends.
    pub(super) fn forget(&mut self, space: &Space) {
        self.0.remove(space);
    }
}

/// What the batches of a group append.
pub(super) struct Appends<'p> {
    positions: &'p mut Positions,
    entries: Vec<(Space, Position, Bytes)>,
}

impl<'p> Appends<'p> {
    pub(super) fn new(positions: &'p mut Positions) -> Self {
        Appends { positions, entries: Vec::new() }
    }

    /// Gives an entry its position. It must not be called for a batch that may yet be rejected.
    pub(super) fn add(
        &mut self,
        moment: &Moment<'_>,
        space: &Space,
        bytes: Bytes,
    ) -> Result<Position> {
        let known = &mut self.positions.0;
        let position = match known.get(space) {
            Some(position) => *position,
            None => bounds(moment, space)?.next,
        };
        known.insert(space.clone(), position.next());
        self.entries.push((space.clone(), position, bytes));
        Ok(position)
    }

    /// What is to be written, and whom to wake when it shows.
    pub(super) fn finish(self) -> (Changes, Vec<Space>) {
        let mut spaces: Vec<Space> = self.entries.iter().map(|(space, ..)| space.clone()).collect();
        spaces.sort_unstable();
        spaces.dedup();
        let change = |(space, position, bytes): (Space, Position, Bytes)| {
            (stored_key(&space, position.number()), Some(bytes))
        };
        (self.entries.into_iter().map(change).collect(), spaces)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

    use super::*;

    #[test]
    fn examples_of_the_table() {
        let acme = Space::new("acme").unwrap();
        assert_eq!(stored_key(&acme, 258), &b"\0acme\0\0\0\0\0\0\0\x01\x02"[..]);
        assert_eq!(stored_key(&acme, BEGINNING), &b"\0acme\0\0\0\0\0\0\0\0\0"[..]);
        let position = read_position(b"k", &258u64.to_be_bytes()).unwrap();
        assert_eq!(position.number(), 258);
        for damaged in [&b""[..], b"1234567", &[0; 8]] {
            assert_eq!(read_position(b"k", damaged).unwrap_err().kind(), ErrorKind::Corrupt);
        }
    }
}
