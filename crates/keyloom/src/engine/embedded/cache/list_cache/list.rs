//! One list in memory: the first rows of a range, with what they led to.
//!
//! All bytes of a list lie in one piece, row by row, and a table says where each part of a row ends.
//! Where memory is short the piece is *packed*, which makes three lists of one: rows of a list have
//! much in common. To unpack one takes some microseconds, and to read it again some hundred.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

use bytes::Bytes;
use lz4_flex::block::{compress, decompress};

use super::super::clock::Clock;
use crate::engine::embedded::layout::StoredRange;
use crate::engine::{Direction, Evidence, Recipe, Witness};

/// What a list weighs besides its bytes: itself and its place in the map, rounded up so that the
/// bound holds.
const OVERHEAD_BYTES: usize = 320;

/// The first rows of one range.
#[derive(Debug)]
pub(in crate::engine::embedded) struct KeptList {
    pub(super) head: Arc<Head>,
    /// Everything as it is stored, row by row.
    block: Bytes,
}

/// The same in less memory.
#[derive(Debug)]
pub(super) struct PackedList {
    pub(super) head: Arc<Head>,
    packed: Box<[u8]>,
}

/// What is known of a list, whether it is packed or not.
#[derive(Debug)]
pub(super) struct Head {
    pub(super) range: StoredRange,
    pub(super) direction: Direction,
    /// The first commit whose readers may have it.
    pub(super) since: u64,
    /// How its entries were followed; `None` when they were not, or when one led nowhere.
    pub(super) recipe: Option<Recipe>,
    pub(super) places: Box<[RowPlace]>,
    /// The stored key after the last row, if the range has one.
    pub(super) beyond: Option<Bytes>,
    /// The lowest key of the extent, and the lowest above it.
    pub(super) extent: (Bytes, Bytes),
    pub(super) trace: Arc<Trace>,
    /// How often it was read since the hand last came by, up to a bound.
    pub(super) reads: AtomicU8,
    /// Whether packing it was tried in vain.
    pub(super) resists_packing: AtomicBool,
}

/// Where the parts of a row end in the block: its key, its cell, and of what it led to the key
/// (not as it is stored, but within its area) and the cell.
#[derive(Clone, Copy, Debug)]
pub(super) struct RowPlace {
    pub(super) key: u32,
    pub(super) cell: u32,
    pub(super) target: u32,
    pub(super) record: u32,
    /// The part of the record's hash that the clock knows it by.
    pub(super) record_hash: u32,
}

/// One row that was kept. All parts share one block.
pub(in crate::engine::embedded) struct KeptRow {
    pub(in crate::engine::embedded) stored_key: Bytes,
    pub(in crate::engine::embedded) stored: Bytes,
    /// The key that the entry led to.
    pub(in crate::engine::embedded) target: Bytes,
    /// What was there; `None` when that may have changed.
    pub(in crate::engine::embedded) stored_record: Option<Bytes>,
}

impl KeptList {
    /// A list as it was read.
    pub(super) fn new(head: Head, block: Vec<u8>) -> Self {
        KeptList { head: Arc::new(head), block: block.into_boxed_slice().into() }
    }

    /// The same in less memory; `None` if it would hardly be less.
    pub(super) fn pack(&self) -> Option<PackedList> {
        let packed = compress(&self.block);
        let is_worth_it = packed.len() * 4 < self.block.len() * 3;
        let head = || Arc::clone(&self.head);
        is_worth_it.then(|| PackedList { head: head(), packed: packed.into_boxed_slice() })
    }

    /// The stored keys and cells, in the order of the scan.
    pub(in crate::engine::embedded) fn rows(&self) -> impl Iterator<Item = (Bytes, Bytes)> {
        self.starts_and_places()
            .map(|(start, place)| (self.part(start, place.key), self.part(place.key, place.cell)))
    }

    /// The key that follows the first `limit` rows.
    pub(in crate::engine::embedded) fn key_beyond(&self, limit: usize) -> Option<Bytes> {
        let inside = self.starts_and_places().nth(limit);
        let inside = inside.map(|(start, place)| self.part(start, place.key));
        inside.or_else(|| self.head.beyond.clone())
    }

