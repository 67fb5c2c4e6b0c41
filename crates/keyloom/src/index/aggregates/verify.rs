//! Compares what an aggregate says with what the records give, while writers go on.
//!
//! The cells are read, then all records, then the cells again. A group whose cells are the same
//! both times was not written in between, so that the records must give what the cells say. A
//! group that was written is looked at again. Where batches show cell by cell, a cell may show
//! before its record does; there a difference counts only when it is still the same, with the same
//! cells, after a time in which every batch shows as a whole.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use bytes::Bytes;

use super::super::finding::{Finding, FindingKind};
use super::SHOWN_WITHIN;
use crate::engine::{Address, Area, Direction, Range, Reading, ShowKey, Stamp, successor};
use crate::error::Result;
use crate::own::{OwnKind, OwnRange, own_address};
use crate::query::Total;
use crate::schema::{Aggregate, Collection, Generation};
use crate::space::{Interrupted, Live, Loaded, Under, Walk};
use crate::write::{Retry, read_record, share};

/// How many keys are read at once.
const CHUNK_KEYS: usize = 256;

/// How many groups are compared at once: what is held in memory.
const WINDOW_GROUPS: usize = 50_000;

/// How often groups that writers change are looked at.
const LOOKS: u32 = 6;

/// What a comparison found.
#[derive(Default)]
pub(crate) struct Compared {
    pub(crate) findings: Vec<Finding>,
    /// Groups that writers changed each time that they were looked at.
    pub(crate) unsettled: u64,
}

/// How often the same difference must be found, and how long the pauses in between are: where
/// batches show cell by cell, long enough for all of them to show.
fn patience(reading: Reading) -> (u32, Retry) {
    let (confirmations, first_pause, longest_pause) = match reading {
        Reading::Snapshot => (1, Duration::from_millis(1), Duration::from_millis(10)),
        Reading::Validated => (3, SHOWN_WITHIN / 2, SHOWN_WITHIN / 2),
    };
    (confirmations, Retry { attempts: LOOKS, first_pause, longest_pause, jitter: 0.0 })
}

/// A group that is not what the records give, as it was seen.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Difference {
    seen: Seen,
    given: Total,
}

/// The cells of a group as they were read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Seen {
    stamps: Vec<(Bytes, Stamp)>,
    total: Total,
}

/// What lies in a stretch of groups.
#[derive(Default)]
struct Cells {
    groups: BTreeMap<Bytes, Seen>,
    /// Keys that are no cell, or hold no number.
    unreadable: Vec<Bytes>,
    /// Where the stretch ends; nowhere when there are no more groups.
    end: Option<Bytes>,
}

struct Comparison<'c> {
    live: &'c Live,
    collection: &'c Collection,
    aggregate: &'c Aggregate,
    generation: Generation,
}

/// Compares every group of a ready aggregate.
pub(crate) async fn verify(
    live: &Live,
    loaded: &Loaded,
    collection: &Collection,
    aggregate: &Aggregate,
) -> Under<Compared> {
    let Ok(generation) = loaded.readable(aggregate) else { return Ok(Compared::default()) };
    let comparison = Comparison { live, collection, aggregate, generation };
    let mut compared = Compared::default();
    let mut start = aggregate.generation(OwnKind::AggregateCell, generation.number).start;
    loop {
        let end = comparison.compare(start, &mut compared).await?;
        check_current(live, loaded).await?;
        match end {
            Some(end) => start = end,
            None => return Ok(compared),
        }
    }
}

async fn check_current(live: &Live, loaded: &Loaded) -> Under<()> {
    match live.is_current(loaded).await? {
        true => Ok(()),
        false => Err(Interrupted::SchemaChanged),
    }
}

