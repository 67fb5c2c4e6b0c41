//! Whether the cell of an idempotency key is one.

use super::kept::Kept;
use crate::engine::Cell;
use crate::own::OwnKey;
use crate::side::finding::{FindingKind, Flaw};

/// What is wrong with a cell; `None` when nothing is.
pub(super) fn judge(key: &[u8], cell: &Cell) -> Option<Flaw> {
    if OwnKey::decode(key).is_none() {
        let reason = "it begins like an idempotency key and is none";
        return Some(Flaw::new(FindingKind::Unknown, reason));
    }
    let reason = "the answer to an idempotency key cannot be read";
    Kept::from_cell(cell).is_none().then(|| Flaw::new(FindingKind::Unreadable, reason))
}
