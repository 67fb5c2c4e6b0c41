//! The calls of what fjall and lsm-tree hide from their documentation.
//!
//! They stand together so that a reader of a new version of either can go through them one by one,
//! and so that tests can break each of them; see `Broken`.

use std::sync::Arc;

use bytes::Bytes;
use fjall::{AbstractTree, Keyspace};
use lsm_tree::table::filter::standard_bloom::Builder as BloomBuilder;

/// Above every sequence number: whatever there is, whoever may see it.
const OF_ANY_TIME: u64 = u64::MAX;

/// Versions of a cell below this sequence number may go in a merge, if newer ones hide them.
const KEEP_ALL_VERSIONS: u64 = 0;

/// Of how many tables a check takes keys.
const TABLES_SAMPLED_MAX: usize = 32;

/// What fjall writes into the journal for each cell besides its key and its bytes, and for each batch
/// besides its cells; both are less, 21 and 26 bytes. What is too much here leaves a gap without zeros
/// after large batches.
const JOURNAL_CELL_BYTES: usize = 32;
const JOURNAL_BATCH_BYTES: usize = 64;

/// What fjall hides, of one store.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Internals {
    #[cfg(test)]
    pub(crate) broken: Option<Broken>,
}

/// What a version of fjall could change, for tests.
#[cfg(test)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Broken {
    /// Filters know keys by another hash.
    FilterHash,
    /// Tables say of every key that they do not have it.
    TableLookup,
    /// The highest number in tables says nothing of what is still in memory.
    FlushOrder,
    /// Setting the next sequence number has no effect.
    Numbering,
    /// What is written into the journal is longer than reckoned.
    JournalLength,
    /// Nothing is said to be in memory, and all of it stays there.
    Unflushed,
}

impl Internals {
    #[cfg(test)]
    pub(super) fn breaks(self, what: Broken) -> bool {
        self.broken == Some(what)
    }

    /// The hash by which filters of tables know a key.
    fn filter_hash(self, key: &[u8]) -> u64 {
        let hash = BloomBuilder::get_hash(key);
        #[cfg(test)]
        if self.breaks(Broken::FilterHash) {
            return !hash;
        }
        hash
    }

    /// Whether no table has anything of a key, not even that it was removed.
    pub(super) fn tables_lack(self, cells: &Keyspace, key: &[u8]) -> fjall::Result<bool> {
        #[cfg(test)]
        if self.breaks(Broken::TableLookup) {
            return Ok(true);
        }
        let hash = self.filter_hash(key);
        let version = cells.tree.current_version();
        let runs = version.iter_levels().flat_map(|level| level.iter());
        for table in runs.filter_map(|run| run.get_for_key(key)) {
            if table.get(key, OF_ANY_TIME, hash)?.is_some() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The first and the last key of some tables, as they lie there. A table that cannot be read is
    /// left out: whoever needs it is told.
    pub(super) fn keys_in_tables(self, cells: &Keyspace) -> Vec<Bytes> {
        let version = cells.tree.current_version();
        let step = version.table_count().div_ceil(TABLES_SAMPLED_MAX).max(1);
        let sampled = version.iter_tables().step_by(step);
        let ends = sampled.flat_map(|table| [table.iter().next(), table.iter().next_back()]);
        ends.flatten().flatten().map(|item| item.key.user_key.into()).collect()
    }

    /// What the store has at a key, whatever its number.
    pub(super) fn get_of_any_time(
        self,
        cells: &Keyspace,
        key: &[u8],
    ) -> fjall::Result<Option<Bytes>> {
        Ok(cells.tree.get(key, OF_ANY_TIME)?.map(Bytes::from))
    }

    /// The highest number of anything in tables. Memory becomes tables in the order in which it was
    /// filled: a part of a batch can only be there after all batches with lower numbers.
    pub(super) fn highest_flushed(self, cells: &Keyspace) -> Option<u64> {
        #[cfg(test)]
        if self.breaks(Broken::FlushOrder) {
            return Some(u64::MAX);
        }
        cells.tree.get_highest_persisted_seqno()
    }

    /// Whether anything is in memory that is not in tables.
    pub(super) fn has_unflushed(self, cells: &Keyspace) -> bool {
        #[cfg(test)]
        if self.breaks(Broken::Unflushed) {
            return false;
        }
        cells.tree.get_highest_memtable_seqno().is_some()
    }

    /// The number of the next batch.
    pub(super) fn next_number(self, fjall: &fjall::Database) -> u64 {
        fjall.supervisor.seqno.get()
    }

    /// Lets fjall number its batches above all that are in tables. It does so itself while it replays
    /// a journal. Without one it would begin anew, and show nobody what has higher numbers.
    pub(super) fn go_on_numbering(self, fjall: &fjall::Database, cells: &Keyspace) {
        #[cfg(test)]
        if self.breaks(Broken::Numbering) {
            return;
        }
        let next = cells.tree.get_highest_seqno().map_or(0, |highest| highest + 1);
        fjall.supervisor.seqno.fetch_max(next);
        fjall.supervisor.snapshot_tracker.set(next);
    }

    /// How many bytes a batch of these cells has in the journal, at most.
    pub(super) fn journal_bytes_max<'c>(
        self,
        cells: impl Iterator<Item = (&'c Bytes, Option<&'c Bytes>)>,
    ) -> u64 {
        let bytes = |(key, stored): (&Bytes, Option<&Bytes>)| {
            key.len() + stored.map_or(0, Bytes::len) + JOURNAL_CELL_BYTES
        };
        let bytes = (cells.map(bytes).sum::<usize>() + JOURNAL_BATCH_BYTES) as u64;
        #[cfg(test)]
        if self.breaks(Broken::JournalLength) {
            return bytes / 2;
        }
        bytes
    }

    /// How many runs the lowest level has. fjall halts writes at 30.
    pub(super) fn lowest_runs(self, cells: &Keyspace) -> usize {
        cells.tree.l0_run_count()
    }

    /// Lets everything in memory become tables, which fjall's threads do later.
    pub(super) fn rotate_memtable(self, cells: &Keyspace) -> fjall::Result<()> {
        #[cfg(test)]
        if self.breaks(Broken::Unflushed) {
            return Ok(());
        }
        cells.rotate_memtable()?;
        Ok(())
    }

    /// How many memtables wait to become tables. fjall halts writes at 4.
    pub(super) fn sealed_memtables(self, cells: &Keyspace) -> usize {
        cells.sealed_memtable_count()
    }

    /// Merges tables on this thread, as fjall's own threads would.
    pub(super) fn merge(self, cells: &Keyspace) -> fjall::Result<()> {
        let strategy = Arc::clone(&cells.config.compaction_strategy);
        cells.tree.compact(strategy, KEEP_ALL_VERSIONS)?;
        Ok(())
    }
}