impl Comparison<'_> {
    /// Compares the groups from a key on, as many as fit into memory; gives where they end.
    async fn compare(&self, start: Bytes, compared: &mut Compared) -> Result<Option<Bytes>> {
        let whole = self.aggregate.generation(OwnKind::AggregateCell, self.generation.number);
        let first = self.cells(Range { start: start.clone(), ..whole.clone() }, true).await?;
        let end = first.end.clone();
        let range = Range { start, end: end.clone().or(whole.end), ..whole };
        compared.findings.extend(first.unreadable.iter().map(|key| self.unreadable(key)));
        let (confirmations, pauses) = patience(self.live.engine.capabilities().reading);
        // `None`: all groups, of which not all are known yet.
        let mut pending: Option<BTreeSet<Bytes>> = None;
        let mut suspicions: BTreeMap<Bytes, (Difference, u32)> = BTreeMap::new();
        let mut before = first;
        for look in 1..=LOOKS {
            let expected = self.expected(&range).await?;
            let after = self.cells(range.clone(), false).await?;
            let known = before.groups.keys().chain(after.groups.keys()).chain(expected.keys());
            let mut moving = BTreeSet::new();
            for group in known.cloned().collect::<BTreeSet<Bytes>>() {
                if pending.as_ref().is_some_and(|pending| !pending.contains(&group)) {
                    continue;
                }
                let seen = after.groups.get(&group).cloned().unwrap_or_default();
                if before.groups.get(&group).cloned().unwrap_or_default() != seen {
                    moving.insert(group);
                    continue;
                }
                let given = expected.get(&group).copied().unwrap_or_default();
                if given == seen.total {
                    continue;
                }
                let difference = Difference { seen, given };
                let times = match suspicions.get(&group) {
                    Some((known, times)) if *known == difference => times + 1,
                    _ => 1,
                };
                if times == confirmations {
                    compared.findings.push(self.drifted(&group, &difference));
                } else {
                    suspicions.insert(group.clone(), (difference, times));
                    moving.insert(group);
                }
            }
            if moving.is_empty() {
                return Ok(end);
            }
            before = after;
            pending = Some(moving);
            pauses.pause(look).await;
        }
        compared.unsettled += pending.map_or(0, |pending| pending.len() as u64);
        Ok(end)
    }

    /// The groups of a range; with `window`, only as many as fit into memory.
    async fn cells(&self, mut left: Range, window: bool) -> Result<Cells> {
        let mut cells = Cells::default();
        loop {
            let live = self.live;
            let stretch = live.scan_one(&left, CHUNK_KEYS, Direction::Forward).await?;
            for row in &stretch.rows {
                let group = self.aggregate.read_cell(self.generation, &row.key);
                let (Some((group, _)), Some(total)) = (group, Total::of(&row.cell)) else {
                    cells.unreadable.push(row.key.clone());
                    continue;
                };
                if window
                    && cells.groups.len() == WINDOW_GROUPS
                    && !cells.groups.contains_key(&group)
                {
                    cells.end = Some(self.aggregate.cells(self.generation.number, &group).start);
                    return Ok(cells);
                }
                let seen = cells.groups.entry(group).or_default();
                seen.stamps.push((row.key.clone(), row.cell.stamp));
                seen.total.count += total.count;
                seen.total.sum += total.sum;
            }
            match stretch.rows.last() {
                Some(last) if stretch.more => left = left.after(&last.key, Direction::Forward),
                _ => return Ok(cells),
            }
        }
    }

    /// What the records give to the groups of a range. A record that cannot be read, or that does
    /// not fit, is not counted, and is reported by itself.
    async fn expected(&self, range: &Range) -> Result<BTreeMap<Bytes, Total>> {
        let mut totals: BTreeMap<Bytes, Total> = BTreeMap::new();
        let records = self.collection.record_range()?;
        let mut walk = Walk::of(&self.collection.key, records, CHUNK_KEYS);
        while let Some(chunk) = walk.next(self.live).await? {
            for row in chunk.rows {
                let Ok((value, _)) = read_record(self.collection, &row.key, &row.cell) else {
                    continue;
                };
                let Ok(Some(share)) = share(self.collection, self.aggregate, &value) else {
                    continue;
                };
                let first = self.aggregate.cells(self.generation.number, &share.group).start;
                if range.contains(&first) {
                    let total = totals.entry(share.group).or_default();
                    total.count += 1;
                    total.sum += i128::from(share.amount);
                }
            }
        }
        Ok(totals)
    }

    fn drifted(&self, group: &Bytes, difference: &Difference) -> Finding {
        let words = |total: &Total| match self.aggregate.summed {
            Some(_) => format!("{} in {} records", total.sum, total.count),
            None => format!("{} records", total.count),
        };
        let values = self.aggregate.values_of(group).unwrap_or_default();
        let key = self.aggregate.cells(self.generation.number, group).start;
        let (given, seen) = (words(&difference.given), words(&difference.seen.total));
        let values = serde_json::Value::from(values);
        let reason = format!("for the group {values} expected {given}, found {seen}");
        self.finding(FindingKind::Drifted, &key, reason)
    }

    fn unreadable(&self, key: &Bytes) -> Finding {
        let reason = "it is no number of the aggregate".to_owned();
        self.finding(FindingKind::Unreadable, key, reason)
    }

    fn finding(&self, kind: FindingKind, key: &Bytes, reason: String) -> Finding {
        Finding {
            kind,
            collection: Some(self.collection.name.clone()),
            index: Some(self.aggregate.name.clone()),
            area: Area::own().name().to_owned(),
            key: ShowKey(key).to_string(),
            key_bytes: key.clone(),
            record: None,
            reason,
        }
    }
}

