//! Makes an index or an aggregate complete and ready.

use std::sync::Arc;

use keyloom::{Built, Store};
use serde_json::json;

use super::{Job, Outcome};

/// Builds an index or an aggregate.
pub(crate) async fn build(
    store: Store,
    job: Arc<Job>,
    collection: String,
    index: String,
) -> Outcome {
    let hear = |so_far: Built| job.progress.set(so_far.records, so_far.put, 0);
    let built = store.build_with_progress(&collection, &index, hear).await?;
    Ok(json!({"records": built.records, "put": built.put, "removed": built.removed}))
}
