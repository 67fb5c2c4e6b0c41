//! What verifications find, as JSON.

use keyloom::{Finding, FindingCounts};
use serde_json::{Value, json};

/// A finding.
pub(super) fn finding(found: &Finding) -> Value {
    let Finding { kind, collection, index, area, key, record, reason } = found;
    json!({
        "kind": kind.to_string(), "collection": collection, "index": index, "area": area,
        "key": key, "record": record, "reason": reason,
    })
}

/// How many findings there are of each kind.
pub(super) fn counts(found: &FindingCounts) -> Value {
    let FindingCounts { missing, dangling, wrong, drifted, unreadable, unknown } = *found;
    json!({
        "missing": missing, "dangling": dangling, "wrong": wrong, "drifted": drifted,
        "unreadable": unreadable, "unknown": unknown,
    })
}
