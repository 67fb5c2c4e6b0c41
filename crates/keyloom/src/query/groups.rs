//! What is asked of a declared count or sum: one group, all of them in order, or the largest.

use std::sync::Arc;

use bytes::Bytes;
use serde_json::{Value, json};

use super::cursor::{Asked, Binding, Cursor, Position};
use super::predicate::TAKE_MAX;
use crate::engine::{Address, Cell, Direction, Fence, Range, Row, ShowKey, Stamp, successor};
use crate::error::{Error, ErrorKind, Result};
use crate::key::{Path, shortened};
use crate::schema::{Aggregate, COUNT, Collection, Generation, Loaded, SUM, catalog_address};
use crate::session::Session;

/// The groups that a page holds unless told otherwise.
const TAKE_DEFAULT: usize = 100;

/// The groups that are read unless told otherwise.
const LIMIT_DEFAULT: usize = 10_000;

/// How often a question is asked again because the schema changed meanwhile.
const RELOADS: usize = 16;

/// How many cells are read at once, at most.
const CHUNK_CELLS: usize = 1_000;

/// One group of records, and what it comes to.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    /// The values of the group's fields, in the order of their declaration.
    pub values: Vec<Value>,
    /// How many records the group has; never zero.
    pub count: i64,
    /// The sum of the summed field; `None` for a count.
    pub sum: Option<i64>,
}

/// Some groups, in the order of their values.
#[derive(Clone, Debug)]
pub struct GroupPage {
    /// The groups. There may be fewer than asked for, and still be more behind them.
    pub groups: Vec<Group>,
    /// Where to go on; `None` at the end.
    pub next: Option<Cursor>,
}

/// Which groups of an aggregate are asked for.
///
/// ```
/// use keyloom::GroupQuery;
/// let of_one_flow = GroupQuery::new("seconds").within("nightly").take(20);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct GroupQuery {
    pub(crate) aggregate: String,
    pub(crate) within: Vec<Value>,
    pub(crate) take: usize,
    pub(crate) limit: usize,
    pub(crate) cursor: Option<String>,
}

impl GroupQuery {
    /// All groups of this count or sum.
    pub fn new(aggregate: &str) -> Self {
        GroupQuery {
            aggregate: aggregate.to_owned(),
            within: Vec::new(),
            take: TAKE_DEFAULT,
            limit: LIMIT_DEFAULT,
            cursor: None,
        }
    }

    /// The most groups that a page holds; 100 unless set.
    #[must_use]
    pub fn take(mut self, groups: usize) -> Self {
        self.take = groups;
        self
    }

    /// The most groups that are read, empty ones that are not swept yet included; 10,000 unless
    /// set. A page that reads so many ends there. The largest groups are told only if all were
    /// read.
    #[must_use]
    pub fn limit(mut self, groups: usize) -> Self {
        self.limit = groups;
        self
    }

    /// Goes on from the cursor of an earlier page of the same question.
    #[must_use]
    pub fn from_cursor(mut self, cursor: impl ToString) -> Self {
        self.cursor = Some(cursor.to_string());
        self
    }
}

