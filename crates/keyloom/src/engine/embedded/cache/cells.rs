//! Cells that were read by their key, kept in memory up to a bound.
//!
//! [Small](super::small) cells are kept at once, and have most of the memory: a cell of a hundred
//! bytes costs as much to find in fjall's tables as one of some hundreds, and takes a fifth of its
//! room. [Others](super::large) are kept when they are read again. A cell may have become small or
//! large since it was kept, so that both are told of every change.

use bytes::Bytes;

use super::super::hashed::KeyRef;
use super::clock::Reader;
use super::large::LargeCells;
use super::small::SmallCells;

/// The part of the memory that is for small cells, in thirds.
const SMALL_THIRDS: u64 = 2;

/// Cells by their stored keys. See the [module's](self) description.
pub(super) struct CellCache {
    small: SmallCells,
    large: LargeCells,
}

impl CellCache {
    /// A cache of at most so many bytes; 0 for none.
    pub(super) fn new(bytes_max: u64) -> Self {
        let small_bytes_max = bytes_max / 3 * SMALL_THIRDS;
        CellCache {
            small: SmallCells::new(small_bytes_max),
            large: LargeCells::new(bytes_max - small_bytes_max),
        }
    }

    /// What all cells take.
    pub(super) fn bytes(&self) -> u64 {
        self.small.bytes() + self.large.bytes()
    }

    /// At least what all cells ever took at once.
    pub(super) fn claimed_bytes(&self) -> u64 {
        self.small.bytes() + self.large.claimed_bytes()
    }

    /// The cell as the reader must see it, if it is here.
    pub(super) fn get(&self, key: KeyRef<'_>, reader: Reader<'_>) -> Option<Bytes> {
        self.small.get(key, reader).or_else(|| self.large.get(key, reader))
    }

    /// Keeps what a reader loaded, unless it may be out of date.
    pub(super) fn fill(&self, key: KeyRef<'_>, reader: Reader<'_>, loaded: &[u8]) {
        if self.small.takes(key, loaded) {
            self.small.fill(key, reader, loaded);
        } else {
            self.large.fill(key, reader, loaded);
        }
    }

    /// Brings a cell up to date, after its change was noted and before it is published. Only cells
    /// that are here already are kept: a bulk load must not push out what readers want.
    pub(super) fn change(&self, key: KeyRef<'_>, stored: Option<&[u8]>) {
        self.small.change(key, stored);
        self.large.change(key, stored);
    }
}
