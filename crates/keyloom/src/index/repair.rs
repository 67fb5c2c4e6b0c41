//! Verifies a store and mends what it finds, while writers go on.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::account::{Account, HearAccount, Ledger};
use super::aggregates::{self, Purpose};
use super::examine::{Examination, examine};
use super::group::Group;
use super::not_ready::NotReady;
use super::pair::Pair;
use super::pair_repair::{Hand, Mended, NextStep, step_for};
use super::side_cells;
use super::suspect::Suspect;
use super::verification::VerifyOptions;
use super::verify::{Fault, Subject, Verifier};
use crate::engine::{Condition, Effect};
use crate::error::{Error, Result};
use crate::schema::Aggregate;
use crate::side::{Cure, Finding, FindingCounts, clean};
use crate::space::{Ended, Interrupted, Live, Pace, Session, Task, Under};

/// How a store is repaired.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
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
pub(super) enum Fate {
    Mended,
    Left(String),
    /// Somebody else mended it.
    Gone,
}

/// Repairs what is left of a space.
pub(super) async fn repair_on(
    task: &mut Task<'_, Account>,
    session: &Session,
    options: &RepairOptions,
    hear: HearAccount<'_>,
) -> Result<Repair, Ended> {
    let hand = if options.dry_run { Hand::Dry } else { Hand::Real };
    let Examination { account, found, not_ready } =
        examine(task, session, &options.verify, Some(hand), hear).await?;
    Ok(Repair {
        mended: found.mended,
        mended_counts: account.mended,
        left: found.left,
        left_counts: account.left,
        records: account.records,
        entries: account.entries,
        unsettled: account.unsettled,
        not_ready,
    })
}

/// Repairs a whole space.
pub(crate) async fn repair(
    session: &Session,
    options: &RepairOptions,
    hear: HearRepair<'_>,
) -> Result<Repair> {
    let mut task = Task::in_memory(session.program()?, Account::begun(session.now()));
    let hear = |account: &Account| {
        let Account { records, entries, mended, left, .. } = *account;
        let (mended, left) = (mended.total(), left.total());
        hear(RepairProgress { records, entries, mended, left });
    };
    repair_on(&mut task, session, options, &hear).await.map_err(Ended::of_memory)
}

/// Mends the faults of a chunk of keys, and notes what became of each.
pub(super) async fn mend(
    verifier: &mut Verifier,
    faults: Vec<Fault>,
    hand: Hand,
    ledger: &mut Ledger<'_, '_>,
) -> Result<(), Ended> {
    let alone = mend_together(verifier, faults, hand, ledger).await?;
    // The faults of an aggregate come together, and counting it anew mends all of them.
    let mut recounted: Option<Result<(), Error>> = None;
    for Fault { subject, finding } in alone {
        let fate = match &subject {
            Subject::Keys(suspect) => settle(verifier, suspect, hand).await?,
            Subject::Compared(Cure::Delete(address, stamp)) => {
                let mut batch = verifier.mender().batch();
                let unchanged = Some(Condition::Unchanged(*stamp));
                let effect = (hand == Hand::Real).then_some(Effect::Delete);
                batch.push(address.clone(), unchanged, effect);
                match verifier.mender().commit(batch).await {
                    Ok(true) => Fate::Mended,
                    Err(Interrupted::Failed(error)) => return Err(error.into()),
                    Ok(false) | Err(_) => Fate::Gone,
                }
            }
            Subject::Compared(Cure::CountAnew(aggregate)) => {
                if recounted.is_none() {
                    let recount = recount(verifier.mender().live, aggregate, hand);
                    recounted = Some(ledger.task.while_at(recount, |_| {}).await?);
                }
                match &recounted {
                    Some(Err(error)) => Fate::Left(format!("; {error}")),
                    _ => Fate::Mended,
                }
            }
        };
        ledger.note(finding, fate);
    }
    Ok(())
}

/// Mends in as few batches as possible what has nothing to do with each other. Gives what is left
/// to be mended by itself.
async fn mend_together(
    verifier: &Verifier,
    faults: Vec<Fault>,
    hand: Hand,
    ledger: &mut Ledger<'_, '_>,
) -> Result<Vec<Fault>, Ended> {
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
    let cells_of_pairs = mender.look_at_all(pairs.iter().map(|(_, pair)| *pair)).await?;
    let mut groups = vec![Group::new(&mender)];
    for ((place, pair), pair_cells) in pairs.into_iter().zip(cells_of_pairs) {
        let Some(group) = groups.last_mut() else { break };
        if let NextStep::Step(step) = step_for(pair, &pair_cells)
            && group.fits(&step)
        {
            group.add(&step, hand, place);
        }
        if group.is_full(mender.live.engine.capabilities()) {
            groups.push(Group::new(&mender));
        }
    }
    let mut mended = BTreeSet::new();
    for group in groups {
        let (batch, places) = group.into_parts();
        if places.is_empty() {
            continue;
        }
        let members = places.iter().map(|&place| &faults[place].finding);
        match ledger.mend(mender.loaded, batch, members).await {
            Ok(true) => mended.extend(places),
            // Each is tried by itself, under the schema as it is then.
            Ok(false) | Err(Interrupted::SchemaChanged) => {}
            Err(ended) => return Err(ended.into()),
        }
    }
    let alone = faults.into_iter().enumerate().filter(|(place, _)| !mended.contains(place));
    Ok(alone.map(|(_, fault)| fault).collect())
}

/// Counts an aggregate anew beside what is read, and puts it in its place.
async fn recount(live: &Live, aggregate: &Aggregate, hand: Hand) -> Result<()> {
    if hand == Hand::Dry {
        return Ok(());
    }
    aggregates::build(
        live,
        &aggregate.collection,
        &aggregate.name,
        Purpose::Renew,
        Pace::Full,
        &|_| {},
    )
    .await
    .map(drop)
}

/// Completes what somebody began to count anew, and removes what only counting needed: a process
/// that ended in between leaves both.
pub(super) async fn tidy_up(live: &Live) -> Result<()> {
    let loaded = live.reload().await?;
    for collection in loaded.schema.collections.values() {
        for aggregate in collection.aggregates.values() {
            match loaded.readable(aggregate) {
                Ok(_) => {
                    let (collection, name) = (&aggregate.collection, &aggregate.name);
                    aggregates::build(
                        live,
                        collection,
                        name,
                        Purpose::Complete,
                        Pace::Full,
                        &|_| {},
                    )
                    .await?;
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
