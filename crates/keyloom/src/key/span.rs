//! Ranges of keys: the first segments are fixed, and the next one lies within a span.
//!
//! | span of the segment after `p` | range |
//! | --- | --- |
//! | none | every key that begins with `p` |
//! | from `a` | from `p a t` on |
//! | above `a` | after every key that begins with `p a t` |
//! | up to `b` | to the end of the keys that begin with `p b t` |
//! | below `b` | to the first key that begins with `p b t` |
//! | beginning with `x` | every key that begins with `p x` |
//!
//! `t` is the literal after the segment. With it, no encoding is a prefix of another, so all keys
//! with one value share a prefix. A segment at the end of the key has no `t`; there, each value has
//! a single key. Descending segments exchange the two bounds.

use std::ops::Bound;

use bytes::Bytes;
use serde_json::Value;

use super::refusal::{KeyRefusal, check_length};
use super::template::{Segment, Template, TemplatePart};
use crate::engine::{Area, Range, after_prefix, successor};

/// The condition on the first segment that is not fixed.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Span {
    /// Values between two bounds, in the order of values (not of bytes).
    Between(Bound<Value>, Bound<Value>),
    /// Texts with this prefix; for texts, ids, codes, UUIDs, geohashes and date-times.
    Prefix(String),
}

/// The keys from `start` up to, but without, `end`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct KeyRange {
    pub(crate) start: Bytes,
    pub(crate) end: Option<Bytes>,
}

impl KeyRange {
    pub(crate) fn in_area(self, area: Area) -> Range {
        Range { area, start: self.start, end: self.end }
    }

    fn of_prefix(prefix: Bytes) -> Self {
        KeyRange { end: after_prefix(&prefix), start: prefix }
    }

    fn empty_at(start: Bytes) -> Self {
        KeyRange { end: Some(start.clone()), start }
    }
}

impl Template {
    /// The keys whose first segments equal `equal` and whose next segment lies in `span`. With as
    /// many values as segments, the range has a single key.
    pub(crate) fn range(
        &self,
        equal: &[&Value],
        span: Option<&Span>,
    ) -> Result<KeyRange, KeyRefusal> {
        let next = self.segment_with_literal(equal.len());
        match (next, span) {
            (None, None) => {
                let key = self.encode(equal)?;
                Ok(KeyRange { end: Some(successor(&key)), start: key })
            }
            (None, Some(_)) => {
                let reason = "every field of this key is fixed, so none is left for a range";
                Err(KeyRefusal::of_key(equal, reason.into()))
            }
            (Some(_), None) => Ok(KeyRange::of_prefix(self.prefix(equal)?)),
            (Some((segment, _)), Some(Span::Prefix(text))) => {
                let mut prefix = self.prefix(equal)?.to_vec();
                let refuse = |reason| segment.refuse(&Value::from(text.as_str()), reason);
                segment
                    .codec
                    .write_prefix(text, segment.desc, segment.separator, &mut prefix)
                    .map_err(refuse)?;
                check_length(prefix.len().max(1), refuse)?;
                Ok(KeyRange::of_prefix(prefix.into()))
            }
            (Some((segment, _)), Some(Span::Between(low, high))) if !segment.codec.is_ordered() => {
                let reason = "plain text has no order in keys; declare the segment as `sorted`";
                let shown = [low, high].into_iter().find_map(|bound| match bound {
                    Bound::Included(value) | Bound::Excluded(value) => Some(value),
                    Bound::Unbounded => None,
                });
                Err(segment.refuse(shown.unwrap_or(&Value::Null), reason.into()))
            }
            (Some((segment, literal)), Some(Span::Between(low, high))) => {
                let (first, last) = if segment.desc { (high, low) } else { (low, high) };
                let place = BoundedSegment { prefix: self.prefix(equal)?, segment, literal };
                let Some(start) = place.start(first)? else {
                    return Ok(KeyRange::empty_at(place.prefix));
                };
                let end = place.end(last)?;
                Ok(match end {
                    Some(end) if end < start => KeyRange::empty_at(start),
                    end => KeyRange { start, end },
                })
            }
        }
    }

    /// The segment with this number, and the literal after it: `None` if the key ends with the
    /// segment, and empty if another segment follows directly.
    fn segment_with_literal(&self, number: usize) -> Option<(&Segment, Option<&str>)> {
        let (place, segment) = self
            .parts
            .iter()
            .enumerate()
            .filter_map(|(place, part)| match part {
                TemplatePart::Literal(_) => None,
                TemplatePart::Segment(segment) => Some((place, segment)),
            })
            .nth(number)?;
        let literal = self.parts.get(place + 1).map(|part| match part {
            TemplatePart::Literal(literal) => literal.as_str(),
            TemplatePart::Segment(_) => "",
        });
        Some((segment, literal))
    }
}

/// A bounded segment with its surroundings.
struct BoundedSegment<'t> {
    prefix: Bytes,
    segment: &'t Segment,
    literal: Option<&'t str>,
}

impl BoundedSegment<'_> {
    /// The lowest key within the range; `None` if there is none.
    fn start(&self, bound: &Bound<Value>) -> Result<Option<Bytes>, KeyRefusal> {
        Ok(match bound {
            Bound::Unbounded => Some(self.prefix.clone()),
            Bound::Included(value) => Some(self.at(value)?),
            Bound::Excluded(value) => self.behind(value)?,
        })
    }

    /// The lowest key beyond the range; `None` if there is none.
    fn end(&self, bound: &Bound<Value>) -> Result<Option<Bytes>, KeyRefusal> {
        Ok(match bound {
            Bound::Unbounded => after_prefix(&self.prefix),
            Bound::Included(value) => self.behind(value)?,
            Bound::Excluded(value) => Some(self.at(value)?),
        })
    }

    /// The lowest bytes that belong to a value.
    fn at(&self, value: &Value) -> Result<Bytes, KeyRefusal> {
        let mut key = self.prefix.to_vec();
        self.segment.write(value, &mut key)?;
        key.extend_from_slice(self.literal.unwrap_or_default().as_bytes());
        check_length(key.len().max(1), |reason| self.segment.refuse(value, reason))?;
        Ok(key.into())
    }

    /// The lowest bytes after all those that belong to a value.
    fn behind(&self, value: &Value) -> Result<Option<Bytes>, KeyRefusal> {
        let key = self.at(value)?;
        Ok(if self.literal.is_some() { after_prefix(&key) } else { Some(successor(&key)) })
    }
}
