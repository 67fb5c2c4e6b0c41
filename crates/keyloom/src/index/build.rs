//! Makes an index complete while writers go on.
//!
//! From the moment that the catalog says *building*, no commit succeeds that does not maintain the
//! index: a process that has not heard of it is stopped by the fence. What is left are the records
//! from before. One pass removes entries that no record has (an index that was disabled or failed
//! has such), a second puts those that records lack.
//!
//! The pass counts only if the catalog did not change from its start to its end. Otherwise somebody
//! may have disabled the index in between, and writers may have passed it by; the pass is made
//! again, and finds little to do.

use std::sync::Arc;

use super::aggregates::{self, Purpose};
use super::obstacle;
use super::pass::{End, Pass};
use crate::error::{Error, ErrorKind, Result};
use crate::schema::IndexState;
use crate::space::{Live, Loaded};

/// How often a pass is made anew because the schema changed meanwhile.
const PASSES: usize = 16;

/// What a build did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
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

/// Hears what a build has done so far, after each chunk of keys.
pub(crate) type HearBuilt<'h> = &'h (dyn Fn(Built) + Send + Sync);

/// Builds an index, or an aggregate. Safe to run twice, also at the same time, and after a crash.
pub(crate) async fn build(
    live: &Live,
    collection: &str,
    index: &str,
    hear: HearBuilt<'_>,
) -> Result<Built> {
    if is_aggregate(live, collection, index).await? {
        return aggregates::build(live, collection, index, Purpose::Complete, hear).await;
    }
    let mut built = Built::default();
    let mut started = false;
    for _ in 0..PASSES {
        let Some(loaded) = start(live, collection, index, &mut started).await? else {
            return Ok(built);
        };
        let declared = loaded.schema.collection(collection)?;
        let pass = Pass::new(live, &loaded, declared, declared.index(index)?, &mut built, hear);
        match pass.run().await? {
            End::Complete => {
                if live.replace_state(&loaded, collection, index, IndexState::Ready).await? {
                    return Ok(built);
                }
            }
            End::StaleSchema => {}
            End::Obstructed(obstacles) => {
                fail(live, collection, index, obstacle::reason(&obstacles)).await?;
                return Err(obstacle::error(collection, "index", index, &obstacles));
            }
        }
    }
    Err(Error::new(ErrorKind::StaleSchema, "the schema kept changing while the index was built")
        .with("collection", collection)
        .with("index", index))
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
    aggregates::build(live, collection, aggregate, Purpose::Renew, &|_| {}).await
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
                live.replace_state(&loaded, collection, index, IndexState::Building).await?;
            }
        }
    }
}

/// Remembers why the build failed, unless somebody else settled the index meanwhile.
async fn fail(live: &Live, collection: &str, index: &str, reason: String) -> Result<()> {
    loop {
        let loaded = live.reload().await?;
        let state = IndexState::Failed { reason: reason.clone() };
        if *loaded.state(collection, index) != IndexState::Building
            || live.replace_state(&loaded, collection, index, state).await?
        {
            return Ok(());
        }
    }
}
