//! fjall as the embedded engine uses it: opened with our settings, written by one thread, and
//! never trusted to go on after a failure.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use fjall::compaction::Leveled;
use fjall::config::{BlockSizePolicy, CompressionPolicy, HashRatioPolicy, PinningPolicy};
use fjall::{CompressionType, Keyspace, KeyspaceCreateOptions, PersistMode};

use super::super::figures::disk_bytes;
use super::super::folder::Folder;
use super::super::group::Change;
use super::super::log::Changes;
use super::super::options::Options;
use super::absence::AbsenceCheck;
use super::fault::{self, background_failed};
use super::internals::Internals;
use super::journal::{journal_path, journals, last_journal};
use super::journal_preallocation::JournalPreallocation;
use super::journal_repair::{cut_torn_batch, is_of_known_version};
use super::memtable_filter::MemtableFilter;
use super::self_check;
use super::stored::Stored;
use super::trust::{ShortCut, Trust};
use crate::error::{Error, ErrorKind, Result};

const KEYSPACE: &str = "cells";

/// fjall halts writes, in a loop that no failure ends, at 4 sealed memtables and at 30 runs in
/// the lowest level. We wait earlier, and look out for failures while we do.
const SEALED_MEMTABLES_MAX: usize = 2;
const LOWEST_RUNS_MAX: usize = 20;

/// How many threads flush and merge. The first of them leaves merges to the others: it hands the
/// request for one back to the queue, and takes it from there again, until another is free. With two
/// threads, as many as fjall would take on two processors, it does nothing else for as long as a
/// merge lasts, and a processor has no time for writers. With four that takes three merges at once.
const WORKERS: usize = 4;

/// How large a table becomes, and so, times the four tables that fjall lets come together in the
/// lowest level, the one after it; each further one has ten times as much. What is not compressed
/// has more bytes, and is to be merged no more often for it.
const TABLE_BYTES: u64 = 128 << 20;
const TABLE_BYTES_COMPRESSED: u64 = 64 << 20;

/// How much is read for a cell that no cache has. A record has some hundred bytes, so that more would
/// be copied and checked for nothing; less would double the index.
const BLOCK_BYTES: u32 = 2 * 1024;

/// How many places the hash index of a block has for each of its cells: a byte each.
const HASHES_PER_CELL: f32 = 1.0;

/// Below fjall's folder, where the tables of all keyspaces are.
const TABLES_FOLDER: &str = "keyspaces";

/// About from how many tables on fjall divides the indexes and filters of new ones: those of its
/// first two levels stay whole, which are 4 tables and 40. Then how many bytes of a table have a byte
/// of either, and the most memory that they get unless more is asked for.
const TABLES_WHOLE: u64 = 44;
const INDEXED_BYTES_PER_BYTE: u64 = 30;
const BLOCKS_KEPT_BYTES_MAX: u64 = 256 << 20;

const WAIT_STEP: Duration = Duration::from_millis(1);

/// What a commit is to survive before it is acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Survives {
    /// The end of this process.
    Process,
    /// A loss of power.
    Power,
}

impl Survives {
    /// fdatasync is enough for power: it writes the bytes, and whatever of the file's metadata is
    /// needed to find them again (its length and its blocks). What it leaves out, such as the
    /// time of change, recovery does not read. The journal file itself is made durable in its
    /// folder by fjall when it is created. (Where the platform has no fdatasync, the standard
    /// library calls what is stronger.)
    fn mode(self) -> PersistMode {
        match self {
            Survives::Process => PersistMode::Buffer,
            Survives::Power => PersistMode::SyncData,
        }
    }
}

/// One fjall database with one keyspace. Fields are dropped in order, the lock last.
pub(crate) struct Database {
    cells: Keyspace,
    fjall: fjall::Database,
    internals: Internals,
    trust: Arc<Trust>,
    preallocation: JournalPreallocation,
    memtable_filter: MemtableFilter,
    folder: Folder,
}

