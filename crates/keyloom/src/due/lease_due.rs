//! Gives due work to a worker.
//!
//! A round looks at the next entries in the order of their moments, leaves out those that somebody
//! has, reads the records of the others, and leases them in one batch: each lease's cell must be
//! as it was seen, and each record too. Of two workers who want the same entry one batch is
//! rejected; its worker looks again, and goes on with what is left.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use serde_json::Value;

use super::lease::{Lease, check_worker, until};
use crate::engine::{Address, Batch, Cell, Condition, Direction, Outcome, Range, Stamp};
use crate::error::{Error, ErrorKind, Result};
use crate::key::Path;
use crate::query::has_entry;
use crate::record::{Document, Version, random_fraction};
use crate::schema::{Collection, Index, MomentForm, record_key_of};
use crate::side::{LeaseContent, lease_address, reveal};
use crate::space::Loaded;
use crate::space::Session;

/// How many entries are looked at together, at least.
const CHUNK: usize = 32;

/// The most entries that are leased in one batch.
const BATCH_ITEMS_MAX: usize = 64;

/// How often in a row a worker loses before it takes what it has.
const LOSSES_MAX: usize = 256;

/// The most that can be taken at once.
const TAKE_MAX: usize = 1_000;

/// Which work is due.
///
/// ```
/// use keyloom::Due;
/// let timeouts = Due::new("due").take(10);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Due {
    index: String,
    equal: Vec<(String, Value)>,
    until: Option<u64>,
    take: usize,
}

impl Due {
    /// The entries of this index whose moment has passed, earliest first. The first field of its
    /// key that is not fixed by [`equal`](Self::equal) must be a timestamp or a date-time.
    pub fn new(index: &str) -> Self {
        Due { index: index.to_owned(), equal: Vec::new(), until: None, take: 1 }
    }

    /// Fixes a field that the index has before the moment.
    #[must_use]
    pub fn equal(mut self, field: &str, value: impl Into<Value>) -> Self {
        self.equal.push((field.to_owned(), value.into()));
        self
    }

    /// What is due up to this moment, in milliseconds since 1970, itself included; the present
    /// unless set.
    #[must_use]
    pub fn until(mut self, millis: u64) -> Self {
        self.until = Some(millis);
        self
    }

    /// The most that is taken; 1 unless set.
    #[must_use]
    pub fn take(mut self, items: usize) -> Self {
        self.take = items;
        self
    }
}

/// One piece of work that a worker got.
#[derive(Debug)]
pub struct DueItem<R> {
    /// The record, as it was when the lease was given.
    pub record: R,
    /// When it was due, in milliseconds since 1970.
    pub due_at: i64,
    /// The values of the entry, by the paths in its index's template: `awaitingSteps.*key` is the
    /// name of the step.
    pub values: BTreeMap<String, Value>,
    /// The lease.
    pub lease: Lease,
}

/// Leases what is due to a worker.
pub(crate) async fn lease_due(
    session: &Session,
    name: &str,
    due: &Due,
    worker: &str,
    duration: Duration,
) -> Result<Vec<DueItem<Document>>> {
    // A lease says what a worker does for all users.
    session.program()?;
    check_worker(worker)?;
    if !(1..=TAKE_MAX).contains(&due.take) {
        return Err(Error::new(ErrorKind::InvalidQuery, "a worker takes 1 to 1000 items at once")
            .with("take", due.take));
    }
    let now = session.now();
    let plan = session.live.decide(|loaded| Plan::new(loaded, name, due, now)).await?;
    let until = until(now, duration)?;
    Taker { session, plan, now, until, worker, waiting: VecDeque::new() }.run(due.take).await
}

/// Where the entries lie, and how to read them.
struct Plan {
    collection: Arc<Collection>,
    index: Arc<Index>,
    /// What has not been looked at yet.
    range: Range,
    direction: Direction,
    /// The place of the moment among the segments, and its form.
    moment: (usize, MomentForm),
}

