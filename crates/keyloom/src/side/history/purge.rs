//! Removes what no history has to keep any more, in bounded batches.
//!
//! Writes remove the version that a count no longer allows. What days end, and what a lower count
//! leaves over, are found by walking over all cells.

use std::collections::BTreeMap;

use super::keys::{trace_of, version_address, version_of};
use super::past::Past;
use crate::engine::{Address, Cell, Row};
use crate::error::Result;
use crate::own::{OwnKind, own_address};
use crate::record::Version;
use crate::schema::HistoryDeclaration;
use crate::space::Loaded;
use crate::space::Session;
use crate::space::{GoesOn, Judge, PurgeOptions, Purged, Removal, purge};

const DAY_MS: u64 = 24 * 60 * 60 * 1_000;

/// Removes what is over. No cell of a history ever changes, so that nothing has to hold for it.
pub(super) async fn purge_history(
    session: &Session,
    options: &PurgeOptions,
    goes_on: GoesOn<'_>,
) -> Result<Purged> {
    // Versions go first: a trace ends with the version that it leads to.
    let ranges = [OwnKind::HistoryVersion, OwnKind::HistoryTrace].map(OwnKind::range);
    purge(session, options, goes_on, &ranges, &Over).await
}

/// What no bound keeps.
struct Over;

impl Judge for Over {
    async fn removals(
        &self,
        session: &Session,
        loaded: &Loaded,
        place: usize,
        rows: &[Row],
    ) -> Result<Vec<Removal>> {
        let gone = match place {
            0 => versions_to_remove(session, loaded, rows).await?,
            _ => traces_to_remove(session, loaded, rows),
        };
        Ok(gone.into_iter().map(|address| (address, None)).collect())
    }
}

/// The versions among these rows that no bound keeps.
async fn versions_to_remove(
    session: &Session,
    loaded: &Loaded,
    rows: &[Row],
) -> Result<Vec<Address>> {
    let judged: Vec<Judged<'_>> = rows
        .iter()
        .enumerate()
        .filter_map(|(place, row)| {
            let (name, version) = version_of(&row.key)?;
            let bounds = loaded.schema.collections.get(name)?.history?;
            Some(Judged { row, next: rows.get(place + 1), name, version, bounds })
        })
        .collect();
    let later = |name: &str, version: Version, by: usize| {
        let by = u64::try_from(by).ok()?;
        Some(version_address(name, version.at_revision(version.revision().checked_add(by)?)))
    };
    // The next version ends this one; the one that is a full count later pushes it out.
    let mut asked: Vec<Address> = Vec::new();
    for Judged { name, version, bounds, .. } in &judged {
        asked.extend(later(name, *version, 1));
        asked.extend(bounds.versions.and_then(|count| later(name, *version, count)));
    }
    asked.sort();
    asked.dedup();
    let cells = found(session, asked).await?;
    let now = session.now();
    let goes = |judged: &Judged<'_>| {
        let Judged { row, name, version, bounds, .. } = *judged;
        let is_counted_out = bounds
            .versions
            .and_then(|count| later(name, version, count))
            .is_some_and(|address| cells.contains_key(&address));
        let ended = match Past::from_cell(&row.cell) {
            Some(past) if past.kind.is_end() => Some(past.at),
            _ => {
                let following = later(name, version, 1).and_then(|address| cells.get(&address));
                // One that could not be read may be gone.
                let following = following.or_else(|| Some(&judged.later()?.cell));
                following.and_then(Past::from_cell).map(|past| past.at)
            }
        };
        let is_aged_out =
            bounds.days.zip(ended).is_some_and(|(days, ended)| is_over(ended, days, now));
        is_counted_out || is_aged_out
    };
    Ok(judged
        .iter()
        .filter(|judged| goes(judged))
        .map(|judged| own_address(judged.row.key.clone()))
        .collect())
}

/// One version of a record, and what is needed to judge it.
struct Judged<'r> {
    row: &'r Row,
    /// The row after it.
    next: Option<&'r Row>,
    name: &'r str,
    version: Version,
    bounds: HistoryDeclaration,
}

impl<'r> Judged<'r> {
    /// The row after it, if that is a later version of the same record.
    fn later(&self) -> Option<&'r Row> {
        let (name, version) = version_of(&self.next?.key)?;
        let is_same = name == self.name && version.is_same_incarnation(self.version);
        self.next.filter(|_| is_same)
    }
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
    rows.iter().filter(goes).map(|row| own_address(row.key.clone())).collect()
}

/// Whether days that are kept are over since this time.
fn is_over(at: u64, days: usize, now: u64) -> bool {
    let kept = u64::try_from(days).unwrap_or(u64::MAX).saturating_mul(DAY_MS);
    now.checked_sub(kept).is_some_and(|oldest| at <= oldest)
}

async fn found(session: &Session, addresses: Vec<Address>) -> Result<BTreeMap<Address, Cell>> {
    if addresses.is_empty() {
        return Ok(BTreeMap::new());
    }
    let cells = session.live.get(&addresses).await?;
    Ok(addresses.into_iter().zip(cells).filter_map(|(at, cell)| Some((at, cell?))).collect())
}
