//! Compares what an aggregate says with what the records give, while writers go on.
//!
//! The cells are read, then all records, then the cells again. A group whose cells are the same
//! both times was not written in between, so that the records must give what the cells say. A
//! group that was written is looked at again. Where batches show cell by cell, a cell may show
//! before its record does; there a difference counts only when it is still the same, with the same
//! cells, after a time in which every batch shows as a whole.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use super::SHOWN_WITHIN;
use super::total::Total;
use super::write::share;
use crate::engine::{Direction, Range, Reading, Row, Stamp, Stretch, successor};
use crate::error::Result;
use crate::own::{OwnKind, OwnRange, own_address};
use crate::record::read_record;
use crate::schema::{Aggregate, Collection, Generation};
use crate::side::finding::{Finding, FindingKind, Flaw};
use crate::side::kind::{Compared, Cure, Part};
use crate::space::{Interrupted, Live, Loaded, Retry, Under, Walk};

/// How many keys are read at once.
const CHUNK_KEYS: usize = 256;

/// How many groups are compared at once: what is held in memory.
const WINDOW_GROUPS: usize = 50_000;

/// How often groups that writers change are looked at.
const LOOKS: u32 = 6;

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
    findings: Vec<Finding>,
    /// Groups that writers changed each time that they were looked at.
    unsettled: u64,
}

/// Looks at the keys that belong to no aggregate, then at one aggregate after the other.
pub(super) async fn compare(
    live: &Live,
    loaded: &Loaded,
    after: Option<&Part>,
) -> Under<Option<Compared>> {
    let Some(after) = after else {
        // No collection has this name, so that all aggregates come after it.
        let part = Part::default();
        let findings = litter(live, loaded).await?;
        return Ok(Some(Compared { part, findings, unsettled: 0 }));
    };
    let Some((collection, aggregate)) = next_after(loaded, after) else { return Ok(None) };
    let part = part_of(aggregate);
    let (mut findings, mut unsettled) = (Vec::new(), 0);
    if let Ok(generation) = loaded.readable(aggregate) {
        let mut comparison =
            Comparison { live, collection, aggregate, generation, findings, unsettled };
        comparison.compare_all(loaded).await?;
        Comparison { findings, unsettled, .. } = comparison;
    }
    let cured = |finding| (finding, Cure::CountAnew(aggregate.clone()));
    let findings = findings.into_iter().map(cured).collect();
    Ok(Some(Compared { part, findings, unsettled }))
}

/// The first aggregate after this one.
fn next_after<'l>(
    loaded: &'l Loaded,
    after: &Part,
) -> Option<(&'l Arc<Collection>, &'l Arc<Aggregate>)> {
    loaded.schema.collections.values().find_map(|collection| {
        let next = collection.aggregates.values().find(|it| part_of(it) > *after)?;
        Some((collection, next))
    })
}

fn part_of(aggregate: &Aggregate) -> Part {
    (aggregate.collection.clone(), aggregate.name.clone())
}

async fn check_current(live: &Live, loaded: &Loaded) -> Under<()> {
    match live.is_current(loaded).await? {
        true => Ok(()),
        false => Err(Interrupted::SchemaChanged),
    }
}

impl Comparison<'_> {
    /// Compares every group, while the schema stays as it is.
    async fn compare_all(&mut self, loaded: &Loaded) -> Under<()> {
        let kind = OwnKind::AggregateCell;
        let mut start = self.aggregate.generation(kind, self.generation.number).start;
        loop {
            let end = self.compare(start).await?;
            check_current(self.live, loaded).await?;
            match end {
                Some(end) => start = end,
                None => return Ok(()),
            }
        }
    }

    /// Compares the groups from a key on, as many as fit into memory; gives where they end.
    async fn compare(&mut self, start: Bytes) -> Result<Option<Bytes>> {
        let whole = self.aggregate.generation(OwnKind::AggregateCell, self.generation.number);
        let first = self.cells(Range { start: start.clone(), ..whole.clone() }, true).await?;
        let end = first.end.clone();
        let range = Range { start, end: end.clone().or(whole.end), ..whole };
        let unreadable: Vec<Finding> =
            first.unreadable.iter().map(|key| self.unreadable(key)).collect();
        self.findings.extend(unreadable);
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
                    let drifted = self.drifted(&group, &difference);
                    self.findings.push(drifted);
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
        self.unsettled += pending.map_or(0, |pending| pending.len() as u64);
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
        let (collection, index) = (self.collection.name.clone(), self.aggregate.name.clone());
        let flaw = Flaw::new(kind, reason);
        Flaw { collection: Some(collection), index: Some(index), ..flaw }.finding(key)
    }
}

/// Keys of aggregates that there are not, or of generations that there never were. What is left
/// over of earlier generations is nothing wrong.
async fn litter(live: &Live, loaded: &Loaded) -> Under<Vec<(Finding, Cure)>> {
    let mut all = Vec::new();
    let ranges = [OwnKind::AggregateMark, OwnKind::AggregateCell].map(OwnKind::range);
    let firsts = live.scan(&ranges, CHUNK_KEYS, Direction::Forward).await?;
    for (range, first) in ranges.into_iter().zip(firsts) {
        litter_of(live, loaded, range, first, &mut all).await?;
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
    mut stretch: Stretch<Row>,
    all: &mut Vec<(Finding, Cure)>,
) -> Result<()> {
    loop {
        let more = stretch.more;
        for row in stretch.rows {
            if !left.contains(&row.key) {
                continue;
            }
            // A generation has many keys, and none of them is litter.
            let known = owner(loaded, &row.key).and_then(|known| known.end);
            left.start = known.clone().unwrap_or_else(|| successor(&row.key));
            if known.is_none() {
                let stray = Flaw::new(FindingKind::Dangling, "it belongs to no aggregate")
                    .finding(&row.key);
                all.push((stray, Cure::Delete(own_address(row.key), row.cell.stamp)));
            }
        }
        if !more {
            return Ok(());
        }
        stretch = live.scan_one(&left, CHUNK_KEYS, Direction::Forward).await?;
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
