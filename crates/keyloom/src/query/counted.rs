//! Finds the declared count that answers a query exactly, so that counting reads no entries.

use std::sync::Arc;

use serde_json::Value;

use super::checked::{CheckedQuery, checked, ensures};
use super::predicate::Query;
use crate::error::Result;
use crate::schema::{Aggregate, Collection, Condition, IndexState, Test};
use crate::space::Loaded;
use crate::space::Session;

/// A group whose records are exactly those that answer a query.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct CountedBy {
    pub(crate) aggregate: String,
    pub(crate) group: Vec<Value>,
}

/// A ready count or sum that has exactly these records as a group, if there is one. A query with a
/// union, a starting key or a named index is counted by reading. The query's limit does not matter,
/// since the kept count needs no reads.
pub(crate) fn counted_by(
    session: &Session,
    loaded: &Loaded,
    collection: &Collection,
    query: &Query,
) -> Result<Option<CountedBy>> {
    if collection.aggregates.is_empty() || query.after.is_some() || query.index.is_some() {
        return Ok(None);
    }
    let branches = checked(session, collection, query)?;
    let [asked] = &branches[..] else { return Ok(None) };
    let is_ready = |aggregate: &&Arc<Aggregate>| {
        *loaded.state(&collection.name, &aggregate.name) == IndexState::Ready
    };
    Ok(collection.aggregates.values().filter(is_ready).find_map(|aggregate| {
        let group = group_of(collection, aggregate, asked)?;
        Some(CountedBy { aggregate: aggregate.name.clone(), group })
    }))
}

/// The group with exactly the records of the query; `None` if there is no such group.
fn group_of(
    collection: &Collection,
    aggregate: &Aggregate,
    asked: &CheckedQuery,
) -> Option<Vec<Value>> {
    let group: Vec<Value> =
        aggregate.group.iter().map(|path| asked.value(path).cloned()).collect::<Option<_>>()?;
    // The query selects every record of the group.
    let fixed = aggregate.group.iter().zip(&group);
    let fixed = fixed.map(|(path, value)| (path.clone(), Test::Equals(value.clone())));
    let tests = aggregate.condition.iter().flat_map(|condition| condition.tests.iter().cloned());
    let of_group = Condition { tests: fixed.chain(tests).collect() };
    let is_whole = asked.filters_all()?.iter().all(|it| ensures(collection, &of_group, it));
    // Every record that the query selects is in the group.
    let is_exact =
        aggregate.condition.as_ref().is_none_or(|condition| asked.implies(collection, condition));
    (is_whole && is_exact).then_some(group)
}
