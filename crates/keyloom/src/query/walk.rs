//! Reads the ranges of a plan in one order, in as few round trips as possible.

use std::collections::VecDeque;

use bytes::Bytes;

use super::cursor::Position;
use super::freshness::Freshness;
use super::plan::{Branch, Plan};
use crate::engine::{Address, Cell, Direction, Link, Range, Row, Trail, Witness, successor};
use crate::error::Result;
use crate::schema::{Collection, Holds, record_key_of};
use crate::space::Session;

/// What a walk fetches for each entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Want {
    /// The records.
    Records,
    /// Only the entries themselves.
    Entries,
}

/// One entry that a walk found.
#[derive(Debug)]
pub(super) struct Found<'p> {
    pub(super) branch: &'p Branch,
    /// The part of the key that orders the answer.
    pub(super) position: Bytes,
    pub(super) entry: Row,
    /// The record that the entry leads to, if the engine followed the entry.
    pub(super) followed: Option<Followed>,
    /// Entries of other branches at the same position, and so for the same record. If this entry
    /// leads to no record, one of these may still do.
    pub(super) twins: Vec<Found<'p>>,
}

/// The record that an entry leads to.
#[derive(Debug)]
pub(super) struct Followed {
    pub(super) target: Option<Bytes>,
    pub(super) record: Option<Cell>,
    /// Whether one call of the engine read both the entry and the record.
    pub(super) in_one_call: bool,
}

struct Lane<'p> {
    branch: &'p Branch,
    /// The part that was not read yet.
    range: Range,
    more: bool,
    waiting: VecDeque<Found<'p>>,
}

/// A walk over the ranges of a plan.
pub(super) struct Walk<'p> {
    session: &'p Session,
    plan: &'p Plan,
    want: Want,
    direction: Direction,
    lanes: Vec<Lane<'p>>,
    /// Witnesses for everything that was read; `None` as soon as one read has none.
    witnesses: Option<Vec<Witness>>,
}

impl<'p> Walk<'p> {
    /// Starts at the position, or at the beginning without one.
    pub(super) fn new(
        session: &'p Session,
        plan: &'p Plan,
        want: Want,
        position: Option<&Position>,
    ) -> Result<Self> {
        let towards_start = position.is_some_and(|position| position.towards_start);
        let direction = if towards_start { plan.direction.reversed() } else { plan.direction };
        let lanes = plan
            .branches
            .iter()
            .map(|branch| {
                let range = match position {
                    Some(position) => trim(branch, position, direction),
                    None => branch.range.clone(),
                };
                session.check_range(&plan.collection, branch.index.as_deref(), &range)?;
                Ok(Lane::new(branch, range))
            })
            .collect::<Result<_>>()?;
        Ok(Walk { session, plan, want, direction, lanes, witnesses: Some(Vec::new()) })
    }

    /// A walk to entries with known keys, and to their records. It does not check who owns the
    /// records; the caller must.
    pub(super) fn to_entries(session: &'p Session, plan: &'p Plan) -> Self {
        let lanes = plan.branches.iter().map(|branch| Lane::new(branch, branch.range.clone()));
        let (want, direction) = (Want::Records, plan.direction);
        let lanes = lanes.collect();
        Walk { session, plan, want, direction, lanes, witnesses: Some(Vec::new()) }
    }

