//! A declared count or sum, and every key that belongs to it. All lie in Keyloom's own area.
//!
//! | key | holds | example |
//! | --- | --- | --- |
//! | `aggregate:` collection `:` name `:` generation `:` group, then `:` cell | integers `n` and, for a sum, `sum` | `aggregate:run:seconds:1:nightly!:done!:0` |
//! | `aggregate-mark:` collection `:` name `:` generation `:` hash | nothing: the record is counted | `aggregate-mark:run:seconds:2:9f86d0…` |
//!
//! Each value of a group is written as a segment of a key and ends with `:`. Texts and enums are
//! written as sorted texts, so groups lie in the order of their values. The hash is the SHA-256 of
//! the record's key, in hex, so even a record with a very long key can have a mark.

use bytes::Bytes;
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::catalog::Generation;
use super::condition::Condition;
use crate::engine::{Address, Area, KEY_BYTES_MAX, Range};
use crate::error::{Error, ErrorKind, Result};
use crate::key::{KeyRefusal, Path, Template};

/// The prefix of the keys of all cells.
pub(crate) const CELLS: &str = "aggregate:";

/// The prefix of the keys of all marks.
pub(crate) const MARKS: &str = "aggregate-mark:";

/// The integer with the number of a group's records.
pub(crate) const COUNT: &str = "n";

/// The integer with the sum of a group.
pub(crate) const SUM: &str = "sum";

/// The space that a key reserves for any generation and any cell number, so that a group that fits
/// once always fits.
const NUMBERS_BYTES_MAX: usize = 10 + 1 + 3;

/// The largest number that can be summed, positive or negative. The difference of two such numbers
/// still fits into 64 bits, so every summed value can be changed and removed again.
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
    /// The values of a group as bytes, with a `:` before and after each.
    pub(crate) template: Template,
    /// Which records are counted; all records if there is no condition.
    pub(crate) condition: Option<Condition>,
}

impl Aggregate {
    /// The group of these values, one for each of its fields.
    pub(crate) fn group_of(&self, values: &[&Value]) -> Result<Bytes, KeyRefusal> {
        self.template.encode(values)
    }

    /// The common prefix of the groups with these first values.
    pub(crate) fn groups_with(&self, values: &[&Value]) -> Result<Bytes, KeyRefusal> {
        self.template.prefix(values)
    }

    /// Refuses a group that is too long for a key.
    pub(crate) fn check_room(&self, group: &[u8]) -> Result<()> {
        let names = CELLS.len() + self.collection.len() + 1 + self.name.len() + 1;
        let room = KEY_BYTES_MAX - names - NUMBERS_BYTES_MAX;
        if group.len() <= room {
            return Ok(());
        }
        Err(self.about(ErrorKind::LimitExceeded, "the values of a group are too long for a key"))
            .map_err(|error| error.with("bytes", group.len()).with("bytes at most", room))
    }

    /// The cell with this number of a group.
    pub(crate) fn cell(&self, generation: u32, group: &[u8], number: u16) -> Address {
        let mut key = self.generation_key(CELLS, generation);
        key.extend_from_slice(group);
        key.extend_from_slice(number.to_string().as_bytes());
        Address::new(Area::own(), key)
    }

    /// All cells of the groups with this prefix.
    pub(crate) fn cells(&self, generation: u32, groups: &[u8]) -> Range {
        let mut key = self.generation_key(CELLS, generation);
        key.extend_from_slice(groups);
        Range::prefix(Area::own(), key)
    }

    /// The group that a key among this generation's cells belongs to, and its values.
    pub(crate) fn read_cell(
        &self,
        generation: Generation,
        key: &Bytes,
    ) -> Option<(Bytes, Vec<Value>)> {
        let start = self.generation_key(CELLS, generation.number).len();
        let rest = key.get(start..)?;
        let end = start + rest.iter().rposition(|&byte| byte == b':')? + 1;
        let text = std::str::from_utf8(&key[end..]).ok()?;
        let number = text.parse::<u16>().ok().filter(|number| number.to_string() == text)?;
        let group = key.slice(start..end);
        let values = self.template.decode(&group)?;
        (number < generation.cells).then_some((group, values))
    }

    /// The values of a group.
    pub(crate) fn values_of(&self, group: &[u8]) -> Option<Vec<Value>> {
        self.template.decode(group)
    }

    /// The address of the mark that says that a record is counted.
    pub(crate) fn mark(&self, generation: u32, record: &[u8]) -> Address {
        let mut key = self.generation_key(MARKS, generation);
        key.push(b':');
        for byte in Sha256::digest(record) {
            key.extend_from_slice(format!("{byte:02x}").as_bytes());
        }
        Address::new(Area::own(), key)
    }

    /// The keys of one kind, in all generations.
    pub(crate) fn all(&self, kind: &str) -> Range {
        Range::prefix(Area::own(), format!("{kind}{}:{}:", self.collection, self.name))
    }

    /// The generation that a key of this aggregate belongs to.
    pub(crate) fn generation_of(&self, kind: &str, key: &[u8]) -> Option<u32> {
        let names = format!("{kind}{}:{}:", self.collection, self.name);
        let rest = key.strip_prefix(names.as_bytes())?;
        let end = rest.iter().position(|&byte| byte == b':')?;
        let text = std::str::from_utf8(&rest[..end]).ok()?;
        text.parse::<u32>().ok().filter(|generation| generation.to_string() == text)
    }

    /// The keys of one kind and generation.
    pub(crate) fn generation(&self, kind: &str, generation: u32) -> Range {
        let mut key = self.generation_key(kind, generation);
        key.push(b':');
        Range::prefix(Area::own(), key)
    }

    fn generation_key(&self, kind: &str, generation: u32) -> Vec<u8> {
        format!("{kind}{}:{}:{generation}", self.collection, self.name).into_bytes()
    }

    /// An error about this aggregate.
    pub(crate) fn about(&self, kind: ErrorKind, message: &'static str) -> Error {
        Error::new(kind, message).with("collection", &self.collection).with("aggregate", &self.name)
    }
}
