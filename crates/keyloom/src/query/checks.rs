//! Checks that a query names fields that records can have, and values that these fields can have.
//!
//! Every query is checked before it is planned. So an index, a filter, a scan and a count report a
//! slip in the same way, and a slip never looks like an empty answer.
//!
//! | asked | where there is | answer |
//! | --- | --- | --- |
//! | `rank = "high"` | an integer `rank` | the value does not fit its field |
//! | `labels = "bug"` | an array `labels.*` | ask for `labels.*` |
//! | `status.code = 3` | a text `status` | nothing lies inside it |
//! | `stauts = "open"` | a field `status` | did you mean `status`? |
//! | `stage = "open"` | a field `state` | asked as it is: records may have undeclared fields |

use std::fmt;
use std::ops::Bound;

use serde_json::Value;

use super::names::{is_known, meant_by, numbered, with_star};
use crate::error::{Error, ErrorKind, Result};
use crate::json::compare_values;
use crate::key::{Codec, Kind, Path, Span};
use crate::schema::{Collection, Field, FieldKind, Index, Test, nearest};
use crate::space::Session;

/// Checks one query.
pub(super) struct Checks<'c> {
    pub(super) session: &'c Session,
    pub(super) collection: &'c Collection,
    /// The index that the query names.
    pub(super) index: Option<&'c Index>,
}

