//! Every engine and every wrapper against the one suite. An adapter's test is one call.

#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

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

#[cfg(feature = "embedded")]
mod folders {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    use keyloom::engine::{Durability, Embedded, EmbeddedOptions, Engine, conformance};
    use tempfile::TempDir;

    /// Makes embedded stores, each in a new folder below one that is removed in the end.
    struct Folders(TempDir, AtomicUsize);

    impl Folders {
        fn new() -> Self {
            Folders(tempfile::tempdir().unwrap(), AtomicUsize::new(0))
        }

        fn store(&self, options: EmbeddedOptions) -> Arc<dyn Engine> {
            let number = self.1.fetch_add(1, Ordering::Relaxed);
            Arc::new(Embedded::open(self.0.path().join(number.to_string()), options).unwrap())
        }
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
    async fn embedded_conforms() {
        let folders = Folders::new();
        let make = || async { folders.store(EmbeddedOptions::default()) };
        conformance::run("embedded", make).await;
    }

    /// Memtables and caches so small that everything is read from tables, too.
    #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
    async fn embedded_conforms_when_memory_is_scarce() {
        let folders = Folders::new();
        let scarce = || {
            EmbeddedOptions::default()
                .block_cache_bytes(16 << 10)
                .record_cache_bytes(8 << 10)
                .memtable_bytes(4 << 10)
        };
        let make = || async { folders.store(scarce()) };
        conformance::run("embedded with little memory", make).await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
    async fn embedded_and_relaxed_conforms() {
        let folders = Folders::new();
        let relaxed = Durability::Relaxed { sync_every: Duration::from_millis(5) };
        let make = || async { folders.store(EmbeddedOptions::default().durability(relaxed)) };
        conformance::run("relaxed embedded", make).await;
    }
}
