//! The keys of leases, for people.

use serde_json::json;

use super::cell::lease_address;
use crate::engine::ShowKey;
use crate::own::OwnKind;
use crate::schema::MomentForm;
use crate::side::kind::{EXAMPLE_MS, Example, OwnPattern};

/// The leases of a collection that has an index by moments.
pub(super) fn describe(example: &Example<'_>) -> Option<OwnPattern> {
    let collection = example.collection;
    let is_moment = |path| {
        let kind = collection.fields.get(path).and_then(|field| field.key_kind());
        kind.is_some_and(|kind| MomentForm::of(&kind).is_some())
    };
    let index = collection
        .asked_indexes()
        .find(|index| index.key.segments().any(|segment| is_moment(&segment.path)))?;
    let entry = (example.entry)(index);
    let until = EXAMPLE_MS + 60_000;
    Some(OwnPattern {
        template: format!(
            "{}{}:{{index}}:{{SHA-256 of the entry's key}}",
            OwnKind::Lease.words(),
            collection.name
        ),
        index: None,
        what: format!("The lease of a worker on an entry of {}.", collection.name),
        holds: "the entry, the worker and when it runs out, as JSON",
        key: lease_address(&collection.name, &index.name, &entry).key,
        value: json!({ "entry": ShowKey(&entry).to_string(), "owner": "worker-1", "until": until })
            .to_string(),
        read_by: "lease, and commits under it".to_owned(),
    })
}
