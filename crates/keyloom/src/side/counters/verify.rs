//! Cells of counters: each belongs to a record that is there, and has declared names only.
//!
//! | at the counters' key | the record | verdict |
//! | --- | --- | --- |
//! | nothing | either | sound |
//! | integers of declared names | is there | sound |
//! | integers, some of names that are not declared | is there | wrong: these are taken away |
//! | bytes | is there | wrong: they are deleted |
//! | anything | is not there, or declares no counters | dangling: it is deleted |
//!
//! A name cannot be taken out of a cell, since a writer may add to the others meanwhile. It is
//! brought to zero instead, and zero under a name that is not declared is sound.

use std::sync::Arc;

use bytes::Bytes;

use super::key::counted_record;
use crate::engine::{Addition, Address, Cell, Content, Effect, ShowKey};
use crate::own::own_address;
use crate::record::Version;
use crate::schema::{Collection, KeyOwner, Keyspace};
use crate::side::finding::{FindingKind, Flaw};

/// The counters, and the record where one is named.
pub(super) fn witnesses(key: &Bytes) -> Vec<Address> {
    std::iter::once(own_address(key.clone())).chain(counted_record(key)).collect()
}

/// What is wrong, given what is at the witnesses.
pub(super) fn judge(keyspace: &Keyspace, key: &Bytes, cells: &[Option<Cell>]) -> Option<Flaw> {
    let record = counted_record(key);
    let collection = record.as_ref().and_then(|record| collection_of(keyspace, record));
    let flaw = flaw(record.as_ref(), collection, cells)?;
    Some(Flaw {
        collection: collection.map(|collection| collection.name.clone()),
        record: record.map(|record| ShowKey(&record.key).to_string()),
        ..flaw
    })
}

/// The collection of a record, if it declares counters.
fn collection_of<'k>(keyspace: &'k Keyspace, record: &Address) -> Option<&'k Arc<Collection>> {
    match keyspace.owner_of(&record.area, &record.key) {
        KeyOwner::Record(collection) if !collection.counters.is_empty() => Some(collection),
        _ => None,
    }
}

fn flaw(
    record: Option<&Address>,
    collection: Option<&Arc<Collection>>,
    cells: &[Option<Cell>],
) -> Option<Flaw> {
    let counters = cells.first()?.as_ref()?;
    let (Some(record), Some(collection)) = (record, collection) else {
        let reason = "it names no record of a collection with counters";
        return Some(Flaw::new(FindingKind::Dangling, reason));
    };
    if cells.get(1).is_none_or(Option::is_none) {
        let reason = format!("its record {} is not there", ShowKey(&record.key));
        return Some(Flaw::new(FindingKind::Dangling, reason));
    }
    let Content::Integers(values) = &counters.content else {
        return Some(Flaw::new(FindingKind::Wrong, "it holds bytes, not counters"));
    };
    let undeclared: Vec<(&String, &i64)> = values
        .iter()
        .filter(|(name, value)| **value != 0 && !collection.counters.has(name))
        .collect();
    let names: Vec<&str> = undeclared.iter().map(|(name, _)| name.as_str()).collect();
    if names.is_empty() {
        return None;
    }
    let reason = format!("the collection declares no counters {}", names.join(", "));
    let flaw = Flaw::new(FindingKind::Wrong, reason);
    if names.len() == values.len() {
        return Some(flaw);
    }
    let to_zero = |(name, value): &(&String, &i64)| Addition {
        name: (*name).clone(),
        // The lowest number has no opposite; it comes as near to zero as one step goes, and
        // the next repair takes the rest.
        delta: value.checked_neg().unwrap_or(i64::MAX),
        min: None,
        max: None,
    };
    let additions = undeclared.iter().map(to_zero).collect();
    Some(Flaw { remedy: Effect::Add { stamp: Version::first().stamp(), additions }, ..flaw })
}