/// What a group comes to: the number of its records, and the sum for which one is kept. One round
/// trip.
pub(crate) async fn group(
    session: &Session,
    collection: &str,
    aggregate: &str,
    values: &[Value],
) -> Result<(i64, Option<i64>)> {
    for _ in 0..RELOADS {
        let decided = session.decide(|loaded| {
            let (declared, aggregate) = declared(loaded, collection, aggregate)?;
            check_values(declared, aggregate, values)?;
            session.check_group(declared, aggregate, values)?;
            if values.len() != aggregate.group.len() {
                let message = "a group has one value for each of its fields";
                let error = aggregate.about(ErrorKind::InvalidQuery, message);
                let error = error.with("fields", list(&aggregate.group));
                return Err(error.with("values given", values.len()));
            }
            let group = groups_with(aggregate, values)?;
            Ok((aggregate.clone(), group, loaded.readable(aggregate)?, loaded.fence()))
        });
        let (aggregate, group, generation, fence) = decided.await?;
        let cells = 0..generation.cells;
        let cells = cells.map(|number| aggregate.cell(generation.number, &group, number));
        let addresses: Vec<Address> = cells.chain([catalog_address()]).collect();
        let mut found = session.engine.get(&session.space, &addresses).await?;
        // The cells may be of a generation that was replaced, and removed since.
        if stamp_of(found.pop().flatten()) != fence.map(|fence| fence.stamp) {
            session.reload().await?;
            continue;
        }
        let mut total = Total::default();
        for (address, cell) in addresses.iter().zip(found) {
            let Some(cell) = cell else { continue };
            total.add(&aggregate, &Row { key: address.key.clone(), cell })?;
        }
        return Ok((total.count()?, total.sum(&aggregate)?));
    }
    Err(stale(collection, aggregate))
}

/// A page of groups.
pub(crate) async fn groups(
    session: &Session,
    collection: &str,
    query: &GroupQuery,
) -> Result<GroupPage> {
    if !(1..=TAKE_MAX).contains(&query.take) || query.limit == 0 {
        let message = "a page takes 1 to 10000 groups and reads at least one";
        return Err(Error::new(ErrorKind::InvalidQuery, message)
            .with("take", query.take)
            .with("limit", query.limit));
    }
    for _ in 0..RELOADS {
        let (walk, binding) = start(session, collection, query).await?;
        if let Some(page) = page(walk, binding, query).await? {
            return Ok(page);
        }
        session.reload().await?;
    }
    Err(stale(collection, &query.aggregate))
}

/// The page from where the walk starts; `None` when the schema changed meanwhile.
async fn page(
    mut walk: Walk<'_>,
    binding: Binding,
    query: &GroupQuery,
) -> Result<Option<GroupPage>> {
    let mut groups = Vec::new();
    let mut last = None;
    let mut is_end = false;
    for _ in 0..query.limit {
        match walk.next((query.take - groups.len()).saturating_add(1)).await? {
            Next::Group(..) if groups.len() == query.take => break,
            Next::Group(key, group) => {
                groups.extend(group);
                last = Some(key);
            }
            Next::End => {
                is_end = true;
                break;
            }
            Next::StaleSchema => return Ok(None),
        }
    }
    let position = last.filter(|_| !is_end).map(|key| Position {
        indexes: query.aggregate.clone(),
        key,
        towards_start: false,
        inclusive: false,
    });
    let next = position.map(|position| Cursor::new(position, Arc::new(binding)));
    Ok(Some(GroupPage { groups, next }))
}

/// The groups with the largest sums or, for a count, with the most records.
pub(crate) async fn top_groups(
    session: &Session,
    collection: &str,
    query: &GroupQuery,
    count: usize,
) -> Result<Vec<Group>> {
    for _ in 0..RELOADS {
        let (walk, _) = start(session, collection, query).await?;
        if let Some(top) = top(walk, query, count).await? {
            return Ok(top);
        }
        session.reload().await?;
    }
    Err(stale(collection, &query.aggregate))
}

/// The largest of all groups of the walk; `None` when the schema changed meanwhile.
async fn top(mut walk: Walk<'_>, query: &GroupQuery, count: usize) -> Result<Option<Vec<Group>>> {
    let size = |group: &Group| group.sum.unwrap_or(group.count);
    let mut top: Vec<Group> = Vec::new();
    let mut read = 0;
    loop {
        let group = match walk.next(query.limit).await? {
            Next::Group(_, group) => group,
            Next::End => return Ok(Some(top)),
            Next::StaleSchema => return Ok(None),
        };
        read += 1;
        if read > query.limit {
            let message = "there are more groups than `limit` allows to read; raise it";
            let error = walk.aggregate.about(ErrorKind::LimitExceeded, message);
            return Err(error.with("limit", query.limit));
        }
        let Some(group) = group else { continue };
        // Equal ones stay in the order of their values.
        let place = top.partition_point(|other| size(other) >= size(&group));
        if place < count {
            top.truncate(count - 1);
            top.insert(place, group);
        }
    }
}