/// A key that looks like one of an aggregate, and belongs to none.
pub(crate) struct Litter {
    pub(crate) address: Address,
    pub(crate) stamp: Stamp,
    pub(crate) finding: Finding,
}

/// Keys of aggregates that there are not, or of generations that there never were. What is left
/// over of earlier generations is nothing wrong.
pub(crate) async fn litter(live: &Live, loaded: &Loaded) -> Under<Vec<Litter>> {
    let mut all = Vec::new();
    for kind in [OwnKind::AggregateMark, OwnKind::AggregateCell] {
        litter_of(live, loaded, kind.range(), &mut all).await?;
    }
    // A key may belong to an aggregate that was declared meanwhile.
    if !all.is_empty() {
        check_current(live, loaded).await?;
    }
    Ok(all)
}

async fn litter_of(
    live: &Live,
    loaded: &Loaded,
    mut left: Range,
    all: &mut Vec<Litter>,
) -> Result<()> {
    loop {
        let stretch = live.scan_one(&left, CHUNK_KEYS, Direction::Forward).await?;
        let more = stretch.more;
        for row in stretch.rows {
            if !left.contains(&row.key) {
                continue;
            }
            // A generation has many keys, and none of them is litter.
            let known = owner(loaded, &row.key).and_then(|known| known.end);
            left.start = known.clone().unwrap_or_else(|| successor(&row.key));
            if known.is_none() {
                all.push(Litter {
                    finding: stray(&row.key),
                    address: own_address(row.key),
                    stamp: row.cell.stamp,
                });
            }
        }
        if !more {
            return Ok(());
        }
    }
}

/// The keys of the generation that a key belongs to, if there is, or was, such a generation.
fn owner(loaded: &Loaded, key: &[u8]) -> Option<Range> {
    let range = OwnRange::generation_of(key)?;
    let OwnRange::Generation { collection, name, generation, .. } = range else { return None };
    let aggregate = loaded.schema.collections.get(collection)?.aggregates.get(name)?;
    let last = loaded.catalog.generations(&aggregate.collection, &aggregate.name).last;
    (1..=last).contains(&generation).then(|| range.range())
}

fn stray(key: &Bytes) -> Finding {
    Finding {
        kind: FindingKind::Dangling,
        collection: None,
        index: None,
        area: Area::own().name().to_owned(),
        key: ShowKey(key).to_string(),
        key_bytes: key.clone(),
        record: None,
        reason: "it belongs to no aggregate".to_owned(),
    }
}
