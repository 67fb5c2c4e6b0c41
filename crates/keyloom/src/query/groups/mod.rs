//! Queries of a declared count or sum: one group, all groups in order, or the largest.

mod query;
mod walk;

pub use query::GroupQuery;

use std::sync::Arc;

use bytes::Bytes;
use serde_json::{Value, json};

use super::cursor::{Binding, Cursor, Position, Question};
use super::predicate::TAKE_MAX;
use super::swept::swept;
use crate::engine::{Address, Row};
use crate::error::{Error, ErrorKind, Result};
use crate::key::{Path, shortened};
use crate::schema::{Aggregate, Collection};
use crate::side::Total;
use crate::space::{Attempts, Loaded, Session};
use walk::{Next, Walk};

/// One group of records with its count and sum.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    /// The values of the group's fields, in the order of their declaration.
    pub values: Vec<Value>,
    /// How many records the group has; never zero.
    pub count: i64,
    /// The sum of the summed field; `None` for a count.
    pub sum: Option<i64>,
}

/// A page of groups, in the order of their values.
#[derive(Clone, Debug)]
pub struct GroupPage {
    /// The groups. There may be fewer than the page takes although more follow.
    pub groups: Vec<Group>,
    /// Where to continue; `None` at the end.
    pub next: Option<Cursor>,
    /// Up to when the collection was swept, in milliseconds since 1970, if its records expire.
    /// Records that expired before this time are not counted. Records that expired later may be,
    /// until they are swept.
    pub swept_until: Option<u64>,
}

/// The largest groups, largest first.
#[derive(Clone, Debug, PartialEq)]
pub struct TopGroups {
    /// The groups; groups of equal size come in the order of their values.
    pub groups: Vec<Group>,
    /// Up to when the collection was swept, in milliseconds since 1970, if its records expire.
    /// Records that expired before this time are not counted. Records that expired later may be,
    /// until they are swept.
    pub swept_until: Option<u64>,
}

/// The count and the sum of one group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupTotal {
    /// How many records the group has; zero if there is no such group.
    pub count: i64,
    /// The sum of the summed field; `None` for a count.
    pub sum: Option<i64>,
    /// Up to when the collection was swept, in milliseconds since 1970, if its records expire.
    /// Records that expired before this time are not counted. Records that expired later may be,
    /// until they are swept.
    pub swept_until: Option<u64>,
}

/// The count and the sum of a group, and up to when its collection was swept.
pub(crate) async fn group_total(
    session: &Session,
    collection: &str,
    aggregate: &str,
    values: &[Value],
) -> Result<GroupTotal> {
    // Read before the group: a later sweep can only remove more records, so the time stays true.
    let swept_until = swept(session, collection).await?;
    let (count, sum) = group(session, collection, aggregate, values).await?;
    Ok(GroupTotal { count, sum, swept_until })
}

/// The number of a group's records, and their sum if the aggregate keeps one. One round trip, and
/// one more on engines without snapshots.
pub(crate) async fn group(
    session: &Session,
    collection: &str,
    aggregate: &str,
    values: &[Value],
) -> Result<(i64, Option<i64>)> {
    let mut attempts = attempts(session);
    loop {
        let total = group_once(session, collection, aggregate, values).await;
        let settled = attempts.settle(total).await;
        if let Some(total) = settled.map_err(|error| about(error, collection, aggregate))? {
            return Ok(total);
        }
    }
}

