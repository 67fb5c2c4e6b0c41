//! Walks over cells of Keyloom's own area, and removes those that are no longer needed, in
//! bounded batches.

use bytes::Bytes;

use crate::engine::{
    Address, Batch, Condition, Direction, Effect, EngineExt, Outcome, Range, Row, successor,
};
use crate::error::Result;
use crate::schema::Loaded;
use crate::session::Session;

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

/// Walks over the ranges in this order. `judge` is given the place of the range and some of its
/// cells, and says which of them go.
pub(crate) async fn purge(
    session: &Session,
    options: &PurgeOptions,
    ranges: &[Range],
    judge: impl AsyncFn(usize, &Loaded, &[Row]) -> Result<Vec<Removal>>,
) -> Result<Purged> {
    let mut purged = Purged::default();
    let mut from = options.from.clone();
    for (place, range) in ranges.iter().enumerate() {
        let Some(mut left) = left_of(range, from.as_ref()) else { continue };
        from = None;
        loop {
            if purged.read >= u64::try_from(options.cells_max).unwrap_or(u64::MAX) {
                purged.next = Some(left.start);
                return Ok(purged);
            }
            let loaded = session.loaded().await?;
            let (engine, space) = (&session.engine, &session.space);
            let stretch = engine.scan_one(space, &left, CHUNK_CELLS, Direction::Forward).await?;
            let Some(last) = stretch.rows.last() else { break };
            let removals = judge(place, &loaded, &stretch.rows).await?;
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

/// Removes cells under the schema that they were judged by, and tells how many; `None` when that,
/// or one of them, changed, so that they must be judged again.
async fn remove(session: &Session, loaded: &Loaded, removals: Vec<Removal>) -> Result<Option<u64>> {
    let removed = removals.len() as u64;
    // Not every engine takes a whole chunk at once.
    let most = session.engine.capabilities().batch_entries_max.max(1);
    for part in removals.chunks(most) {
        let mut batch = Batch { fence: loaded.fence(), ..Batch::new(session.space.clone()) };
        for (address, condition) in part {
            batch.push(address.clone(), *condition, Some(Effect::Delete));
        }
        if let Outcome::Rejected(_) = session.commit(loaded, batch, || session.note()).await? {
            session.reload().await?;
            return Ok(None);
        }
    }
    Ok(Some(removed))
}