async fn start<'s>(
    session: &'s Session,
    collection: &str,
    query: &GroupQuery,
) -> Result<(Walk<'s>, Binding)> {
    let decided = session.decide(|loaded| {
        let (declared, aggregate) = declared(loaded, collection, &query.aggregate)?;
        check_values(declared, aggregate, &query.within)?;
        session.check_group(declared, aggregate, &query.within)?;
        let generation = loaded.readable(aggregate)?;
        let mut range = aggregate.cells(generation.number, &groups_with(aggregate, &query.within)?);
        let binding = Binding {
            secret: loaded.catalog.cursor_secret.0.to_vec(),
            space: session.space.name().to_owned(),
            collection: declared.name.clone(),
            actor: session.actor().map(str::to_owned),
            query: Asked::Words(json!(["groups", query.aggregate, query.within]).to_string()),
        };
        if let Some(text) = &query.cursor {
            let done = aggregate.cells(generation.number, &Cursor::open(text, &binding)?.key);
            range.start = done.end.unwrap_or(done.start);
        }
        let aggregate = aggregate.clone();
        let fence = loaded.fence();
        let (left, more, rows) = (range, true, Vec::new());
        Ok((Walk { session, aggregate, generation, fence, left, more, rows }, binding))
    });
    decided.await
}

fn declared<'l>(
    loaded: &'l Loaded,
    collection: &str,
    aggregate: &str,
) -> Result<(&'l Arc<Collection>, &'l Arc<Aggregate>)> {
    let collection = loaded.schema.collection(collection)?;
    Ok((collection, collection.aggregate(aggregate)?))
}

/// Refuses values that no record could have.
fn check_values(collection: &Collection, aggregate: &Aggregate, values: &[Value]) -> Result<()> {
    for (path, value) in aggregate.group.iter().zip(values) {
        let kind = collection.fields.get(path).and_then(|field| field.key_kind());
        if let Some(Err(reason)) = kind.map(|kind| kind.check(value)) {
            let message = "a value that is asked for does not fit its field";
            return Err(aggregate
                .about(ErrorKind::InvalidQuery, message)
                .with("field", path)
                .with("value", shortened(value))
                .with("reason", reason));
        }
    }
    Ok(())
}

fn groups_with(aggregate: &Aggregate, values: &[Value]) -> Result<Bytes> {
    let values: Vec<&Value> = values.iter().collect();
    let begin = aggregate
        .groups_with(&values)
        .map_err(|refusal| refusal.into_query_error().with("aggregate", &aggregate.name))?;
    aggregate.check_room(&begin)?;
    Ok(begin)
}

fn list(paths: &[Path]) -> String {
    let names: Vec<String> = paths.iter().map(Path::to_string).collect();
    names.join(", ")
}

fn stamp_of(cell: Option<Cell>) -> Option<Stamp> {
    cell.map(|cell| cell.stamp)
}

fn stale(collection: &str, aggregate: &str) -> Error {
    let message = "the schema kept changing while the aggregate was read";
    Error::new(ErrorKind::StaleSchema, message)
        .with("collection", collection)
        .with("aggregate", aggregate)
}

/// Reads groups one by one.
struct Walk<'s> {
    session: &'s Session,
    aggregate: Arc<Aggregate>,
    generation: Generation,
    /// The schema by which the generation is the one to read.
    fence: Option<Fence>,
    left: Range,
    more: bool,
    /// What was read and not given yet, the next one last.
    rows: Vec<Row>,
}

/// What a walk comes to next.
enum Next {
    /// A group as it is in keys, and what it comes to unless it is empty.
    Group(Bytes, Option<Group>),
    End,
    StaleSchema,
}

