//! Mends what a verification finds.

use std::sync::Arc;

use keyloom::{RepairOptions, RepairProgress, Store};
use serde_json::{Value, json};

use super::findings::{counts, finding, not_ready};
use super::{Job, Outcome};

/// Repairs a space, or says what would be mended.
pub(crate) async fn repair(store: Store, job: Arc<Job>, dry_run: bool) -> Outcome {
    let options = RepairOptions { dry_run, ..RepairOptions::default() };
    let hear = |so_far: RepairProgress| {
        job.progress.set(so_far.records, so_far.entries, so_far.mended + so_far.left);
    };
    let done = store.repair_with_progress(&options, hear).await?;
    Ok(json!({
        "dry_run": dry_run,
        "records": done.records,
        "entries": done.entries,
        "unsettled": done.unsettled,
        "mended_counts": counts(&done.mended_counts),
        "mended": done.mended.iter().map(finding).collect::<Vec<Value>>(),
        "left_counts": counts(&done.left_counts),
        "left": done.left.iter().map(finding).collect::<Vec<Value>>(),
        "not_ready": not_ready(&done.not_ready),
    }))
}
