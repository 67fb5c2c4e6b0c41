//! An aggregate's life: counting records that are there already, verifying, counting anew, and
//! removing what is no longer used.

mod build;
mod clean;
mod count;
mod purge;
mod verify;

use std::time::Duration;

/// Where batches show cell by cell: within this time, each shows as a whole.
const SHOWN_WITHIN: Duration = Duration::from_millis(200);

pub(super) use build::{Purpose, build};
pub(super) use clean::clean;
pub(crate) use purge::purge_groups;
pub(super) use verify::{Litter, litter, verify};
