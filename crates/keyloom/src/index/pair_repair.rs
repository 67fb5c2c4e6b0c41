//! A mend is a batch that rests on exactly what was judged.

use bytes::Bytes;

use super::pair::{Pair, PairCells, Verdict};
use crate::engine::{Address, Batch, Cell, Condition, Effect, Outcome, Stamp};
use crate::error::Result;
use crate::log::Note;
use crate::record::Version;
use crate::space::{Live, Loaded, Retry, Under, past_fence};

/// What mends pairs, under one state of the schema.
#[derive(Clone, Copy)]
pub(super) struct Mender<'l> {
    pub(super) live: &'l Live,
    pub(super) loaded: &'l Loaded,
}

/// What became of a pair.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Mended {
    /// There was nothing to do.
    Sound,
    /// The missing entry was put.
    Put,
    /// The entry's value was put right.
    Rewritten,
    /// The entry was deleted.
    Removed,
    /// Another record has the same key, and holds it.
    Clash { holder: Bytes },
    /// What is at the key names no record, and is let be.
    Unreadable,
    /// Other writers won every attempt.
    Contended,
}

/// Whether mends are carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hand {
    /// They are.
    Real,
    /// Only what they rest on is checked, and nothing is written.
    Dry,
}

/// A mend that was decided: what it rests on, what it does, and what that comes to.
#[derive(Clone, Debug)]
pub(super) struct Step {
    pub(super) rests_on: Vec<(Address, Option<Stamp>)>,
    pub(super) entry: Address,
    pub(super) effect: Option<Effect>,
    pub(super) mended: Mended,
}

/// What follows from the two cells of a pair.
pub(super) enum NextStep {
    /// There is nothing to mend, or nothing that can be.
    Settled(Mended),
    Step(Step),
    /// Another record holds the key, and must be looked at first.
    Held {
        step: Step,
        holder: Bytes,
    },
}

impl Mender<'_> {
    /// Puts a pair right, whatever is wrong with it now. Tries again when something moves.
    pub(super) async fn mend(&self, pair: &Pair, hand: Hand) -> Under<Mended> {
        let retry = Retry::eager();
        let mut made = 0;
        loop {
            let pair_cells = self.look(pair).await?;
            let step = match self.decide(pair, &pair_cells).await? {
                Ok(step) => step,
                Err(nothing_to_do) => return Ok(nothing_to_do),
            };
            made += 1;
            if self.commit(step.batch(self, hand)).await? {
                return Ok(step.mended);
            }
            if !retry.pause(made).await {
                return Ok(Mended::Contended);
            }
        }
    }

    /// Whether the cells still are as they were seen, all at one moment.
    pub(super) async fn hold(&self, addresses: &[Address], seen: &[Option<Cell>]) -> Under<bool> {
        let mut batch = self.batch();
        for (address, cell) in addresses.iter().zip(seen) {
            batch.push(address.clone(), Some(condition(stamp_of(cell.as_ref()))), None);
        }
        self.commit(batch).await
    }

    /// A batch that is applied only under this state of the schema.
    pub(super) fn batch(&self) -> Batch {
        Batch { fence: self.loaded.fence(), ..Batch::new(self.live.space.clone()) }
    }

    /// Commits a batch; `false` when something that it rests on is no longer so.
    pub(super) async fn commit(&self, batch: Batch) -> Under<bool> {
        Ok(matches!(self.outcome(batch).await?, Outcome::Committed(_)))
    }

    pub(super) async fn outcome(&self, batch: Batch) -> Under<Outcome> {
        past_fence(self.live.commit(self.loaded, batch, Note::of_program).await?)
    }

    async fn look(&self, pair: &Pair) -> Result<PairCells> {
        let pair_cells = self.look_at_all(std::iter::once(pair)).await?.pop();
        Ok(pair_cells.unwrap_or(PairCells { record: None, entry: None }))
    }

    /// What the cells of pairs hold, in one round trip.
    pub(super) async fn look_at_all(
        &self,
        pairs: impl Iterator<Item = &Pair>,
    ) -> Result<Vec<PairCells>> {
        let both = |pair: &Pair| [pair.record_address(), pair.entry_address()];
        let addresses: Vec<Address> = pairs.flat_map(both).collect();
        if addresses.is_empty() {
            return Ok(Vec::new());
        }
        let mut cells = self.live.get(&addresses).await?.into_iter();
        let cells_of_pairs = std::iter::from_fn(|| {
            Some(PairCells { record: cells.next()?, entry: cells.next().flatten() })
        });
        Ok(cells_of_pairs.collect())
    }

    async fn decide(&self, pair: &Pair, pair_cells: &PairCells) -> Result<Result<Step, Mended>> {
        let (mut step, holder) = match step_for(pair, pair_cells) {
            NextStep::Settled(mended) => return Ok(Err(mended)),
            NextStep::Step(step) => return Ok(Ok(step)),
            NextStep::Held { step, holder } => (step, holder),
        };
        let rival = pair.with_record(holder.clone());
        let record = self.look(&rival).await?.record;
        step.rests_on.push((rival.record_address(), stamp_of(record.as_ref())));
        match rival.judge(&PairCells { record, entry: pair_cells.entry.clone() }) {
            Verdict::Dangling | Verdict::Misplaced => Ok(Ok(step)),
            _ => Ok(Ok(Step { effect: None, mended: Mended::Clash { holder }, ..step })),
        }
    }
}

