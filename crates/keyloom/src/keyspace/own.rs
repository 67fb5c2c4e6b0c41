//! What Keyloom keeps for itself: beside records, and for the whole space.

use bytes::Bytes;
use serde_json::json;

use super::example::{Example, TIME_MS};
use super::{KeyPattern, text};
use crate::engine::{Address, Area};
use crate::history::{HistoryKind, Past, Trace, trace_address, version_address};
use crate::idempotency::{Answer, IdempotencyKey, Kept};
use crate::lease;
use crate::own::{OwnKey, OwnKind};
use crate::record::Version;
use crate::schema::{Aggregate, COUNT, Collection, MomentForm, SUM, Schema, counter_address};
use crate::write::share;

/// The version of every example.
const VERSION: &str = "018bcfe568007f3c09d1aa52b06e4471-1";

/// The digest of a request that nobody sent.
const DIGEST: &str = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08";

/// A pattern of Keyloom's own area that still has to be put into words.
struct Own {
    template: String,
    index: Option<String>,
    what: String,
    holds: &'static str,
    key: Bytes,
    value: String,
    read_by: String,
}

impl Own {
    fn pattern(self, collection: Option<&Collection>) -> KeyPattern {
        let Own { template, index, what, holds, key, value, read_by } = self;
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
}

/// What lies beside the records of a collection.
pub(super) fn of_collection(
    collection: &Collection,
    example: &Example,
) -> impl Iterator<Item = KeyPattern> {
    let counters =
        counter_address(collection, &example.key).map(|address| counters(collection, address));
    let aggregates = collection.aggregates.values();
    let aggregates = aggregates.flat_map(|aggregate| aggregated(collection, aggregate, example));
    let histories = collection.history.is_some().then(|| history(collection, example));
    let leases = lease(collection, example);
    let all: Vec<Own> = (counters.into_iter().chain(aggregates))
        .chain(histories.into_iter().flatten())
        .chain(leases)
        .collect();
    all.into_iter().map(|own| own.pattern(Some(collection)))
}

fn counters(collection: &Collection, address: Address) -> Own {
    let area = collection.area.name();
    // A name for each: an exact one as it is, a family with a made-up member.
    let names = collection.declaration.counters.keys().map(|name| name.replace('*', "first"));
    let counted: serde_json::Map<_, _> = names.map(|name| (name, json!(3))).collect();
    Own {
        template: format!("{}{area}:{}", OwnKind::Counters.words(), collection.key.source),
        index: None,
        what: format!("The counters of a record of {}.", collection.name),
        holds: "integers by their names",
        key: address.key,
        value: serde_json::Value::Object(counted).to_string(),
        read_by: "get, and every other read of the record".to_owned(),
    }
}

fn aggregated(collection: &Collection, aggregate: &Aggregate, example: &Example) -> [Own; 2] {
    let Aggregate { collection: of, name, summed, template, .. } = aggregate;
    let shared = share(collection, aggregate, &example.value).ok().flatten();
    let (group, amount) = match &shared {
        Some(share) => (share.group.clone(), share.amount),
        None => (template.source.clone().into(), 1),
    };
    let groups: Vec<String> = aggregate.group.iter().map(|path| format!("{path} = …")).collect();
    let asked =
        if groups.is_empty() { String::new() } else { format!(" where {}", groups.join(" and ")) };
    let (verb, value) = match summed {
        None => ("counted", json!({ COUNT: 1 })),
        Some(_) => ("summed", json!({ COUNT: 1, SUM: amount })),
    };
    let (cells, marks) = (OwnKind::AggregateCell.words(), OwnKind::AggregateMark.words());
    let cell = Own {
        template: format!("{cells}{of}:{name}:{{generation}}{}{{cell}}", template.source),
        index: Some(name.clone()),
        what: match summed {
            None => format!("How many records of {of} are in a group, or a part of that."),
            Some(path) => format!("What {path} of a group of {of} comes to, or a part of that."),
        },
        holds: "integers: how many, and the sum if it is one",
        key: aggregate.cell(1, &group, 0).key,
        value: value.to_string(),
        read_by: format!("{verb} {name}{asked}; groups"),
    };
    let mark = Own {
        template: format!("{marks}{of}:{name}:{{generation}}:{{SHA-256 of the record's key}}"),
        index: Some(name.clone()),
        what: format!("That {name}, while it is being counted, has counted a record."),
        holds: "nothing",
        key: aggregate.mark(2, &example.key).key,
        value: String::new(),
        read_by: "writes, build, recount".to_owned(),
    };
    [cell, mark]
}

fn history(collection: &Collection, example: &Example) -> [Own; 2] {
    let name = &collection.name;
    // The constant is a version; were it none, any other would do for an example.
    let version: Version = VERSION.parse().unwrap_or_else(|_| Version::first());
    let past = |kind| {
        Past {
            at: TIME_MS,
            by: Some("ana".to_owned()),
            kind,
            key: text(&example.key),
            from: None,
            before: None,
        }
        .to_bytes()
    };
    let trace = Trace { at: TIME_MS, version: version.next() };
    let created = past(HistoryKind::Created);
    let (versions, traces) = (OwnKind::HistoryVersion.words(), OwnKind::HistoryTrace.words());
    [
        Own {
            template: format!("{versions}{name}:{{incarnation}}:{{revision}}"),
            index: None,
            what: format!("A version of a record of {name}: who made it of what, and when."),
            holds: "a line of JSON, then the record before",
            key: version_address(name, version).key,
            value: text(&created),
            read_by: "history, get_version, get_as_of".to_owned(),
        },
        Own {
            template: format!("{traces}{name}:{{key}}:{{time}}:{{incarnation}}:{{revision}}"),
            index: None,
            what: format!("Where a record of {name} was until it was deleted or moved."),
            holds: "the record's key as a JSON string",
            key: trace_address(name, &example.key, trace).key,
            value: json!(text(&example.key)).to_string(),
            read_by: "history, get_version, get_as_of".to_owned(),
        },
    ]
}

/// The leases of a collection that has an index by moments.
fn lease(collection: &Collection, example: &Example) -> Option<Own> {
    let is_moment = |path| {
        let kind = collection.fields.get(path).and_then(|field| field.key_kind());
        kind.is_some_and(|kind| MomentForm::of(&kind).is_some())
    };
    let index = collection
        .asked_indexes()
        .find(|index| index.key.segments().any(|segment| is_moment(&segment.path)))?;
    let (entry, _) = example.entry(collection, index);
    let until = TIME_MS + 60_000;
    Some(Own {
        template: format!(
            "{}{}:{{index}}:{{SHA-256 of the entry's key}}",
            OwnKind::Lease.words(),
            collection.name
        ),
        index: None,
        what: format!("The lease of a worker on an entry of {}.", collection.name),
        holds: "the entry, the worker and when it runs out, as JSON",
        key: lease::address(&collection.name, &index.name, &entry).key,
        value: json!({ "entry": text(&entry), "owner": "worker-1", "until": until }).to_string(),
        read_by: "lease, and commits under it".to_owned(),
    })
}

/// What belongs to the whole space.
pub(super) fn of_space(schema: &Schema) -> Vec<KeyPattern> {
    let catalog = Own {
        template: OwnKind::Catalog.words().to_owned(),
        index: None,
        what: "The schema, and the states of its indexes.".to_owned(),
        holds: "the catalog as JSON",
        key: OwnKey::Catalog.encode(),
        value: r#"{"format":1,"epoch":1,…}"#.to_owned(),
        read_by: "every open; every write rests on its stamp".to_owned(),
    };
    let epoch = Own {
        template: OwnKind::Epoch.words().to_owned(),
        index: None,
        what: "The state of the catalog, for readers of indexes.".to_owned(),
        holds: "a number that rises with the schema",
        key: OwnKey::Epoch.encode(),
        value: "1".to_owned(),
        read_by: "every query".to_owned(),
    };
    let answered = IdempotencyKey::new("order-17").ok().map(|key| {
        let (request, answer) = (DIGEST.to_owned(), Answer::Done);
        let kept = Kept { at: TIME_MS, request, answer, text: None };
        Own {
            template: format!("{}{{user}}:{{key}}", OwnKind::Answer.words()),
            index: None,
            what: "That a write with an idempotency key happened, and its answer.".to_owned(),
            holds: "a line of JSON, then the record in the answer",
            key: key.address(Some("ana")).key,
            value: kept.to_bytes().map(|bytes| text(&bytes)).unwrap_or_default(),
            read_by: "a write that is sent again with its key".to_owned(),
        }
    });
    let own = [catalog, epoch].into_iter().chain(answered).map(|own| own.pattern(None));
    own.chain(schema.log.map(|_| log())).collect()
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
