//! A typed key template: values to bytes and back, and ranges of them.

use std::cmp::Ordering;
use std::ops::Bound;

use bytes::Bytes;
use serde_json::Value;

use super::kind::{CodePattern, Kind};
use super::path::Path;
use super::pattern::Pattern;
use crate::engine::{Area, Direction, Range};

/// How the value of one segment is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Codec {
    Text,
    SortedText,
    Integer { digits: u8 },
    Float,
    Boolean,
    Enum { values: Vec<String> },
    Timestamp,
    DateTime,
    Uuid { version: Option<u8> },
    Id,
    Code(CodePattern),
    Geohash { chars: u8, lat: String, lon: String },
    Raw,
}

impl Codec {
    /// Whether byte order is value order, so that ranges and orders can be asked for.
    pub(crate) fn is_ordered(&self) -> bool {
        todo!()
    }

    /// The order of two values of this codec, as their ascending encodings have it.
    pub(crate) fn compare(&self, _a: &Value, _b: &Value) -> Ordering {
        todo!()
    }
}

/// One typed placeholder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Segment {
    pub(crate) path: Path,
    pub(crate) codec: Codec,
    pub(crate) desc: bool,
    /// The byte that ends the segment, which its text therefore escapes: the first byte of the
    /// literal that follows; for a trailing segment the last byte of the literal before it, if
    /// that is punctuation.
    pub(crate) separator: Option<u8>,
}

/// One part of a template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum TemplatePart {
    Literal(String),
    Segment(Segment),
}

/// A typed key template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Template {
    pub(crate) source: String,
    pub(crate) parts: Vec<TemplatePart>,
}

/// Why a value does not fit into a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct KeyRefusal {
    /// The field; `None` when the key as a whole is at fault (too long, empty).
    pub(crate) path: Option<Path>,
    /// The value as JSON, shortened when very long.
    pub(crate) value: String,
    /// A sentence without a final stop, e.g. "a timestamp is 0 to 9999999999999 milliseconds".
    pub(crate) reason: String,
}

/// What is asked of the one segment that is not fixed by an equality.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Span {
    /// Values between two bounds, in the order of values (not of bytes).
    Between(Bound<Value>, Bound<Value>),
    /// Text that begins with this; for `Text`, `SortedText` (ascending), `Raw`, `Id`, `Geohash`.
    Prefix(String),
}

/// Keys from `start` on, below `end`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct KeyRange {
    pub(crate) start: Bytes,
    pub(crate) end: Option<Bytes>,
}

impl KeyRange {
    pub(crate) fn in_area(self, area: Area) -> Range {
        Range { area, start: self.start, end: self.end }
    }
}

impl Template {
    /// Types a pattern. All problems are given, each a sentence.
    pub(crate) fn new(
        _pattern: &Pattern,
        _kind_of: impl Fn(&Path) -> Option<Kind>,
    ) -> Result<Self, Vec<String>> {
        todo!()
    }

    /// The segments, in order.
    pub(crate) fn segments(&self) -> impl Iterator<Item = &Segment> {
        self.parts.iter().filter_map(|part| match part {
            TemplatePart::Literal(_) => None,
            TemplatePart::Segment(segment) => Some(segment),
        })
    }

    /// The key for one value per segment, in order.
    pub(crate) fn encode(&self, _values: &[&Value]) -> Result<Bytes, KeyRefusal> {
        todo!()
    }

    /// The values that made the key; `None` when it is not a key of this template.
    pub(crate) fn decode(&self, _key: &[u8]) -> Option<Vec<Value>> {
        todo!()
    }

    /// The keys whose first segments equal `equal` and whose next one lies in `span`.
    /// With as many values as segments, the one key.
    pub(crate) fn range(
        &self,
        _equal: &[&Value],
        _span: Option<&Span>,
    ) -> Result<KeyRange, KeyRefusal> {
        todo!()
    }

    /// The prefix that every key with these first values has, with the literal after them.
    pub(crate) fn prefix(&self, _equal: &[&Value]) -> Result<Bytes, KeyRefusal> {
        todo!()
    }

    /// What is left of `range` after a key in it that belongs to another template: jumps over
    /// every key that shares the shortest prefix that no key of this template begins with.
    pub(crate) fn skip(&self, _range: &Range, _foreign: &[u8], _direction: Direction) -> Range {
        todo!()
    }
}
