//! The expiry of a collection's records.

use std::ops::Bound;

use serde_json::Value;

use super::model::Collection;
use super::probe::value_at;
use crate::key::{Kind, Path, Span, datetime_of, millis_of, whole_of};

/// The name of Keyloom's own index over the field by which records expire.
pub(crate) const EXPIRY_INDEX: &str = "expires_at";

/// The field by which the records of a collection expire.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Expiry {
    pub(crate) path: Path,
    pub(crate) form: MomentForm,
}

/// How a field represents a point in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MomentForm {
    /// Milliseconds since 1970.
    Timestamp,
    /// `2024-01-31T23:59:59.999Z`.
    DateTime,
}

impl MomentForm {
    /// The form of a field of this type; `None` if it is not a point in time.
    pub(crate) fn of(kind: &Kind) -> Option<Self> {
        match kind {
            Kind::Timestamp => Some(MomentForm::Timestamp),
            Kind::DateTime => Some(MomentForm::DateTime),
            _ => None,
        }
    }

    /// The milliseconds of a value; `None` if it is not a point in time.
    pub(crate) fn millis(self, value: &Value) -> Option<i64> {
        match self {
            MomentForm::Timestamp => whole_of(value),
            MomentForm::DateTime => {
                Kind::DateTime.check(value).ok()?;
                value.as_str().map(millis_of)
            }
        }
    }

    /// All points in time up to and including this one, as a range of values.
    pub(crate) fn up_to(self, now: u64) -> Span {
        /// The last point in time that fits into a key.
        const TIMESTAMP_MAX: u64 = 9_999_999_999_999;
        let last = match self {
            MomentForm::Timestamp => Value::from(now.min(TIMESTAMP_MAX)),
            MomentForm::DateTime => Value::from(datetime_of(signed(now))),
        };
        Span::Between(Bound::Unbounded, Bound::Included(last))
    }
}

/// Milliseconds as records store them: signed.
fn signed(millis: u64) -> i64 {
    i64::try_from(millis).unwrap_or(i64::MAX)
}

impl Expiry {
    fn is_past(&self, value: Option<&Value>, now: u64) -> bool {
        value.and_then(|value| self.form.millis(value)).is_some_and(|end| end <= signed(now))
    }
}

impl Collection {
    /// Whether a record of this collection has expired at this time. A record without a valid time
    /// in the field never expires.
    pub(crate) fn is_expired(&self, record: &Value, now: u64) -> bool {
        self.expiry.as_ref().is_some_and(|expiry| expiry.is_past(expiry.path.get(record), now))
    }

    /// As [`is_expired`](Self::is_expired), for a record's text. A text that cannot be decoded has
    /// not expired: its reader must learn that it is corrupt.
    pub(crate) fn is_text_expired(&self, text: &[u8], now: u64) -> bool {
        self.expiry
            .as_ref()
            .is_some_and(|expiry| expiry.is_past(value_at(text, &expiry.path).as_ref(), now))
    }
}