impl Plan {
    fn new(loaded: &Loaded, name: &str, due: &Due, now: u64) -> Result<Self> {
        let collection = loaded.schema.collection(name)?;
        let index = collection.asked_index(&due.index)?;
        loaded.check_readable(collection, index)?;
        let refused = |message| {
            Error::new(ErrorKind::InvalidQuery, message)
                .with("collection", name)
                .with("index", &index.name)
                .with("key", &index.key.source)
        };
        let given = |path: &Path| {
            let named = due.equal.iter().find(|(field, _)| *field == path.to_string());
            named.map(|(_, value)| value)
        };
        let fixed: Vec<&Value> =
            index.key.segments().map_while(|segment| given(&segment.path)).collect();
        if fixed.len() < due.equal.len() {
            return Err(refused("the index does not have these fields before its moment"));
        }
        let segment = index.key.segments().nth(fixed.len());
        let moment = segment.and_then(|segment| {
            let kind = collection.fields.get(&segment.path)?.key_kind()?;
            Some((segment.desc, MomentForm::of(&kind)?))
        });
        let Some((desc, form)) = moment else {
            let message =
                "what is due is told by a timestamp or a datetime that follows the fixed fields";
            return Err(refused(message));
        };
        let span = form.up_to(due.until.unwrap_or(now));
        let range = index.key.range(&fixed, Some(&span)).map_err(|refusal| {
            refusal.into_query_error().with("collection", name).with("index", &index.name)
        })?;
        Ok(Plan {
            collection: collection.clone(),
            index: index.clone(),
            range: range.in_area(index.area.clone()),
            direction: if desc { Direction::Backward } else { Direction::Forward },
            moment: (fixed.len(), form),
        })
    }
}

/// A number by chance, below this.
fn random_below(bound: usize) -> usize {
    let place = (random_fraction() * bound as f64) as usize;
    place.min(bound.saturating_sub(1))
}

/// An entry that nobody has.
struct Candidate {
    entry: Bytes,
    record: Bytes,
    lease: Address,
    /// What is left of a lease that ran out.
    ran_out: Option<Stamp>,
}

struct Taker<'t> {
    session: &'t Session,
    plan: Plan,
    now: u64,
    until: u64,
    worker: &'t str,
    /// Candidates that were looked at and not yet tried.
    waiting: VecDeque<Candidate>,
}

