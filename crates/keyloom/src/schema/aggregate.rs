//! A declared count or sum.
//!
//! Each value of a group is written as a segment of a key and ends with `:`; texts and enums are
//! sorted texts, so that groups lie in the order of their values.

use bytes::Bytes;
use serde_json::Value;

use super::condition::Condition;
use crate::error::{Error, ErrorKind};
use crate::key::{KeyRefusal, Path, Template};

/// How many records a group has.
pub(crate) const COUNT: &str = "n";

/// The integer with the sum of a group.
pub(crate) const SUM: &str = "sum";

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

    /// The values of a group.
    pub(crate) fn values_of(&self, group: &[u8]) -> Option<Vec<Value>> {
        self.template.decode(group)
    }

    /// An error about this aggregate.
    pub(crate) fn about(&self, kind: ErrorKind, message: &'static str) -> Error {
        Error::new(kind, message).with("collection", &self.collection).with("aggregate", &self.name)
    }
}
