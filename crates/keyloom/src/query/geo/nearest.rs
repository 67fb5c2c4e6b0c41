//! The nearest records of a ring, as many as a page takes, and as many bytes.

use std::collections::BTreeMap;

use super::rank::Rank;
use crate::query::page::weight;
use crate::record::Document;

/// How much may be kept: one record more than there is room for tells that there is more.
#[derive(Clone, Copy, Debug)]
pub(super) struct Room {
    pub(super) records: usize,
    pub(super) bytes: usize,
    /// Whether the page has nothing yet, so that one record is kept whatever it has.
    pub(super) is_empty: bool,
}

/// See the [module's](self) description.
pub(super) struct Nearest {
    room: Room,
    found: BTreeMap<Rank, Document>,
    bytes: usize,
    /// The nearest that was left out for its bytes. Nothing behind it is kept: the page would have
    /// a gap.
    cut: Option<Rank>,
}

impl Nearest {
    pub(super) fn new(room: Room) -> Self {
        Nearest { room, found: BTreeMap::new(), bytes: 0, cut: None }
    }

    /// Takes a record in, and leaves the farthest out when there is no room for all.
    pub(super) fn take_in(&mut self, rank: Rank, document: Document) {
        if self.cut.as_ref().is_some_and(|cut| *cut <= rank) {
            return;
        }
        self.bytes += weight(&document);
        // One that came through another cell already is the same.
        if let Some(same) = self.found.insert(rank, document) {
            self.bytes -= weight(&same);
        }
        if self.found.len() > self.room.records + 1 {
            self.leave_out();
        }
        let least = usize::from(self.room.is_empty);
        while self.bytes > self.room.bytes && self.found.len() > least {
            self.cut = self.leave_out();
        }
    }

    fn leave_out(&mut self) -> Option<Rank> {
        let (rank, document) = self.found.pop_last()?;
        self.bytes -= weight(&document);
        Some(rank)
    }

    /// What was kept, the nearest first, and whether something was left out for its bytes.
    pub(super) fn into_found(self) -> (BTreeMap<Rank, Document>, bool) {
        (self.found, self.cut.is_some())
    }
}