impl Checks<'_> {
    /// Parses the name of a field in the query.
    pub(super) fn path(&self, field: &str) -> Result<Path> {
        let path = Path::parse(field).map_err(|reason| {
            self.refused(field, "a field's name cannot be read").with("reason", reason)
        })?;
        if self.collection.counters.is_asked_by(&path) {
            let message = "this is a counter, which neither indexes nor filters see";
            return Err(self.refused(field, message));
        }
        if let Some(elements) = numbered(self.collection, &path) {
            return Err(self.not_one(field, elements));
        }
        if is_known(self.session, self.collection, &path)
            .map_err(|reason| self.refused(field, "no record has this").with("reason", reason))?
        {
            return Ok(path);
        }
        match meant_by(self.collection, &path) {
            None => Ok(path),
            Some(meant) => {
                let message =
                    "no field of that name is declared, but one that is written almost so";
                let otherwise = format!(
                    "if records do have `{path}`, declare it as a field or in the body schema"
                );
                Err(self
                    .refused(field, message)
                    .with("did you mean", meant)
                    .with("otherwise", otherwise))
            }
        }
    }

    /// Refuses a value that no record can have in this field.
    pub(super) fn value(&self, path: &Path, value: &Value) -> Result<()> {
        let Some(field) = self.declared(path) else {
            return match value {
                Value::Null => {
                    let message = "a null counts as missing, so that nothing is equal to it";
                    Err(self.refused(path, message).with("instead", without(path)))
                }
                // A whole array or object may be compared as such.
                Value::Array(_) | Value::Object(_) => Ok(()),
                _ => self.one(path),
            };
        };
        match &field.kind {
            FieldKind::Key(Kind::Point { .. }) | FieldKind::RecordPoint { .. }
                if value.is_string() && self.goes_by_cells(path) =>
            {
                Ok(())
            }
            FieldKind::RecordPoint { .. } => self.no_value(path),
            FieldKind::Map if value.is_object() => Ok(()),
            FieldKind::Map => {
                let message = "a map is not asked for by a value; ask for one of its members";
                Err(self
                    .refused(path, message)
                    .with("members", format_args!("{path}.NAME, {path}.*")))
            }
            FieldKind::Key(kind) => self.fits(path, kind, value),
        }
    }

    /// Refuses a range that no value lies in.
    pub(super) fn span(&self, path: &Path, span: &Span) -> Result<()> {
        if self.goes_by_cells(path) {
            return Ok(());
        }
        let field = self.declared(path);
        match field.map(|field| &field.kind) {
            Some(FieldKind::Key(Kind::Point { .. }) | FieldKind::RecordPoint { .. }) => {
                return Err(self.refused(path, "a place has no order; search near a place instead"));
            }
            Some(FieldKind::Map) => return Err(self.refused(path, "a map has no order")),
            Some(FieldKind::Key(_)) => {}
            None => self.one(path)?,
        }
        match span {
            Span::Between(low, high) => self.bounds(path, low, high),
            Span::Prefix(text) => match field.and_then(Field::key_kind) {
                None => Ok(()),
                Some(kind) => kind
                    .check_prefix(path, text)
                    .map_err(|refusal| self.about(refusal.into_query_error())),
            },
        }
    }

    /// Refuses a test that no record can pass.
    pub(super) fn test(&self, path: &Path, test: &Test) -> Result<()> {
        let above = |bound: &Value| Span::Between(Bound::Included(bound.clone()), Bound::Unbounded);
        match test {
            Test::Equals(value) => self.value(path, value),
            Test::OneOf(values) => values.iter().try_for_each(|value| self.value(path, value)),
            Test::Greater(bound)
            | Test::AtLeast(bound)
            | Test::Less(bound)
            | Test::AtMost(bound) => self.span(path, &above(bound)),
            Test::Present | Test::Missing => match self.declared(path).map(|field| &field.kind) {
                Some(FieldKind::RecordPoint { .. }) => self.no_value(path),
                _ => Ok(()),
            },
        }
    }

    fn bounds(&self, path: &Path, low: &Bound<Value>, high: &Bound<Value>) -> Result<()> {
        let value = |bound| match bound {
            Bound::Included(value) | Bound::Excluded(value) => Some(value),
            Bound::Unbounded => None,
        };
        let (low, high) = (value(low.as_ref()), value(high.as_ref()));
        for bound in [low, high].into_iter().flatten() {
            self.value(path, bound)?;
            if compare_values(bound, bound).is_none() {
                let message = "only numbers, texts and booleans have an order";
                return Err(self.refused(path, message).with("value", bound));
            }
        }
        match (low, high) {
            (Some(low), Some(high)) if compare_values(low, high).is_none() => {
                let message = "both ends of a range are of one type";
                Err(self.refused(path, message).with("from", low).with("to", high))
            }
            _ => Ok(()),
        }
    }

    fn fits(&self, path: &Path, kind: &Kind, value: &Value) -> Result<()> {
        let Some(refusal) = kind.refusal(path, value) else { return Ok(()) };
        let error = self.about(refusal.into_query_error());
        Err(match (kind, value) {
            (_, Value::Null) => error.with("instead", without(path)),
            (Kind::Enum { values }, Value::String(text)) => {
                let known: Vec<&str> = values.iter().map(String::as_str).collect();
                match nearest(text, &known) {
                    Some(meant) => error.with("did you mean", meant),
                    None => error,
                }
            }
            (Kind::Point { .. }, _) => error.with("or", "search near a place"),
            _ => error,
        })
    }

    /// Refuses a single value if the schema declares an array there.
    fn one(&self, path: &Path) -> Result<()> {
        match with_star(self.collection, path) {
            None => Ok(()),
            Some(elements) => Err(self.not_one(path, elements)),
        }
    }

    fn not_one(&self, field: impl fmt::Display, elements: &Path) -> Error {
        let message = "the elements of an array are asked for with a `*`, whichever they are";
        self.refused(field, message).with("did you mean", elements)
    }

    fn no_value(&self, path: &Path) -> Result<()> {
        let message = "this place is made of members of the record; search near a place, or ask \
                       for the members";
        let error = self.refused(path, message);
        Err(match self.declared(path).map(|field| &field.kind) {
            Some(FieldKind::RecordPoint { lat, lon }) => {
                error.with("members", format_args!("{lat}, {lon}"))
            }
            _ => error,
        })
    }

    /// The declared field of a path. For an element or a member of a map, it is the declaration
    /// that all of them share.
    fn declared(&self, path: &Path) -> Option<&Field> {
        let fields = &self.collection.fields;
        fields.get(path).or_else(|| fields.values().find(|field| field.path.covers(path)))
    }

    /// Whether the query names a geo index. Its cells can be selected by their names.
    fn goes_by_cells(&self, path: &Path) -> bool {
        self.index.is_some_and(|index| {
            index.key.segments().any(|segment| {
                segment.path == *path && matches!(segment.codec, Codec::Geohash { .. })
            })
        })
    }

    fn refused(&self, field: impl fmt::Display, message: &'static str) -> Error {
        self.about(Error::new(ErrorKind::InvalidQuery, message).with("field", field))
    }

    fn about(&self, error: Error) -> Error {
        let error = error.with("collection", &self.collection.name);
        match self.index {
            Some(index) => error.with("index", &index.name),
            None => error,
        }
    }
}

/// How to ask for records without a value there.
fn without(path: &Path) -> String {
    format!("a filter for records without it: Test::Missing, or {path}.present=false")
}
