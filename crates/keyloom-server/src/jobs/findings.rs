//! What verifications find, as JSON.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use keyloom::{Finding, FindingCounts, IndexState, NotReady};
use serde_json::{Value, json};

/// A finding.
pub(super) fn finding(found: &Finding) -> Value {
    let Finding { kind, collection, index, area, key, key_bytes, record, reason } = found;
    let mut told = json!({
        "kind": kind.to_string(), "collection": collection, "index": index, "area": area,
        "key": key, "record": record, "reason": reason,
    });
    // What is shown is not always the key: bytes that are no text have other letters.
    if key.as_bytes() != key_bytes {
        told["key_base64"] = URL_SAFE_NO_PAD.encode(key_bytes).into();
    }
    told
}

/// How many findings there are of each kind.
pub(super) fn counts(found: &FindingCounts) -> Value {
    let FindingCounts { missing, dangling, wrong, drifted, unreadable, misfit, unknown } = *found;
    json!({
        "missing": missing, "dangling": dangling, "wrong": wrong, "drifted": drifted,
        "unreadable": unreadable, "misfit": misfit, "unknown": unknown,
    })
}

/// The indexes and aggregates that do not serve, those included that were switched off.
pub(super) fn not_ready(found: &[NotReady]) -> Value {
    let told = found.iter().map(|NotReady { collection, index, state, .. }| {
        let mut told =
            json!({ "collection": collection, "index": index, "state": state.to_string() });
        if let IndexState::Failed { reason } = state {
            told["reason"] = reason.as_str().into();
        }
        told
    });
    told.collect()
}
