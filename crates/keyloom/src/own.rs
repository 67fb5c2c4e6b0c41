//! The first words of keys in Keyloom's own area.

use crate::engine::{Address, Area};

/// What a task over a whole store keeps of its progress.
pub(crate) const TASKS: &str = "task:";

/// Whether a key speaks of this store alone, as it is now. It is neither logged, nor exported, nor
/// part of a backup.
pub(crate) fn is_of_this_store(address: &Address) -> bool {
    address.area == Area::own() && address.key.starts_with(TASKS.as_bytes())
}
