//! Trims a log: removes, in bounded steps, what the schema does not ask to keep.

use crate::engine::{Engine, EngineExt, LogBounds, Position, Space};
use crate::error::{ErrorKind, Result};
use crate::schema::LogDeclaration;

use super::entry::Entry;

/// The most entries that one step reads and removes.
const STEP_ENTRIES: usize = 512;

/// The approximate limit of bytes that one step reads.
const STEP_BYTES: usize = 1 << 20;

/// After so many entries a writer trims one step. They are fewer than a step removes, so a log that
/// is written to keeps its size by itself.
const ENTRIES_BETWEEN_STEPS: u64 = 256;

const DAY_MS: u64 = 24 * 60 * 60 * 1000;

/// The result of one step.
#[derive(Clone, Copy, Debug)]
struct Step {
    /// The part that is kept now.
    bounds: LogBounds,
    /// How many entries were removed.
    removed: u64,
    /// Whether there may be more to remove.
    has_more: bool,
}

/// The result of trimming the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trimmed {
    /// How many entries were removed.
    pub removed: u64,
    /// The part that is kept now.
    pub bounds: LogBounds,
    /// Whether there may be more to remove, because a bound ended the trim.
    pub has_more: bool,
}

/// Removes what the schema no longer asks to keep, step by step, until nothing is left to remove or
/// the given number of entries is gone.
pub(crate) async fn trim(
    engine: &dyn Engine,
    space: &Space,
    keep: LogDeclaration,
    now: u64,
    entries_max: u64,
) -> Result<Trimmed> {
    let mut trimmed = 0;
    loop {
        let Step { bounds, removed, has_more } = trim_step(engine, space, keep, now).await?;
        trimmed += removed;
        if !has_more || trimmed >= entries_max {
            return Ok(Trimmed { removed: trimmed, bounds, has_more });
        }
    }
}

/// Removes some of the oldest entries that the schema no longer asks to keep.
async fn trim_step(
    engine: &dyn Engine,
    space: &Space,
    keep: LogDeclaration,
    now: u64,
) -> Result<Step> {
    let bounds = engine.log_bounds(space).await?;
    let before = match first_within_count(bounds, keep) {
        Some(before) => before,
        None => match first_within_age(engine, space, bounds, keep, now).await {
            // Somebody else has trimmed meanwhile, and there may be more to trim.
            Err(error) if error.kind() == ErrorKind::LogTrimmed => bounds.oldest,
            before => before?,
        },
    };
    let kept = if before > bounds.oldest {
        engine.trim_log(space, before, STEP_ENTRIES).await?
    } else {
        bounds
    };
    let removed = kept.oldest.number().saturating_sub(bounds.oldest.number());
    Ok(Step { bounds: kept, removed, has_more: removed > 0 })
}

/// Trims a step now and then, in the writer that got this position. It runs after the write, which
/// stays valid if the trim fails; the next step tries again.
pub(crate) async fn trim_now_and_then(
    engine: &dyn Engine,
    space: &Space,
    keep: LogDeclaration,
    now: u64,
    position: Position,
) {
    let is_bounded = keep.days.is_some() || keep.entries.is_some();
    if is_bounded && position.number().is_multiple_of(ENTRIES_BETWEEN_STEPS) {
        let _ = trim_step(engine, space, keep, now).await;
    }
}

/// The position where the log should begin according to the number of entries, if it begins
/// earlier.
fn first_within_count(bounds: LogBounds, keep: LogDeclaration) -> Option<Position> {
    let first = bounds.next.number().checked_sub(keep.entries? as u64)?;
    Position::from_number(first).filter(|first| *first > bounds.oldest)
}

/// The first of the oldest entries that is young enough, as far as one step reads. The clocks of
/// several writers may differ, so an old entry after a young one stays as long as the young one.
async fn first_within_age(
    engine: &dyn Engine,
    space: &Space,
    bounds: LogBounds,
    keep: LogDeclaration,
    now: u64,
) -> Result<Position> {
    let Some(days) = keep.days else { return Ok(bounds.oldest) };
    let since = now.saturating_sub(DAY_MS.saturating_mul(days as u64));
    let slice = engine.read_log(space, bounds.oldest, STEP_ENTRIES, STEP_BYTES).await?;
    let mut first = bounds.oldest;
    for entry in slice.entries {
        if Entry::time(&entry.bytes)? >= since {
            break;
        }
        first = entry.position.next();
    }
    Ok(first)
}
