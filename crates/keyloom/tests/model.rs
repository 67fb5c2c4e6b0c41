//! Random operations against a simple reference, on every engine and wrapper.
//!
//! Each client owns records of its own in several collections, and knows exactly what they must
//! be: values and versions, and from them by a filter and a sort every answer. Clients want the
//! same unique values, share every index, and work at once; see `reads` and `claims` for what can
//! be told then. Between rounds the store is reopened, and halfway a newer program adds indexes
//! and builds them under the hands of the others. `verify` has the last word, and where a log is
//! kept, its replay gives the same store.
//!
//! `KEYLOOM_MODEL_OPS` sets the number of operations of all tests together, `KEYLOOM_LONG`
//! multiplies it, and `KEYLOOM_SEED` and `KEYLOOM_MODEL_CLIENTS` repeat a run.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests fail by panicking"
)]

mod model {
    pub mod claims;
    pub mod client;
    pub mod counters;
    pub mod keyed;
    pub mod nearby;
    pub mod question;
    pub mod random;
    pub mod reads;
    pub mod replayed;
    pub mod runner;
    pub mod shape;
    pub mod shared;
    pub mod transactions;
    pub mod values;
    pub mod writes;
}

use std::sync::Arc;

use keyloom::engine::{Engine, Memory, Torn};
use model::runner::Run;

const RUNS: [Run; 9] = [
    Run::new("memory_one_client", 250).clients(1, 24).in_rounds(8),
    Run::new("memory_many_clients", 200).clients(4, 12).in_rounds(8).with_log(),
    Run::new("memory_unreliable_one_client", 100).clients(1, 12).with_faults().with_log(),
    Run::new("memory_unreliable_many_clients", 70).clients(3, 8).with_faults(),
    Run::new("embedded_one_client", 120).clients(1, 24).in_rounds(8),
    Run::new("embedded_many_clients", 100).clients(4, 12).in_rounds(8).with_faults().with_log(),
    Run::new("embedded_durable", 20).clients(8, 6),
    Run::new("torn_memory", 100).clients(3, 8).of_many_moments(),
    Run::new("mirror_of_memory_and_embedded", 40).clients(3, 8).with_log(),
];

fn run(name: &str) -> &'static Run {
    RUNS.iter().find(|run| run.name == name).unwrap()
}

#[test]
fn the_runs_are_the_whole() {
    assert_eq!(RUNS.iter().map(|run| run.share).sum::<u64>(), 1_000);
}

fn on_memory(run: &Run) {
    let memory: Arc<dyn Engine> = Arc::new(Memory::new());
    run.run(false, &|_| memory.clone());
}

#[test]
fn memory_one_client() {
    on_memory(run("memory_one_client"));
}

#[test]
fn memory_many_clients() {
    on_memory(run("memory_many_clients"));
}

#[test]
fn memory_unreliable_one_client() {
    on_memory(run("memory_unreliable_one_client"));
}

#[test]
fn memory_unreliable_many_clients() {
    on_memory(run("memory_unreliable_many_clients"));
}

#[test]
fn torn_memory() {
    let memory = Arc::new(Memory::new());
    run("torn_memory").run(false, &|seed| Arc::new(Torn::new(memory.clone(), seed)));
}

#[cfg(feature = "embedded")]
mod folders {
    use std::path::Path;
    use std::sync::Arc;
    use std::time::Duration;

    use keyloom::engine::{Durability, Embedded, EmbeddedOptions, Engine, Memory, Mirror};

    use super::model::runner::Run;
    use super::run;

    /// Small memtables and caches, so that tables are written and merged, and cells leave the cache.
    fn embedded(folder: &Path, durability: Durability) -> Arc<dyn Engine> {
        let options = EmbeddedOptions::default()
            .durability(durability)
            .block_cache_bytes(1 << 20)
            .record_cache_bytes(64 << 10)
            .memtable_bytes(256 << 10);
        Arc::new(Embedded::open(folder, options).unwrap())
    }

    const RELAXED: Durability = Durability::Relaxed { sync_every: Duration::from_millis(50) };

    fn on_embedded(run: &Run, durability: Durability) {
        let folder = tempfile::tempdir().unwrap();
        run.run(true, &|_| embedded(folder.path(), durability));
    }

    #[test]
    fn embedded_one_client() {
        on_embedded(run("embedded_one_client"), RELAXED);
    }

    #[test]
    fn embedded_many_clients() {
        on_embedded(run("embedded_many_clients"), RELAXED);
    }

    #[test]
    fn embedded_durable() {
        on_embedded(run("embedded_durable"), Durability::Durable);
    }

    #[test]
    fn mirror_of_memory_and_embedded() {
        let folder = tempfile::tempdir().unwrap();
        let memory = Arc::new(Memory::new());
        let mirror = || Mirror::new(memory.clone(), embedded(folder.path(), RELAXED));
        run("mirror_of_memory_and_embedded").run(false, &|_| Arc::new(mirror()));
    }
}
