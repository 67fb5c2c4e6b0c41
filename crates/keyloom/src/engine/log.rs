//! The log of a space: what batches append, in the order in which they were committed.
//!
//! Positions begin at 1 and go up by one with each batch that appends. A rejected batch takes
//! none, and a position is never given twice, also when everything before it was trimmed.

use std::fmt;
use std::str::FromStr;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::address::Space;
use super::capabilities::Capabilities;
use crate::error::{Error, ErrorKind, Result};

/// The largest entry of a log, in bytes. An entry tells of all that its batch wrote, and a batch
/// holds both, so that this is half of what the smallest engine with a log takes.
pub const LOG_ENTRY_BYTES_MAX: usize = 8 * 1024 * 1024;

/// A place in the log of a space. Later entries have greater positions.
///
/// Its text is for programs to keep and to hand back, such as the `Last-Event-ID` of a browser.
/// It is serialized as that text, too: programs whose numbers are all doubles would round it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Position(u64);

impl Position {
    /// The position of the first entry that a space ever logs.
    pub const FIRST: Position = Position(1);

    /// The position with this number; there is none for 0.
    pub fn from_number(number: u64) -> Option<Self> {
        (number > 0).then_some(Position(number))
    }

    /// How many entries the space had logged with the one at this position.
    pub fn number(self) -> u64 {
        self.0
    }

    /// The position right after this one: where to go on when this one was dealt with.
    #[must_use]
    pub fn next(self) -> Self {
        self.plus(1)
    }

    /// A space would have to log a million entries a second for 500,000 years to get to the end.
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

    /// Reads what `Display` writes, and nothing else: no sign, no spaces, no leading zero.
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
    /// The oldest position that is kept; equal to `next` when nothing is.
    pub oldest: Position,
    /// The position that the next entry will get.
    pub next: Position,
}

impl LogBounds {
    /// The bounds of a log that nothing was ever appended to.
    pub(crate) const EMPTY: LogBounds =
        LogBounds { oldest: Position::FIRST, next: Position::FIRST };

    /// Refuses a position that entries cannot be added at: any but the next one or, in a log without
    /// entries, one beyond it.
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

    /// Refuses a position before the oldest that is kept.
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
    /// Where it stands.
    pub position: Position,
    /// What the batch appended.
    pub bytes: Bytes,
}

/// Entries of a log, one after the other and without a gap, all of one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogSlice {
    /// What was kept at that moment.
    pub bounds: LogBounds,
    /// The entries, in order.
    pub entries: Vec<LogEntry>,
}

/// How much of a log one answer gives: it ends at the entry with which either is reached.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Allowance {
    entries_left: usize,
    bytes_left: usize,
}

impl Allowance {
    pub(crate) fn new(entries_max: usize, bytes_max: usize) -> Self {
        Allowance { entries_left: entries_max, bytes_left: bytes_max.max(1) }
    }

    /// Whether there is room for another entry, however large.
    pub(crate) fn is_left(&self) -> bool {
        self.entries_left > 0 && self.bytes_left > 0
    }

    pub(crate) fn take(&mut self, bytes: usize) {
        self.entries_left -= 1;
        self.bytes_left = self.bytes_left.saturating_sub(bytes);
    }
}

/// Refuses entries that no log takes, alone or together. Engines call it first in
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

/// The error for whatever has to do with a log, on an engine without one.
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
