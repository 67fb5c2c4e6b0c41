//! The contract of an engine as tests. An engine, or a wrapper around one, conforms when
//! [`run`] comes back.
//!
//! ```
//! # tokio::runtime::Builder::new_multi_thread().build().unwrap().block_on(async {
//! use std::sync::Arc;
//! use keyloom::engine::{Engine, Memory, conformance};
//!
//! conformance::run("memory", || async { Arc::new(Memory::new()) as Arc<dyn Engine> }).await;
//! # });
//! ```
//!
//! Each check gets an engine of its own from the constructor, which must be empty. A failure
//! names the engine, the check and the seed. `KEYLOOM_SEED` repeats a seed, and `KEYLOOM_SCALE`
//! multiplies the number of random operations and of races.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a suite of checks fails by panicking, as tests do"
)]

mod areas;
mod batches;
mod cells;
mod close;
mod concurrency;
mod conditions;
mod follow;
mod integers;
mod isolation;
mod limits;
mod log;
mod model;
mod outcomes;
mod pins;
mod randomised;
mod ranges;
mod runner;
mod subject;
mod witnesses;

use std::sync::Arc;

use super::Engine;
use runner::Check;

/// Runs every check, each on an engine of its own that `make` gives.
///
/// # Panics
/// When a check fails, after all have run, with the engine's name, each failed check, its
/// message and the seed; and when the runtime has one thread only, since races need several.
pub async fn run<F, Fut>(name: &str, make: F)
where
    F: Fn() -> Fut,
    Fut: Future<Output = Arc<dyn Engine>>,
{
    runner::run(name, &every_check(), make).await;
}

/// Runs the checks that hold even when commits have unknown outcomes and reads fail: what an
/// unreliable network leaves of the contract.
///
/// # Panics
/// As [`run`].
pub async fn run_unreliable<F, Fut>(name: &str, make: F)
where
    F: Fn() -> Fut,
    Fut: Future<Output = Arc<dyn Engine>>,
{
    runner::run(name, &outcomes::checks(), make).await;
}

fn every_check() -> Vec<Check> {
    [
        cells::checks(),
        areas::checks(),
        ranges::checks(),
        batches::checks(),
        conditions::checks(),
        integers::checks(),
        limits::checks(),
        log::checks(),
        follow::checks(),
        witnesses::checks(),
        concurrency::checks(),
        isolation::checks(),
        pins::checks(),
        outcomes::checks(),
        randomised::checks(),
        close::checks(),
    ]
    .concat()
}
