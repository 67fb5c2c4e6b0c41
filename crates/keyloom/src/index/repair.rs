//! Verifies a store and mends what it finds, while writers go on.

use std::sync::Arc;

use super::aggregates::{self, Purpose};
use super::finding::{Finding, FindingCounts, Tally};
use super::mend::{Hand, Held, Mended};
use super::suspect::Suspect;
use super::verify::{Fault, Subject, Verifier, VerifyOptions};
use crate::engine::{Condition, Effect};
use crate::error::{Error, Result};
use crate::schema::{Aggregate, Live};

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
        // The faults of an aggregate come together, and counting it anew mends all of them.
        let mut recounted: Option<Result<(), Error>> = None;
        for Fault { subject, mut finding } in examined.faults {
            let fate = match &subject {
                Subject::Keys(suspect) => settle(&mut verifier, suspect, hand).await?,
                Subject::Litter(address, stamp) => {
                    let mut batch = verifier.mender().batch();
                    let unchanged = Some(Condition::Unchanged(*stamp));
                    let effect = (hand == Hand::Real).then_some(Effect::Delete);
                    batch.push(address.clone(), unchanged, effect);
                    match verifier.mender().commit(batch).await? {
                        Held::Yes => Fate::Mended,
                        Held::No | Held::StaleSchema => Fate::Gone,
                    }
                }
                Subject::Aggregate(aggregate) => {
                    if recounted.is_none() {
                        recounted = Some(recount(live, aggregate, hand).await);
                    }
                    match &recounted {
                        Some(Err(error)) => Fate::Left(format!("; {error}")),
                        _ => Fate::Mended,
                    }
                }
            };
            match fate {
                Fate::Mended => mended.add(finding, findings_max),
                Fate::Left(reason) => {
                    finding.reason.push_str(&reason);
                    left.add(finding, findings_max);
                }
                Fate::Gone | Fate::StaleSchema => {}
            }
        }
    }
    if hand == Hand::Real {
        tidy_up(live).await?;
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

/// Counts an aggregate anew beside what is read, and puts it in its place.
async fn recount(live: &Live, aggregate: &Aggregate, hand: Hand) -> Result<()> {
    if hand == Hand::Dry {
        return Ok(());
    }
    aggregates::build(live, &aggregate.collection, &aggregate.name, Purpose::Renew).await.map(drop)
}

/// Completes what somebody began to count anew, and removes what only counting needed: a process
/// that ended in between leaves both.
async fn tidy_up(live: &Live) -> Result<()> {
    let loaded = live.reload().await?;
    for collection in loaded.schema.collections.values() {
        for aggregate in collection.aggregates.values() {
            match loaded.readable(aggregate) {
                Ok(_) => {
                    let (collection, name) = (&aggregate.collection, &aggregate.name);
                    aggregates::build(live, collection, name, Purpose::Complete).await?;
                }
                Err(_) => drop(aggregates::clean(live, &collection.name, &aggregate.name).await?),
            }
        }
    }
    Ok(())
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