    /// The next entry in order, each position once. At most `chunk` entries are read ahead.
    pub(super) async fn next(&mut self, chunk: usize) -> Result<Option<Found<'p>>> {
        if self.is_hungry() {
            self.refill(chunk).await?;
        }
        Ok(self.pop())
    }

    /// How many ranges it merges; at least one.
    pub(super) fn ranges(&self) -> usize {
        self.lanes.len().max(1)
    }

    /// Whether a lane must be read before the next entry is known.
    pub(super) fn is_hungry(&self) -> bool {
        self.lanes.iter().any(|lane| lane.waiting.is_empty() && lane.more)
    }

    /// Tells whether all that was read is still current, if the engine gave witnesses for it.
    pub(super) fn into_freshness(self) -> Option<Freshness> {
        let (live, loaded) = (self.session.live.clone(), self.plan.loaded.clone());
        Some(Freshness::new(live, loaded, self.witnesses?))
    }

    /// The next entry of those already read, unless the walk is hungry.
    pub(super) fn pop(&mut self) -> Option<Found<'p>> {
        if let [lane] = &mut self.lanes[..] {
            return lane.waiting.pop_front();
        }
        let direction = self.direction;
        let (place, _) = self
            .lanes
            .iter()
            .enumerate()
            .filter_map(|(place, lane)| Some((place, &lane.waiting.front()?.position)))
            .reduce(
                |best, other| if is_before(other.1, best.1, direction) { other } else { best },
            )?;
        let mut found = self.lanes[place].waiting.pop_front()?;
        // The same record through another index has the same position.
        for lane in &mut self.lanes {
            if lane.waiting.front().is_some_and(|other| other.position == found.position) {
                found.twins.extend(lane.waiting.pop_front());
            }
        }
        Some(found)
    }

    /// Reads until every lane has its next entry or is at its end.
    pub(super) async fn refill(&mut self, chunk: usize) -> Result<()> {
        while self.is_hungry() {
            let follow = |lane: &Lane<'_>| self.want == Want::Records && follows(lane.branch);
            let hungry = |lane: &&mut Lane<'p>| lane.waiting.is_empty() && lane.more;
            let following: Vec<bool> = self.lanes.iter().map(follow).collect();
            let mut scanned: Vec<&mut Lane<'p>> = Vec::new();
            let mut followed: Vec<&mut Lane<'p>> = Vec::new();
            for (lane, follows) in
                self.lanes.iter_mut().zip(following).filter(|(lane, _)| hungry(lane))
            {
                if follows { followed.push(lane) } else { scanned.push(lane) }
            }
            let (session, loaded) = (self.session, &self.plan.loaded);
            let direction = self.direction;
            if !scanned.is_empty() {
                let ranges: Vec<Range> = scanned.iter().map(|lane| lane.range.clone()).collect();
                let stretches = session.live.scan_under(loaded, ranges, chunk, direction).await?;
                for (lane, stretch) in scanned.iter_mut().zip(stretches) {
                    let is_all = self.want == Want::Entries || !needs_decoding(lane.branch);
                    note(&mut self.witnesses, stretch.witness.filter(|_| is_all));
                    let rows = stretch.rows.into_iter().map(|row| (row, None));
                    lane.take_in(&self.plan.collection, direction, rows, stretch.more);
                }
                if self.want == Want::Records {
                    fetch(session, &self.plan.collection, &mut scanned).await?;
                }
            }
            if !followed.is_empty() {
                let trails: Vec<Trail<'_>> =
                    followed.iter().filter_map(|lane| lane.trail()).collect();
                let stretches = session.live.follow_under(loaded, trails, chunk, direction).await?;
                for (lane, stretch) in followed.into_iter().zip(stretches) {
                    note(&mut self.witnesses, stretch.witness);
                    let links = stretch.rows.into_iter().map(split);
                    lane.take_in(&self.plan.collection, direction, links, stretch.more);
                }
            }
        }
        Ok(())
    }
}

/// Adds a witness; without one, all are given up.
fn note(witnesses: &mut Option<Vec<Witness>>, witness: Option<Witness>) {
    match (witnesses.as_mut(), witness) {
        (Some(witnesses), Some(witness)) => witnesses.push(witness),
        _ => *witnesses = None,
    }
}

impl<'p> Lane<'p> {
    fn new(branch: &'p Branch, range: Range) -> Self {
        Lane { branch, more: !range.is_empty(), range, waiting: VecDeque::new() }
    }
}