impl Taker<'_> {
    async fn run(mut self, wanted: usize) -> Result<Vec<DueItem<Document>>> {
        let mut items = Vec::new();
        let mut losses = 0;
        let batch_max =
            BATCH_ITEMS_MAX.min(self.session.live.engine.capabilities().batch_entries_max / 2);
        while items.len() < wanted && losses < LOSSES_MAX {
            let size = (wanted - items.len()).min(batch_max.max(1));
            let candidates = self.choose(size, losses).await?;
            if candidates.is_empty() {
                break;
            }
            let ready = self.with_records(candidates).await?;
            if ready.is_empty() {
                continue;
            }
            match self.lease(&ready).await? {
                Some(leased) => {
                    items.extend(leased);
                    losses = 0;
                }
                None => {
                    losses += 1;
                    let tried = ready.into_iter().map(|(candidate, _)| candidate);
                    let free =
                        self.free(tried.map(|tried| (tried.entry, tried.record)).collect()).await?;
                    free.into_iter().rev().for_each(|free| self.waiting.push_front(free));
                }
            }
        }
        items.sort_by_key(|item| item.due_at);
        Ok(items)
    }

    /// The next candidates, or fewer when there are no more. One who lost to others chooses by
    /// chance among more and more, so that all who look at the same entries do not meet again and
    /// again.
    async fn choose(&mut self, size: usize, losses: usize) -> Result<Vec<Candidate>> {
        let among = size << losses.min(5);
        while self.waiting.len() < among && self.look_at_more(among.max(CHUNK)).await? {}
        let spare = among.min(self.waiting.len()).saturating_sub(size);
        let start = random_below(spare + 1);
        Ok(self.waiting.drain(start..(start + size).min(self.waiting.len())).collect())
    }

    /// Looks at the next entries; `false` when there are no more.
    async fn look_at_more(&mut self, chunk: usize) -> Result<bool> {
        let Plan { collection, index, range, direction, .. } = &mut self.plan;
        if range.is_empty() {
            return Ok(false);
        }
        let live = &self.session.live;
        let stretch = live.scan_one(range, chunk, *direction).await?;
        let mut entries = Vec::new();
        for row in &stretch.rows {
            // A jump over foreign keys may have gone beyond keys that were read already.
            if !range.contains(&row.key) {
                continue;
            }
            if index.key.decode(&row.key).is_none() {
                *range = index.key.skip(range, &row.key, *direction);
                continue;
            }
            *range = range.after(&row.key, *direction);
            let value = row.cell.bytes();
            let record = value.and_then(|value| record_key_of(collection, index, &row.key, value));
            entries.extend(record.map(|record| (row.key.clone(), record)));
        }
        if !stretch.more {
            *range = Range { end: Some(range.start.clone()), ..range.clone() };
        }
        let free = self.free(entries).await?;
        self.waiting.extend(free);
        Ok(true)
    }

    /// Those entries that nobody has.
    async fn free(&self, entries: Vec<(Bytes, Bytes)>) -> Result<Vec<Candidate>> {
        if entries.is_empty() {
            return Ok(Vec::new());
        }
        let Plan { collection, index, .. } = &self.plan;
        let addresses: Vec<Address> = entries
            .iter()
            .map(|(entry, _)| lease_address(&collection.name, &index.name, entry))
            .collect();
        let cells = self.session.live.get(&addresses).await?;
        let free = entries.into_iter().zip(addresses).zip(cells).filter_map(
            |(((entry, record), lease), cell)| {
                // What is no lease keeps nobody from the work, and is replaced.
                let held = cell.as_ref().and_then(LeaseContent::of);
                let is_held = held.is_some_and(|held| held.until > self.now);
                let ran_out = cell.map(|cell| cell.stamp);
                (!is_held).then_some(Candidate { entry, record, lease, ran_out })
            },
        );
        Ok(free.collect())
    }

    /// The candidates with their records. Entries whose record moved on meanwhile, or has expired,
    /// are not work any more.
    async fn with_records(&self, candidates: Vec<Candidate>) -> Result<Vec<(Candidate, Cell)>> {
        let Plan { collection, index, .. } = &self.plan;
        let addresses: Vec<Address> = candidates
            .iter()
            .map(|candidate| Address::new(collection.area.clone(), candidate.record.clone()))
            .collect();
        let cells = self.session.live.get(&addresses).await?;
        let ready = candidates.into_iter().zip(cells).filter_map(|(candidate, cell)| {
            let cell = cell?;
            let is_expired = collection.is_text_expired(cell.bytes()?, self.now);
            let is_due = has_entry(collection, index, &candidate.entry, &cell);
            (is_due && !is_expired).then_some((candidate, cell))
        });
        Ok(ready.collect())
    }

    /// Leases all of them; `None` when one of them was taken or changed meanwhile.
    async fn lease(&self, ready: &[(Candidate, Cell)]) -> Result<Option<Vec<DueItem<Document>>>> {
        let mut batch = Batch::new(self.session.live.space.clone());
        let mut records = BTreeMap::new();
        let mut items = Vec::new();
        for (candidate, cell) in ready {
            let Candidate { entry, record, lease: address, ran_out } = candidate;
            let content = LeaseContent {
                entry: String::from_utf8_lossy(entry).into_owned(),
                owner: self.worker.to_owned(),
                until: self.until,
            };
            let version = Version::first();
            let condition = ran_out.map_or(Condition::Absent, Condition::Unchanged);
            batch.push(address.clone(), Some(condition), Some(content.put(version)?));
            records.insert(record.clone(), cell.stamp);
            let lease =
                Lease { session: self.session.clone(), address: address.clone(), version, content };
            items.extend(self.item(entry, record, cell, lease));
        }
        for (record, stamp) in records {
            let address = Address::new(self.plan.collection.area.clone(), record);
            batch.push(address, Some(Condition::Unchanged(stamp)), None);
        }
        // Before anything is leased: who is told of an error has no work to give back.
        let leased = items.iter_mut().map(|item| &mut item.record);
        reveal(self.session, &self.plan.collection, leased).await?;
        match self.session.commit_under_any_schema(batch).await? {
            Outcome::Committed(_) => Ok(Some(items)),
            Outcome::Rejected(_) => Ok(None),
        }
    }

    fn item(
        &self,
        entry: &Bytes,
        record: &Bytes,
        cell: &Cell,
        lease: Lease,
    ) -> Option<DueItem<Document>> {
        let template = &self.plan.index.key;
        let decoded = template.decode(entry)?;
        let (place, form) = self.plan.moment;
        let due_at = form.millis(decoded.get(place)?)?;
        let paths = template.segments().map(|segment| segment.path.to_string());
        let version = Version::from_stamp(cell.stamp);
        let record = Document::new(record.clone(), version, cell.bytes()?.clone());
        Some(DueItem { record, due_at, values: paths.zip(decoded).collect(), lease })
    }
}
