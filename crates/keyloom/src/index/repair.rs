//! Verifies a store and mends what it finds, while writers go on.

use super::aggregates::{self, Purpose};
use super::group::Group;
use super::not_ready::NotReady;
use super::pair::Pair;
use super::pair_repair::{Hand, Mended, Mender, Sighted, at_sight};
use super::side_cells;
use super::suspect::Suspect;
use super::verification::VerifyOptions;
use super::verify::{Fault, Subject, Verifier};
use crate::engine::{Condition, Effect};
use crate::error::{Error, Result};
use crate::schema::Aggregate;
use crate::side::{Cure, Finding, FindingCounts, Findings, clean};
use crate::space::{Interrupted, Live, Session, Under};

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
    /// The first faults that were left: records and entries that cannot be read, keys of no
    /// template, values that two records claim, and what writers kept changing.
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
    /// The indexes and aggregates that are declared and do not serve. A repair leaves them:
    /// [`Store::build`](crate::Store::build) makes them ready.
    pub not_ready: Vec<NotReady>,
}

/// How far a repair is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RepairProgress {
    /// How many records were looked at.
    pub records: u64,
    /// How many index entries were looked at.
    pub entries: u64,
    /// How many faults were mended, or would be.
    pub mended: u64,
    /// How many faults were left.
    pub left: u64,
}

/// Hears how far a repair is, after each chunk of keys and each aggregate.
pub(crate) type HearRepair<'h> = &'h (dyn Fn(RepairProgress) + Send + Sync);

/// What becomes of a fault.
enum Fate {
    Mended,
    Left(String),
    /// Somebody else mended it.
    Gone,
}

pub(crate) async fn repair(
    session: &Session,
    options: &RepairOptions,
    hear: HearRepair<'_>,
) -> Result<Repair> {
    let live = session.program()?;
    let mut verifier = Verifier::new(session, &options.verify).await?;
    let hand = if options.dry_run { Hand::Dry } else { Hand::Real };
    let findings_max = options.verify.findings_max;
    let (mut mended, mut left) = (Findings::default(), Findings::default());
    let (mut records, mut entries, mut unsettled) = (0, 0, 0);
    while let Some(examined) = verifier.next_examined().await? {
        records += examined.records;
        entries += examined.entries;
        unsettled += examined.unsettled;
        let together = mend_together(&verifier, &examined.faults, hand).await?;
        // The faults of an aggregate come together, and counting it anew mends all of them.
        let mut recounted: Option<Result<(), Error>> = None;
        for (Fault { subject, mut finding }, fate) in examined.faults.into_iter().zip(together) {
            let fate = match (fate, &subject) {
                (Some(fate), _) => fate,
                (None, Subject::Keys(suspect)) => settle(&mut verifier, suspect, hand).await?,
                (None, Subject::Compared(Cure::Delete(address, stamp))) => {
                    let mut batch = verifier.mender().batch();
                    let unchanged = Some(Condition::Unchanged(*stamp));
                    let effect = (hand == Hand::Real).then_some(Effect::Delete);
                    batch.push(address.clone(), unchanged, effect);
                    match verifier.mender().commit(batch).await {
                        Ok(true) => Fate::Mended,
                        Err(Interrupted::Failed(error)) => return Err(error),
                        Ok(false) | Err(_) => Fate::Gone,
                    }
                }
                (None, Subject::Compared(Cure::CountAnew(aggregate))) => {
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
                Fate::Gone => {}
            }
        }
        let (mended, left) = (mended.counts.total(), left.counts.total());
        hear(RepairProgress { records, entries, mended, left });
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
        not_ready: verifier.not_ready().await?,
    })
}

/// Mends in as few batches as possible what has nothing to do with each other. `None` for what is
/// left to be mended by itself.
async fn mend_together(
    verifier: &Verifier,
    faults: &[Fault],
    hand: Hand,
) -> Result<Vec<Option<Fate>>> {
    let mender = verifier.mender();
    let pairs: Vec<(usize, &Pair)> = faults
        .iter()
        .enumerate()
        .filter_map(|(place, fault)| match &fault.subject {
            Subject::Keys(suspect) => Some((place, suspect.pair()?)),
            Subject::Compared(_) => None,
        })
        .filter(|(_, pair)| mender.loaded.is_maintained(&pair.collection, &pair.index))
        .collect();
    let mut fates: Vec<Option<Fate>> = faults.iter().map(|_| None).collect();
    let sights = mender.look_at_all(pairs.iter().map(|(_, pair)| *pair)).await?;
    let mut group = Group::new(&mender);
    for ((place, pair), sight) in pairs.into_iter().zip(sights) {
        if let Sighted::Step(step) = at_sight(pair, &sight)
            && group.fits(&step)
        {
            group.add(&step, hand, place);
        }
        if group.is_full(mender.live.engine.capabilities()) {
            let full = std::mem::replace(&mut group, Group::new(&mender));
            commit(&mender, full, &mut fates).await?;
        }
    }
    commit(&mender, group, &mut fates).await?;
    Ok(fates)
}

async fn commit(
    mender: &Mender<'_>,
    group: Group<usize>,
    fates: &mut [Option<Fate>],
) -> Result<()> {
    let (batch, places) = group.into_parts();
    if places.is_empty() {
        return Ok(());
    }
    match mender.commit(batch).await {
        Ok(true) => places.into_iter().for_each(|place| fates[place] = Some(Fate::Mended)),
        Err(Interrupted::Failed(error)) => return Err(error),
        // Each is tried by itself, under the schema as it is then.
        Ok(false) | Err(_) => {}
    }
    Ok(())
}

/// Counts an aggregate anew beside what is read, and puts it in its place.
async fn recount(live: &Live, aggregate: &Aggregate, hand: Hand) -> Result<()> {
    if hand == Hand::Dry {
        return Ok(());
    }
    aggregates::build(live, &aggregate.collection, &aggregate.name, Purpose::Renew, &|_| {})
        .await
        .map(drop)
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
                    aggregates::build(live, collection, name, Purpose::Complete, &|_| {}).await?;
                }
                Err(_) => drop(clean(live, &collection.name, &aggregate.name).await?),
            }
        }
    }
    Ok(())
}

/// Mends one fault. When the schema changed since it was found, it is tried once more if its
/// index is still maintained.
async fn settle(verifier: &mut Verifier, suspect: &Suspect, hand: Hand) -> Result<Fate> {
    for _ in 0..2 {
        match attempt(verifier, suspect, hand).await {
            Ok(fate) => return Ok(fate),
            Err(Interrupted::Failed(error)) => return Err(error),
            Err(_) => verifier.reload().await?,
        }
    }
    Ok(Fate::Left("; the schema kept changing".to_owned()))
}

async fn attempt(verifier: &Verifier, suspect: &Suspect, hand: Hand) -> Under<Fate> {
    let mender = verifier.mender();
    let mended = match suspect {
        Suspect::Unmatched(pair) | Suspect::Stale(pair) => {
            if !mender.loaded.is_maintained(&pair.collection, &pair.index) {
                return Ok(Fate::Gone);
            }
            mender.mend(pair, hand).await?
        }
        Suspect::Side { kind, witnesses } => {
            side_cells::mend(&mender, &verifier.judging(), *kind, witnesses, hand).await?
        }
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
    })
}
