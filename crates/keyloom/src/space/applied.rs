//! What became of a schema that was applied.

use std::fmt;

use crate::schema::Change;

/// What became of a schema that was applied.
#[derive(Clone, Debug, PartialEq)]
pub struct Applied {
    /// How it differs from the one that was in the store.
    pub changes: Vec<Change>,
    /// The indexes that must be built before they can be read: collection and index.
    pub to_build: Vec<(String, String)>,
    /// The collections with records that do not fit what this schema declares over them. Such
    /// records stay, and can be changed in other fields; what does not fit must fit once it is
    /// changed itself.
    pub misfits: Vec<Misfits>,
}

/// The records of a collection that do not fit what was declared over them. The first 1,000 records
/// are looked at; [`Store::verify`](crate::Store::verify) tells all.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Misfits {
    /// The collection.
    pub collection: String,
    /// How many do not fit, of those that were looked at.
    pub records: u64,
    /// How many were looked at.
    pub looked_at: u64,
    /// Whether these are all records of the collection.
    pub is_exact: bool,
    /// The first of them.
    pub first: Vec<Misfit>,
}

/// A record that does not fit what was declared over it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Misfit {
    /// The key of the record.
    pub key: String,
    /// What does not fit, and why.
    pub reason: String,
}

impl Misfits {
    /// Those of a collection before any record was looked at.
    pub(crate) fn none(collection: &str) -> Self {
        let collection = collection.to_owned();
        Misfits { collection, records: 0, looked_at: 0, is_exact: true, first: Vec::new() }
    }
}

impl fmt::Display for Misfits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Misfits { collection, records, looked_at, is_exact, first } = self;
        let of = if *is_exact { "" } else { "the first " };
        write!(f, "{records} of {of}{looked_at} records of {collection} do not fit")?;
        match first.first() {
            Some(Misfit { key, reason }) => write!(f, ", such as {key}: {reason}"),
            None => Ok(()),
        }
    }
}
