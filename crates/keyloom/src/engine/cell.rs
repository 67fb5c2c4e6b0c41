//! Cells: what an engine stores at an address.

use std::collections::BTreeMap;
use std::fmt;

use bytes::Bytes;

/// Marks one state of a cell. The writer chooses it, and never uses the same stamp for two
/// different states of a cell. The engine only stores and compares it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Stamp(pub [u8; Stamp::BYTES]);

impl Stamp {
    /// The width of a stamp.
    pub const BYTES: usize = 24;
}

impl fmt::Debug for Stamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for byte in self.0 {
            write!(f, "{byte:02x}")?;
        }
        Ok(())
    }
}

/// Named integers, in the order of their names.
pub type Integers = BTreeMap<String, i64>;

/// The content of a cell. Its kind never changes silently: adding to bytes is rejected, while a put
/// replaces either kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    /// Bytes exactly as the layout defines them, with nothing around them.
    Bytes(Bytes),
    /// Counters.
    Integers(Integers),
}

/// One cell: its content, and a stamp as the engine's metadata.
#[derive(Clone, PartialEq, Eq)]
pub struct Cell {
    /// The stamp of the write that gave the cell its current state.
    pub stamp: Stamp,
    /// The content.
    pub content: Content,
}

impl Cell {
    /// The bytes, or `None` for a cell of integers.
    pub fn bytes(&self) -> Option<&Bytes> {
        match &self.content {
            Content::Bytes(bytes) => Some(bytes),
            Content::Integers(_) => None,
        }
    }

    /// The integers, or `None` for a cell of bytes.
    pub fn integers(&self) -> Option<&Integers> {
        match &self.content {
            Content::Bytes(_) => None,
            Content::Integers(integers) => Some(integers),
        }
    }
}

impl fmt::Debug for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.content {
            Content::Bytes(bytes) => write!(f, "{bytes:?} @{:?}", self.stamp),
            Content::Integers(integers) => write!(f, "{integers:?} @{:?}", self.stamp),
        }
    }
}
