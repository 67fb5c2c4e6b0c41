//! One entry of the log as bytes.
//!
//! | part | bytes |
//! | --- | --- |
//! | format | `01` |
//! | time | number: milliseconds since 1970 |
//! | acting user | text; empty for none |
//! | stamps | count, then 24 bytes each: every stamp of the entry once |
//! | cells | count, then each: area (text), key (text), `00` for a deletion, or `01`, stamp and content (text) for a put, or `02`, stamp and integers for an addition |
//! | changes | count, then each: collection (text); the place of its record among the cells, plus 1, or 0 and area and key where the batch did not write the record; the stamp before, plus 1, or 0; integers that were added to the record's counters |
//!
//! Numbers, texts and integers are encoded as in `wire.rs`. A stamp is encoded as its place among
//! the stamps.

use bytes::Bytes;

use crate::engine::{Address, Effect, Integers};
use crate::record::{Version, now_ms};

pub(super) const FORMAT: u8 = 1;
pub(super) const DELETED: u8 = 0;
pub(super) const PUT: u8 = 1;
pub(super) const ADDED: u8 = 2;

/// Who changed something, and when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Author {
    /// Milliseconds since 1970.
    pub(crate) at: u64,
    pub(crate) by: Option<String>,
}

impl Author {
    /// The program itself, now.
    pub(crate) fn program() -> Self {
        Author { at: now_ms(), by: None }
    }
}

/// The part of a log entry that is not in the batch's cells.
#[derive(Clone, Debug)]
pub(crate) struct Note {
    pub(crate) author: Author,
    pub(crate) changes: Vec<Told>,
}

impl Note {
    /// The note for a change that the program itself makes to a space, without changing a record.
    pub(crate) fn of_program() -> Self {
        Note { author: Author::program(), changes: Vec::new() }
    }
}

/// A record that a batch changes. Its new value is among the batch's cells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Told {
    pub(crate) collection: String,
    pub(crate) address: Address,
    /// The version before; `None` if the record did not exist.
    pub(crate) before: Option<Version>,
    /// The increments of the record's counters.
    pub(crate) increments: Integers,
}

/// The state of a record after the change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Became {
    Written {
        version: Version,
        text: Bytes,
    },
    Deleted,
    /// Only its counters changed.
    Untouched,
}

/// An entry as it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) author: Author,
    /// The cells that the batch wrote. Additions have no bounds, since these were checked at the
    /// commit.
    pub(crate) cells: Vec<(Address, Effect)>,
    pub(crate) changes: Vec<(Told, Became)>,
}
