//! Which declared count answers a query exactly, so that nothing needs to be read to count.

use serde_json::Value;

use super::predicate::Query;
use crate::key::Path;
use crate::schema::{Aggregate, Collection, IndexState, Loaded, Test};

/// A group whose records are exactly those that answer a query.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct CountedBy {
    pub(crate) aggregate: String,
    pub(crate) group: Vec<Value>,
}

/// The ready count or sum that has a group of exactly these records, if one has. A query with a
/// range, a union, filters, a key to begin after or a named index is counted by reading. A limit does not matter: a count
/// that is kept needs no reads.
pub(crate) fn counted_by(
    loaded: &Loaded,
    collection: &Collection,
    query: &Query,
) -> Option<CountedBy> {
    let asks_for_equality_only = query.any.is_empty()
        && query.range.is_none()
        && query.filters.is_empty()
        && query.after.is_none()
        && query.index.is_none();
    if !asks_for_equality_only || collection.aggregates.is_empty() {
        return None;
    }
    let equal: Vec<(Path, &Value)> = query
        .equal
        .iter()
        .map(|(field, value)| Some((Path::parse(field).ok()?, value)))
        .collect::<Option<_>>()?;
    let fits = |value: &Value, path: &Path| {
        let kind = collection.fields.get(path).and_then(|field| field.key_kind());
        kind.is_some_and(|kind| kind.check(value).is_ok())
    };
    collection.aggregates.values().find_map(|aggregate| {
        let group = group_of(aggregate, &equal)?;
        let is_ready = *loaded.state(&collection.name, &aggregate.name) == IndexState::Ready;
        let is_sound = group.iter().zip(&aggregate.group).all(|(value, path)| fits(value, path));
        (is_ready && is_sound).then(|| CountedBy { aggregate: aggregate.name.clone(), group })
    })
}

/// The group of exactly the records with these values; `None` when there is no such group.
fn group_of(aggregate: &Aggregate, equal: &[(Path, &Value)]) -> Option<Vec<Value>> {
    let tests = || aggregate.condition.iter().flat_map(|condition| &condition.tests);
    let asked = |path: &Path| {
        let mut values = equal.iter().filter(|(asked, _)| asked == path).map(|(_, value)| *value);
        let value = values.next();
        // A field that is asked for twice can have two values, or none.
        value.filter(|_| values.next().is_none())
    };
    // Every counted record has the value, by its group or by the condition.
    let is_certain = |(path, value): &(Path, &Value)| {
        aggregate.group.contains(path)
            || tests()
                .any(|(tested, test)| tested == path && *test == Test::Equals((*value).clone()))
    };
    // Every record with the values meets the condition.
    let is_implied =
        |(path, test): &(Path, Test)| asked(path).is_some_and(|value| test.holds(Some(value)));
    if !equal.iter().all(is_certain) || !tests().all(is_implied) {
        return None;
    }
    aggregate.group.iter().map(|path| asked(path).cloned()).collect()
}
