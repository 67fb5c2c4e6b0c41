//! The keys of counters, for people.

use serde_json::json;

use super::key::counter_address;
use crate::own::OwnKind;
use crate::side::kind::{Example, OwnPattern};

pub(super) fn describe(example: &Example<'_>) -> Option<OwnPattern> {
    let collection = example.collection;
    let address = counter_address(collection, example.key)?;
    let area = collection.area.name();
    // A name for each: an exact one as it is, a family with a made-up member.
    let names = collection.declaration.counters.keys().map(|name| name.replace('*', "first"));
    let counted: serde_json::Map<_, _> = names.map(|name| (name, json!(3))).collect();
    Some(OwnPattern {
        template: format!("{}{area}:{}", OwnKind::Counters.words(), collection.key.source),
        index: None,
        what: format!("The counters of a record of {}.", collection.name),
        holds: "integers by their names",
        key: address.key,
        value: serde_json::Value::Object(counted).to_string(),
        read_by: "get, and every other read of the record".to_owned(),
    })
}
