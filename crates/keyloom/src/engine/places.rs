//! Finds the place of each address among the entries of a batch.

use std::hash::BuildHasher;

use hashbrown::{DefaultHashBuilder, HashTable};

use super::address::Address;
use super::batch::Entry;

/// See the [module's](self) description. It stores only places, so that no address is copied.
///
/// Writes of single records have few addresses; comparing these is faster than hashing them.
#[derive(Default)]
pub(crate) struct Places {
    hasher: DefaultHashBuilder,
    table: HashTable<usize>,
}

impl Places {
    const FEW: usize = 16;

    /// A table with room for this many entries.
    pub(crate) fn with_capacity(entries: usize) -> Self {
        let room = if entries > Places::FEW { entries } else { 0 };
        Places { table: HashTable::with_capacity(room), ..Places::default() }
    }

    /// The place of the entry with this address, among the noted entries.
    pub(crate) fn find(&self, entries: &[Entry], address: &Address) -> Option<usize> {
        match entries.len() {
            0..=Places::FEW => entries.iter().position(|entry| entry.address == *address),
            _ => {
                let is_there = |&place: &usize| entries[place].address == *address;
                self.table.find(self.hasher.hash_one(address), is_there).copied()
            }
        }
    }

    /// Notes the last entry. All entries before it must be noted already.
    pub(crate) fn note_last(&mut self, entries: &[Entry]) {
        let unnoted = match entries.len() {
            0..=Places::FEW => return,
            count if self.table.is_empty() => 0..count,
            count => count - 1..count,
        };
        let Places { hasher, table } = self;
        let hash = |place: usize| hasher.hash_one(&entries[place].address);
        for place in unnoted {
            table.insert_unique(hash(place), place, |&place| hash(place));
        }
    }
}
