//! What engines may differ in. Everything else is the same on all of them.

/// How the parts of one answer relate in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reading {
    /// All cells of one answer are of one moment, and no batch is seen half.
    Snapshot,
    /// Cells of one answer may be of different moments. A record must regenerate the entry that
    /// led to it, or it is read again or dropped.
    Validated,
}

/// What an engine can do, fixed for its lifetime.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// The engine's name, for messages and plans.
    pub engine: &'static str,
    /// How the parts of one answer relate in time.
    pub reading: Reading,
    /// The most entries that one batch may have, the fence apart.
    pub batch_entries_max: usize,
    /// The most bytes of keys and values that one batch may have.
    pub batch_bytes_max: usize,
    /// Over how many cells additions to one number are spread, so that writers do not wait for
    /// one another: 1 where additions do not contend.
    pub adds_spread: usize,
    /// Whether other processes may have the same store open at the same time.
    pub is_shared: bool,
    /// Whether acknowledged batches survive the end of the process.
    pub persistent: bool,
    /// Whether batches may append to a log, whose positions follow the order of commits.
    pub keeps_log: bool,
    /// Whether [`Engine::pin`](super::Engine::pin) gives the store as it is at one moment.
    pub pins: bool,
}