async fn group_once(
    session: &Session,
    collection: &str,
    aggregate: &str,
    values: &[Value],
) -> Result<(i64, Option<i64>)> {
    let decided = session.live.decide(|loaded| {
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
        Ok((aggregate.clone(), group, loaded.readable(aggregate)?, loaded.clone()))
    });
    let (aggregate, group, generation, loaded) = decided.await?;
    let cells = 0..generation.cells;
    let cells = cells.map(|number| aggregate.cell(generation.number, &group, number));
    let addresses: Vec<Address> = cells.collect();
    // The cells may belong to a generation that was replaced and removed meanwhile.
    let found = session.live.get_under(&loaded, &addresses).await?;
    let mut total = Total::default();
    for (address, cell) in addresses.iter().zip(found) {
        let Some(cell) = cell else { continue };
        total.add(&aggregate, &Row { key: address.key.clone(), cell })?;
    }
    Ok((total.count()?, total.sum(&aggregate)?))
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
    let swept_until = swept(session, collection).await?;
    let mut attempts = attempts(session);
    loop {
        let (walk, binding) = start(session, collection, query).await?;
        let settled = attempts.settle(page(walk, binding, query).await).await;
        let settled = settled.map_err(|error| about(error, collection, &query.aggregate))?;
        if let Some((groups, next)) = settled {
            return Ok(GroupPage { groups, next, swept_until });
        }
    }
}

/// The page that begins where the walk starts.
async fn page(
    mut walk: Walk<'_>,
    binding: Binding,
    query: &GroupQuery,
) -> Result<(Vec<Group>, Option<Cursor>)> {
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
        }
    }
    let position = last.filter(|_| !is_end).map(|key| Position {
        indexes: query.aggregate.clone(),
        key,
        towards_start: false,
        inclusive: false,
    });
    let next = position.map(|position| Cursor::new(position, Arc::new(binding)));
    Ok((groups, next))
}

/// The groups with the largest sums, or, for a count, with the most records.
pub(crate) async fn top_groups(
    session: &Session,
    collection: &str,
    query: &GroupQuery,
    count: usize,
) -> Result<TopGroups> {
    let swept_until = swept(session, collection).await?;
    let mut attempts = attempts(session);
    loop {
        let (walk, _) = start(session, collection, query).await?;
        let settled = attempts.settle(top(walk, query, count).await).await;
        let settled = settled.map_err(|error| about(error, collection, &query.aggregate))?;
        if let Some(groups) = settled {
            return Ok(TopGroups { groups, swept_until });
        }
    }
}

/// The largest of all groups of the walk.
async fn top(mut walk: Walk<'_>, query: &GroupQuery, count: usize) -> Result<Vec<Group>> {
    let size = |group: &Group| group.sum.unwrap_or(group.count);
    let mut top: Vec<Group> = Vec::new();
    let mut read = 0;
    loop {
        let group = match walk.next(query.limit).await? {
            Next::Group(_, group) => group,
            Next::End => return Ok(top),
        };
        read += 1;
        if read > query.limit {
            let message = "there are more groups than `limit` allows to read; raise it";
            let error = walk.aggregate.about(ErrorKind::LimitExceeded, message);
            return Err(error.with("limit", query.limit));
        }
        let Some(group) = group else { continue };
        // Groups of equal size stay in the order of their values.
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
    let decided = session.live.decide(|loaded| {
        let (declared, aggregate) = declared(loaded, collection, &query.aggregate)?;
        check_values(declared, aggregate, &query.within)?;
        session.check_group(declared, aggregate, &query.within)?;
        let generation = loaded.readable(aggregate)?;
        let mut range = aggregate.cells(generation.number, &groups_with(aggregate, &query.within)?);
        let binding = Binding {
            secret: loaded.catalog.cursor_secret.0.to_vec(),
            space: session.live.space.name().to_owned(),
            collection: declared.name.clone(),
            actor: session.actor().map(str::to_owned),
            query: Question::Words(json!(["groups", query.aggregate, query.within]).to_string()),
        };
        if let Some(text) = &query.cursor {
            let done = aggregate.cells(generation.number, &Cursor::open(text, &binding)?.key);
            range.start = done.end.unwrap_or(done.start);
        }
        let aggregate = aggregate.clone();
        Ok((Walk::new(session, aggregate, generation, loaded.clone(), range), binding))
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

fn attempts(session: &Session) -> Attempts<'_> {
    session.live.attempts("the schema kept changing while the aggregate was read")
}

/// Adds the aggregate's name to an error that says that the schema kept changing.
fn about(error: Error, collection: &str, aggregate: &str) -> Error {
    match error.kind() {
        ErrorKind::StaleSchema => error.with("collection", collection).with("aggregate", aggregate),
        _ => error,
    }
}
