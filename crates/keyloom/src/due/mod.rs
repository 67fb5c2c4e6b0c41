//! What falls due: expired records to sweep, and work to be done.

mod sweep;
mod sweeper;

pub(crate) use sweep::sweep;
pub use sweep::{SweepOptions, Swept, SweptCollection};
pub use sweeper::{Sweeper, SweeperReport};
