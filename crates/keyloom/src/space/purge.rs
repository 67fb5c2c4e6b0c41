//! Walks over cells of Keyloom's own area, and removes those that are no longer needed, in
//! bounded batches.

use bytes::Bytes;

use super::attempt::{Under, past_fence};
use super::loaded::Loaded;
use super::session::Session;
use super::walk::{Position, Stage, Walk};
use crate::engine::{Address, Batch, Condition, Effect, Outcome, Range, Row};
use crate::error::Result;

/// How many cells are read at once; a batch removes no more.
const CHUNK_CELLS: usize = 64;

/// How much one call of a purge does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PurgeOptions {
    /// How many cells are looked at, at most, but a chunk of 64 at least.
    pub cells_max: usize,
    /// Where an earlier call stopped: its [`Purged::next`].
    pub from: Option<Bytes>,
}

impl Default for PurgeOptions {
    /// Everything, from the start.
    fn default() -> Self {
        PurgeOptions { cells_max: usize::MAX, from: None }
    }
}

/// What a purge did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Purged {
    /// How many cells were looked at.
    pub read: u64,
    /// How many of them were removed.
    pub removed: u64,
    /// Where to go on; `None` when all was looked at.
    pub next: Option<Bytes>,
}

/// A cell that goes, if this still holds for it.
pub(crate) type Removal = (Address, Option<Condition>);

/// Whether work that goes on in the background is still wanted.
pub(crate) type GoesOn<'g> = &'g (dyn Fn() -> bool + Send + Sync);

/// Says which cells go. A trait, since no bound can say that the future of an async closure may be
/// sent to another thread.
pub(crate) trait Judge: Sync {
    /// Those of these cells, of the range at this place, that go.
    fn removals(
        &self,
        session: &Session,
        loaded: &Loaded,
        place: usize,
        rows: &[Row],
    ) -> impl Future<Output = Result<Vec<Removal>>> + Send;
}

/// Walks over the ranges in this order, until everything was looked at, the limit is reached, or it
/// is told to stop.
pub(crate) async fn purge(
    session: &Session,
    options: &PurgeOptions,
    goes_on: GoesOn<'_>,
    ranges: &[Range],
    judge: &impl Judge,
) -> Result<Purged> {
    let live = &session.live;
    let mut attempts = live.attempts("the schema kept changing while cells were removed");
    let mut purged = Purged::default();
    let mut position = begin(options.from.as_ref(), ranges);
    let most = u64::try_from(options.cells_max).unwrap_or(u64::MAX);
    loop {
        if purged.read >= most || !goes_on() {
            purged.next = next_key(&position, ranges);
            return Ok(purged);
        }
        let stages = ranges.iter().map(|range| Stage::all(vec![range.clone()])).collect();
        let mut walk = Walk::new(stages, CHUNK_CELLS).from(position.clone());
        let Some(chunk) = walk.next(live).await? else { return Ok(purged) };
        let loaded = live.loaded().await?;
        let removals = judge.removals(session, &loaded, chunk.stage, &chunk.rows).await?;
        let removed = remove(session, &loaded, removals).await;
        let Some(removed) = attempts.settle(removed).await? else { continue };
        attempts.begin_anew();
        purged.read += chunk.rows.len() as u64;
        purged.removed += removed;
        position = walk.position().clone();
    }
}

/// Where a purge begins that goes on from a key: after everything, if the key is in no range.
fn begin(from: Option<&Bytes>, ranges: &[Range]) -> Position {
    let Some(from) = from else { return Position::default() };
    match ranges.iter().position(|range| range.contains(from)) {
        Some(stage) => Position::before(stage, ranges[stage].area.clone(), from.clone()),
        None => Position { stage: ranges.len(), done: None },
    }
}

/// The key that the next purge goes on from; `None` when nothing is left.
fn next_key(position: &Position, ranges: &[Range]) -> Option<Bytes> {
    let range = ranges.get(position.stage)?;
    let next = position.next_key().filter(|next| range.contains(next));
    match (next, &position.done) {
        (Some(next), _) => Some(next.clone()),
        (None, None) => Some(range.start.clone()),
        (None, Some(_)) => Some(ranges.get(position.stage + 1)?.start.clone()),
    }
}

/// Removes cells under the schema that they were judged by, and tells how many. A cell that changed
/// is in use, and stays.
async fn remove(session: &Session, loaded: &Loaded, removals: Vec<Removal>) -> Under<u64> {
    let mut removed = 0;
    // Not every engine takes a whole chunk at once.
    let most = session.live.engine.capabilities().batch_entries_max.max(1);
    for part in removals.chunks(most) {
        if is_committed(session, loaded, part).await? {
            removed += part.len() as u64;
            continue;
        }
        // One of them changed, which says nothing of the others.
        for one in part {
            removed += u64::from(is_committed(session, loaded, std::slice::from_ref(one)).await?);
        }
    }
    Ok(removed)
}

async fn is_committed(session: &Session, loaded: &Loaded, removals: &[Removal]) -> Under<bool> {
    let live = &session.live;
    let mut batch = Batch { fence: loaded.fence(), ..Batch::new(live.space.clone()) };
    for (address, condition) in removals {
        batch.push(address.clone(), *condition, Some(Effect::Delete));
    }
    let outcome = live.commit(loaded, batch, || session.note()).await?;
    Ok(matches!(past_fence(outcome)?, Outcome::Committed(_)))
}
