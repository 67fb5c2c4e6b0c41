//! Walks over cells of Keyloom's own area, and removes those that are no longer needed, in
//! bounded batches.

use bytes::Bytes;

use crate::engine::{
    Address, Batch, Cause, Condition, Direction, Effect, Outcome, Range, Row, successor,
};
use crate::error::Result;
use crate::space::Loaded;
use crate::space::Session;

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
    let mut purged = Purged::default();
    let mut from = options.from.clone();
    for (place, range) in ranges.iter().enumerate() {
        let Some(mut left) = left_of(range, from.as_ref()) else { continue };
        from = None;
        loop {
            let most = u64::try_from(options.cells_max).unwrap_or(u64::MAX);
            if purged.read >= most || !goes_on() {
                purged.next = Some(left.start);
                return Ok(purged);
            }
            let loaded = session.live.loaded().await?;
            let live = &session.live;
            let stretch = live.scan_one(&left, CHUNK_CELLS, Direction::Forward).await?;
            let Some(last) = stretch.rows.last() else { break };
            let removals = judge.removals(session, &loaded, place, &stretch.rows).await?;
            let Some(removed) = remove(session, &loaded, removals).await? else { continue };
            purged.read += stretch.rows.len() as u64;
            purged.removed += removed;
            left.start = successor(&last.key);
            if !stretch.more {
                break;
            }
        }
    }
    Ok(purged)
}

/// What is left of a range when a purge goes on from here; `None` when it is done.
fn left_of(range: &Range, from: Option<&Bytes>) -> Option<Range> {
    match from {
        None => Some(range.clone()),
        Some(from) if range.contains(from) => Some(Range { start: from.clone(), ..range.clone() }),
        Some(_) => None,
    }
}

/// Removes cells under the schema that they were judged by, and tells how many; `None` when that
/// changed, so that they must be judged again. A cell that changed is in use, and stays.
async fn remove(session: &Session, loaded: &Loaded, removals: Vec<Removal>) -> Result<Option<u64>> {
    let mut removed = 0;
    // Not every engine takes a whole chunk at once.
    let most = session.live.engine.capabilities().batch_entries_max.max(1);
    for part in removals.chunks(most) {
        match commit(session, loaded, part).await? {
            Done::Yes => removed += part.len() as u64,
            Done::StaleSchema => return Ok(None),
            // One of them changed, which says nothing of the others.
            Done::No => {
                for one in part {
                    match commit(session, loaded, std::slice::from_ref(one)).await? {
                        Done::Yes => removed += 1,
                        Done::StaleSchema => return Ok(None),
                        Done::No => {}
                    }
                }
            }
        }
    }
    Ok(Some(removed))
}

/// What became of a batch of removals.
enum Done {
    Yes,
    No,
    StaleSchema,
}

async fn commit(session: &Session, loaded: &Loaded, removals: &[Removal]) -> Result<Done> {
    let mut batch = Batch { fence: loaded.fence(), ..Batch::new(session.live.space.clone()) };
    for (address, condition) in removals {
        batch.push(address.clone(), *condition, Some(Effect::Delete));
    }
    match session.live.commit(loaded, batch, || session.note()).await? {
        Outcome::Committed(_) => Ok(Done::Yes),
        Outcome::Rejected(rejection) if rejection.cause == Cause::Fence => {
            session.live.reload().await?;
            Ok(Done::StaleSchema)
        }
        Outcome::Rejected(_) => Ok(Done::No),
    }
}
