//! The nearest records of a ring, up to the page's number of records and bytes.

use std::collections::BTreeMap;

use super::rank::Rank;
use crate::query::page::weight;
use crate::record::Document;

/// How much may be kept: one record more than the page has room for shows that more follow.
#[derive(Clone, Copy, Debug)]
pub(super) struct Room {
    pub(super) records: usize,
    pub(super) bytes: usize,
    /// Whether the page is still empty. Then one record is kept, however large it is.
    pub(super) is_empty: bool,
}

/// See the [module's](self) description.
pub(super) struct Nearest {
    room: Room,
    found: BTreeMap<Rank, Document>,
    bytes: usize,
    /// The nearest record that was left out because of its bytes. Nothing after it is kept, or the
    /// page would have a gap.
    cut: Option<Rank>,
}

impl Nearest {
    pub(super) fn new(room: Room) -> Self {
        Nearest { room, found: BTreeMap::new(), bytes: 0, cut: None }
    }

    /// Adds a record, and drops the farthest one if there is no room for all.
    pub(super) fn take_in(&mut self, rank: Rank, document: Document) {
        if self.cut.as_ref().is_some_and(|cut| *cut <= rank) {
            return;
        }
        self.bytes += weight(&document);
        // Another cell already brought the same record.
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

    /// The records that were kept, nearest first, and whether one was left out because of its
    /// bytes.
    pub(super) fn into_found(self) -> (BTreeMap<Rank, Document>, bool) {
        (self.found, self.cut.is_some())
    }
}
