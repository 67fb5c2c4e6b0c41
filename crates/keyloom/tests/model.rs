//! Random operations against a simple reference, on every engine and wrapper.
//!
//! Each client owns records of its own in several collections, and knows exactly what they must
//! be: values and versions, and from them by a filter and a sort every answer. Clients want the
//! same unique values, share every index, and work at once; see `reads` and `claims` for what can
//! be told then. Between rounds the store is reopened, and halfway a newer program adds indexes
//! and builds them under the hands of the others. `verify` has the last word.
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
    pub mod nearby;
    pub mod question;
    pub mod random;
    pub mod reads;
    pub mod runner;
    pub mod shape;
    pub mod transactions;
    pub mod values;
    pub mod writes;
}

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use keyloom::engine::{Durability, Embedded, EmbeddedOptions, Engine, Memory, Mirror, Torn};
use model::runner::Run;

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

fn on_memory(run: Run) {
    let memory: Arc<dyn Engine> = Arc::new(Memory::new());
    run.run(false, &|_| memory.clone());
}

fn on_embedded(run: Run, durability: Durability) {
    let folder = tempfile::tempdir().unwrap();
    run.run(true, &|_| embedded(folder.path(), durability));
}

#[test]
fn memory_one_client() {
    let name = "memory_one_client";
    on_memory(Run { name, share: 280, clients: 1, slots: 24, rounds: 8, faults: false });
}

#[test]
fn memory_many_clients() {
    let name = "memory_many_clients";
    on_memory(Run { name, share: 230, clients: 4, slots: 12, rounds: 8, faults: false });
}

#[test]
fn memory_unreliable_one_client() {
    let name = "memory_unreliable_one_client";
    on_memory(Run { name, share: 100, clients: 1, slots: 12, rounds: 4, faults: true });
}

#[test]
fn memory_unreliable_many_clients() {
    let name = "memory_unreliable_many_clients";
    on_memory(Run { name, share: 60, clients: 3, slots: 8, rounds: 4, faults: true });
}

#[test]
fn embedded_one_client() {
    let name = "embedded_one_client";
    let run = Run { name, share: 120, clients: 1, slots: 24, rounds: 8, faults: false };
    on_embedded(run, RELAXED);
}

#[test]
fn embedded_many_clients() {
    let name = "embedded_many_clients";
    let run = Run { name, share: 100, clients: 4, slots: 12, rounds: 8, faults: true };
    on_embedded(run, RELAXED);
}

#[test]
fn embedded_durable() {
    let name = "embedded_durable";
    let run = Run { name, share: 20, clients: 8, slots: 6, rounds: 4, faults: false };
    on_embedded(run, Durability::Durable);
}

#[test]
fn torn_memory() {
    let memory = Arc::new(Memory::new());
    let name = "torn_memory";
    let run = Run { name, share: 50, clients: 3, slots: 8, rounds: 4, faults: false };
    run.run(true, &|seed| Arc::new(Torn::new(memory.clone(), seed)));
}

#[test]
fn mirror_of_memory_and_embedded() {
    let folder = tempfile::tempdir().unwrap();
    let memory = Arc::new(Memory::new());
    let name = "mirror_of_memory_and_embedded";
    let run = Run { name, share: 40, clients: 3, slots: 8, rounds: 4, faults: false };
    run.run(false, &|_| Arc::new(Mirror::new(memory.clone(), embedded(folder.path(), RELAXED))));
}
