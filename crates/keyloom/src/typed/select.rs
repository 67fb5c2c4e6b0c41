//! What a query may ask of one segment: a value, or a range if the segment has an order.

use std::ops::{Bound, Range, RangeFrom, RangeFull, RangeInclusive, RangeTo, RangeToInclusive};

use serde_json::Value;

use super::parts::QueryParts;
use super::values::{DateTime, Id, Timestamp, Uuid};
use crate::key::{Span, asked_float};

/// A value that a segment of type `V` can be compared with.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a value of a segment of type `{V}`",
    label = "this cannot be compared with `{V}`"
)]
pub trait Equals<V> {
    /// The value in JSON.
    fn into_value(self) -> Value;
}

/// A condition on a segment of type `V`: a value, which leads to the next segment, or a range,
/// which must be the last condition.
#[diagnostic::on_unimplemented(
    message = "a segment of type `{V}` cannot be asked for `{Self}`",
    label = "neither a value of this segment nor a range of such values"
)]
pub trait Selects<V>: Sized {
    /// The type of the next step: `Fixed` after a value, `Ranged` after a range.
    type Then<Fixed, Ranged>;

    /// Adds this condition to a query.
    fn select<T, Fixed, Ranged>(self, parts: QueryParts<T>) -> Self::Then<Fixed, Ranged>
    where
        Fixed: From<QueryParts<T>>,
        Ranged: From<QueryParts<T>>;
}

/// Types of segments whose order in keys is the order of their values.
#[diagnostic::on_unimplemented(
    message = "a segment of type `{Self}` has no order in keys, so it has no ranges either",
    label = "a range or an order of `{Self}`",
    note = "plain text, UUIDs and choices are asked for by their values; for text with an order \
            write `{{name sorted}}` in the template"
)]
pub trait Ordered: Into<Value> {
    /// The value in JSON, as a bound of a range.
    fn into_bound(self) -> Value {
        self.into()
    }
}

/// Types of segments that are moments in time, where the latest is the newest.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a moment in time, so that nothing is newest or oldest by it",
    note = "`ascending` and `descending` serve every segment with an order"
)]
pub trait Timelike: Ordered {}

/// Types of segments that a query can match by the prefix of their text.
#[diagnostic::on_unimplemented(message = "`{Self}` is not text, so that it has no beginning")]
pub trait Prefixed {}

/// Text with an order: the type of a segment that is declared `sorted`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SortedText(String);

impl<S: Into<String>> From<S> for SortedText {
    fn from(text: S) -> Self {
        SortedText(text.into())
    }
}

impl From<SortedText> for Value {
    fn from(text: SortedText) -> Self {
        Value::String(text.0)
    }
}

/// A whole number in a query, of any Rust type up to 64 bits. A number that no key of the segment
/// can hold makes the query fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Integer(i128);

impl From<Integer> for Value {
    fn from(Integer(number): Integer) -> Self {
        match u64::try_from(number) {
            Ok(number) => number.into(),
            // A negative number came from a signed type of 64 bits at most.
            Err(_) => i64::try_from(number).unwrap_or(i64::MIN).into(),
        }
    }
}

/// Rust's types of whole numbers, up to 64 bits. They share one implementation, so that a literal
/// works: `by_number(5)`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a whole number that a key can hold, nor a range of such numbers",
    note = "whole numbers are `i8` to `i64`, `u8` to `u64`, `isize` and `usize`"
)]
pub trait Whole: Into<Integer> {}

/// Rust's floating-point types.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a number with a fraction, nor a range of such numbers",
    note = "write `5.0` for `5`; the types are `f32` and `f64`"
)]
pub trait Fraction: Into<f64> {}

impl Fraction for f32 {}
impl Fraction for f64 {}

macro_rules! integers {
    ($($rust:ty),*) => {$(
        impl Whole for $rust {}

        impl From<$rust> for Integer {
            fn from(number: $rust) -> Self {
                // Every type in this list has at most 64 bits.
                Integer(number as i128)
            }
        }
    )*};
}

integers!(i8, i16, i32, i64, isize, u8, u16, u32, u64, usize);