/// What mends a pair, as far as its own two cells tell.
pub(super) fn step_for(pair: &Pair, pair_cells: &PairCells) -> NextStep {
    let step = |effect, mended| Step {
        rests_on: vec![
            (pair.record_address(), stamp_of(pair_cells.record.as_ref())),
            (pair.entry_address(), stamp_of(pair_cells.entry.as_ref())),
        ],
        entry: pair.entry_address(),
        effect: Some(effect),
        mended,
    };
    match pair.judge(pair_cells) {
        Verdict::Sound => NextStep::Settled(Mended::Sound),
        Verdict::Unreadable => NextStep::Settled(Mended::Unreadable),
        Verdict::Dangling | Verdict::Misplaced => {
            NextStep::Step(step(Effect::Delete, Mended::Removed))
        }
        Verdict::Altered { value } => {
            NextStep::Step(step(put(pair, pair_cells, value), Mended::Rewritten))
        }
        Verdict::Missing { value, holder: None } => {
            NextStep::Step(step(put(pair, pair_cells, value), Mended::Put))
        }
        Verdict::Missing { value, holder: Some(holder) } => {
            NextStep::Held { step: step(put(pair, pair_cells, value), Mended::Put), holder }
        }
    }
}

impl Step {
    fn batch(&self, mender: &Mender<'_>, hand: Hand) -> Batch {
        let mut batch = mender.batch();
        for (address, stamp) in &self.rests_on {
            let does = hand == Hand::Real && *address == self.entry;
            let effect = if does { self.effect.clone() } else { None };
            batch.push(address.clone(), Some(condition(*stamp)), effect);
        }
        batch
    }
}

/// The effect that makes an entry hold what its record gives. It is stamped with the record's
/// version, as a writer would. If what is wrong with the entry bears that stamp already, another
/// one tells the two apart; but an entry that carries the record must have the record's.
fn put(pair: &Pair, pair_cells: &PairCells, value: Bytes) -> Effect {
    let version = stamp_of(pair_cells.record.as_ref());
    let fresh = || Version::first().stamp();
    let is_free = |version: &Stamp| {
        pair.carries_record() || stamp_of(pair_cells.entry.as_ref()) != Some(*version)
    };
    let stamp = version.filter(is_free).unwrap_or_else(fresh);
    Effect::Put { stamp, bytes: value }
}

pub(super) fn stamp_of(cell: Option<&Cell>) -> Option<Stamp> {
    cell.map(|cell| cell.stamp)
}

/// What must hold for a cell to be as it was seen.
pub(super) fn condition(stamp: Option<Stamp>) -> Condition {
    stamp.map_or(Condition::Absent, Condition::Unchanged)
}
