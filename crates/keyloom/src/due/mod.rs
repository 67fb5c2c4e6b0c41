//! What falls due: expired records to sweep, and work to be done.

mod lease;
mod sweep;
mod sweep_leases;
mod sweeper;
mod take;

pub use lease::Lease;
pub(crate) use lease::address as lease_address;
pub(crate) use sweep::sweep;
pub use sweep::{SweepOptions, Swept, SweptCollection};
pub use sweeper::{Sweeper, SweeperReport};
pub(crate) use take::take;
pub use take::{Due, DueItem};
