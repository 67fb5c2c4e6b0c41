//! Who is measured. Each does the same work on the same records; see [`Session`].

pub mod keyloom;
pub mod raw_fjall;
pub mod sqlite;

use std::fmt;
use std::path::Path;

use anyhow::Result;

use crate::workload::Approval;

/// How many records of a list are asked for.
pub const LIST: usize = 20;

/// The number of the record that all writers change.
pub const WANTED: u64 = 0;

/// How many records are loaded with one sync.
pub const LOAD_BATCH: usize = 1_000;

/// How often one of a rival's caches had what was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hits {
    pub cache: String,
    pub hits: u64,
    pub misses: u64,
}

impl Hits {
    /// What was asked since an earlier count of the same cache.
    pub fn since(&self, before: &Hits) -> Hits {
        let Hits { cache, hits, misses } = self;
        Hits { cache: cache.clone(), hits: hits - before.hits, misses: misses - before.misses }
    }

    /// Both counts together.
    pub fn add(&mut self, other: &Hits) {
        self.hits += other.hits;
        self.misses += other.misses;
    }
}

impl fmt::Display for Hits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Hits { cache, hits, misses } = self;
        let part = *hits as f64 * 100.0 / (hits + misses).max(1) as f64;
        write!(f, "{cache} {part:.1} % of {}", hits + misses)
    }
}

/// A store that is open.
pub trait Rival: Sized + Send + Sync {
    const NAME: &'static str;
    type Session: Session;

    /// Opens the store in the folder, which exists, with so much memory for caches in all.
    fn open(folder: &Path, cache_bytes: u64) -> Result<Self>;

    /// What one thread works with.
    fn session(&self) -> Result<Self::Session>;

    /// What its caches had so far, if it tells.
    fn hits(&self) -> Vec<Hits> {
        Vec::new()
    }

    /// Closes the store; what was written is in its files.
    fn close(self) -> Result<()>;
}

/// What one thread does with a store. Rivals that block do so: each session has a thread of its
/// own. Answers belong to the caller; they are given as the number of bytes that arrived, which
/// the harness checks.
pub trait Session {
    /// Writes many new records, with one sync for every [`LOAD_BATCH`] of them.
    async fn load(&mut self, records: &[Approval]) -> Result<()>;

    /// Writes one new record. It is durable when this returns.
    async fn insert(&mut self, record: &Approval) -> Result<()>;

    /// The texts of the 20 newest records that a user made.
    async fn list(&mut self, user: &str) -> Result<usize>;

    /// The text of the record with a code.
    async fn look_up(&mut self, code: &str) -> Result<usize>;

    /// Turns a record's status from pending to approved. It is durable when this returns.
    async fn approve(&mut self, id: &str) -> Result<()>;

    /// Reads the one record that all want, adds one to a number in it, and writes it. It is
    /// durable when this returns, and no addition is ever lost.
    async fn modify(&mut self) -> Result<()>;

    /// Adds one to the one counter that all count in. It is durable when this returns.
    async fn increment(&mut self) -> Result<()>;
}
