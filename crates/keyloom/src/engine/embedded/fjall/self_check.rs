//! Whether fjall works as the short cuts assume, asked of the store itself.
//!
//! The questions are asked of keys that certainly are there: they were scanned from the store's own
//! tables, or written a moment ago. They are few, so that opening a store takes no longer; a filter
//! that knows keys by another hash denies ninety-nine of a hundred. What cannot be read is no
//! witness: whoever needs it is told.

use fjall::{Keyspace, Readable};

use super::internals::Internals;
use super::memtable_filter::Witness;

/// Whether readers see what the tables hold: the numbers of batches go on above those in tables.
pub(super) fn is_all_visible(
    internals: Internals,
    fjall: &fjall::Database,
    cells: &Keyspace,
) -> bool {
    let snapshot = fjall.snapshot();
    internals.keys_in_tables(cells).iter().all(|key| {
        match (snapshot.get(cells, key), internals.get_of_any_time(cells, key)) {
            (Ok(seen), Ok(there)) => seen.as_deref() == there.as_deref(),
            _ => true,
        }
    })
}

/// Whether the tables know the keys that were scanned from them.
pub(super) fn tables_know_their_keys(internals: Internals, cells: &Keyspace) -> bool {
    let keys = internals.keys_in_tables(cells);
    keys.iter().all(|key| !internals.tables_lack(cells, key).unwrap_or(false))
}

/// Whether the tables have keys that are said to have left memory. One that was removed since, or
/// that is in memory again, says nothing.
pub(super) fn tables_have<'w>(
    internals: Internals,
    cells: &Keyspace,
    mut witnesses: impl Iterator<Item = &'w Witness>,
) -> bool {
    witnesses.all(|witness| {
        let is_there = || matches!(internals.get_of_any_time(cells, &witness.key), Ok(Some(_)));
        let is_lacking = internals.tables_lack(cells, &witness.key).unwrap_or(false);
        !(is_lacking && is_there())
    })
}
