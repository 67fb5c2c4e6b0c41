//! What is asked of a declared count or sum: one group, all of them in order, or the largest.

mod query;
mod total;
mod walk;

pub use query::GroupQuery;
pub(crate) use total::Total;

use std::sync::Arc;

use bytes::Bytes;
use serde_json::{Value, json};

use super::cursor::{Asked, Binding, Cursor, Position};
use super::predicate::TAKE_MAX;
use super::swept::swept;
use crate::engine::{Address, Cell, Row, Stamp};
use crate::error::{Error, ErrorKind, Result};
use crate::key::{Path, shortened};
use crate::schema::{Aggregate, Collection};
use crate::space::Session;
use crate::space::{Loaded, catalog_address};
use walk::{Next, Walk};

/// How often a question is asked again because the schema changed meanwhile.
const RELOADS: usize = 16;

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
    /// For a collection whose records expire: those that expired before this moment, in
    /// milliseconds since 1970, are not counted; later ones may be, until they are swept.
    pub swept_until: Option<u64>,
}

/// The largest groups, the largest first.
#[derive(Clone, Debug, PartialEq)]
pub struct TopGroups {
    /// The groups; equal ones in the order of their values.
    pub groups: Vec<Group>,
    /// For a collection whose records expire: those that expired before this moment, in
    /// milliseconds since 1970, are not counted; later ones may be, until they are swept.
    pub swept_until: Option<u64>,
}

/// What one group comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupTotal {
    /// How many records the group has; zero when there is no such group.
    pub count: i64,
    /// The sum of the summed field; `None` for a count.
    pub sum: Option<i64>,
    /// For a collection whose records expire: those that expired before this moment, in
    /// milliseconds since 1970, are not counted; later ones may be, until they are swept.
    pub swept_until: Option<u64>,
}

/// What a group comes to, and up to when its collection was swept.
pub(crate) async fn group_total(
    session: &Session,
    collection: &str,
    aggregate: &str,
    values: &[Value],
) -> Result<GroupTotal> {
    // Looked up first, as everywhere: what is swept meanwhile is not counted, and not the reverse.
    let swept_until = swept(session, collection).await?;
    let (count, sum) = group(session, collection, aggregate, values).await?;
    Ok(GroupTotal { count, sum, swept_until })
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
            Ok((aggregate.clone(), group, loaded.readable(aggregate)?, loaded.fence()))
        });
        let (aggregate, group, generation, fence) = decided.await?;
        let cells = 0..generation.cells;
        let cells = cells.map(|number| aggregate.cell(generation.number, &group, number));
        let addresses: Vec<Address> = cells.chain([catalog_address()]).collect();
        let mut found = session.live.get(&addresses).await?;
        // The cells may be of a generation that was replaced, and removed since.
        if stamp_of(found.pop().flatten()) != fence.map(|fence| fence.stamp) {
            session.live.reload().await?;
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
    let swept_until = swept(session, collection).await?;
    for _ in 0..RELOADS {
        let (walk, binding) = start(session, collection, query).await?;
        if let Some((groups, next)) = page(walk, binding, query).await? {
            return Ok(GroupPage { groups, next, swept_until });
        }
        session.live.reload().await?;
    }
    Err(stale(collection, &query.aggregate))
}

/// The page from where the walk starts; `None` when the schema changed meanwhile.
async fn page(
    mut walk: Walk<'_>,
    binding: Binding,
    query: &GroupQuery,
) -> Result<Option<(Vec<Group>, Option<Cursor>)>> {
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
    Ok(Some((groups, next)))
}

/// The groups with the largest sums or, for a count, with the most records.
pub(crate) async fn top_groups(
    session: &Session,
    collection: &str,
    query: &GroupQuery,
    count: usize,
) -> Result<TopGroups> {
    let swept_until = swept(session, collection).await?;
    for _ in 0..RELOADS {
        let (walk, _) = start(session, collection, query).await?;
        if let Some(groups) = top(walk, query, count).await? {
            return Ok(TopGroups { groups, swept_until });
        }
        session.live.reload().await?;
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
            query: Asked::Words(json!(["groups", query.aggregate, query.within]).to_string()),
        };
        if let Some(text) = &query.cursor {
            let done = aggregate.cells(generation.number, &Cursor::open(text, &binding)?.key);
            range.start = done.end.unwrap_or(done.start);
        }
        let aggregate = aggregate.clone();
        Ok((Walk::new(session, aggregate, generation, loaded.fence(), range), binding))
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
