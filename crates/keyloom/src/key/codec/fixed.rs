//! Segments of a fixed width: each position has an alphabet.
//!
//! | type | width | ascending | descending |
//! | --- | --- | --- | --- |
//! | boolean | 1 | `1` for true | `0` |
//! | timestamp | 13 | `1674950787234` | `8325049212765` |
//! | float | 16 | `bff8000000000000` | `4007ffffffffffff` |
//! | date-time | 24 | `2024-01-31T23:59:59.999Z` | `7975-98-68T76:40:40.000Z` |
//! | UUID | 32 | `0f8fad5bd9cb469fa16570867728950e` | `f07052a42634b9605e9a8f7988d76af1` |
//! | id | 26 | `01HZX…` | `zy` for `01`, and so on |
//! | code `A-***` | as the pattern | `A-X7K` | `A-4UG` |
//! | geohash of 6 | as declared | `u4pruy` | `5vb851` |
//!
//! Descending replaces each character by the one as far from the other end of its alphabet.
//! Characters that stand for themselves stay. Because of the fixed width, values need no terminator
//! and no escaping.

use serde_json::Value;

use super::alphabet::{self, Alphabet};
use super::{Codec, calendar, number};
use crate::key::class::Class;
use crate::key::geohash::geohash_encode;
use crate::key::kind::CodePattern;

/// The highest timestamp that 13 digits hold, in the year 2286.
pub(in crate::key) const TIMESTAMP_MAX: i64 = 9_999_999_999_999;

/// The bytes that are allowed at one position, and how they are mirrored.
pub(in crate::key) struct Position {
    allowed: Class,
    alphabet: Option<&'static Alphabet>,
}

impl Position {
    fn of(alphabet: &'static Alphabet) -> Self {
        Position { allowed: alphabet.class, alphabet: Some(alphabet) }
    }

    fn some_of(bytes: &[u8], alphabet: &'static Alphabet) -> Self {
        Position { allowed: Class::of(bytes), alphabet: Some(alphabet) }
    }

    fn literal(byte: u8) -> Self {
        Position { allowed: Class::of(&[byte]), alphabet: None }
    }

    /// Converts a byte of the ascending form to the byte in a key, and back.
    fn turn(&self, byte: u8, desc: bool) -> u8 {
        match self.alphabet {
            Some(alphabet) if desc => alphabet.mirror(byte),
            _ => byte,
        }
    }

    /// The bytes that are allowed here in a key.
    pub(in crate::key) fn written(&self, desc: bool) -> Class {
        self.allowed.map(|byte| self.turn(byte, desc))
    }
}

/// See [`Codec::shape`].
struct Shape<'c> {
    text: &'c [u8],
    any: u8,
    alphabet: &'static Alphabet,
}

impl Shape<'_> {
    /// Whether a byte is allowed where the shape has `shown`.
    fn allows(&self, shown: u8, byte: u8) -> bool {
        if shown == self.any { self.alphabet.class.contains(byte) } else { byte == shown }
    }
}

impl Codec {
    /// The number of bytes of every value, for codecs of a fixed width.
    pub(in crate::key) fn width(&self) -> Option<usize> {
        match self {
            Codec::Boolean => Some(1),
            Codec::Timestamp => Some(13),
            Codec::Float => Some(16),
            Codec::DateTime => Some(calendar::SHAPE.len()),
            Codec::Uuid { .. } => Some(32),
            Codec::Id => Some(26),
            Codec::Code(CodePattern(pattern)) => Some(pattern.len()),
            Codec::Geohash { chars, .. } => Some(usize::from(*chars)),
            Codec::Text
            | Codec::SortedText
            | Codec::Raw
            | Codec::Integer { .. }
            | Codec::Enum { .. } => None,
        }
    }

