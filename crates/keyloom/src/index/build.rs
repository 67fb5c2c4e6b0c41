//! Makes an index complete while writers go on.
//!
//! From the moment that the catalog says *building*, no commit succeeds that does not maintain the
//! index: a process that has not heard of it is stopped by the fence. What is left are the records
//! from before. One pass removes entries that no record has (an index that was disabled or failed
//! has such), a second puts those that records lack.
//!
//! The pass goes on after a crash, in another process, and when the schema changes, as long as the
//! catalog's number of the building and what is declared of the index are the same: then writers
//! have maintained it all the time. Otherwise somebody may have disabled it in between, and writers
//! may have passed it by, so that the pass begins anew.

use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Serialize};

use super::aggregates::{self, Purpose};
use super::obstacle;
use super::pair_repair::Mended;
use super::pass::{CHUNK_KEYS, Pass};
use super::subject::subject;
use crate::error::{Error, Result};
use crate::schema::IndexState;
use crate::space::{Interrupted, Live, Loaded, Pace, Position, Subject, Task, Under, Visitor};

/// What a build did, however often it was interrupted. Where somebody else built the same index at
/// the same time, this is how far they were when they were last heard of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Built {
    /// How many records the last pass went over; none when the index was ready already.
    pub records: u64,
    /// How many entries were put or put right; for an aggregate, how many records were counted.
    /// Writers do so for their own writes.
    pub put: u64,
    /// How many entries that no record has were removed; for an aggregate, how many keys that
    /// only counting needed, or that were counted earlier.
    pub removed: u64,
}

impl Built {
    /// The same, after one pair was mended.
    pub(super) fn with(self, mended: &Mended) -> Self {
        match mended {
            Mended::Put | Mended::Rewritten => Built { put: self.put + 1, ..self },
            Mended::Removed => Built { removed: self.removed + 1, ..self },
            _ => self,
        }
    }
}

/// Hears what a build has done so far, after each chunk of keys.
pub(crate) type HearBuilt<'h> = &'h (dyn Fn(Built) + Send + Sync);

/// Builds an index, or an aggregate. Safe to run twice, also at the same time, and after a crash:
/// one does the work, from where the last one came to, and the others wait for it.
pub(crate) async fn build(
    live: &Live,
    collection: &str,
    index: &str,
    pace: Pace,
    hear: HearBuilt<'_>,
) -> Result<Built> {
    if is_aggregate(live, collection, index).await? {
        return aggregates::build(live, collection, index, Purpose::Complete, pace, hear).await;
    }
    let (mut built, mut started, mut task) = (Built::default(), false, None);
    let message = "the schema kept changing while the index was built";
    let mut attempts = live.attempts(message);
    loop {
        let Some(loaded) = start(live, collection, index, &mut started).await? else {
            return Ok(built);
        };
        let before = position_of(&task);
        let once = build_once(live, &loaded, (collection, index), pace, &mut task, hear).await;
        if position_of(&task) != before {
            attempts.begin_anew();
        }
        let about = |error: Error| match error.message() == message {
            true => error.with("collection", collection).with("index", index),
            false => error,
        };
        if let Some(done) = attempts.settle(once).await.map_err(about)? {
            built = done;
        }
    }
}

/// How far a task is, if it is at hand.
pub(super) fn position_of(task: &Option<Task<'_, Built>>) -> Option<Position> {
    task.as_ref().map(|task| task.position().clone())
}

