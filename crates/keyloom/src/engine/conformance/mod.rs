//! The contract of an engine as tests. An engine, or a wrapper around one, conforms if [`run`]
//! returns.
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
//! The constructor gives each check an engine of its own, which must be empty. A failure names the
//! engine, the check and the seed. `KEYLOOM_SEED` repeats a seed, and `KEYLOOM_SCALE` multiplies
//! the number of random operations and races.

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

/// Runs every check, each on an engine of its own from `make`.
///
/// # Panics
/// If a check fails, after all have run: the message has the engine's name, each failed check with
/// its message, and the seed. Also if the runtime has only one thread, since races need several.
pub async fn run<F, Fut>(name: &str, make: F)
where
    F: Fn() -> Fut,
    Fut: Future<Output = Arc<dyn Engine>>,
{
    runner::run(name, &every_check(), make).await;
}

/// Runs the checks that hold even if commits have unknown outcomes and reads fail: the part of the
/// contract that survives an unreliable network.
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
