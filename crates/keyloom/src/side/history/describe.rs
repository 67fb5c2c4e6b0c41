//! The keys of a history, for people.

use bytes::Bytes;
use serde_json::json;

use super::keys::{Trace, trace_address, version_address};
use super::past::{HistoryKind, Past};
use crate::engine::ShowKey;
use crate::own::OwnKind;
use crate::record::Version;
use crate::side::kind::{EXAMPLE_MS, Example, OwnPattern};

/// The version of every example.
const VERSION: &str = "018bcfe568007f3c09d1aa52b06e4471-1";

pub(super) fn describe(example: &Example<'_>) -> Vec<OwnPattern> {
    if example.collection.history.is_none() {
        return Vec::new();
    }
    let name = &example.collection.name;
    // The constant is a version; were it none, any other would do for an example.
    let version: Version = VERSION.parse().unwrap_or_else(|_| Version::first());
    let past = |kind| {
        Past {
            at: EXAMPLE_MS,
            by: Some("ana".to_owned()),
            kind,
            key: text(example.key),
            from: None,
            before: None,
        }
        .to_bytes()
    };
    let trace = Trace { at: EXAMPLE_MS, version: version.next() };
    let created = past(HistoryKind::Created);
    let (versions, traces) = (OwnKind::HistoryVersion.words(), OwnKind::HistoryTrace.words());
    vec![
        OwnPattern {
            template: format!("{versions}{name}:{{incarnation}}:{{revision}}"),
            index: None,
            what: format!("A version of a record of {name}: who made it of what, and when."),
            holds: "a line of JSON, then the record before",
            key: version_address(name, version).key,
            value: text(&created),
            read_by: "history, get_version, get_as_of".to_owned(),
        },
        OwnPattern {
            template: format!("{traces}{name}:{{key}}:{{time}}:{{incarnation}}:{{revision}}"),
            index: None,
            what: format!("Where a record of {name} was until it was deleted or moved."),
            holds: "the record's key as a JSON string",
            key: trace_address(name, example.key, trace).key,
            value: json!(text(example.key)).to_string(),
            read_by: "history, get_version, get_as_of".to_owned(),
        },
    ]
}

fn text(bytes: &Bytes) -> String {
    ShowKey(bytes).to_string()
}
