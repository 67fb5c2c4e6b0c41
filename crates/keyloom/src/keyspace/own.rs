//! What Keyloom keeps for itself: beside records, and for the whole space.

use super::example::Example;
use super::{KeyPattern, text};
use crate::engine::Area;
use crate::own::{OwnKey, OwnKind};
use crate::schema::{Collection, Schema};
use crate::side::{self, KINDS, OwnPattern};

/// What lies beside the records of a collection.
pub(super) fn of_collection(
    collection: &Collection,
    example: &Example,
) -> impl Iterator<Item = KeyPattern> {
    let of = side::Example {
        collection,
        key: &example.key,
        value: &example.value,
        entry: &|index| example.entry(collection, index).0,
    };
    let all: Vec<OwnPattern> = KINDS.iter().flat_map(|kind| kind.describe(&of)).collect();
    all.into_iter().map(|own| pattern(own, Some(collection)))
}

/// What belongs to the whole space.
pub(super) fn of_space(schema: &Schema) -> Vec<KeyPattern> {
    let catalog = OwnPattern {
        template: OwnKind::Catalog.words().to_owned(),
        index: None,
        what: "The schema, and the states of its indexes.".to_owned(),
        holds: "the catalog as JSON",
        key: OwnKey::Catalog.encode(),
        value: r#"{"format":1,"epoch":1,…}"#.to_owned(),
        read_by: "every open; every write rests on its stamp".to_owned(),
    };
    let epoch = OwnPattern {
        template: OwnKind::Epoch.words().to_owned(),
        index: None,
        what: "The state of the catalog, for readers of indexes.".to_owned(),
        holds: "a number that rises with the schema",
        key: OwnKey::Epoch.encode(),
        value: "1".to_owned(),
        read_by: "every query".to_owned(),
    };
    let beside = KINDS.iter().flat_map(|kind| kind.describe_space());
    let own = [catalog, epoch].into_iter().chain(beside).map(|own| pattern(own, None));
    own.chain(schema.log.map(|_| log())).collect()
}

fn pattern(own: OwnPattern, collection: Option<&Collection>) -> KeyPattern {
    let OwnPattern { template, index, what, holds, key, value, read_by } = own;
    KeyPattern {
        area: Area::own().name().to_owned(),
        template,
        collection: collection.map(|collection| collection.name.clone()),
        index,
        what,
        holds: holds.to_owned(),
        example_key: text(&key),
        example_value: value,
        read_by,
    }
}

/// The change log has positions instead of keys.
fn log() -> KeyPattern {
    KeyPattern {
        area: "(log)".to_owned(),
        template: "{position}".to_owned(),
        collection: None,
        index: None,
        what: "What one commit changed, in the order of commits.".to_owned(),
        holds: "every cell that it wrote, and the records that it changed, in bytes".to_owned(),
        example_key: "1".to_owned(),
        example_value: "(bytes)".to_owned(),
        read_by: "changes, watch, replay".to_owned(),
    }
}