impl Ordered for Integer {}
impl Ordered for f64 {
    fn into_bound(self) -> Value {
        asked_float(self)
    }
}
impl Ordered for SortedText {}
impl Ordered for Id {}
impl Ordered for Timestamp {}
impl Ordered for DateTime {}
impl Timelike for Timestamp {}
impl Timelike for DateTime {}
impl Prefixed for String {}
impl Prefixed for SortedText {}
impl Prefixed for Id {}
impl Prefixed for Uuid {}
impl Prefixed for DateTime {}

macro_rules! values {
    ($($segment:ty: $($value:ty),* => $json:expr;)*) => {$($(
        value!([] $value, $segment, $json);
    )*)*};
}

macro_rules! value {
    ([$($bound:tt)*] $value:ty, $segment:ty, $json:expr) => {
        impl<$($bound)*> Equals<$segment> for $value {
            fn into_value(self) -> Value {
                let json: fn(Self) -> Value = $json;
                json(self)
            }
        }

        impl<$($bound)*> Selects<$segment> for $value {
            type Then<Fixed, Ranged> = Fixed;

            fn select<T, Fixed, Ranged>(self, parts: QueryParts<T>) -> Fixed
            where
                Fixed: From<QueryParts<T>>,
                Ranged: From<QueryParts<T>>,
            {
                parts.fix(Equals::<$segment>::into_value(self)).into()
            }
        }
    };
}

values! {
    String: &str, String, &String => |text| Value::from(text.to_owned());
    SortedText: &str, String, &String => |text| Value::from(text.to_owned());
    bool: bool => Value::from;
    Timestamp: Timestamp, &Timestamp, i64 => |time| Value::from(time.to_owned());
    DateTime: DateTime, &DateTime, &str, String, &String => |time| Value::from(time.to_owned());
    Id: Id, &Id, &str, String, &String => |id| Value::from(id.to_owned());
    Uuid: Uuid, &Uuid, &str, String, &String => |id| Value::from(id.to_owned());
}

value!([N: Whole] N, Integer, |number| number.into().into());
value!([N: Fraction] N, f64, |number| asked_float(number.into()));

macro_rules! ranges {
    ($($range:ty: $self:ident => $lower:expr, $upper:expr;)*) => {$(
        impl<V: Ordered, B: Into<V>> Selects<V> for $range {
            type Then<Fixed, Ranged> = Ranged;

            fn select<T, Fixed, Ranged>($self, parts: QueryParts<T>) -> Ranged
            where
                Fixed: From<QueryParts<T>>,
                Ranged: From<QueryParts<T>>,
            {
                let value = |bound: B| bound.into().into_bound();
                let (lower, upper): (Bound<B>, Bound<B>) = ($lower, $upper);
                parts.within(Span::Between(lower.map(value), upper.map(value))).into()
            }
        }
    )*};
}

ranges! {
    Range<B>: self => Bound::Included(self.start), Bound::Excluded(self.end);
    RangeFrom<B>: self => Bound::Included(self.start), Bound::Unbounded;
    RangeTo<B>: self => Bound::Unbounded, Bound::Excluded(self.end);
    RangeToInclusive<B>: self => Bound::Unbounded, Bound::Included(self.end);
    (Bound<B>, Bound<B>): self => self.0, self.1;
}

impl<V: Ordered, B: Into<V>> Selects<V> for RangeInclusive<B> {
    type Then<Fixed, Ranged> = Ranged;

    fn select<T, Fixed, Ranged>(self, parts: QueryParts<T>) -> Ranged
    where
        Fixed: From<QueryParts<T>>,
        Ranged: From<QueryParts<T>>,
    {
        let (lower, upper) = self.into_inner();
        let bounds = (Bound::Included(lower), Bound::Included(upper));
        Selects::<V>::select::<T, Fixed, Ranged>(bounds, parts)
    }
}

/// The full range: no bounds, only the segment's order.
impl<V: Ordered> Selects<V> for RangeFull {
    type Then<Fixed, Ranged> = Ranged;

    fn select<T, Fixed, Ranged>(self, parts: QueryParts<T>) -> Ranged
    where
        Fixed: From<QueryParts<T>>,
        Ranged: From<QueryParts<T>>,
    {
        parts.within(Span::Between(Bound::Unbounded, Bound::Unbounded)).into()
    }
}
