//! How an index entry names its record, in terms of bytes only, so that a script inside a
//! server can follow it without knowing anything of records.
//!
//! A recipe first cuts the entry's key into fields, then puts the record's key together from
//! literals, fields, and members of the entry's JSON value.

use bytes::Bytes;
use serde_json::Value;

use super::address::{Address, Area};
use super::percent;

/// How to get from an index entry to the key of its record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recipe {
    /// The area of the record.
    pub area: Area,
    /// How to cut the entry's key, from its start. Bytes after the last cut are ignored.
    pub cuts: Vec<Cut>,
    /// What the record's key is put together from.
    pub parts: Vec<Part>,
}

/// One cut of the entry's key. Each makes one field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cut {
    /// So many bytes.
    Fixed(usize),
    /// Up to the next occurrence of this byte, which stays for the next cut.
    Until(u8),
    /// All that is left.
    Rest,
}

/// One part of the record's key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// These bytes.
    Literal(Bytes),
    /// A field of the entry's key as it is.
    Field(usize),
    /// A field of the entry's key, `%XX` undone, then escaped for the separator that follows in
    /// the record's key.
    Recoded {
        /// Which cut made the field.
        field: usize,
        /// What follows in the record's key.
        separator: Option<u8>,
    },
    /// A string in the entry's JSON value, escaped for the separator that follows in the
    /// record's key.
    Member {
        /// The names to walk down; none for the value itself.
        path: Vec<String>,
        /// `None`: not escaped at all. `Some(separator)`: escaped, with what follows.
        escape: Option<Option<u8>>,
    },
}

impl Recipe {
    /// The address that the entry names; `None` when the entry does not fit.
    pub fn target(&self, key: &[u8], value: &[u8]) -> Option<Address> {
        let fields = self.cut(key)?;
        let members = if self.parts.iter().any(|part| matches!(part, Part::Member { .. })) {
            serde_json::from_slice(value).ok()?
        } else {
            Value::Null
        };
        let mut target = Vec::with_capacity(key.len());
        for part in &self.parts {
            match part {
                Part::Literal(bytes) => target.extend_from_slice(bytes),
                Part::Field(field) => target.extend_from_slice(fields.get(*field)?),
                Part::Recoded { field, separator } => {
                    percent::escape(
                        &percent::unescape(fields.get(*field)?)?,
                        *separator,
                        &mut target,
                    );
                }
                Part::Member { path, escape } => {
                    let text = path.iter().try_fold(&members, |at, name| at.get(name))?.as_str()?;
                    match escape {
                        None => target.extend_from_slice(text.as_bytes()),
                        Some(separator) => {
                            percent::escape(text.as_bytes(), *separator, &mut target)
                        }
                    }
                }
            }
        }
        Some(Address::new(self.area.clone(), target))
    }

    fn cut<'k>(&self, key: &'k [u8]) -> Option<Vec<&'k [u8]>> {
        let mut rest = key;
        let mut fields = Vec::with_capacity(self.cuts.len());
        for cut in &self.cuts {
            let width = match cut {
                Cut::Fixed(width) => *width,
                Cut::Until(byte) => rest.iter().position(|found| found == byte)?,
                Cut::Rest => rest.len(),
            };
            let (field, tail) = rest.split_at_checked(width)?;
            fields.push(field);
            rest = tail;
        }
        Some(fields)
    }
}