    /// The alphabet of every position, for codecs with a single one.
    fn alphabet(&self) -> Option<&'static Alphabet> {
        match self {
            Codec::Boolean => Some(&alphabet::BITS),
            Codec::Timestamp => Some(&alphabet::DIGITS),
            Codec::Float | Codec::Uuid { version: None } => Some(&alphabet::HEX),
            Codec::Id => Some(&alphabet::ID),
            Codec::Geohash { .. } => Some(&alphabet::GEOHASH),
            _ => None,
        }
    }

    /// The shape of codecs in which some characters stand for themselves: all but one, which stands
    /// for any character of an alphabet.
    fn shape(&self) -> Option<Shape<'_>> {
        match self {
            Codec::DateTime => {
                Some(Shape { text: calendar::SHAPE, any: b'0', alphabet: &alphabet::DIGITS })
            }
            Codec::Code(CodePattern(pattern)) => {
                Some(Shape { text: pattern.as_bytes(), any: b'*', alphabet: &alphabet::CODE })
            }
            _ => None,
        }
    }

    /// The bytes that are allowed at a position within the width.
    pub(in crate::key) fn position(&self, place: usize) -> Position {
        if let Some(alphabet) = self.alphabet() {
            return Position::of(alphabet);
        }
        if let Some(Shape { text, any, alphabet }) = self.shape() {
            let shown = text[place];
            return if shown == any { Position::of(alphabet) } else { Position::literal(shown) };
        }
        match self {
            Codec::Uuid { version } => match (place, version) {
                (12, Some(version)) => {
                    Position::some_of(&[version_digit(*version)], &alphabet::HEX)
                }
                (16, Some(_)) => Position::some_of(b"89ab", &alphabet::HEX),
                _ => Position::of(&alphabet::HEX),
            },
            // Never called for codecs without a width.
            _ => Position::of(&alphabet::DIGITS),
        }
    }

    /// Appends a value of a codec with a fixed width.
    pub(super) fn write_fixed(
        &self,
        value: &Value,
        desc: bool,
        out: &mut Vec<u8>,
    ) -> Result<(), String> {
        let start = out.len();
        self.write_ascending(value, out)?;
        self.turn(desc, &mut out[start..]);
        Ok(())
    }

    /// Appends the prefix of a text of a codec with a fixed width.
    pub(super) fn write_fixed_prefix(
        &self,
        prefix: &str,
        desc: bool,
        out: &mut Vec<u8>,
    ) -> Result<(), String> {
        self.check_characters(prefix)?;
        let start = out.len();
        out.extend_from_slice(prefix.as_bytes());
        self.turn(desc, &mut out[start..]);
        Ok(())
    }

    /// The value that these bytes encode; `None` if they encode none.
    pub(super) fn read_fixed(&self, bytes: &[u8], desc: bool) -> Option<Value> {
        let mut text = bytes.to_vec();
        self.turn(desc, &mut text);
        if self.wrong_place(&text).is_some() {
            return None;
        }
        match self {
            Codec::Boolean => Some(Value::Bool(text == b"1")),
            Codec::Timestamp => number::parse_digits(&text).map(Value::from),
            Codec::Float => {
                number::parse_hex(&text).and_then(number::float_from_ordered).map(Value::from)
            }
            Codec::DateTime if !calendar::exists(&text) => None,
            _ => String::from_utf8(text).ok().map(Value::String),
        }
    }

    fn turn(&self, desc: bool, bytes: &mut [u8]) {
        if !desc {
            return;
        }
        if let Some(alphabet) = self.alphabet() {
            return bytes.iter_mut().for_each(|byte| *byte = alphabet.mirror(*byte));
        }
        for (place, byte) in bytes.iter_mut().enumerate() {
            *byte = self.position(place).turn(*byte, true);
        }
    }

    /// The first position with a byte that is not allowed there.
    fn wrong_place(&self, bytes: &[u8]) -> Option<usize> {
        if let Some(alphabet) = self.alphabet() {
            return bytes.iter().position(|&byte| !alphabet.class.contains(byte));
        }
        if let Some(shape) = self.shape() {
            let mut shown = bytes.iter().zip(shape.text);
            return shown.position(|(&byte, &shown)| !shape.allows(shown, byte));
        }
        (0..bytes.len()).find(|&place| !self.position(place).allowed.contains(bytes[place]))
    }

    fn write_ascending(&self, value: &Value, out: &mut Vec<u8>) -> Result<(), String> {
        match (self, value) {
            (Codec::Boolean, Value::Bool(value)) => out.push(b'0' + u8::from(*value)),
            (Codec::Timestamp, Value::Number(_)) => {
                let time = number::whole_of(value)
                    .filter(|time| (0..=TIMESTAMP_MAX).contains(time))
                    .ok_or_else(|| self.describe())?;
                number::push_digits(time.unsigned_abs(), 13, out);
            }
            (Codec::Float, Value::Number(_)) => {
                let float = number::float_of(value)
                    .ok_or("no 64-bit float is exactly this whole number")?;
                number::push_hex(number::float_to_ordered(float), out);
            }
            (Codec::Geohash { chars, lat, lon }, Value::Object(_)) => {
                let degrees = |name: &str, limit: f64| {
                    value
                        .get(name)
                        .and_then(Value::as_f64)
                        .filter(|degrees| degrees.abs() <= limit)
                        .ok_or_else(|| self.describe())
                };
                let place = geohash_encode(degrees(lat, 90.0)?, degrees(lon, 180.0)?, *chars);
                out.extend_from_slice(place.as_bytes());
            }
            (Codec::Boolean | Codec::Timestamp | Codec::Float, _) => {
                return Err(self.describe() + &self.hint(value));
            }
            (_, Value::String(text)) => {
                self.check_text(text)?;
                out.extend_from_slice(text.as_bytes());
            }
            _ => return Err(self.describe()),
        }
        Ok(())
    }

    /// Whether a text is a value of a codec with texts of a fixed width.
    pub(in crate::key) fn check_text(&self, text: &str) -> Result<(), String> {
        self.check_exactly(text).map_err(|reason| reason + &self.hint(&text.into()))
    }

    /// As [`check_text`](Self::check_text), without a hint.
    pub(super) fn check_exactly(&self, text: &str) -> Result<(), String> {
        let width = self.width().unwrap_or(usize::MAX);
        if text.len() < width {
            return Err(self.wrong_length(text));
        }
        self.check_characters(text)?;
        if *self == Codec::DateTime && !calendar::exists(text.as_bytes()) {
            return Err(format!("{}, but there is no such moment", self.describe()));
        }
        Ok(())
    }

    fn wrong_length(&self, text: &str) -> String {
        let found = match text.chars().count() {
            1 => "1 character".to_owned(),
            found => format!("{found} characters"),
        };
        format!("{}, but this has {found}", self.describe())
    }

    /// Whether `text` is a prefix of a value of this codec, judged position by position.
    fn check_characters(&self, text: &str) -> Result<(), String> {
        let width = self.width().unwrap_or(usize::MAX);
        if text.len() > width {
            return Err(self.wrong_length(text));
        }
        match self.wrong_place(text.as_bytes()) {
            None => Ok(()),
            Some(place) => {
                // The byte may be inside a character; the number is that of the character.
                let number = text.char_indices().take_while(|(start, _)| *start <= place).count();
                let found = text.chars().nth(number - 1).unwrap_or_default();
                Err(format!("{}, but character {number} is {found:?}", self.describe()))
            }
        }
    }

    /// Describes valid values, as the beginning of an error's reason.
    pub(in crate::key) fn describe(&self) -> String {
        match self {
            Codec::Text | Codec::SortedText | Codec::Raw => "a text is a string".into(),
            Codec::Integer { digits } => {
                let (low, high) = number::integer_limits(*digits);
                let digits = match digits {
                    19.. => String::new(),
                    digits => format!(" (digits = {digits})"),
                };
                format!("an integer here is a whole number from {low} to {high}{digits}")
            }
            Codec::Float => "a float is a number".into(),
            Codec::Boolean => "a boolean is true or false".into(),
            Codec::Enum { values } => format!("the allowed values are {}", values.join(", ")),
            Codec::Timestamp => format!(
                "a timestamp is a whole number of milliseconds since 1970, from 0 to {TIMESTAMP_MAX}"
            ),
            Codec::DateTime => "a date-time is written exactly as 2024-01-31T23:59:59.999Z".into(),
            Codec::Uuid { version: None } => "a UUID is 32 lower-case hex digits".into(),
            Codec::Uuid { version: Some(version) } => format!(
                "a version {version} UUID is 32 lower-case hex digits, the 13th of them {version} \
                 and the 17th one of 8 9 a b"
            ),
            Codec::Id => "an id is 26 letters and digits".into(),
            Codec::Code(CodePattern(pattern)) => format!(
                "a code is written as {pattern}, each * one of {}",
                String::from_utf8_lossy(alphabet::CODE_ALPHABET)
            ),
            Codec::Geohash { chars, lat, lon } => format!(
                "a place is an object with {lat} from -90 to 90 and {lon} from -180 to 180, or a \
                 geohash of {chars} characters"
            ),
        }
    }
}

/// Versions are checked when the template is loaded; no digit exists for higher ones.
fn version_digit(version: u8) -> u8 {
    char::from_digit(u32::from(version), 16).map_or(b'!', |digit| digit as u8)
}
