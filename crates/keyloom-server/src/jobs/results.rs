//! What jobs came to, as JSON.

use keyloom::{Built, Finding, JobResult, Repair, Verification, Work};
use serde_json::{Value, json};

use super::findings::{counts, finding, not_ready};

/// What a job came to.
pub(super) fn result(of: &Work, came_to: &JobResult) -> Value {
    match came_to {
        JobResult::Verified(verified) => verification(verified),
        JobResult::Repaired(repaired) => {
            let is_dry = matches!(of, Work::Repair(options) if options.dry_run);
            repair(repaired, is_dry)
        }
        JobResult::Built(Built { records, put, removed }) => {
            json!({"records": records, "put": put, "removed": removed})
        }
        // A kind that this server does not know yet has nothing to tell.
        _ => Value::Null,
    }
}

fn verification(verified: &Verification) -> Value {
    json!({
        "is_clean": verified.is_clean(),
        "records": verified.records,
        "entries": verified.entries,
        "unsettled": verified.unsettled,
        "counts": counts(&verified.counts),
        "findings": findings(&verified.findings),
        "not_ready": not_ready(&verified.not_ready),
    })
}

fn repair(repaired: &Repair, is_dry: bool) -> Value {
    json!({
        "dry_run": is_dry,
        "records": repaired.records,
        "entries": repaired.entries,
        "unsettled": repaired.unsettled,
        "mended_counts": counts(&repaired.mended_counts),
        "mended": findings(&repaired.mended),
        "left_counts": counts(&repaired.left_counts),
        "left": findings(&repaired.left),
        "not_ready": not_ready(&repaired.not_ready),
    })
}

fn findings(found: &[Finding]) -> Vec<Value> {
    found.iter().map(finding).collect()
}
