//! Writes down what a scan gives, as long as it is short enough to be kept.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8};

use bytes::Bytes;

use super::super::clock::Clock;
use super::list::{Head, KeptList, RowPlace, Trace};
use crate::engine::embedded::layout::StoredRange;
use crate::engine::{Direction, Recipe, successor};

/// What is longer is read for another purpose than a list, and hardly a second time.
pub(super) const BLOCK_BYTES_MAX: usize = 64 * 1024;

/// See the [module's](self) description.
pub(in crate::engine::embedded) struct Recorder {
    block: Vec<u8>,
    limit: usize,
    places: Vec<RowPlace>,
    is_followed: bool,
    beyond: Option<Bytes>,
}

/// What an entry led to.
#[derive(Clone, Copy, Default)]
pub(in crate::engine::embedded) struct Record<'r> {
    pub(in crate::engine::embedded) target: &'r [u8],
    pub(in crate::engine::embedded) stored: &'r [u8],
    /// The hash of its stored key.
    pub(in crate::engine::embedded) hash: u64,
}

impl Recorder {
    /// To write down so many rows at most.
    pub(super) fn new(limit: usize) -> Self {
        Recorder {
            block: Vec::new(),
            limit,
            places: Vec::with_capacity(limit),
            is_followed: true,
            beyond: None,
        }
    }

    /// Adds the next row with what it led to.
    pub(in crate::engine::embedded) fn add(
        &mut self,
        stored_key: &[u8],
        stored: &[u8],
        record: Option<Record<'_>>,
    ) {
        if self.is_too_long() {
            return;
        }
        self.is_followed &= record.is_some();
        let Record { target, stored: stored_record, hash } = record.unwrap_or_default();
        if self.places.is_empty() {
            // Rows of a list are about as long as one another.
            let row_bytes = stored_key.len() + stored.len() + target.len() + stored_record.len();
            self.block.reserve((row_bytes * self.limit).min(BLOCK_BYTES_MAX));
        }
        let mut end_of = |part: &[u8]| {
            self.block.extend_from_slice(part);
            // The block is hardly longer than what is kept at most.
            self.block.len() as u32
        };
        self.places.push(RowPlace {
            key: end_of(stored_key),
            cell: end_of(stored),
            target: end_of(target),
            record: end_of(stored_record),
            // The clock looks at fewer bits.
            record_hash: hash as u32,
        });
    }

    /// Notes the key after the last row, which is not part of the answer.
    pub(in crate::engine::embedded) fn stop_before(&mut self, stored_key: &[u8]) {
        self.beyond = Some(Bytes::copy_from_slice(stored_key));
    }

    fn is_too_long(&self) -> bool {
        self.block.len() > BLOCK_BYTES_MAX
    }

    /// What was written down; `None` when it is too long, or when the range holds no key at all.
    pub(super) fn finish(
        self,
        range: StoredRange,
        direction: Direction,
        recipe: Option<&Recipe>,
        since: u64,
        clock: &Arc<Clock>,
    ) -> Option<KeptList> {
        if self.is_too_long() || range.start >= range.end {
            return None;
        }
        let recipe = recipe.filter(|_| self.is_followed);
        let record_hashes = match recipe {
            Some(_) => self.places.iter().map(|place| place.record_hash).collect(),
            None => Box::default(),
        };
        let copy = |key: &[u8]| Bytes::copy_from_slice(key);
        let extent = match (&self.beyond, direction) {
            (None, _) => (copy(&range.start), copy(&range.end)),
            (Some(beyond), Direction::Forward) => (copy(&range.start), successor(beyond)),
            (Some(beyond), Direction::Backward) => (beyond.clone(), copy(&range.end)),
        };
        let trace = Trace { is_kept: AtomicBool::new(true), record_hashes, clock: clock.clone() };
        let head = Head {
            range,
            direction,
            since,
            recipe: recipe.cloned(),
            places: self.places.into_boxed_slice(),
            beyond: self.beyond,
            extent,
            trace: Arc::new(trace),
            reads: AtomicU8::new(0),
            resists_packing: AtomicBool::new(false),
        };
        Some(KeptList::new(head, self.block))
    }
}
