//! A record and one key of one index, and whether they fit.
//!
//! | the record has the key | at the key | verdict |
//! | --- | --- | --- |
//! | yes | the value that the record gives | sound |
//! | yes | nothing | missing |
//! | yes | an entry of another record | missing, and held by that one |
//! | yes | an entry of this record with another value, or with another version where it carries the record | altered |
//! | no, it is not there | an entry of this record | dangling |
//! | no, though it is there | an entry of this record | misplaced |
//! | no | nothing, or an entry of another record | sound |
//! | either | something that names no record | unreadable |

use std::sync::Arc;

use bytes::Bytes;

use crate::engine::{Address, Cell};
use crate::error::Result;
use crate::record::read_record;
use crate::schema::{Collection, Holds, Index, record_key_of};
use crate::write::{Image, entry_value, stored_keys_of};

/// A record and one key of one index.
#[derive(Clone, Debug)]
pub(super) struct Pair {
    pub(super) collection: Arc<Collection>,
    pub(super) index: Arc<Index>,
    /// The record's key.
    pub(super) record: Bytes,
    /// The entry's key.
    pub(super) entry: Bytes,
}

/// What the two cells of a pair hold.
#[derive(Clone, Debug)]
pub(super) struct PairCells {
    pub(super) record: Option<Cell>,
    pub(super) entry: Option<Cell>,
}

/// Whether the two fit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Sound,
    Missing {
        /// What the entry should hold.
        value: Bytes,
        /// The record that holds the key instead, if one does.
        holder: Option<Bytes>,
    },
    Dangling,
    Misplaced,
    /// It holds another value, or carries the record with another version.
    Altered {
        /// What the entry should hold.
        value: Bytes,
    },
    Unreadable,
}

impl Pair {
    pub(super) fn record_address(&self) -> Address {
        Address::new(self.collection.area.clone(), self.record.clone())
    }

    pub(super) fn entry_address(&self) -> Address {
        Address::new(self.index.area.clone(), self.entry.clone())
    }

    /// The pair of the same key with another record.
    pub(super) fn with_record(&self, record: Bytes) -> Self {
        Pair { record, ..self.clone() }
    }

    /// Whether the two cells fit.
    pub(super) fn judge(&self, pair_cells: &PairCells) -> Verdict {
        let entry = pair_cells.entry.as_ref();
        let owner = entry.and_then(|cell| owner(&self.collection, &self.index, &self.entry, cell));
        let is_own = owner.as_ref() == Some(&self.record);
        let Ok(expected) = self.expected(pair_cells.record.as_ref()) else {
            // A record that cannot be read is reported by itself, and its entries are let be.
            return Verdict::Sound;
        };
        match (expected, entry) {
            (None, None) => Verdict::Sound,
            (Some(value), None) => Verdict::Missing { value, holder: None },
            (Some(value), Some(cell)) if cell.bytes() == Some(&value) && self.tells(pair_cells) => {
                Verdict::Sound
            }
            (_, Some(_)) if owner.is_none() => Verdict::Unreadable,
            (Some(value), Some(_)) if is_own => Verdict::Altered { value },
            (Some(value), Some(_)) => Verdict::Missing { value, holder: owner },
            (None, Some(_)) if !is_own => Verdict::Sound,
            (None, Some(_)) if pair_cells.record.is_none() => Verdict::Dangling,
            (None, Some(_)) => Verdict::Misplaced,
        }
    }

    /// Whether the entry's stamp is right. Those that carry the record are read instead of it, and
    /// their stamp is given out as its version; that of any other entry means nothing.
    fn tells(&self, pair_cells: &PairCells) -> bool {
        let stamp = |cell: &Option<Cell>| cell.as_ref().map(|cell| cell.stamp);
        !self.carries_record() || stamp(&pair_cells.entry) == stamp(&pair_cells.record)
    }

    /// Whether the index's entries are read instead of the record.
    pub(super) fn carries_record(&self) -> bool {
        self.index.holds == Holds::Record
    }

    /// What the record gives as the entry's value; `None` when it does not have the key.
    fn expected(&self, cell: Option<&Cell>) -> Result<Option<Bytes>, String> {
        let Some(cell) = cell else { return Ok(None) };
        let (value, text) = read_record(&self.collection, &self.record, cell)?;
        let keys = stored_keys_of(&self.collection, &self.index, &value)
            .map_err(|error| error.to_string())?;
        let image = Image { key: &self.record, value: &value, text: &text };
        Ok(keys.contains(&self.entry).then(|| entry_value(&self.index, image)))
    }
}

/// The key of the record that an entry names: by its key and value, or by its key alone when the
/// value cannot be read.
pub(super) fn owner(
    collection: &Collection,
    index: &Index,
    key: &[u8],
    cell: &Cell,
) -> Option<Bytes> {
    let by_value = cell.bytes().and_then(|value| record_key_of(collection, index, key, value));
    by_value.or_else(|| {
        let told = index.key.decode(key)?;
        let values = collection.key.segments().map(|wanted| {
            let mut both = index.key.segments().zip(&told);
            both.find(|(segment, _)| segment.path == wanted.path).map(|(_, value)| value)
        });
        collection.key.encode(&values.collect::<Option<Vec<_>>>()?).ok()
    })
}