impl Database {
    /// Opens what is in the folder, or creates it.
    pub(crate) fn open(mut folder: Folder, options: &Options) -> Result<Self> {
        let (internals, trust) = (options.internals, Arc::new(Trust::default()));
        let mut opened = Opened::open(&folder, options)?;
        internals.go_on_numbering(&opened.fjall, &opened.cells);
        if !self_check::is_all_visible(internals, &opened.fjall, &opened.cells) {
            // There is a journal now, so that fjall numbers by itself when it opens once more.
            trust.lose(ShortCut::Numbering);
            drop(opened);
            opened = Opened::open(&folder, options)?;
            if !self_check::is_all_visible(internals, &opened.fjall, &opened.cells) {
                return Err(fault::hides_what_it_has(folder.path()));
            }
        }
        let Opened { cells, fjall, inherited } = opened;
        if !self_check::tables_know_their_keys(internals, &cells) {
            trust.lose(ShortCut::Absence);
        }
        let memtable_filter = MemtableFilter::new(
            options.memtable_bytes,
            internals.next_number(&fjall),
            inherited.is_some(),
        );
        let preallocation =
            JournalPreallocation::new(folder.cells_path(), inherited, internals, trust.clone());
        if folder.is_new() {
            fjall.persist(PersistMode::SyncAll).map_err(|error| at(&folder, error))?;
            folder.finish_creation()?;
        }
        Ok(Database { cells, fjall, internals, trust, preallocation, memtable_filter, folder })
    }

    /// Everything that was written so far.
    pub(crate) fn stored(&self) -> Stored {
        Stored::Latest { snapshot: self.fjall.snapshot(), cells: self.cells.clone() }
    }

    /// What tells that a key is absent from everything that was written so far.
    pub(crate) fn absence(&self) -> AbsenceCheck {
        AbsenceCheck::new(
            self.cells.clone(),
            self.memtable_filter.snapshot(),
            self.internals,
            self.trust.clone(),
        )
    }

    /// What is not taken for granted of fjall any more.
    pub(crate) fn trust(&self) -> &Arc<Trust> {
        &self.trust
    }