impl Walk<'_> {
    /// The next group. Reads ahead for so many.
    async fn next(&mut self, ahead: usize) -> Result<Next> {
        if !self.refill(ahead).await? {
            return Ok(Next::StaleSchema);
        }
        let Some(first) = self.rows.pop() else { return Ok(Next::End) };
        let (key, values) = self.read_key(&first)?;
        let mut total = Total::default();
        total.add(&self.aggregate, &first)?;
        loop {
            if !self.refill(ahead).await? {
                return Ok(Next::StaleSchema);
            }
            let Some(row) = self.rows.pop() else { break };
            if self.read_key(&row)?.0 != key {
                self.rows.push(row);
                break;
            }
            total.add(&self.aggregate, &row)?;
        }
        let count = total.count()?;
        let sum = total.sum(&self.aggregate)?;
        Ok(Next::Group(key, (count != 0).then_some(Group { values, count, sum })))
    }

    /// Reads on if everything that was read is given; `false` when the schema changed, so that
    /// this generation may be no more.
    async fn refill(&mut self, ahead: usize) -> Result<bool> {
        if !self.rows.is_empty() || !self.more || self.left.is_empty() {
            return Ok(true);
        }
        let (engine, space) = (&self.session.engine, &self.session.space);
        let Address { area, key } = catalog_address();
        let catalog = Range { area, end: Some(successor(&key)), start: key };
        let ranges = [self.left.clone(), catalog];
        let limit = ahead.saturating_add(1).min(CHUNK_CELLS);
        let mut stretches = engine.scan(space, &ranges, limit, Direction::Forward).await?;
        let catalog = stretches.pop().and_then(|mut stretch| stretch.rows.pop());
        let stamp = catalog.map(|row| row.cell.stamp);
        if stamp != self.fence.as_ref().map(|fence| fence.stamp) {
            return Ok(false);
        }
        self.more = false;
        if let Some(stretch) = stretches.pop() {
            self.more = stretch.more;
            self.rows = stretch.rows;
        }
        if let Some(last) = self.rows.last() {
            self.left = self.left.after(&last.key, Direction::Forward);
        }
        self.rows.reverse();
        Ok(true)
    }

    fn read_key(&self, row: &Row) -> Result<(Bytes, Vec<Value>)> {
        self.aggregate
            .read_cell(self.generation, &row.key)
            .ok_or_else(|| unreadable(&self.aggregate, row))
    }
}

/// The cells of one group, added up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Total {
    pub(crate) count: i128,
    pub(crate) sum: i128,
}

impl Total {
    /// Adds what a cell holds.
    pub(crate) fn add(&mut self, aggregate: &Aggregate, row: &Row) -> Result<()> {
        let of = Total::of(&row.cell).ok_or_else(|| unreadable(aggregate, row))?;
        self.count += of.count;
        self.sum += of.sum;
        Ok(())
    }

    /// What a cell holds; `None` if it is not one of an aggregate.
    pub(crate) fn of(cell: &Cell) -> Option<Total> {
        let integers = cell.integers()?;
        let at = |name| i128::from(integers.get(name).copied().unwrap_or(0));
        Some(Total { count: at(COUNT), sum: at(SUM) })
    }

    fn count(&self) -> Result<i64> {
        narrow(self.count)
    }

    fn sum(&self, aggregate: &Aggregate) -> Result<Option<i64>> {
        aggregate.summed.as_ref().map(|_| narrow(self.sum)).transpose()
    }
}

fn narrow(sum: i128) -> Result<i64> {
    i64::try_from(sum).map_err(|_| {
        let message = "the sum of the group does not fit into 64 bits";
        Error::new(ErrorKind::LimitExceeded, message).with("sum", sum)
    })
}

fn unreadable(aggregate: &Aggregate, row: &Row) -> Error {
    let message = "a cell of the aggregate cannot be read; run repair";
    aggregate.about(ErrorKind::Corrupt, message).with("key", ShowKey(&row.key))
}
