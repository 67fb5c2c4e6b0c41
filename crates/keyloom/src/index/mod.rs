//! An index's life: build, verify, repair.
//!
//! A record and one key of one index are a [`Pair`](pair::Pair): the smallest thing that can be
//! right or wrong. One pure function judges a pair by what its two cells hold; verify reports its
//! verdicts, repair and build mend them. Every mend is a batch that rests on exactly what was
//! judged, so that writers may go on meanwhile; mends that have nothing to do with each other share
//! one.

mod account;
mod aggregates;
mod build;
mod delete;
mod estimate;
mod examine;
mod group;
mod job;
mod misfits;
mod not_ready;
mod obstacle;
mod pair;
mod pair_repair;
mod pass;
mod repair;
mod side_cells;
mod sorted;
mod subject;
mod suspect;
mod verification;
mod verify;

pub use build::Built;
pub(crate) use build::{build, recount};
pub(crate) use delete::delete;
pub use job::{JobProgress, JobResult, Work};
pub(crate) use job::{Order, under_way as jobs_under_way};
pub(crate) use misfits::misfits;
pub use not_ready::NotReady;
pub(crate) use repair::repair;
pub use repair::{Repair, RepairOptions, RepairProgress};
pub use verification::{Verification, VerifiedChunk, VerifyOptions};
pub use verify::Verifier;
pub(crate) use verify::verify;