/// Goes over what is left while the schema stays as it is, or waits while somebody else does.
/// Whoever calls looks again what is left to do.
async fn build_once<'l>(
    live: &'l Live,
    loaded: &Loaded,
    (collection, name): (&str, &str),
    pace: Pace,
    task: &mut Option<Task<'l, Built>>,
    hear: HearBuilt<'_>,
) -> Under<Built> {
    let declared = loaded.schema.collection(collection)?;
    let index = declared.index(name)?;
    let number = loaded.catalog.building_number(collection, name);
    let subject = subject(loaded, "build", declared, name, number)?;
    let mut owned = match take(live, loaded, &subject, task.take(), hear).await? {
        Taken::Owned(owned) => *owned,
        Taken::Ended(built) => return Ok(built),
    };
    let from = (owned.position().stage, *owned.progress());
    owned.keep_pace(pace);
    let mut pass = Pass::new(live, loaded, declared, index, from, hear);
    let gone = owned.go_on(loaded, pass.stages()?, CHUNK_KEYS, &mut pass).await;
    let ended = owned.ending();
    if !matches!(gone, Err(Interrupted::TakenOver)) {
        *task = Some(owned);
    }
    gone?;
    let (state, failure) = match &pass.obstacles[..] {
        [] => (IndexState::Ready, None),
        obstacles => {
            let reason = obstacle::reason(obstacles);
            let error = obstacle::error(collection, "index", name, obstacles);
            (IndexState::Failed { reason }, Some(error))
        }
    };
    if !live.replace_state(loaded, collection, name, state, ended).await? {
        *task = None;
        return Err(Interrupted::SchemaChanged);
    }
    failure.map_or(Ok(pass.progress()), |error| Err(error.into()))
}

/// What became of the wish to work on a task.
pub(super) enum Taken<'l> {
    Owned(Box<Task<'l, Built>>),
    /// Somebody else has ended it, after so much was done.
    Ended(Built),
}

/// Goes on with the task that is at hand if it is this one, or takes this one over.
pub(super) async fn take<'l>(
    live: &'l Live,
    loaded: &Loaded,
    subject: &Subject,
    at_hand: Option<Task<'l, Built>>,
    hear: HearBuilt<'_>,
) -> Under<Taken<'l>> {
    if let Some(task) = at_hand.filter(|task| task.subject() == subject) {
        return Ok(Taken::Owned(Box::new(task)));
    }
    let heard = Mutex::new(Built::default());
    let hear_other = |so_far: &Built| {
        *heard.lock().unwrap_or_else(PoisonError::into_inner) = *so_far;
        hear(*so_far);
    };
    let begins_with = Some(Built::default());
    let taken = Task::take(live, loaded.fence(), subject, begins_with, hear_other).await?;
    let built = *heard.lock().unwrap_or_else(PoisonError::into_inner);
    Ok(taken.map_or(Taken::Ended(built), |task| Taken::Owned(Box::new(task))))
}

/// Whether a name is that of an aggregate. The schema is read again only if it may be a new one.
async fn is_aggregate(live: &Live, collection: &str, name: &str) -> Result<bool> {
    let known = live.loaded().await?;
    let found = known.schema.collections.get(collection);
    let declared = match found.filter(|found| found.check_kept(name).is_ok()) {
        Some(found) => found.clone(),
        None => live.reload().await?.schema.collection(collection)?.clone(),
    };
    Ok(declared.aggregates.contains_key(name))
}

/// Counts a ready aggregate anew beside what is read, and puts it in its place.
pub(crate) async fn recount(live: &Live, collection: &str, aggregate: &str) -> Result<Built> {
    aggregates::build(live, collection, aggregate, Purpose::Renew, Pace::Full, &|_| {}).await
}

/// Makes sure that writers maintain the index; `None` when it is ready.
async fn start(
    live: &Live,
    collection: &str,
    index: &str,
    started: &mut bool,
) -> Result<Option<Arc<Loaded>>> {
    loop {
        let loaded = live.reload().await?;
        let declared = loaded.schema.collection(collection)?;
        let entries = declared.index(index)?;
        match loaded.state(collection, index) {
            IndexState::Ready => return Ok(None),
            IndexState::Building => {
                *started = true;
                return Ok(Some(loaded));
            }
            IndexState::Disabled | IndexState::Failed { .. } if *started => {
                // Somebody else stopped the index, and has the last word.
                loaded.check_readable(declared, entries)?;
            }
            IndexState::Disabled | IndexState::Failed { .. } => {
                let building = IndexState::Building;
                live.replace_state(&loaded, collection, index, building, Vec::new()).await?;
            }
        }
    }
}
