//! The differences that are allowed between engines. In all else, engines are the same.

/// Whether all parts of an answer come from one snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reading {
    /// All cells of an answer come from one snapshot, and never show part of a batch.
    Snapshot,
    /// Cells of one answer may be read at different times. A reader must check that a record has
    /// the entry that led to it, or else read again or drop it.
    Validated,
}

/// The capabilities of an engine. They never change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// The engine's name, for messages and plans.
    pub engine: &'static str,
    /// Whether all parts of an answer come from one snapshot.
    pub reading: Reading,
    /// The most entries in one batch, not counting the fence.
    pub batch_entries_max: usize,
    /// The most bytes of keys and values in one batch.
    pub batch_bytes_max: usize,
    /// Over how many cells additions to one number are spread, so that writers do not wait for one
    /// another; 1 if additions do not contend.
    pub adds_spread: usize,
    /// Whether other processes may have the same store open at the same time.
    pub is_shared: bool,
    /// Whether acknowledged batches survive the end of the process.
    pub persistent: bool,
    /// Whether batches may append to a log, with positions in the order of commits.
    pub keeps_log: bool,
    /// Whether [`Engine::pin`](super::Engine::pin) can pin a snapshot of the store.
    pub pins: bool,
}
