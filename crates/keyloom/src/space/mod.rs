//! What is known of one open space, and what goes over all of it.
//!
//! A [`Live`] is a space of an engine with its schema; a [`Session`] is one caller of it. Whatever
//! is done under one state of the schema is done again when the schema changed meanwhile.

mod access;
mod applied;
mod apply;
mod attempt;
mod kept;
mod key_text;
mod live;
mod loaded;
mod notes;
mod owner;
mod pace;
mod purge;
mod reads;
mod session;
mod tally;
mod task;
mod turns;
mod walk;

pub use applied::{Applied, Misfit, Misfits};
pub use pace::Pace;
pub use purge::{PurgeOptions, Purged};
pub use session::Clock;
pub(crate) use {
    attempt::{Attempts, Ended, Interrupted, Under, past_fence},
    kept::{Kept, Subject, end_task, leave_task, tasks_under_way},
    key_text::{from_text, to_text},
    live::Live,
    loaded::{Loaded, catalog_address, check_catalog},
    purge::{GoesOn, Judge, Removal, purge},
    reads::epoch_address,
    session::Session,
    tally::{Counting, Tally, cell_bytes, tally_range, tally_template},
    task::{Step, Task, Visitor},
    turns::Turn,
    walk::{Chunk, Position, Stage, Walk},
};
