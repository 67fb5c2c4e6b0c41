//! Every engine and every wrapper against the one suite. An adapter's test is one call.

use std::sync::Arc;

use keyloom::engine::{Engine, Memory, conformance};

fn memory() -> Arc<dyn Engine> {
    Arc::new(Memory::new())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn memory_conforms() {
    conformance::run("memory", || async { memory() }).await;
}
