//! What the cell of one version holds.
//!
//! | bytes | what | example |
//! | --- | --- | --- |
//! | first line | who made the version, and when, as JSON | `{"at":1700000000000,"by":"ana","kind":"updated","key":"note:1"}` |
//! | the rest | the record before, byte for byte; nothing for a creation | `{"id":"1"}` |
//!
//! The record as the version left it is what the next version found, or the record itself. So a
//! version costs no second copy of the record, and the first change after a history is switched
//! on keeps what was there before.

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::engine::{Cell, VALUE_BYTES_MAX};

/// How a version came about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum HistoryKind {
    /// The record was not there before.
    Created,
    /// It was changed or replaced.
    Updated,
    /// It was moved to another key, and maybe changed with that.
    Renamed,
    /// It was deleted.
    Deleted,
    /// Its time was over.
    Expired,
}

impl HistoryKind {
    /// Whether the record was there no more.
    pub fn is_end(self) -> bool {
        matches!(self, HistoryKind::Deleted | HistoryKind::Expired)
    }
}

/// One version, as its cell has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Past {
    /// When it was made, in milliseconds since 1970.
    pub(crate) at: u64,
    /// The acting user, if there was one.
    pub(crate) by: Option<String>,
    pub(crate) kind: HistoryKind,
    /// The record's key: the new one of a rename, the last one of an end.
    pub(crate) key: String,
    /// The old key of a rename.
    pub(crate) from: Option<String>,
    /// The record before.
    pub(crate) before: Option<Bytes>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    at: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    by: Option<String>,
    kind: HistoryKind,
    key: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    from: Option<String>,
}

impl Past {
    /// The bytes of the cell. A record from before the history was switched on may be so large
    /// that it does not fit beside its line; then it is left out.
    pub(crate) fn to_bytes(&self) -> Bytes {
        let Past { at, by, kind, key, from, before } = self.clone();
        // Strings and numbers alone cannot fail to be JSON.
        let mut bytes = serde_json::to_vec(&Line { at, by, kind, key, from }).unwrap_or_default();
        let before = before.filter(|text| bytes.len() + 1 + text.len() <= VALUE_BYTES_MAX);
        if let Some(text) = before {
            bytes.push(b'\n');
            bytes.extend(&text[..]);
        }
        bytes.into()
    }

    pub(crate) fn from_cell(cell: &Cell) -> Option<Self> {
        let bytes = cell.bytes()?;
        let line_end = bytes.iter().position(|&byte| byte == b'\n');
        let line = &bytes[..line_end.unwrap_or(bytes.len())];
        let Line { at, by, kind, key, from } = serde_json::from_slice(line).ok()?;
        let before = line_end.map(|end| bytes.slice(end + 1..));
        Some(Past { at, by, kind, key, from, before })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail by panicking")]
    use proptest::prelude::*;

    use super::*;
    use crate::engine::{Content, Stamp};

    fn cell(bytes: Bytes) -> Cell {
        Cell { stamp: Stamp([0; Stamp::BYTES]), content: Content::Bytes(bytes) }
    }

    proptest! {
        #[test]
        fn a_version_is_read_as_it_was_written(
            at: u64,
            by: Option<String>,
            key: String,
            from: Option<String>,
            before: Option<Vec<u8>>,
        ) {
            let before = before.map(Bytes::from);
            let past = Past { at, by, kind: HistoryKind::Renamed, key, from, before };
            prop_assert_eq!(Past::from_cell(&cell(past.to_bytes())), Some(past));
        }

        #[test]
        fn any_bytes_can_be_tried(bytes: Vec<u8>) {
            let _ = Past::from_cell(&cell(bytes.into()));
        }
    }

    #[test]
    fn a_record_that_does_not_fit_is_left_out() {
        let before = Some(Bytes::from(vec![b'x'; VALUE_BYTES_MAX]));
        let kind = HistoryKind::Deleted;
        let past = Past { at: 1, by: None, kind, key: "k".into(), from: None, before };
        assert_eq!(&past.to_bytes()[..], br#"{"at":1,"kind":"deleted","key":"k"}"#);
    }
}
