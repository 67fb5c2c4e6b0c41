//! The keyspace of a schema, written down: every kind of key that a store with it can hold.
//!
//! Examples are made by the functions that writes use, from one made-up record for each
//! collection, so that what is documented is what lies in the store.

mod example;
mod markdown;
mod own;
mod reader;

pub use markdown::keyspace_markdown;

use bytes::Bytes;
use serde::Serialize;

use self::example::Example;
use crate::engine::ShowKey;
use crate::schema::{Access, Collection, Holds, Index, IndexKind, Schema};

/// One kind of key of a schema: what it looks like, what lies there, and who reads it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct KeyPattern {
    /// The area: empty for the default one, `~` for Keyloom's own, `(log)` for the log of a space,
    /// which is no area.
    pub area: String,
    /// The template as it was declared, or, in Keyloom's own area, as one would declare it.
    pub template: String,
    /// The collection that it belongs to; `None` for what belongs to the whole space.
    pub collection: Option<String>,
    /// The index, count or sum that it belongs to.
    pub index: Option<String>,
    /// What it is, as a sentence.
    pub what: String,
    /// What its value holds.
    pub holds: String,
    /// A key of this kind.
    pub example_key: String,
    /// What lies at that key.
    pub example_value: String,
    /// The calls that read it.
    pub read_by: String,
}

impl Schema {
    /// Every kind of key that a space with this schema can hold: records, entries, counters,
    /// counts, histories, leases, and what Keyloom keeps for itself. In the order of the
    /// collections' names; what belongs to the whole space comes last.
    pub fn keyspace(&self) -> Vec<KeyPattern> {
        let mut patterns = Vec::new();
        for collection in self.collections.values() {
            let example = Example::of(collection);
            patterns.push(record(collection, &example));
            let indexes = collection.indexes.values();
            patterns.extend(indexes.map(|index| entry(collection, index, &example)));
            patterns.extend(own::of_collection(collection, &example));
        }
        patterns.extend(own::of_space(self));
        patterns
    }
}

fn record(collection: &Collection, example: &Example) -> KeyPattern {
    let owner = collection.owner.as_ref();
    let owned = match (collection.access, owner) {
        (Access::Owned, Some(owner)) => format!(", which only its owner, {owner}, reaches"),
        (Access::Hybrid, Some(owner)) => format!(", which only its owner, {owner}, changes"),
        (Access::ReadOnly, _) => ", which no user changes".to_owned(),
        _ => String::new(),
    };
    KeyPattern {
        area: collection.area.name().to_owned(),
        template: collection.key.source.clone(),
        collection: Some(collection.name.clone()),
        index: None,
        what: format!("A record of {}{owned}.", collection.name),
        holds: "the record as JSON".to_owned(),
        example_key: text(&example.key),
        example_value: text(&example.text),
        read_by: reader::of_records(collection),
    }
}

fn entry(collection: &Collection, index: &Index, example: &Example) -> KeyPattern {
    let (key, value) = example.entry(collection, index);
    KeyPattern {
        area: index.area.name().to_owned(),
        template: index.key.source.clone(),
        collection: Some(collection.name.clone()),
        index: Some(index.name.clone()),
        what: what_entry(index),
        holds: held(&index.holds),
        example_key: text(&key),
        example_value: text(&value),
        read_by: reader::of_entries(collection, index),
    }
}

fn what_entry(index: &Index) -> String {
    let which = match &index.condition {
        Some(condition) => format!(" whose {condition}"),
        None => String::new(),
    };
    let each = match &index.star {
        Some(star) => format!(" and each element of {star}"),
        None => String::new(),
    };
    let name = &index.name;
    match index.kind {
        _ if index.is_own() => format!("The end of each record{which} that has one."),
        IndexKind::Unique => format!(
            "The claim of each record{which}{each} on the values of {name}: no other can have them."
        ),
        IndexKind::Geo => format!("An entry of {name} for each record{which}{each}, by its place."),
        IndexKind::Value if index.claims => format!(
            "An entry of {name} for each record{which}{each}; no two records can have the same."
        ),
        IndexKind::Value => format!("An entry of {name} for each record{which}{each}."),
    }
}

fn held(holds: &Holds) -> String {
    match holds {
        Holds::Record => "the record as JSON".to_owned(),
        Holds::Key => "the record's key as a JSON string".to_owned(),
        Holds::Field(path) => format!("the field {path} as JSON"),
        Holds::Object(paths) => {
            let names: Vec<String> = paths.iter().map(ToString::to_string).collect();
            format!("a JSON object with {}", names.join(", "))
        }
    }
}

/// Bytes as people read them.
fn text(bytes: &Bytes) -> String {
    ShowKey(bytes).to_string()
}
