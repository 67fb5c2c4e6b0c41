//! What verify is asked for, and what it answers.

use serde::{Deserialize, Serialize};

use super::not_ready::NotReady;
use crate::side::{Finding, FindingCounts};

/// How a store is verified.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VerifyOptions {
    /// How many findings are kept. All are counted.
    pub findings_max: usize,
    /// How many keys are read at once.
    pub chunk_keys: usize,
}

impl Default for VerifyOptions {
    fn default() -> Self {
        VerifyOptions { findings_max: 1_000, chunk_keys: 256 }
    }
}

/// What a verification found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verification {
    /// The first findings, by area and key.
    pub findings: Vec<Finding>,
    /// How many findings there are of each kind.
    pub counts: FindingCounts,
    /// How many records were looked at.
    pub records: u64,
    /// How many index entries were looked at, without those of disabled and failed indexes.
    pub entries: u64,
    /// How many suspicions could neither be confirmed nor dismissed, because writers changed the
    /// record each time that it was looked at; never on an engine that reads snapshots. And how
    /// many groups of aggregates could not be compared, because writers changed them all the
    /// time.
    pub unsettled: u64,
    /// The indexes and aggregates that are declared and do not serve, whatever the reason.
    pub not_ready: Vec<NotReady>,
}

impl Verification {
    /// Whether nothing is wrong: there is no finding, and whatever is declared and was not switched
    /// off is complete.
    pub fn is_clean(&self) -> bool {
        self.counts.total() == 0 && !self.not_ready.iter().any(NotReady::is_fault)
    }
}

/// What a chunk of keys gave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifiedChunk {
    /// What is wrong, each confirmed.
    pub findings: Vec<Finding>,
    /// How many records were looked at.
    pub records: u64,
    /// How many index entries were looked at.
    pub entries: u64,
    /// How many suspicions could neither be confirmed nor dismissed.
    pub unsettled: u64,
}
