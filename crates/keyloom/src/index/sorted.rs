//! The keys of a chunk that is verified, by what there is to be done about them.

use std::sync::Arc;

use bytes::Bytes;

use super::pair::{Pair, PairCells, Verdict, owner};
use super::suspect::{Suspect, complete_indexes};
use crate::engine::{Address, Cell, Row};
use crate::record::{misfits, read_record};
use crate::schema::{Collection, Index};
use crate::side::Kind;
use crate::space::Loaded;
use crate::write::{Image, entry_value, stored_keys_of, stored_refusal_of};

/// The keys of a chunk, by what there is to be done about them.
#[derive(Default)]
pub(super) struct Sorted {
    /// Pairs of which one cell was read.
    pub(super) halves: Vec<Half>,
    /// What looks wrong already.
    pub(super) suspects: Vec<Suspect>,
    /// Cells beside records, without their other witnesses.
    pub(super) beside: Vec<(&'static dyn Kind, Row)>,
    pub(super) records: u64,
    pub(super) entries: u64,
}

/// A pair of which one cell was read.
pub(super) enum Half {
    /// The record was, and should have this entry.
    Record { pair: Pair, value: Bytes },
    /// The entry was.
    Entry { pair: Pair, cell: Cell },
}

impl Sorted {
    pub(super) fn add_record(&mut self, loaded: &Loaded, collection: &Arc<Collection>, row: Row) {
        let unfit = |key| Suspect::Record { collection: collection.clone(), key };
        let Ok((value, text)) = read_record(collection, &row.key, &row.cell) else {
            self.suspects.push(unfit(row.key));
            return;
        };
        let image = Image { key: &row.key, value: &value, text: &text };
        let mut fits = misfits(collection, &value).is_empty();
        for index in complete_indexes(loaded, collection) {
            fits &= stored_refusal_of(collection, index, &value).is_none();
            let Ok(keys) = stored_keys_of(collection, index, &value) else { continue };
            self.halves.extend(keys.into_iter().map(|entry| Half::Record {
                pair: Pair {
                    collection: collection.clone(),
                    index: index.clone(),
                    record: row.key.clone(),
                    entry,
                },
                value: entry_value(index, image),
            }));
        }
        if !fits {
            self.suspects.push(unfit(row.key));
        }
    }

    pub(super) fn add_entry(&mut self, collection: &Arc<Collection>, index: &Arc<Index>, row: Row) {
        let (collection, index) = (collection.clone(), index.clone());
        match owner(&collection, &index, &row.key, &row.cell) {
            Some(record) => self.halves.push(Half::Entry {
                pair: Pair { collection, index, record, entry: row.key },
                cell: row.cell,
            }),
            None => self.suspects.push(Suspect::Nameless { collection, index, key: row.key }),
        }
    }
}

impl Half {
    pub(super) fn other_address(&self) -> Address {
        match self {
            Half::Record { pair, .. } => pair.entry_address(),
            Half::Entry { pair, .. } => pair.record_address(),
        }
    }

    pub(super) fn suspect(self, other: Option<Cell>) -> Option<Suspect> {
        match self {
            Half::Record { pair, value } => {
                let fits = other.as_ref().and_then(Cell::bytes) == Some(&value);
                (!fits).then_some(Suspect::Unmatched(pair))
            }
            Half::Entry { pair, cell } => {
                let verdict = pair.judge(&PairCells { record: other, entry: Some(cell) });
                (verdict != Verdict::Sound).then_some(Suspect::Stale(pair))
            }
        }
    }
}
