//! Removes what aggregates no longer use: groups at zero, and the keys of generations and marks
//! that are over.

use bytes::Bytes;

use crate::engine::{
    Address, Area, Batch, Cause, Condition, Direction, Effect, EngineExt, Outcome, Range, Row,
};
use crate::error::{Error, ErrorKind, Result};
use crate::log::Note;
use crate::query::Total;
use crate::schema::{Aggregate, CELLS, Live, Loaded, MARKS};

/// How many keys are read, and at most removed, at once.
const CHUNK_KEYS: usize = 128;

/// How often a sweep starts anew because the schema changed meanwhile.
const RESTARTS: usize = 16;

/// What a sweep of groups did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SweptGroups {
    /// How many cells of groups without records were removed.
    pub empty: u64,
    /// How many keys of earlier countings were removed.
    pub left_over: u64,
}

/// Sweeps every aggregate of the space.
pub(crate) async fn sweep_groups(live: &Live) -> Result<SweptGroups> {
    let mut swept = SweptGroups::default();
    let loaded = live.reload().await?;
    for collection in loaded.schema.collections.values() {
        for aggregate in collection.aggregates.values() {
            swept.left_over += clean(live, &collection.name, &aggregate.name).await?;
            for (generation, _) in loaded.maintained(aggregate) {
                let range = aggregate.generation(CELLS, generation.number);
                swept.empty += sweep_empty(live, &loaded, range).await?;
            }
        }
    }
    Ok(swept)
}

/// Removes cells at zero, each only if nothing was added since it was read.
async fn sweep_empty(live: &Live, loaded: &Loaded, mut left: Range) -> Result<u64> {
    let mut removed = 0;
    let chunk = chunk_keys(live);
    loop {
        let stretch = live.engine.scan_one(&live.space, &left, chunk, Direction::Forward).await?;
        let empty: Vec<&Row> = stretch
            .rows
            .iter()
            .filter(|row| Total::of(&row.cell) == Some(Total::default()))
            .collect();
        let unchanged = |row: &&Row| (row.key.clone(), Some(Condition::Unchanged(row.cell.stamp)));
        match remove(live, loaded, empty.iter().map(unchanged)).await? {
            Removal::Done => removed += empty.len() as u64,
            Removal::StaleSchema => return Ok(removed),
            // Something was added to one of them, which says nothing of the others.
            Removal::Changed => {
                for row in &empty {
                    let one = remove(live, loaded, std::iter::once(unchanged(row))).await?;
                    removed += u64::from(matches!(one, Removal::Done));
                }
            }
        }
        match stretch.rows.last() {
            Some(last) if stretch.more => left = left.after(&last.key, Direction::Forward),
            _ => return Ok(removed),
        }
    }
}

/// Removes the cells of generations that are neither read nor written, and the marks of those that
/// are complete. Nobody else touches such keys any more, so that it needs no condition but the
/// schema's.
pub(crate) async fn clean(live: &Live, collection: &str, aggregate: &str) -> Result<u64> {
    let mut removed = 0;
    let chunk = chunk_keys(live);
    'anew: for _ in 0..RESTARTS {
        let loaded = live.reload().await?;
        let aggregate = loaded.schema.collection(collection)?.aggregate(aggregate)?;
        for kind in [CELLS, MARKS] {
            let mut left = aggregate.all(kind);
            loop {
                let stretch =
                    live.engine.scan_one(&live.space, &left, chunk, Direction::Forward).await?;
                let (over, next) = over(&loaded, aggregate, kind, &stretch.rows, &left);
                let count = over.len() as u64;
                let over = over.into_iter().map(|row| (row.key.clone(), None));
                match remove(live, &loaded, over).await? {
                    Removal::Done => removed += count,
                    Removal::StaleSchema | Removal::Changed => continue 'anew,
                }
                match next {
                    Some(next) if stretch.more || !stretch.rows.is_empty() => left = next,
                    _ => break,
                }
            }
        }
        return Ok(removed);
    }
    let message = "the schema kept changing while an aggregate was swept";
    Err(Error::new(ErrorKind::StaleSchema, message)
        .with("collection", collection)
        .with("aggregate", aggregate))
}

/// The rows that are over, up to the first that is in use; and what is left of the range, without
/// the generation that is in use.
fn over<'r>(
    loaded: &Loaded,
    aggregate: &Aggregate,
    kind: &str,
    rows: &'r [Row],
    range: &Range,
) -> (Vec<&'r Row>, Option<Range>) {
    let mut over = Vec::new();
    for row in rows {
        let generation = aggregate.generation_of(kind, &row.key);
        match generation.filter(|number| is_used(loaded, aggregate, kind, *number)) {
            Some(used) => {
                let behind = aggregate.generation(kind, used).end;
                let left = behind.map(|start| Range { start, ..range.clone() });
                return (over, left);
            }
            // What is no key of any generation is told by `verify`.
            None => over.extend(generation.map(|_| row)),
        }
    }
    (over, rows.last().map(|last| range.after(&last.key, Direction::Forward)))
}

/// Whether a generation is maintained, and for marks, whether it is not complete.
pub(super) fn is_used(loaded: &Loaded, aggregate: &Aggregate, kind: &str, number: u32) -> bool {
    loaded
        .maintained(aggregate)
        .any(|(used, is_marked)| used.number == number && (kind == CELLS || is_marked))
}

/// All keys of a chunk fit into one batch.
fn chunk_keys(live: &Live) -> usize {
    CHUNK_KEYS.min(live.engine.capabilities().batch_entries_max)
}

enum Removal {
    Done,
    Changed,
    StaleSchema,
}

async fn remove(
    live: &Live,
    loaded: &Loaded,
    keys: impl Iterator<Item = (Bytes, Option<Condition>)>,
) -> Result<Removal> {
    let mut batch = Batch { fence: loaded.fence(), ..Batch::new(live.space.clone()) };
    for (key, condition) in keys {
        let address = Address::new(Area::own(), key);
        batch.push(address, condition, Some(Effect::Delete));
    }
    if batch.entries.is_empty() {
        return Ok(Removal::Done);
    }
    Ok(match live.commit(loaded, batch, Note::of_program).await? {
        Outcome::Committed(_) => Removal::Done,
        Outcome::Rejected(rejection) if rejection.cause == Cause::Fence => Removal::StaleSchema,
        Outcome::Rejected(_) => Removal::Changed,
    })
}
