//! Every engine and every wrapper against the one suite. An adapter's test is one call.

use std::sync::Arc;

use keyloom::engine::{Engine, Memory, Metered, Mirror, Torn, Unreliable, conformance};

fn memory() -> Arc<dyn Engine> {
    Arc::new(Memory::new())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn memory_conforms() {
    conformance::run("memory", || async { memory() }).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn metered_conforms() {
    let make = || async { Arc::new(Metered::new(memory())) as Arc<dyn Engine> };
    conformance::run("metered memory", make).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn mirror_conforms() {
    let make = || async { Arc::new(Mirror::new(memory(), memory())) as Arc<dyn Engine> };
    conformance::run("mirrored memory", make).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn torn_conforms() {
    let make = || async { Arc::new(Torn::new(memory(), 1)) as Arc<dyn Engine> };
    conformance::run("torn memory", make).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn mirror_of_torn_and_memory_conforms() {
    let torn = || Arc::new(Torn::new(memory(), 2));
    let make = || async { Arc::new(Mirror::new(torn(), memory())) as Arc<dyn Engine> };
    conformance::run("torn memory, mirrored by memory", make).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn unreliable_conforms_as_long_as_nothing_fails() {
    let make = || async { Arc::new(Unreliable::new(memory(), 1, 0.0)) as Arc<dyn Engine> };
    conformance::run("unreliable memory at rate 0", make).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn unknown_outcomes_can_be_lived_with() {
    for rate in [0.1, 0.5, 0.9] {
        let make = || async { Arc::new(Unreliable::new(memory(), 7, rate)) as Arc<dyn Engine> };
        conformance::run_unreliable(&format!("unreliable memory at rate {rate}"), make).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn unknown_outcomes_of_torn_batches_can_be_lived_with() {
    for rate in [0.1, 0.5, 0.9] {
        let torn = || Arc::new(Torn::new(memory(), 3));
        let make = || async { Arc::new(Unreliable::new(torn(), 7, rate)) as Arc<dyn Engine> };
        conformance::run_unreliable(&format!("unreliable, torn memory at rate {rate}"), make).await;
        let unreliable = || Arc::new(Unreliable::new(memory(), 7, rate));
        let make = || async { Arc::new(Torn::new(unreliable(), 3)) as Arc<dyn Engine> };
        conformance::run_unreliable(&format!("torn, unreliable memory at rate {rate}"), make).await;
    }
}
