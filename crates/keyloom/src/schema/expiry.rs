//! When records of a collection end.

use std::ops::Bound;

use serde_json::Value;

use super::model::Collection;
use super::probe::value_at;
use crate::key::{Kind, Path, Span, datetime_of, millis_of, whole_of};

/// The name of the index that Keyloom keeps over the field by which records expire.
pub(crate) const EXPIRY_INDEX: &str = "expires_at";

/// The field by which the records of a collection expire.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Expiry {
    pub(crate) path: Path,
    pub(crate) form: MomentForm,
}

/// How a field tells a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MomentForm {
    /// Milliseconds since 1970.
    Timestamp,
    /// `2024-01-31T23:59:59.999Z`.
    DateTime,
}

impl MomentForm {
    /// The form of a field of this type, if it tells moments.
    pub(crate) fn of(kind: &Kind) -> Option<Self> {
        match kind {
            Kind::Timestamp => Some(MomentForm::Timestamp),
            Kind::DateTime => Some(MomentForm::DateTime),
            _ => None,
        }
    }

    /// The milliseconds of a value; `None` for what is no moment.
    pub(crate) fn millis(self, value: &Value) -> Option<i64> {
        match self {
            MomentForm::Timestamp => whole_of(value),
            MomentForm::DateTime => {
                Kind::DateTime.check(value).ok()?;
                value.as_str().map(millis_of)
            }
        }
    }

    /// All moments up to this one, itself included, as a range of values.
    pub(crate) fn up_to(self, now: u64) -> Span {
        /// The last moment that fits into a key.
        const TIMESTAMP_MAX: u64 = 9_999_999_999_999;
        let last = match self {
            MomentForm::Timestamp => Value::from(now.min(TIMESTAMP_MAX)),
            MomentForm::DateTime => Value::from(datetime_of(signed(now))),
        };
        Span::Between(Bound::Unbounded, Bound::Included(last))
    }
}

/// Milliseconds as moments of records count them.
fn signed(millis: u64) -> i64 {
    i64::try_from(millis).unwrap_or(i64::MAX)
}

impl Expiry {
    fn is_past(&self, value: Option<&Value>, now: u64) -> bool {
        value.and_then(|value| self.form.millis(value)).is_some_and(|end| end <= signed(now))
    }
}

impl Collection {
    /// Whether a record of this collection has expired at this time. One without a moment, or with
    /// something else in its place, never does.
    pub(crate) fn is_expired(&self, record: &Value, now: u64) -> bool {
        self.expiry.as_ref().is_some_and(|expiry| expiry.is_past(expiry.path.get(record), now))
    }

    /// As [`is_expired`](Self::is_expired), of a record's text. One that cannot be read is there:
    /// whoever reads it shall hear of it.
    pub(crate) fn is_text_expired(&self, text: &[u8], now: u64) -> bool {
        self.expiry
            .as_ref()
            .is_some_and(|expiry| expiry.is_past(value_at(text, &expiry.path).as_ref(), now))
    }
}
