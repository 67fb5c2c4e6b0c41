//! Makes an aggregate complete while writers go on, and counts one anew beside the one in use.
//!
//! Writers keep every generation up to date that the catalog names, and mark the records that they
//! count in one that is not complete. The pass counts the rest. It may be interrupted, repeated, and
//! run by several at once: what is marked is counted, and only that.

use std::sync::Arc;

use super::super::build::{Built, HearBuilt, Taken, position_of, take};
use super::super::obstacle;
use super::super::subject::subject;
use super::count::Count;
use crate::error::{Error, Result};
use crate::schema::{Aggregate, Collection, Generation, Generations, IndexState};
use crate::side::clean;
use crate::space::{Interrupted, Live, Loaded, Pace, Task, Under, Visitor};

/// What is wanted of an aggregate that is ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Nothing, unless somebody began to count it anew.
    Complete,
    /// It is counted anew.
    Renew,
}

/// A generation that is to be counted, under one state of the schema.
struct Uncounted {
    loaded: Arc<Loaded>,
    collection: Arc<Collection>,
    aggregate: Arc<Aggregate>,
    generation: Generation,
}

/// Counts every record of the collection. Safe to run twice, also at the same time, and after a
/// crash: one does the work, from where the last one came to, and the others wait for it.
pub(crate) async fn build(
    live: &Live,
    collection: &str,
    aggregate: &str,
    purpose: Purpose,
    pace: Pace,
    hear: HearBuilt<'_>,
) -> Result<Built> {
    let (mut built, mut target, mut task) = (Built::default(), None, None);
    let mut is_ended_by_another = false;
    let message = "the schema kept changing while the records were counted";
    let mut attempts = live.attempts(message);
    loop {
        let begun = start(live, collection, aggregate, purpose, &mut target).await?;
        let Some(uncounted) = begun else {
            // Whoever has counted cleans up.
            if is_ended_by_another {
                return Ok(built);
            }
            built.removed += clean(live, collection, aggregate).await?;
            return Ok(built);
        };
        let before = position_of(&task);
        let once = count_once(live, &uncounted, pace, &mut task, hear).await;
        if position_of(&task) != before {
            attempts.begin_anew();
        }
        let about = |error: Error| match error.message() == message {
            true => error.with("collection", collection).with("aggregate", aggregate),
            false => error,
        };
        match attempts.settle(once).await.map_err(about)? {
            Some(Counted::ByAnother(done)) => (built, is_ended_by_another) = (done, true),
            Some(Counted::All(done)) => (built, is_ended_by_another) = (done, false),
            Some(Counted::Obstructed(obstructed)) => {
                clean(live, collection, aggregate).await?;
                return Err(obstructed);
            }
            None => {}
        }
    }
}

/// What counting came to.
enum Counted {
    All(Built),
    ByAnother(Built),
    /// Something stands in the way.
    Obstructed(Error),
}

/// Counts what is left while the schema stays as it is, or waits while somebody else does. Whoever
/// calls looks again what is left to do.
async fn count_once<'l>(
    live: &'l Live,
    uncounted: &Uncounted,
    pace: Pace,
    task: &mut Option<Task<'l, Built>>,
    hear: HearBuilt<'_>,
) -> Under<Counted> {
    let Uncounted { loaded, collection, aggregate, generation } = uncounted;
    let number = u64::from(generation.number);
    let subject = subject(loaded, "count", collection, &aggregate.name, number)?;
    let mut owned = match take(live, loaded, &subject, task.take(), hear).await? {
        Taken::Owned(owned) => *owned,
        Taken::Ended(built) => return Ok(Counted::ByAnother(built)),
    };
    let from = (owned.position().stage, *owned.progress());
    owned.keep_pace(pace);
    let mut count = Count::new(live, loaded, collection, aggregate, *generation, from, hear);
    let gone = count.run(&mut owned).await;
    let ended = owned.ending();
    if !matches!(gone, Err(Interrupted::TakenOver)) {
        *task = Some(owned);
    }
    gone?;
    let known = generations(loaded, aggregate);
    let (state, left, counted) = match &count.obstacles[..] {
        [] => {
            let last = known.last;
            let complete = Generations { current: *generation, next: None, last };
            (IndexState::Ready, complete, Counted::All(count.progress()))
        }
        // What is in use beside a generation that cannot be completed stays so.
        obstacles => {
            let state = match loaded.state(&collection.name, &aggregate.name) {
                IndexState::Ready => IndexState::Ready,
                _ => IndexState::Failed { reason: obstacle::reason(obstacles) },
            };
            let error = obstacle::error(&collection.name, "aggregate", &aggregate.name, obstacles);
            (state, Generations { next: None, ..known }, Counted::Obstructed(error))
        }
    };
    if !live.replace_generations(loaded, aggregate, state, left, ended).await? {
        *task = None;
        return Err(Interrupted::SchemaChanged);
    }
    Ok(counted)
}

/// Finds, or begins, the generation that is to be counted; `None` when there is nothing to do.
async fn start(
    live: &Live,
    collection: &str,
    aggregate: &str,
    purpose: Purpose,
    target: &mut Option<u32>,
) -> Result<Option<Uncounted>> {
    loop {
        let loaded = live.reload().await?;
        let declared = loaded.schema.collection(collection)?.clone();
        let counted = declared.aggregate(aggregate)?.clone();
        let known = generations(&loaded, &counted);
        let fresh = known.fresh(live.cells_of_a_group());
        let (state, begun) = match (loaded.state(collection, aggregate), known.next) {
            (IndexState::Building, _) => {
                *target = Some(known.current.number);
                let generation = known.current;
                return Ok(Some(Uncounted {
                    loaded,
                    collection: declared,
                    aggregate: counted,
                    generation,
                }));
            }
            (IndexState::Ready, Some(generation)) => {
                *target = Some(generation.number);
                return Ok(Some(Uncounted {
                    loaded,
                    collection: declared,
                    aggregate: counted,
                    generation,
                }));
            }
            // This build, or another one, has counted all there is.
            (IndexState::Ready, None) if target.is_some() || purpose == Purpose::Complete => {
                return Ok(None);
            }
            (IndexState::Ready, None) => {
                let begun = Generations { next: Some(fresh), last: fresh.number, ..known };
                (IndexState::Ready, begun)
            }
            (IndexState::Disabled | IndexState::Failed { .. }, _) if target.is_some() => {
                // Somebody else stopped the aggregate, and has the last word.
                loaded.readable(&counted)?;
                return Ok(None);
            }
            // What was counted until then is of no use, since writers have passed it by.
            (IndexState::Disabled | IndexState::Failed { .. }, _) => {
                let begun = Generations { current: fresh, next: None, last: fresh.number };
                (IndexState::Building, begun)
            }
        };
        live.replace_generations(&loaded, &counted, state, begun, Vec::new()).await?;
    }
}

fn generations(loaded: &Loaded, aggregate: &Aggregate) -> Generations {
    loaded.catalog.generations(&aggregate.collection, &aggregate.name)
}