    /// Writes cells, and entries of logs, as one: journal, sync if asked for, then memory, in this
    /// order. After an error nothing of it is in memory, but the journal may have it; see
    /// [`fault::Fault`].
    pub(crate) fn write(
        &mut self,
        cells: &[Change<'_>],
        log: &Changes,
        survives: Survives,
    ) -> Result<(), fault::Fault> {
        self.wait_for_room()?;
        let room = cells.len() + log.len();
        let mut batch = fjall::OwnedWriteBatch::with_capacity(self.fjall.clone(), room)
            .durability(Some(survives.mode()));
        let written = cells.iter().map(|change| (&change.key.bytes, change.stored.as_deref()));
        let written = written.chain(log.iter().map(|(key, stored)| (key, stored.as_ref())));
        if survives == Survives::Power {
            self.preallocation.announce(written.clone());
        }
        for (key, stored) in written {
            match stored {
                Some(stored) => batch.insert(&self.cells, key.clone(), stored.clone()),
                None => batch.remove(&self.cells, key.clone()),
            }
        }
        batch.commit().map_err(fault::writing)?;
        // Nobody asks whether an entry of a log is absent.
        self.memtable_filter.add(cells.iter().map(|change| change.key));
        self.discard_flushed();
        Ok(())
    }

    /// Lets the memtable filter forget what has left memory, unless the tables do not know it.
    fn discard_flushed(&mut self) {
        let Database { cells, internals, trust, .. } = self;
        if !trust.has(ShortCut::Absence) {
            return;
        }
        self.memtable_filter.discard_flushed(
            internals.next_number(&self.fjall),
            || internals.highest_flushed(cells),
            |witnesses| {
                let is_right = self_check::tables_have(*internals, cells, witnesses)
                    && self_check::tables_know_their_keys(*internals, cells);
                if !is_right {
                    trust.lose(ShortCut::Absence);
                }
                is_right
            },
        );
    }

    /// Makes everything that was written survive a loss of power.
    pub(crate) fn sync(&self) -> Result<(), fault::Fault> {
        self.fjall.persist(Survives::Power.mode()).map_err(fault::writing)
    }

    /// Leaves a store that opens fast: everything is in tables, and the journal is empty.
    pub(crate) fn close(self) -> Result<(), fault::Fault> {
        self.flush()?;
        let witnesses = self.memtable_filter.witnesses();
        let is_flushed = !self.internals.has_unflushed(&self.cells)
            && self.trust.has(ShortCut::Numbering)
            && self_check::tables_have(self.internals, &self.cells, witnesses);
        let Database { cells, fjall, folder, .. } = self;
        drop(cells);
        drop(fjall);
        if is_flushed {
            // Recovery would find each batch of it in the tables, one by one, and fjall would go on
            // at its end, where nothing is preallocated. When removing it fails, that is what
            // happens, and only takes longer.
            let _ = remove_last_journal(&folder.cells_path());
        }
        Ok(())
    }

    /// Moves everything from memory into tables.
    fn flush(&self) -> Result<(), fault::Fault> {
        self.internals.rotate_memtable(&self.cells).map_err(fault::writing)?;
        self.wait_while(|| self.internals.sealed_memtables(&self.cells) > 0)
    }

    /// fjall asks for a merge after each new table, and not again when a merge could not begin
    /// because another was in the way. While we wait there are no new tables, so that we merge.
    fn wait_for_room(&self) -> Result<(), fault::Fault> {
        while self.internals.lowest_runs(&self.cells) > LOWEST_RUNS_MAX {
            self.internals.merge(&self.cells).map_err(background_failed)?;
            self.wait()?;
        }
        self.wait_while(|| self.internals.sealed_memtables(&self.cells) > SEALED_MEMTABLES_MAX)
    }

    fn wait_while(&self, is_busy: impl Fn() -> bool) -> Result<(), fault::Fault> {
        while is_busy() {
            self.wait()?;
        }
        Ok(())
    }

    /// Waits a little for fjall's own threads. They stop at their first failure and leave a mark
    /// that every call which writes reports; flushing a buffer is the cheapest of them.
    fn wait(&self) -> Result<(), fault::Fault> {
        self.fjall.persist(PersistMode::Buffer).map_err(background_failed)?;
        std::thread::sleep(WAIT_STEP);
        Ok(())
    }
}

/// A fjall database that was just opened.
struct Opened {
    cells: Keyspace,
    fjall: fjall::Database,
    /// The last journal that was there before.
    inherited: Option<u64>,
}

impl Opened {
    fn open(folder: &Folder, options: &Options) -> Result<Self> {
        let path = folder.cells_path();
        for journal in journals(&path).into_iter().map(|number| journal_path(&path, number)) {
            // What cannot be read is fjall's to tell.
            if !is_of_known_version(&journal).unwrap_or(true) {
                return Err(fault::unknown_journal(&journal));
            }
        }
        let inherited = last_journal(&path);
        let block_cache_bytes = options.block_cache_bytes.unwrap_or_else(|| {
            let tables_bytes = disk_bytes(&path.join(TABLES_FOLDER));
            blocks_worth_keeping(tables_bytes, table_bytes(options))
        });
        let open = || {
            fjall::Database::builder(&path)
                .cache_size(block_cache_bytes)
                .worker_threads(WORKERS)
                .manual_journal_persist(true)
                // fjall's recovery compresses again to check a compressed item, and takes other
                // bytes for damage: a store must not depend on the version of its compressor.
                .journal_compression(CompressionType::None)
                .open()
        };
        let last = inherited.map(|last| journal_path(&path, last));
        let fjall = open_mending(open, last.as_deref()).map_err(|error| at(folder, error))?;
        if !folder.is_new() && !fjall.keyspace_exists(KEYSPACE) {
            return Err(Error::new(ErrorKind::Corrupt, "the store's cells are missing")
                .with("path", folder.path().display()));
        }
        let cells = fjall.keyspace(KEYSPACE, || keyspace_options(options));
        Ok(Opened { cells: cells.map_err(|error| at(folder, error))?, fjall, inherited })
    }
}

fn at(folder: &Folder, error: fjall::Error) -> Error {
    fault::opening(folder.path(), error)
}

/// Opens fjall, without the last batch of its last journal if it is only that which is in the way.
fn open_mending(
    open: impl Fn() -> fjall::Result<fjall::Database>,
    last_journal: Option<&Path>,
) -> fjall::Result<fjall::Database> {
    match (open(), last_journal) {
        (Err(fjall::Error::JournalRecovery(_)), Some(journal)) if cut_torn_batch(journal)? => {
            open()
        }
        (opened, _) => opened,
    }
}

/// Removes the journal that fjall would go on with. Those before it are removed by fjall when their
/// batches are in tables.
fn remove_last_journal(cells_path: &Path) -> io::Result<()> {
    match last_journal(cells_path) {
        Some(last) => std::fs::remove_file(journal_path(cells_path, last)),
        None => Ok(()),
    }
}

/// How much of tables of so many bytes to keep in memory beside the operating system. Cells and lists
/// have caches of their own, and the indexes and filters of small stores stay in memory anyway; in
/// larger ones fjall divides these, and each look-up asks for several parts. Where nothing is divided,
/// a block is kept for nothing but another look at the same record.
fn blocks_worth_keeping(tables_bytes: u64, table_bytes: u64) -> u64 {
    if tables_bytes < TABLES_WHOLE * table_bytes {
        return 0;
    }
    (tables_bytes / INDEXED_BYTES_PER_BYTE).min(BLOCKS_KEPT_BYTES_MAX)
}

/// How fjall lays out its tables. A store keeps what it was created with.
///
/// Most reads are of single cells that exist. The indexes and filters of tables stay in memory
/// while they are whole, so that they need not be looked for among the blocks: fjall divides them
/// from its third level on, so that this ends at about 5.5 GiB of tables, and takes about a
/// thirtieth of these. Blocks tell by a hash where in them a key lies. They are not compressed unless
/// that is asked for: blocks are not kept, so that every read of a cell would decompress one.
fn keyspace_options(options: &Options) -> KeyspaceCreateOptions {
    let compression = match options.is_compressed {
        true => CompressionType::Lz4,
        false => CompressionType::None,
    };
    KeyspaceCreateOptions::default()
        .compaction_strategy(Arc::new(
            Leveled::default().with_table_target_size(table_bytes(options)),
        ))
        .data_block_compression_policy(CompressionPolicy::all(compression))
        .data_block_size_policy(BlockSizePolicy::all(BLOCK_BYTES))
        .manual_journal_persist(true)
        .max_memtable_size(options.memtable_bytes)
        .index_block_pinning_policy(PinningPolicy::all(true))
        .filter_block_pinning_policy(PinningPolicy::all(true))
        .data_block_hash_ratio_policy(HashRatioPolicy::all(HASHES_PER_CELL))
}

fn table_bytes(options: &Options) -> u64 {
    if options.is_compressed { TABLE_BYTES_COMPRESSED } else { TABLE_BYTES }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_kept_of_large_stores_alone() {
        const GIB: u64 = 1 << 30;
        let worth_keeping = |bytes| blocks_worth_keeping(bytes, TABLE_BYTES);
        assert_eq!(worth_keeping(0), 0);
        assert_eq!(worth_keeping(11 * GIB / 2 - 1), 0);
        assert_eq!(worth_keeping(11 * GIB / 2), 11 * GIB / 2 / 30);
        assert_eq!(worth_keeping(u64::MAX), 256 << 20);
        assert_eq!(blocks_worth_keeping(3 * GIB, TABLE_BYTES_COMPRESSED), GIB / 10);
    }
}
