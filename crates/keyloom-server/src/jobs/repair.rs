//! Mends what a verification finds.

use std::sync::Arc;

use keyloom::{RepairOptions, Store};
use serde_json::{Value, json};

use super::findings::{counts, finding};
use super::{Job, Outcome};

/// Repairs a space, or says what would be mended.
pub(crate) async fn repair(store: Store, job: Arc<Job>, dry_run: bool) -> Outcome {
    let done = store.repair(&RepairOptions { dry_run, ..RepairOptions::default() }).await?;
    let findings = done.mended_counts.total() + done.left_counts.total();
    job.progress.add(done.records, done.entries, findings);
    Ok(json!({
        "dry_run": dry_run,
        "records": done.records,
        "entries": done.entries,
        "unsettled": done.unsettled,
        "mended_counts": counts(&done.mended_counts),
        "mended": done.mended.iter().map(finding).collect::<Vec<Value>>(),
        "left_counts": counts(&done.left_counts),
        "left": done.left.iter().map(finding).collect::<Vec<Value>>(),
    }))
}
