//! The log of a space: the entries that batches append, in the order of their commits.
//!
//! Positions begin at 1 and grow by one with each batch that appends. A rejected batch takes no
//! position. No position is ever given twice, even if everything before it was trimmed.

use std::fmt;
use std::str::FromStr;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::address::Space;
use super::capabilities::Capabilities;
use crate::error::{Error, ErrorKind, Result};

/// The largest log entry, in bytes. An entry describes everything that its batch wrote, and a batch
/// contains both. So this is half of what the smallest engine with a log accepts.
pub const LOG_ENTRY_BYTES_MAX: usize = 8 * 1024 * 1024;

/// A position in the log of a space. Later entries have greater positions.
///
/// Programs can store its text and pass it back, for instance as a browser's `Last-Event-ID`. It is
/// also serialized as that text, since programs whose numbers are all doubles would round it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Position(u64);

impl Position {
    /// The position of the first entry that a space ever logs.
    pub const FIRST: Position = Position(1);

    /// The position with this number; `None` for 0.
    pub fn from_number(number: u64) -> Option<Self> {
        (number > 0).then_some(Position(number))
    }

    /// The number of entries that the space had logged, up to and including this position.
    pub fn number(self) -> u64 {
        self.0
    }

    /// The position right after this one: where to continue after handling this one.
    #[must_use]
    pub fn next(self) -> Self {
        self.plus(1)
    }

    /// Overflow is no concern: a space would have to log a million entries a second for 500,000
    /// years.
    pub(crate) fn plus(self, count: u64) -> Self {
        Position(self.0.saturating_add(count))
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for Position {
    type Err = Error;

    /// Parses exactly what `Display` writes: no sign, no spaces, no leading zero.
    fn from_str(text: &str) -> Result<Self> {
        let number = text.parse().ok().and_then(Position::from_number);
        number.filter(|position| position.to_string() == text).ok_or_else(|| {
            Error::new(ErrorKind::InvalidArgument, "a position is a number from 1 on, in digits")
                .with("position", format_args!("{text:?}"))
        })
    }
}

impl TryFrom<String> for Position {
    type Error = Error;

    fn try_from(text: String) -> Result<Self> {
        text.parse()
    }
}

impl From<Position> for String {
    fn from(position: Position) -> Self {
        position.to_string()
    }
}

/// Which part of a log is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogBounds {
    /// The oldest position that is kept; equal to `next` if no entry is.
    pub oldest: Position,
    /// The position that the next entry will get.
    pub next: Position,
}

impl LogBounds {
    /// The bounds of a log that never had an entry.
    pub(crate) const EMPTY: LogBounds =
        LogBounds { oldest: Position::FIRST, next: Position::FIRST };

    /// Refuses a position at which entries cannot be added. Allowed are the next position and, in a
    /// log without entries, positions beyond it.
    pub(crate) fn check_extension(&self, space: &Space, at: Position) -> Result<()> {
        let is_bare = self.oldest == self.next;
        if at == self.next || (is_bare && at > self.next) {
            return Ok(());
        }
        Err(Error::new(
            ErrorKind::InvalidArgument,
            "entries can be added at the log's next position, or beyond it while it keeps none",
        )
        .with("space", space.name())
        .with("position", at)
        .with("oldest kept", self.oldest)
        .with("next position", self.next))
    }

    /// Refuses a position that is no longer kept.
    pub(crate) fn check(&self, space: &Space, from: Position) -> Result<()> {
        if from >= self.oldest {
            return Ok(());
        }
        Err(Error::new(
            ErrorKind::LogTrimmed,
            "the log does not go back to this position any more; what was logged there is gone",
        )
        .with("space", space.name())
        .with("position", from)
        .with("oldest kept", self.oldest)
        .with("advice", "read the records as they are now, and go on from the log's next position"))
    }
}

/// One entry of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogEntry {
    /// Its position.
    pub position: Position,
    /// The bytes that the batch appended.
    pub bytes: Bytes,
}

