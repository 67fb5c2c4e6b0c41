//! What is known of one open space, and what goes over all of it.
//!
//! A [`Live`] is a space of an engine with its schema; a [`Session`] is one caller of it. Whatever
//! is done under one state of the schema is done again when the schema changed meanwhile.

mod access;
mod applied;
mod apply;
mod attempt;
mod claim;
mod idempotency_key;
mod kept;
mod key_count;
mod key_text;
mod live;
mod loaded;
mod notes;
mod owner;
mod pace;
mod purge;
mod reads;
mod retry;
mod session;
mod task;
mod turns;
mod walk;

pub use applied::{Applied, Misfit, Misfits};
pub use pace::Pace;
pub use purge::{PurgeOptions, Purged};
pub use retry::Retry;
pub use session::Clock;
pub(crate) use {
    attempt::{Attempts, Ended, Interrupted, Under, past_fence},
    claim::Claim,
    kept::{Kept, Subject, end_task, leave_task, tasks_under_way},
    key_count::{KeyCount, KeyCounter, cell_bytes, count_keys_in, count_keys_of},
    key_text::{from_text, to_text},
    live::Live,
    loaded::{Loaded, catalog_address, check_catalog},
    purge::{GoesOn, Judge, Removal, purge},
    reads::epoch_address,
    session::Session,
    task::{Step, Task, Visitor},
    turns::Turn,
    walk::{Chunk, Position, Stage, Walk},
};
