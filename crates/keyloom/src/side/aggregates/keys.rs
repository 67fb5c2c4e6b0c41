//! The keys of an aggregate: cells of integers `n` and, for a sum, `sum`, and marks, which hold
//! nothing: the record is counted. A mark exists for any record, however long its key is.

use bytes::Bytes;
use serde_json::Value;

use crate::engine::{Address, KEY_BYTES_MAX, Range};
use crate::error::{ErrorKind, Result};
use crate::own::{Digest, OwnKey, OwnKind, OwnRange};
use crate::schema::{Aggregate, Generation};

/// The room that a key keeps for any generation and any number of a cell, so that a group that
/// fits once fits for ever.
const NUMBERS_BYTES_MAX: usize = 10 + 1 + 3;

impl Aggregate {
    /// Refuses a group for which there is no room in a key.
    pub(crate) fn check_room(&self, group: &[u8]) -> Result<()> {
        let words = OwnKind::AggregateCell.words().len();
        let names = words + self.collection.len() + 1 + self.name.len() + 1;
        let room = KEY_BYTES_MAX - names - NUMBERS_BYTES_MAX;
        if group.len() <= room {
            return Ok(());
        }
        Err(self.about(ErrorKind::LimitExceeded, "the values of a group are too long for a key"))
            .map_err(|error| error.with("bytes", group.len()).with("bytes at most", room))
    }

    /// The cell of a group with this number.
    pub(crate) fn cell(&self, generation: u32, group: &[u8], number: u16) -> Address {
        let Aggregate { collection, name, .. } = self;
        OwnKey::AggregateCell { collection, name, generation, group, number }.address()
    }

    /// All cells of the groups that begin so.
    pub(crate) fn cells(&self, generation: u32, groups: &[u8]) -> Range {
        let Aggregate { collection, name, .. } = self;
        OwnRange::Groups { collection, name, generation, groups }.range()
    }

    /// The group that a key of this generation's cells belongs to, and its values.
    pub(crate) fn read_cell(
        &self,
        generation: Generation,
        key: &Bytes,
    ) -> Option<(Bytes, Vec<Value>)> {
        let OwnKey::AggregateCell { group, number, .. } = OwnKey::decode(key)? else { return None };
        let group = key.slice_ref(group);
        let values = self.template.decode(&group)?;
        (number < generation.cells).then_some((group, values))
    }

    /// Where it is marked that a record is counted.
    pub(crate) fn mark(&self, generation: u32, record: &[u8]) -> Address {
        let Aggregate { collection, name, .. } = self;
        let record = Digest::of(&[record]);
        OwnKey::AggregateMark { collection, name, generation, record }.address()
    }

    /// The cells or marks of every generation.
    pub(crate) fn all(&self, kind: OwnKind) -> Range {
        let Aggregate { collection, name, .. } = self;
        OwnRange::Aggregate { kind, collection, name }.range()
    }

    /// The cells or marks of one generation.
    pub(crate) fn generation(&self, kind: OwnKind, generation: u32) -> Range {
        let Aggregate { collection, name, .. } = self;
        OwnRange::Generation { kind, collection, name, generation }.range()
    }
}