/// Entries of a log, in order and without a gap, all from one snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogSlice {
    /// The part of the log that the snapshot has.
    pub bounds: LogBounds,
    /// The entries, in order.
    pub entries: Vec<LogEntry>,
}

/// A limit on one answer of the log: the answer ends with the entry that reaches either number.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Allowance {
    entries_left: usize,
    bytes_left: usize,
}

impl Allowance {
    pub(crate) fn new(entries_max: usize, bytes_max: usize) -> Self {
        Allowance { entries_left: entries_max, bytes_left: bytes_max.max(1) }
    }

    /// Whether there is room for another entry, of any size.
    pub(crate) fn is_left(&self) -> bool {
        self.entries_left > 0 && self.bytes_left > 0
    }

    pub(crate) fn take(&mut self, bytes: usize) {
        self.entries_left -= 1;
        self.bytes_left = self.bytes_left.saturating_sub(bytes);
    }
}

/// Refuses entries that are too large for any log, alone or together. Engines call it first in
/// [`extend_log`](super::Engine::extend_log).
pub(crate) fn check_entries(capabilities: &Capabilities, entries: &[Bytes]) -> Result<()> {
    entries.iter().try_for_each(|entry| check_entry(capabilities, entry))?;
    let bytes: usize = entries.iter().map(Bytes::len).sum();
    if bytes <= capabilities.batch_bytes_max {
        return Ok(());
    }
    Err(Error::new(ErrorKind::LimitExceeded, "the entries of the log are too large for one call")
        .with("bytes", bytes)
        .with("bytes at most", capabilities.batch_bytes_max)
        .with("engine", capabilities.engine))
}

/// Refuses an entry on an engine without a log, and one that is too large.
pub(crate) fn check_entry(capabilities: &Capabilities, entry: &Bytes) -> Result<()> {
    if !capabilities.keeps_log {
        return Err(no_log(capabilities.engine));
    }
    if entry.len() > LOG_ENTRY_BYTES_MAX {
        return Err(Error::new(
            ErrorKind::LimitExceeded,
            "an entry of the log has at most 8388608 bytes (8 MiB); change fewer records at once",
        )
        .with("bytes", entry.len()));
    }
    Ok(())
}

/// The error for every use of a log on an engine without one.
pub(crate) fn no_log(engine: &'static str) -> Error {
    Error::new(ErrorKind::Unsupported, "this engine keeps no log")
        .with("engine", engine)
        .with("advice", "use an engine that orders commits: memory or embedded")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

    use super::*;

    #[test]
    fn a_position_reads_what_it_writes_and_nothing_else() {
        for number in [1, 2, 10, u64::MAX] {
            let position = Position::from_number(number).unwrap();
            assert_eq!(position.to_string().parse::<Position>().unwrap(), position);
        }
        for text in ["", "0", "01", "+1", "-1", " 1", "1 ", "1.0", "18446744073709551616", "x"] {
            let error = text.parse::<Position>().unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{text:?}");
        }
        assert_eq!(Position::from_number(0), None);
    }

    #[test]
    fn an_answer_ends_with_the_entry_that_fills_it() {
        let taken = |entries_max, bytes_max, sizes: &[usize]| {
            let mut allowance = Allowance::new(entries_max, bytes_max);
            let fits = |size: &&usize| {
                let is_left = allowance.is_left();
                if is_left {
                    allowance.take(**size);
                }
                is_left
            };
            sizes.iter().take_while(fits).count()
        };
        assert_eq!(taken(2, 100, &[1, 1, 1]), 2);
        assert_eq!(taken(9, 100, &[60, 60, 60]), 2);
        assert_eq!(taken(9, 0, &[60, 60]), 1, "one entry always fits");
        assert_eq!(taken(0, 100, &[1]), 0);
    }
}
