//! Verifies a store and mends what it finds, while writers go on.

use std::sync::Arc;

use super::finding::{Finding, FindingCounts, Tally};
use super::mend::{Hand, Mended};
use super::suspect::Suspect;
use super::verify::{Fault, Verifier, VerifyOptions};
use crate::error::Result;
use crate::schema::Live;

/// How a store is repaired.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RepairOptions {
    /// Whether nothing is written: `mended` then tells what would be.
    pub dry_run: bool,
    /// How the faults are found.
    pub verify: VerifyOptions,
}

/// What a repair did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repair {
    /// The first faults that were mended.
    pub mended: Vec<Finding>,
    /// How many faults of each kind were mended.
    pub mended_counts: FindingCounts,
    /// The first faults that were left: unreadable and unknown keys, values that two records
    /// claim, and what writers kept changing.
    pub left: Vec<Finding>,
    /// How many faults of each kind were left.
    pub left_counts: FindingCounts,
    /// How many records were looked at.
    pub records: u64,
    /// How many index entries were looked at.
    pub entries: u64,
    /// How many suspicions could neither be confirmed nor dismissed, as in
    /// [`Verification`](super::Verification).
    pub unsettled: u64,
}

/// What becomes of a fault.
enum Fate {
    Mended,
    Left(String),
    /// Somebody else mended it.
    Gone,
    StaleSchema,
}

pub(crate) async fn repair(live: &Arc<Live>, options: &RepairOptions) -> Result<Repair> {
    let mut verifier = Verifier::new(live, &options.verify).await?;
    let hand = if options.dry_run { Hand::Dry } else { Hand::Real };
    let findings_max = options.verify.findings_max;
    let (mut mended, mut left) = (Tally::default(), Tally::default());
    let (mut records, mut entries, mut unsettled) = (0, 0, 0);
    while let Some(examined) = verifier.next_examined().await? {
        records += examined.records;
        entries += examined.entries;
        unsettled += examined.unsettled;
        for Fault { suspect, mut finding } in examined.faults {
            match settle(&mut verifier, &suspect, hand).await? {
                Fate::Mended => mended.add(finding, findings_max),
                Fate::Left(reason) => {
                    finding.reason.push_str(&reason);
                    left.add(finding, findings_max);
                }
                Fate::Gone | Fate::StaleSchema => {}
            }
        }
    }
    Ok(Repair {
        mended: mended.findings,
        mended_counts: mended.counts,
        left: left.findings,
        left_counts: left.counts,
        records,
        entries,
        unsettled,
    })
}

/// Mends one fault. When the schema changed since it was found, it is tried once more if its
/// index is still maintained.
async fn settle(verifier: &mut Verifier, suspect: &Suspect, hand: Hand) -> Result<Fate> {
    for _ in 0..2 {
        match attempt(verifier, suspect, hand).await? {
            Fate::StaleSchema => verifier.reload().await?,
            fate => return Ok(fate),
        }
    }
    Ok(Fate::Left("; the schema kept changing".to_owned()))
}

async fn attempt(verifier: &Verifier, suspect: &Suspect, hand: Hand) -> Result<Fate> {
    let mender = verifier.mender();
    let mended = match suspect {
        Suspect::Unmatched(pair) | Suspect::Stale(pair) => {
            if !mender.loaded.is_maintained(&pair.collection, &pair.index) {
                return Ok(Fate::Gone);
            }
            mender.mend(pair, hand).await?
        }
        Suspect::Counters(counters) => verifier.renewed(counters).mend(&mender, hand).await?,
        Suspect::Nameless { .. } | Suspect::Record { .. } | Suspect::Stray { .. } => {
            return Ok(Fate::Left(String::new()));
        }
    };
    Ok(match mended {
        Mended::Sound => Fate::Gone,
        Mended::Put | Mended::Rewritten | Mended::Removed => Fate::Mended,
        // The finding names the holder already.
        Mended::Clash { .. } | Mended::Unreadable => Fate::Left(String::new()),
        Mended::Contended => Fate::Left("; other writers won every attempt to mend it".to_owned()),
        Mended::StaleSchema => Fate::StaleSchema,
    })
}
