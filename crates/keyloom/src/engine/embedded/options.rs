//! How an embedded store is opened.

use std::time::Duration;

use super::fjall::Internals;
use super::gate::SyncGate;

const MIB: u64 = 1024 * 1024;

/// When a commit is acknowledged. It needs the feature `embedded`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// After the disk has it. What was acknowledged, or seen by any reader, survives the end of
    /// the process, of the operating system, and of the power supply.
    Durable,
    /// Before the disk has it: **not** durable. The operating system has it, so that it survives
    /// the end of the process; a crash of the operating system or a loss of power may take what
    /// was acknowledged since the last sync, newest first and whole batches only. When such a
    /// sync fails, the store turns read-only, and acknowledged batches may be lost.
    Relaxed {
        /// How long an acknowledged batch waits for its sync at most.
        sync_every: Duration,
    },
}

/// How an embedded store is opened. The defaults suit a small server. It needs the feature
/// `embedded`.
#[derive(Clone, Debug)]
pub struct Options {
    pub(super) durability: Durability,
    pub(super) block_cache_bytes: Option<u64>,
    pub(super) record_cache_bytes: u64,
    pub(super) list_cache_bytes: u64,
    pub(super) memtable_bytes: u64,
    pub(super) is_compressed: bool,
    pub(super) sync_gate: Option<SyncGate>,
    pub(super) internals: Internals,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            durability: Durability::Durable,
            block_cache_bytes: None,
            record_cache_bytes: 160 * MIB,
            list_cache_bytes: 96 * MIB,
            memtable_bytes: 64 * MIB,
            is_compressed: false,
            sync_gate: None,
            internals: Internals::default(),
        }
    }
}

impl Options {
    /// When a commit is acknowledged; [`Durability::Durable`] unless set.
    #[must_use]
    pub fn durability(mut self, durability: Durability) -> Self {
        self.durability = durability;
        self
    }

    /// Memory for blocks of the files. Unless set, it depends on how large the store is when it is
    /// opened. Up to 5.5 GiB (2.75 where files are compressed) there is none: the operating system
    /// keeps the files in memory, cells and lists that are wanted again are kept apart, and the
    /// indexes and filters of the files come on top, with about a thirtieth of the files' bytes. They
    /// grow with the store. Above that, the parts of indexes and filters are blocks, and have that
    /// thirtieth, up to 256 MiB.
    #[must_use]
    pub fn block_cache_bytes(mut self, bytes: u64) -> Self {
        self.block_cache_bytes = Some(bytes);
        self
    }

    /// Memory for single cells that were read by their key; 160 MiB unless set, 0 for none. Two
    /// thirds are for small ones, such as the claims of unique values.
    #[must_use]
    pub fn record_cache_bytes(mut self, bytes: u64) -> Self {
        self.record_cache_bytes = bytes;
        self
    }

    /// Memory for the first rows of ranges that were read, such as the newest entries of a user;
    /// 96 MiB unless set, 0 for none. Besides, they have what single cells have not taken yet of
    /// theirs. Where memory is short, lists are packed before any is pushed out.
    #[must_use]
    pub fn list_cache_bytes(mut self, bytes: u64) -> Self {
        self.list_cache_bytes = bytes;
        self
    }

    /// How much is collected in memory before it is written to a table; 64 MiB unless set, and at
    /// most five times as much memory is used. A store keeps the value that it was created with.
    #[must_use]
    pub fn memtable_bytes(mut self, bytes: u64) -> Self {
        self.memtable_bytes = bytes;
        self
    }

    /// Whether the files are compressed; not unless set. JSON takes about half of the disk then, and
    /// what no cache has takes longer to read. A store keeps the choice that it was created with.
    #[must_use]
    pub fn compressed(mut self, is_compressed: bool) -> Self {
        self.is_compressed = is_compressed;
        self
    }

    /// Holds the commit thread before it makes a group durable. For tests.
    #[doc(hidden)]
    #[must_use]
    pub fn sync_gate(mut self, gate: SyncGate) -> Self {
        self.sync_gate = Some(gate);
        self
    }
}