    /// The first `limit` rows and what they led to; `None` when it was not followed in this way, or
    /// when more than a quarter of the records may have changed: it is then better read and kept
    /// anew.
    pub(in crate::engine::embedded) fn followed(
        &self,
        limit: usize,
        recipe: &Recipe,
    ) -> Option<impl ExactSizeIterator<Item = KeptRow>> {
        let Head { places, trace, since, .. } = &*self.head;
        if self.head.recipe.as_ref() != Some(recipe) {
            return None;
        }
        let places = &places[..limit.min(places.len())];
        let is_unchanged =
            |place: &RowPlace| trace.clock.is_unchanged_since(*since, u64::from(place.record_hash));
        let unchanged: Vec<bool> = places.iter().map(is_unchanged).collect();
        let changed = unchanged.iter().filter(|is_unchanged| !**is_unchanged).count();
        if changed * 4 > places.len() {
            return None;
        }
        let mut start = 0;
        Some(places.iter().zip(unchanged).map(move |(place, is_unchanged)| {
            let row = KeptRow {
                stored_key: self.part(start, place.key),
                stored: self.part(place.key, place.cell),
                target: self.part(place.cell, place.target),
                stored_record: is_unchanged.then(|| self.part(place.target, place.record)),
            };
            start = place.record;
            row
        }))
    }

    /// Evidence for the rows as a reader of that moment was given them.
    pub(in crate::engine::embedded) fn witness(&self, commit: u64) -> Witness {
        Witness::new(self.head.trace.clone(), commit)
    }

    /// The same for the records too, if all rows led to some.
    pub(in crate::engine::embedded) fn witness_followed(&self, commit: u64) -> Option<Witness> {
        self.head.recipe.as_ref().map(|_| self.witness(commit))
    }

    pub(super) fn weight(&self) -> usize {
        self.head.weight() + self.block.len()
    }

    fn starts_and_places(&self) -> impl Iterator<Item = (u32, &RowPlace)> {
        let places = &self.head.places;
        let starts = std::iter::once(0).chain(places.iter().map(|place| place.record));
        starts.zip(places)
    }

    fn part(&self, start: u32, end: u32) -> Bytes {
        self.block.slice(start as usize..end as usize)
    }
}

impl PackedList {
    /// The list as it was before. We packed it ourselves, so that there is no error to tell of: what
    /// cannot be unpacked is not there.
    pub(super) fn unpack(&self) -> Option<KeptList> {
        let bytes = self.head.places.last().map_or(0, |last| last.record as usize);
        let block = decompress(&self.packed, bytes).ok()?;
        Some(KeptList { head: Arc::clone(&self.head), block: block.into() })
    }

    pub(super) fn weight(&self) -> usize {
        self.head.weight() + self.packed.len()
    }
}

impl Head {
    pub(super) fn serves(
        &self,
        range: &StoredRange,
        limit: usize,
        direction: Direction,
        commit: u64,
    ) -> bool {
        self.since <= commit
            && self.direction == direction
            && self.range == *range
            && (self.places.len() >= limit || self.beyond.is_none())
    }

    fn weight(&self) -> usize {
        let Head { range, extent, beyond, places, .. } = self;
        let keys = [&extent.0, &extent.1, beyond.as_ref().unwrap_or(&extent.0)];
        range.start.len()
            + range.end.len()
            + keys.iter().map(|key| key.len()).sum::<usize>()
            + places.len() * (size_of::<RowPlace>() + size_of::<u32>())
            + OVERHEAD_BYTES
    }

    /// Counts a reading, and says how many there were since the hand came by. Only some of them
    /// write, so that a list which all readers want stays in the caches of all their processors.
    pub(super) fn note_reading(&self, most: u8) -> u8 {
        let reads = self.reads.load(Ordering::Relaxed);
        if reads >= most {
            return reads;
        }
        self.reads.store(reads + 1, Ordering::Relaxed);
        reads + 1
    }
}

/// What outlives a list as long as somebody holds a witness of it.
#[derive(Debug)]
pub(super) struct Trace {
    /// Whether the list is kept, so that no commit changed a key of its extent.
    pub(super) is_kept: AtomicBool,
    /// The records that were kept with it, as the clock knows them.
    pub(super) record_hashes: Box<[u32]>,
    pub(super) clock: Arc<Clock>,
}

impl Evidence for Trace {
    fn stands(&self, moment: u64) -> bool {
        let is_unchanged = |hash: &u32| self.clock.is_unchanged_since(moment, u64::from(*hash));
        self.is_kept.load(Ordering::Acquire) && self.record_hashes.iter().all(is_unchanged)
    }
}
