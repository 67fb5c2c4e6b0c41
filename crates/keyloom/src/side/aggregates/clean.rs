//! Removes the keys of generations and marks of one aggregate that are over.

use crate::engine::{Batch, Direction, Effect, Range, Row};
use crate::error::{Error, Result};
use crate::log::Note;
use crate::own::{OwnKind, OwnRange, own_address};
use crate::schema::Aggregate;
use crate::space::{Live, Loaded, Under, past_fence};

/// How many keys are read, and at most removed, at once.
const CHUNK_KEYS: usize = 128;

/// Removes the cells of generations that are neither read nor written, and the marks of those that
/// are complete. Nobody else touches such keys any more, so that it needs no condition but the
/// schema's.
pub(crate) async fn clean(live: &Live, collection: &str, aggregate: &str) -> Result<u64> {
    let mut removed = 0;
    let message = "the schema kept changing while an aggregate was cleaned";
    let mut attempts = live.attempts(message);
    loop {
        let loaded = live.reload().await?;
        let declared = loaded.schema.collection(collection)?.aggregate(aggregate)?;
        let cleaned = clean_under(live, &loaded, declared, &mut removed).await;
        let about = |error: Error| match error.message() == message {
            true => error.with("collection", collection).with("aggregate", aggregate),
            false => error,
        };
        if let Some(()) = attempts.settle(cleaned).await.map_err(about)? {
            return Ok(removed);
        }
    }
}

/// A walk would read every cell of the generations in use. This one jumps over them.
async fn clean_under(
    live: &Live,
    loaded: &Loaded,
    aggregate: &Aggregate,
    removed: &mut u64,
) -> Under<()> {
    let chunk = chunk_keys(live);
    for kind in [OwnKind::AggregateCell, OwnKind::AggregateMark] {
        let mut left = aggregate.all(kind);
        loop {
            let stretch = live.scan_one(&left, chunk, Direction::Forward).await?;
            let (over, next) = over(loaded, aggregate, kind, &stretch.rows, &left);
            let count = over.len() as u64;
            remove(live, loaded, over).await?;
            *removed += count;
            match next {
                Some(next) if stretch.more || !stretch.rows.is_empty() => left = next,
                _ => break,
            }
        }
    }
    Ok(())
}

/// The rows that are over, up to the first that is in use; and what is left of the range, without
/// the generation that is in use.
fn over<'r>(
    loaded: &Loaded,
    aggregate: &Aggregate,
    kind: OwnKind,
    rows: &'r [Row],
    range: &Range,
) -> (Vec<&'r Row>, Option<Range>) {
    let mut over = Vec::new();
    for row in rows {
        let generation = generation_of(&row.key);
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

/// The generation that a key of this aggregate belongs to.
fn generation_of(key: &[u8]) -> Option<u32> {
    match OwnRange::generation_of(key)? {
        OwnRange::Generation { generation, .. } => Some(generation),
        _ => None,
    }
}

/// Whether a generation is maintained, and for marks, whether it is not complete.
pub(super) fn is_used(loaded: &Loaded, aggregate: &Aggregate, kind: OwnKind, number: u32) -> bool {
    loaded.maintained(aggregate).any(|(used, is_marked)| {
        used.number == number && (kind == OwnKind::AggregateCell || is_marked)
    })
}

/// All keys of a chunk fit into one batch.
fn chunk_keys(live: &Live) -> usize {
    CHUNK_KEYS.min(live.engine.capabilities().batch_entries_max)
}

/// Removes keys under this state of the schema. Nothing but that can keep them from going.
async fn remove(live: &Live, loaded: &Loaded, rows: Vec<&Row>) -> Under<()> {
    let mut batch = Batch { fence: loaded.fence(), ..Batch::new(live.space.clone()) };
    for row in rows {
        batch.push(own_address(row.key.clone()), None, Some(Effect::Delete));
    }
    if !batch.entries.is_empty() {
        past_fence(live.commit(loaded, batch, Note::of_program).await?)?;
    }
    Ok(())
}
