//! A declared count or sum, and every key that belongs to it: cells of integers `n` and, for a sum,
//! `sum`, and marks, which hold nothing: the record is counted.
//!
//! Each value of a group is written as a segment of a key and ends with `:`; texts and enums are
//! sorted texts, so that groups lie in the order of their values. A mark exists for any record,
//! however long its key is.

use bytes::Bytes;
use serde_json::Value;

use super::catalog::Generation;
use super::condition::Condition;
use crate::engine::{Address, KEY_BYTES_MAX, Range};
use crate::error::{Error, ErrorKind, Result};
use crate::key::{KeyRefusal, Path, Template};
use crate::own::{Digest, OwnKey, OwnKind, OwnRange};

/// How many records a group has.
pub(crate) const COUNT: &str = "n";

/// The sum of a group.
pub(crate) const SUM: &str = "sum";

/// The room that a key keeps for any generation and any number of a cell, so that a group that
/// fits once fits for ever.
const NUMBERS_BYTES_MAX: usize = 10 + 1 + 3;

/// The largest number that can be summed, up or down. The difference of any two still fits into
/// 64 bits, so that whatever was added can be changed and taken away again.
pub(crate) const SUMMED_MAX: i64 = (1 << 62) - 1;

/// A count or a sum, grouped by fields of the records.
#[derive(Clone, Debug)]
pub(crate) struct Aggregate {
    pub(crate) collection: String,
    pub(crate) name: String,
    /// The field that is summed; `None` for a count.
    pub(crate) summed: Option<Path>,
    /// The fields that make a group, in order.
    pub(crate) group: Vec<Path>,
    /// The values of a group as bytes, with a `:` before and behind each.
    pub(crate) template: Template,
    /// Which records are counted; all when there is none.
    pub(crate) condition: Option<Condition>,
}

impl Aggregate {
    /// The group of these values, one for each of its fields.
    pub(crate) fn group_of(&self, values: &[&Value]) -> Result<Bytes, KeyRefusal> {
        self.template.encode(values)
    }

    /// What the groups with these first values begin with.
    pub(crate) fn groups_with(&self, values: &[&Value]) -> Result<Bytes, KeyRefusal> {
        self.template.prefix(values)
    }

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

    /// The values of a group.
    pub(crate) fn values_of(&self, group: &[u8]) -> Option<Vec<Value>> {
        self.template.decode(group)
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

    /// An error about this aggregate.
    pub(crate) fn about(&self, kind: ErrorKind, message: &'static str) -> Error {
        Error::new(kind, message).with("collection", &self.collection).with("aggregate", &self.name)
    }
}
