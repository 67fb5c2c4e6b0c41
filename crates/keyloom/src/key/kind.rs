//! The types that a field of a key can have.

use std::ops::RangeInclusive;
use std::sync::Arc;

use serde_json::Value;

use super::codec::{Codec, TIMESTAMP_MAX, number};
use super::path::Path;
use super::refusal::KeyRefusal;

/// The type of a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Any string.
    Text,
    /// A whole number of at most this many digits (1 to 19): from -10^digits to 10^digits - 1,
    /// within 64 bits.
    Integer { digits: u8 },
    /// A number; NaN and infinities do not exist in JSON.
    Float,
    /// `true` or `false`.
    Boolean,
    /// One of these strings, in declared order.
    Enum { values: Vec<String> },
    /// Milliseconds since 1970 as a whole number, 0 to 9999999999999.
    Timestamp,
    /// Text in exactly this form: `2024-01-31T23:59:59.999Z`.
    DateTime,
    /// 32 lower-case hex digits. With a version, the 13th digit is the version, and the 17th is one
    /// of `89ab`.
    Uuid { version: Option<u8> },
    /// 26 letters and digits.
    Id,
    /// A short code such as `A-X7K9Q2`.
    Code(CodePattern),
    /// A place: an object with two numbers of these names, in degrees.
    Point { lat: String, lon: String },
}

impl Kind {
    /// Whether a value is of this type; the error says why it is not.
    pub(crate) fn check(&self, value: &Value) -> Result<(), String> {
        // The most frequent cases need no encoding.
        match (self, value) {
            (Kind::Text, Value::String(_)) => return Ok(()),
            (Kind::Enum { values }, Value::String(text)) if values.contains(text) => return Ok(()),
            (
                Kind::Id | Kind::Code(_) | Kind::Uuid { .. } | Kind::DateTime,
                Value::String(text),
            ) => return self.plain_codec().check_text(text),
            // A record has the place itself; only keys and queries have geohashes.
            (Kind::Point { lat, lon }, value) if !value.is_object() => {
                return Err(describe_place(lat, lon));
            }
            _ => {}
        }
        let checked = self.plain_codec().write(value, false, None, &mut Vec::new());
        match self {
            Kind::Point { lat, lon } => checked.map_err(|_| describe_place(lat, lon)),
            _ => checked,
        }
    }

    /// Why a value at this path is not of this type; `None` if it is.
    pub(crate) fn refusal(&self, path: &Path, value: &Value) -> Option<KeyRefusal> {
        let reason = self.check(value).err()?;
        let refusal = KeyRefusal::of_field(path, value, reason);
        Some(if *self == Kind::Float { refusal.of_float(value) } else { refusal })
    }

    /// Checks that a value of this type can begin with this text.
    pub(crate) fn check_prefix(&self, path: &Path, text: &str) -> Result<(), KeyRefusal> {
        let written = self.plain_codec().write_prefix(text, false, None, &mut Vec::new());
        written.map_err(|reason| KeyRefusal::of_field(path, &text.into(), reason))
    }

    /// Whether values have members of their own.
    pub(crate) fn has_members(&self) -> bool {
        matches!(self, Kind::Point { .. })
    }

    /// The whole numbers that it allows; `None` for other types.
    pub(crate) fn wholes(&self) -> Option<RangeInclusive<i64>> {
        match self {
            Kind::Integer { digits } => {
                let (low, high) = number::integer_limits(*digits);
                Some(low..=high)
            }
            Kind::Timestamp => Some(0..=TIMESTAMP_MAX),
            _ => None,
        }
    }

    /// The codec of a segment without modifiers. A place has no such codec; that of the coarsest
    /// geohash checks whether a value is a place.
    pub(super) fn plain_codec(&self) -> Codec {
        match self.clone() {
            Kind::Text => Codec::Text,
            Kind::Integer { digits } => Codec::Integer { digits },
            Kind::Float => Codec::Float,
            Kind::Boolean => Codec::Boolean,
            Kind::Enum { values } => Codec::Enum { values },
            Kind::Timestamp => Codec::Timestamp,
            Kind::DateTime => Codec::DateTime,
            Kind::Uuid { version } => Codec::Uuid { version },
            Kind::Id => Codec::Id,
            Kind::Code(pattern) => Codec::Code(pattern),
            Kind::Point { lat, lon } => Codec::Geohash { chars: 1, lat, lon },
        }
    }
}

fn describe_place(lat: &str, lon: &str) -> String {
    format!("a place is an object with {lat} from -90 to 90 and {lon} from -180 to 180")
}

/// The pattern of short codes. Every `*` stands for one character of the unambiguous alphabet
/// (`23456789ABCDEFGHJKLMNPQRSTUVWXYZ`), every other character for itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CodePattern(pub(crate) Arc<str>);

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_record_holds_a_place_and_not_the_geohash_of_one() {
        let kind = Kind::Point { lat: "y".into(), lon: "x".into() };
        for place in [json!({"y": -90, "x": 180.0}), json!({"y": 0.5, "x": -0.0, "z": "more"})] {
            assert_eq!(kind.check(&place), Ok(()));
        }
        let reason = "a place is an object with y from -90 to 90 and x from -180 to 180";
        for other in
            [json!("u"), json!("u09tun"), json!({"y": 91, "x": 0}), json!({"y": 1}), json!([1, 2])]
        {
            assert_eq!(kind.check(&other), Err(reason.to_owned()), "{other}");
        }
    }
}