impl Lane<'_> {
    fn trail(&self) -> Option<Trail<'_>> {
        let recipe = self.branch.index.as_ref()?.recipe.as_ref()?;
        Some(Trail { range: self.range.clone(), recipe })
    }

    /// Takes in the rows that were read, and skips keys of other templates.
    fn take_in(
        &mut self,
        collection: &Collection,
        direction: Direction,
        rows: impl ExactSizeIterator<Item = (Row, Option<Followed>)>,
        more: bool,
    ) {
        let (template, interleaved) = match &self.branch.index {
            Some(index) => (&index.key, index.interleaved),
            // Other keys among the records would be taken for records, since no entry leads to
            // them.
            None => (&collection.key, true),
        };
        self.more = more;
        self.waiting.reserve(rows.len());
        let mut last = None;
        for (row, followed) in rows {
            last = Some(row.key.clone());
            if interleaved {
                if !self.range.contains(&row.key) {
                    continue;
                }
                if template.decode(&row.key).is_none() {
                    self.range = template.skip(&self.range, &row.key, direction);
                    continue;
                }
            }
            let position = row.key.slice(self.branch.prefix.len().min(row.key.len())..);
            let (branch, twins) = (self.branch, Vec::new());
            self.waiting.push_back(Found { branch, position, entry: row, followed, twins });
        }
        // A skip may have passed the last row already.
        if let Some(last) = last.filter(|last| self.more && self.range.contains(last)) {
            self.range = self.range.after(&last, direction);
        }
        self.more &= !self.range.is_empty();
    }
}

/// Whether the engine itself can follow this branch's entries to the records.
fn follows(branch: &Branch) -> bool {
    branch
        .index
        .as_ref()
        .is_some_and(|index| index.holds != Holds::Record && index.recipe.is_some())
}

/// Fetches, in one round trip, the records whose keys only the decoded entries give.
async fn fetch(
    session: &Session,
    collection: &Collection,
    lanes: &mut [&mut Lane<'_>],
) -> Result<()> {
    let mut decoded: Vec<&mut Found<'_>> = lanes
        .iter_mut()
        .flat_map(|lane| lane.waiting.iter_mut())
        .filter(|found| found.followed.is_none() && needs_decoding(found.branch))
        .collect();
    let mut wanted = Vec::new();
    for found in &mut decoded {
        let Row { key, cell } = &found.entry;
        let target = found
            .branch
            .index
            .as_ref()
            .zip(cell.bytes())
            .and_then(|(index, value)| record_key_of(collection, index, key, value));
        wanted.extend(target.iter().map(|key| Address::new(collection.area.clone(), key.clone())));
        found.followed = Some(Followed { target, record: None, in_one_call: false });
    }
    if wanted.is_empty() {
        return Ok(());
    }
    let mut cells = session.live.get(&wanted).await?.into_iter();
    let followed = decoded.iter_mut().filter_map(|found| found.followed.as_mut());
    for followed in followed.filter(|followed| followed.target.is_some()) {
        followed.record = cells.next().flatten();
    }
    Ok(())
}

fn needs_decoding(branch: &Branch) -> bool {
    branch
        .index
        .as_ref()
        .is_some_and(|index| index.holds != Holds::Record && index.recipe.is_none())
}

fn split(link: Link) -> (Row, Option<Followed>) {
    let Link { entry, target, record } = link;
    (entry, Some(Followed { target, record, in_one_call: true }))
}

fn is_before(a: &Bytes, b: &Bytes, direction: Direction) -> bool {
    match direction {
        Direction::Forward => a < b,
        Direction::Backward => a > b,
    }
}

/// The rest of a branch's range from the position on.
fn trim(branch: &Branch, position: &Position, direction: Direction) -> Range {
    let key: Bytes = [&branch.prefix[..], &position.key[..]].concat().into();
    let range = branch.range.clone();
    match direction {
        Direction::Forward => {
            let start = if position.inclusive { key } else { successor(&key) };
            Range { start: start.max(range.start), ..range }
        }
        Direction::Backward => {
            let end = if position.inclusive { successor(&key) } else { key };
            let end = range.end.map_or(end.clone(), |limit| limit.min(end));
            Range { end: Some(end), ..range }
        }
    }
}
