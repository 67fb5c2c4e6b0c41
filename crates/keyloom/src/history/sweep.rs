//! Removes what no history has to keep any more, in bounded batches.
//!
//! Writes remove the version that a count no longer allows. What days end, and what a lower count
//! leaves over, are found by walking over all cells.

use std::collections::BTreeMap;

use bytes::Bytes;

use super::keys::{all_traces, all_versions, trace_of, version_address, version_of};
use super::past::Past;
use crate::engine::{
    Address, Area, Batch, Cell, Direction, Effect, EngineExt, Outcome, Range, Row, successor,
};
use crate::error::Result;
use crate::record::Version;
use crate::schema::{HistoryDeclaration, Loaded};
use crate::session::Session;

/// How many cells are read at once; a batch removes no more.
const CHUNK_CELLS: usize = 64;

const DAY_MS: u64 = 24 * 60 * 60 * 1_000;

/// How much one call of a sweep does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SweepOptions {
    /// How many cells are looked at, at most, but a chunk of 64 at least.
    pub cells_max: usize,
    /// Where an earlier call stopped: its [`Swept::next`].
    pub from: Option<Bytes>,
}

impl Default for SweepOptions {
    /// Everything, from the start.
    fn default() -> Self {
        SweepOptions { cells_max: usize::MAX, from: None }
    }
}

/// What a sweep did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Swept {
    /// How many cells were looked at.
    pub read: u64,
    /// How many of them were removed.
    pub removed: u64,
    /// Where to go on; `None` when all was looked at.
    pub next: Option<Bytes>,
}

pub(crate) async fn sweep(session: &Session, options: &SweepOptions) -> Result<Swept> {
    let mut swept = Swept::default();
    let mut from = options.from.clone();
    // Versions go first: a trace ends with the version that it leads to.
    for (pass, of_versions) in [(all_versions(), true), (all_traces(), false)] {
        let Some(mut left) = left_of(&pass, from.as_ref()) else { continue };
        from = None;
        loop {
            if swept.read >= u64::try_from(options.cells_max).unwrap_or(u64::MAX) {
                swept.next = Some(left.start);
                return Ok(swept);
            }
            let loaded = session.loaded().await?;
            let engine = &session.engine;
            let stretch =
                engine.scan_one(&session.space, &left, CHUNK_CELLS, Direction::Forward).await?;
            let Some(last) = stretch.rows.last() else { break };
            let next = successor(&last.key);
            let read = stretch.rows.len();
            let removals = match of_versions {
                true => versions_to_remove(session, &loaded, &stretch.rows).await?,
                false => traces_to_remove(session, &loaded, &stretch.rows),
            };
            let Some(removed) = remove(session, &loaded, removals).await? else { continue };
            swept.read += read as u64;
            swept.removed += removed;
            left.start = next;
            if !stretch.more {
                break;
            }
        }
    }
    Ok(swept)
}

/// What is left of a pass that starts from here; `None` when it is done.
fn left_of(pass: &Range, from: Option<&Bytes>) -> Option<Range> {
    match from {
        None => Some(pass.clone()),
        Some(from) if pass.contains(from) => Some(Range { start: from.clone(), ..pass.clone() }),
        Some(_) => None,
    }
}

/// The versions among these rows that no bound keeps.
async fn versions_to_remove(
    session: &Session,
    loaded: &Loaded,
    rows: &[Row],
) -> Result<Vec<Address>> {
    let judged: Vec<(&Row, &str, Version, HistoryDeclaration)> = rows
        .iter()
        .filter_map(|row| {
            let (name, version) = version_of(&row.key)?;
            let bounds = loaded.schema.collections.get(name)?.history?;
            Some((row, name, version, bounds))
        })
        .collect();
    let later = |name: &str, version: Version, by: usize| {
        let by = u64::try_from(by).ok()?;
        Some(version_address(name, version.at_revision(version.revision().checked_add(by)?)))
    };
    // The next version ends this one; the one that is a full count later pushes it out.
    let mut asked: Vec<Address> = Vec::new();
    for (_, name, version, bounds) in &judged {
        asked.extend(later(name, *version, 1));
        asked.extend(bounds.versions.and_then(|count| later(name, *version, count)));
    }
    asked.sort();
    asked.dedup();
    let cells = found(session, asked).await?;
    let now = session.now();
    let goes = |row: &Row, name: &str, version: Version, bounds: HistoryDeclaration| {
        let is_counted_out = bounds
            .versions
            .and_then(|count| later(name, version, count))
            .is_some_and(|address| cells.contains_key(&address));
        let ended = match Past::from_cell(&row.cell) {
            Some(past) if past.kind.is_end() => Some(past.at),
            _ => later(name, version, 1)
                .and_then(|address| Some(Past::from_cell(cells.get(&address)?)?.at)),
        };
        let is_aged_out =
            bounds.days.zip(ended).is_some_and(|(days, ended)| is_over(ended, days, now));
        is_counted_out || is_aged_out
    };
    let gone = judged
        .into_iter()
        .filter(|(row, name, version, bounds)| goes(row, name, *version, *bounds));
    Ok(gone.map(|(row, ..)| own_address(row)).collect())
}

/// The traces among these rows that were left before anything that days keep. A count of
/// versions keeps traces: without them a version that is gone would look like one that never was.
fn traces_to_remove(session: &Session, loaded: &Loaded, rows: &[Row]) -> Vec<Address> {
    let now = session.now();
    let goes = |row: &&Row| {
        let Some((name, trace)) = trace_of(&row.key) else { return false };
        let bounds = loaded.schema.collections.get(name).and_then(|found| found.history);
        bounds.and_then(|bounds| bounds.days).is_some_and(|days| is_over(trace.at, days, now))
    };
    rows.iter().filter(goes).map(own_address).collect()
}

/// Whether days that are kept are over since this time.
fn is_over(at: u64, days: usize, now: u64) -> bool {
    let kept = u64::try_from(days).unwrap_or(u64::MAX).saturating_mul(DAY_MS);
    now.checked_sub(kept).is_some_and(|oldest| at <= oldest)
}

fn own_address(row: &Row) -> Address {
    Address::new(Area::own(), row.key.clone())
}

async fn found(session: &Session, addresses: Vec<Address>) -> Result<BTreeMap<Address, Cell>> {
    if addresses.is_empty() {
        return Ok(BTreeMap::new());
    }
    let cells = session.engine.get(&session.space, &addresses).await?;
    Ok(addresses.into_iter().zip(cells).filter_map(|(at, cell)| Some((at, cell?))).collect())
}

/// Removes cells under the schema that they were judged by, and tells how many; `None` when it
/// changed, so that they must be judged again. No cell of a history ever changes, so that nothing
/// else has to hold.
async fn remove(session: &Session, loaded: &Loaded, gone: Vec<Address>) -> Result<Option<u64>> {
    let removed = gone.len() as u64;
    // Not every engine takes a whole chunk at once.
    let most = session.engine.capabilities().batch_entries_max.max(1);
    for part in gone.chunks(most) {
        let mut batch = Batch { fence: loaded.fence(), ..Batch::new(session.space.clone()) };
        for address in part {
            batch.push(address.clone(), None, Some(Effect::Delete));
        }
        if let Outcome::Rejected(_) = session.engine.commit(batch).await? {
            session.reload().await?;
            return Ok(None);
        }
    }
    Ok(Some(removed))
}
