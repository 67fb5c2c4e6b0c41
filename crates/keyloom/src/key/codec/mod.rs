//! Encodes the value of one segment as bytes, and decodes it.
//!
//! | codec | bytes | ends by |
//! | --- | --- | --- |
//! | text, ascending enum | escaped UTF-8 ([`text`]) | the separator, or the end of the key |
//! | sorted text, descending enum | escaped or complemented UTF-8 ([`text`]) | its own terminator |
//! | raw | UTF-8 | the end of the key |
//! | integer | sign and digits ([`number`]) | its digits |
//! | all others | characters of fixed alphabets ([`fixed`]) | its width |
//!
//! Every codec is a bijection: decoding refuses every form that encoding would not produce, so a
//! decoded value is always encoded to the same bytes. Every codec but text keeps the order.

pub(super) mod alphabet;
mod calendar;
mod fixed;
mod hint;
pub(super) mod number;
pub(super) mod text;

use serde_json::Value;

use super::kind::CodePattern;
use crate::engine::percent;

pub(super) use fixed::TIMESTAMP_MAX;

/// The encoding of one segment's values.
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
    /// Whether bytes sort in the order of values, so that queries can use ranges and orders.
    pub(crate) fn is_ordered(&self) -> bool {
        *self != Codec::Text
    }

    /// Whether queries can search for a text prefix.
    pub(crate) fn has_prefixes(&self) -> bool {
        self.write_prefix("", false, None, &mut Vec::new()).is_ok()
    }

    /// The byte that this codec puts after every value.
    pub(super) fn terminator(&self, desc: bool) -> Option<u8> {
        match self {
            Codec::SortedText if !desc => Some(text::SORTED_END),
            Codec::SortedText | Codec::Enum { .. } if desc => Some(text::DESCENDING_END),
            _ => None,
        }
    }

    /// Whether only the literal that follows marks the end of a value.
    pub(super) fn needs_separator(&self, desc: bool) -> bool {
        matches!(self, Codec::Text) || matches!(self, Codec::Enum { .. } if !desc)
    }

    /// Appends a value; the error says why it does not fit.
    pub(super) fn write(
        &self,
        value: &Value,
        desc: bool,
        separator: Option<u8>,
        out: &mut Vec<u8>,
    ) -> Result<(), String> {
        match (self, value) {
            (Codec::Integer { digits }, _) => {
                let (low, high) = number::integer_limits(*digits);
                let integer = number::whole_of(value)
                    .filter(|integer| (low..=high).contains(integer))
                    .ok_or_else(|| self.describe())?;
                number::write_integer(if desc { !integer } else { integer }, *digits, out);
                Ok(())
            }
            (Codec::Enum { values }, Value::String(text)) if !values.contains(text) => {
                Err(self.describe())
            }
            (Codec::Text | Codec::SortedText | Codec::Raw | Codec::Enum { .. }, value) => {
                let text = value.as_str().ok_or_else(|| self.describe())?;
                self.write_whole_text(text, desc, separator, out);
                Ok(())
            }
            _ => self.write_fixed(value, desc, out),
        }
    }

    /// Appends a text with its terminator, whether or not the codec allows this text.
    pub(super) fn write_whole_text(
        &self,
        text: &str,
        desc: bool,
        separator: Option<u8>,
        out: &mut Vec<u8>,
    ) {
        self.write_text(text, desc, separator, out);
        out.extend(self.terminator(desc));
    }

    /// Appends the common prefix of all values that begin with `prefix`.
    pub(super) fn write_prefix(
        &self,
        prefix: &str,
        desc: bool,
        separator: Option<u8>,
        out: &mut Vec<u8>,
    ) -> Result<(), String> {
        match self {
            Codec::Text | Codec::SortedText | Codec::Raw => {
                self.write_text(prefix, desc, separator, out);
                Ok(())
            }
            Codec::Id
            | Codec::Code(_)
            | Codec::Uuid { .. }
            | Codec::Geohash { .. }
            | Codec::DateTime => self.write_fixed_prefix(prefix, desc, out),
            Codec::Integer { .. }
            | Codec::Float
            | Codec::Boolean
            | Codec::Enum { .. }
            | Codec::Timestamp => {
                Err("only texts can be asked for by their beginning, and this is not one".into())
            }
        }
    }

    fn write_text(&self, text: &str, desc: bool, separator: Option<u8>, out: &mut Vec<u8>) {
        match self {
            Codec::Raw => out.extend_from_slice(text.as_bytes()),
            Codec::SortedText if !desc => text::write_sorted(text, out),
            Codec::SortedText | Codec::Enum { .. } if desc => text::write_descending(text, out),
            _ => percent::escape(text.as_bytes(), separator, out),
        }
    }

    /// The value at the start of `key`, and the rest of the key; `None` if no value is encoded like
    /// this. `last`: whether the segment extends to the end of the key.
    pub(super) fn read<'k>(
        &self,
        key: &'k [u8],
        desc: bool,
        separator: Option<u8>,
        last: bool,
    ) -> Option<(Value, &'k [u8])> {
        if let Codec::Integer { digits } = self {
            let (integer, rest) = number::read_integer(key, *digits)?;
            return Some((Value::from(if desc { !integer } else { integer }), rest));
        }
        if let Some(width) = self.width() {
            let (bytes, rest) = key.split_at_checked(width)?;
            return Some((self.read_fixed(bytes, desc)?, rest));
        }
        let end = match self.terminator(desc) {
            Some(terminator) => key.iter().position(|&byte| byte == terminator)?,
            None if last => key.len(),
            None => key.iter().position(|byte| Some(*byte) == separator)?,
        };
        let (bytes, rest) = key.split_at(end);
        let text = match self {
            Codec::Raw => String::from_utf8(bytes.to_vec()).ok()?,
            Codec::SortedText if !desc => text::read_sorted(bytes)?,
            Codec::SortedText | Codec::Enum { .. } if desc => text::read_descending(bytes)?,
            _ => text::read_plain(bytes, separator)?,
        };
        if matches!(self, Codec::Enum { values } if !values.contains(&text)) {
            return None;
        }
        // The terminator is part of the value.
        let rest = if self.terminator(desc).is_some() { &rest[1..] } else { rest };
        Some((Value::String(text), rest))
    }
}
