//! Makes an aggregate complete while writers go on, and counts one anew beside the one in use.
//!
//! Writers keep every generation up to date that the catalog names, and mark the records that they
//! count in one that is not complete. The pass counts the rest. It may be interrupted, repeated, and
//! run by several at once: what is marked is counted, and only that.

use std::sync::Arc;

use super::super::build::{Built, HearBuilt};
use super::super::obstacle;
use super::clean::clean;
use super::count::{Count, End};
use crate::error::{ErrorKind, Result};
use crate::schema::{Aggregate, Collection, Generation, Generations, IndexState};
use crate::space::{Live, Loaded};

/// How often a pass is made anew because the schema changed meanwhile.
const PASSES: usize = 16;

/// What is wanted of an aggregate that is ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Nothing, unless somebody began to count it anew.
    Complete,
    /// It is counted anew.
    Renew,
}

/// A generation that is to be counted, under one state of the schema.
struct Task {
    loaded: Arc<Loaded>,
    collection: Arc<Collection>,
    aggregate: Arc<Aggregate>,
    generation: Generation,
}

/// Counts every record of the collection. Safe to run twice, also at the same time, and after a
/// crash.
pub(crate) async fn build(
    live: &Live,
    collection: &str,
    aggregate: &str,
    purpose: Purpose,
    hear: HearBuilt<'_>,
) -> Result<Built> {
    let mut built = Built::default();
    let mut target = None;
    for _ in 0..PASSES {
        let Some(task) = start(live, collection, aggregate, purpose, &mut target).await? else {
            built.removed += clean(live, collection, aggregate).await?;
            return Ok(built);
        };
        let Task { loaded, collection: declared, aggregate: counted, generation } = &task;
        let count = Count::new(live, loaded, declared, counted, *generation, &mut built, hear);
        match count.run().await? {
            End::Complete => {
                let last = generations(loaded, counted).last;
                let complete = Generations { current: *generation, next: None, last };
                live.replace_generations(loaded, counted, IndexState::Ready, complete).await?;
            }
            End::StaleSchema => {}
            End::Obstructed(obstacles) => {
                fail(live, &task, obstacle::reason(&obstacles)).await?;
                clean(live, collection, aggregate).await?;
                return Err(obstacle::error(collection, "aggregate", aggregate, &obstacles));
            }
        }
    }
    let message = "the schema kept changing while the records were counted";
    Err(crate::error::Error::new(ErrorKind::StaleSchema, message)
        .with("collection", collection)
        .with("aggregate", aggregate))
}

/// Finds, or begins, the generation that is to be counted; `None` when there is nothing to do.
async fn start(
    live: &Live,
    collection: &str,
    aggregate: &str,
    purpose: Purpose,
    target: &mut Option<u32>,
) -> Result<Option<Task>> {
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
                return Ok(Some(Task {
                    loaded,
                    collection: declared,
                    aggregate: counted,
                    generation,
                }));
            }
            (IndexState::Ready, Some(generation)) => {
                *target = Some(generation.number);
                return Ok(Some(Task {
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
        live.replace_generations(&loaded, &counted, state, begun).await?;
    }
}

fn generations(loaded: &Loaded, aggregate: &Aggregate) -> Generations {
    loaded.catalog.generations(&aggregate.collection, &aggregate.name)
}

/// Gives up a generation that cannot be completed. What is in use beside it stays so.
async fn fail(live: &Live, task: &Task, reason: String) -> Result<()> {
    let Task { aggregate, generation, .. } = task;
    loop {
        let loaded = live.reload().await?;
        let known = generations(&loaded, aggregate);
        let state = match loaded.state(&aggregate.collection, &aggregate.name) {
            IndexState::Ready if known.next == Some(*generation) => IndexState::Ready,
            IndexState::Building if known.current == *generation => {
                IndexState::Failed { reason: reason.clone() }
            }
            // Somebody else settled it meanwhile.
            _ => return Ok(()),
        };
        let left = Generations { next: None, ..known };
        if live.replace_generations(&loaded, aggregate, state, left).await? {
            return Ok(());
        }
    }
}
