//! Whether the cell of an idempotency key is one.

use bytes::Bytes;

use super::finding::{Finding, FindingKind};
use crate::engine::{Area, Cell, ShowKey};
use crate::idempotency::Kept;
use crate::own::OwnKey;

/// What is wrong with a cell; `None` when nothing is.
pub(super) fn judge(key: &[u8], cell: &Cell) -> Option<Finding> {
    let (kind, reason) = if OwnKey::decode(key).is_none() {
        (FindingKind::Unknown, "it begins like an idempotency key and is none")
    } else if Kept::from_cell(cell).is_none() {
        (FindingKind::Unreadable, "the answer to an idempotency key cannot be read")
    } else {
        return None;
    };
    Some(Finding {
        kind,
        collection: None,
        index: None,
        area: Area::own().name().to_owned(),
        key: ShowKey(key).to_string(),
        key_bytes: Bytes::copy_from_slice(key),
        record: None,
        reason: reason.to_owned(),
    })
}
