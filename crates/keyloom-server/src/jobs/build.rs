//! Makes an index or an aggregate complete and ready.

use std::sync::Arc;

use keyloom::Store;
use serde_json::json;

use super::{Job, Outcome};

/// Builds an index or an aggregate.
pub(crate) async fn build(
    store: Store,
    job: Arc<Job>,
    collection: String,
    index: String,
) -> Outcome {
    let built = store.build(&collection, &index).await?;
    job.progress.add(built.records, built.put, 0);
    Ok(json!({"records": built.records, "put": built.put, "removed": built.removed}))
}
