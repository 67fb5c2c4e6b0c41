//! What verify reports.

use std::fmt;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::engine::{Area, Effect, ShowKey};

/// What is wrong with a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum FindingKind {
    /// A record lacks an entry that it should have.
    Missing,
    /// An entry whose record is not there.
    Dangling,
    /// An entry that its record does not have, or with another value.
    Wrong,
    /// A group of an aggregate that is not what its records give.
    Drifted,
    /// A record or an entry that cannot be read, or that does not fit its own key.
    Unreadable,
    /// A record with a value that its declaration does not allow, or without one that it wants.
    Misfit,
    /// A key in the range of a declared template that belongs to none.
    Unknown,
}

impl fmt::Display for FindingKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            FindingKind::Missing => "missing",
            FindingKind::Dangling => "dangling",
            FindingKind::Wrong => "wrong",
            FindingKind::Drifted => "drifted",
            FindingKind::Unreadable => "unreadable",
            FindingKind::Misfit => "misfit",
            FindingKind::Unknown => "unknown",
        })
    }
}

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// What is wrong with the key.
    pub kind: FindingKind,
    /// The collection that the key belongs to, if it belongs to one.
    pub collection: Option<String>,
    /// The index or aggregate that the key belongs to; `None` for records and unknown keys. For a record that
    /// does not fit an index, that index.
    pub index: Option<String>,
    /// The area of the key; empty for the default one.
    pub area: String,
    /// The key: that of the entry, also when it is missing, or that of the record. Bytes that are
    /// no text, and control characters, are shown as `\xNN`.
    pub key: String,
    /// The same key, byte for byte.
    #[serde(with = "key_bytes")]
    pub key_bytes: Bytes,
    /// The key of the record that the entry belongs to, if it can be told.
    pub record: Option<String>,
    /// What was found, in words.
    pub reason: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind, self.key)?;
        if !self.area.is_empty() {
            write!(f, " in area {}", self.area)?;
        }
        match (&self.collection, &self.index) {
            (Some(collection), Some(index)) => write!(f, " (index {index} of {collection})")?,
            (Some(collection), None) => write!(f, " (collection {collection})")?,
            (None, _) => {}
        }
        write!(f, ": {}", self.reason)
    }
}

/// How many findings there are of each kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FindingCounts {
    /// Records that lack an entry, once for each entry.
    pub missing: u64,
    /// Entries without a record.
    pub dangling: u64,
    /// Entries that their records do not have so.
    pub wrong: u64,
    /// Groups that are not what their records give.
    pub drifted: u64,
    /// Records and entries that cannot be read.
    pub unreadable: u64,
    /// Records that do not fit their declaration.
    pub misfit: u64,
    /// Keys that belong to no template.
    pub unknown: u64,
}

impl FindingCounts {
    /// All kinds together.
    pub fn total(&self) -> u64 {
        let FindingCounts { missing, dangling, wrong, drifted, unreadable, misfit, unknown } =
            *self;
        missing + dangling + wrong + drifted + unreadable + misfit + unknown
    }

    /// How many of one kind.
    pub fn of(&self, kind: FindingKind) -> u64 {
        match kind {
            FindingKind::Missing => self.missing,
            FindingKind::Dangling => self.dangling,
            FindingKind::Wrong => self.wrong,
            FindingKind::Drifted => self.drifted,
            FindingKind::Unreadable => self.unreadable,
            FindingKind::Misfit => self.misfit,
            FindingKind::Unknown => self.unknown,
        }
    }

    pub(crate) fn add(&mut self, kind: FindingKind) {
        *match kind {
            FindingKind::Missing => &mut self.missing,
            FindingKind::Dangling => &mut self.dangling,
            FindingKind::Wrong => &mut self.wrong,
            FindingKind::Drifted => &mut self.drifted,
            FindingKind::Unreadable => &mut self.unreadable,
            FindingKind::Misfit => &mut self.misfit,
            FindingKind::Unknown => &mut self.unknown,
        } += 1;
    }
}

impl fmt::Display for FindingCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let FindingCounts { missing, dangling, wrong, drifted, unreadable, misfit, unknown } = self;
        write!(
            f,
            "{missing} missing, {dangling} dangling, {wrong} wrong, {drifted} drifted, \
             {unreadable} unreadable, {misfit} misfit, {unknown} unknown"
        )
    }
}

/// What is wrong with one cell beside records, and what puts it right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Flaw {
    pub(crate) kind: FindingKind,
    pub(crate) collection: Option<String>,
    pub(crate) index: Option<String>,
    pub(crate) record: Option<String>,
    pub(crate) reason: String,
    pub(crate) remedy: Effect,
}

impl Flaw {
    /// Of a cell that nobody can make anything of, so that it is deleted.
    pub(crate) fn new(kind: FindingKind, reason: impl Into<String>) -> Self {
        let reason = reason.into();
        let (collection, index, record, remedy) = (None, None, None, Effect::Delete);
        Flaw { kind, collection, index, record, reason, remedy }
    }

    pub(crate) fn finding(self, key: &[u8]) -> Finding {
        let Flaw { kind, collection, index, record, reason, .. } = self;
        Finding {
            kind,
            collection,
            index,
            area: Area::own().name().to_owned(),
            key: ShowKey(key).to_string(),
            key_bytes: Bytes::copy_from_slice(key),
            record,
            reason,
        }
    }
}

/// A key as text that has all of its bytes.
mod key_bytes {
    use bytes::Bytes;
    use serde::de::Error as _;
    use serde::{Deserialize, Deserializer, Serializer};

    use crate::space::{from_text, to_text};

    pub(super) fn serialize<S: Serializer>(key: &Bytes, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&to_text(key))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Bytes, D::Error> {
        let text = String::deserialize(deserializer)?;
        from_text(&text).ok_or_else(|| D::Error::custom("no escaped key"))
    }
}
