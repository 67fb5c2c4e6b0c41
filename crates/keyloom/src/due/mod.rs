//! What falls due: expired records to sweep, and work to be done.

mod lease;
mod lease_due;
mod maintain;
mod maintainer;
mod sweep;

pub use lease::Lease;
pub(crate) use lease_due::lease_due;
pub use lease_due::{Due, DueItem};
pub(crate) use maintain::maintain;
pub use maintain::{MaintainOptions, Maintained};
pub use maintainer::{Maintainer, MaintainerReport};
pub(crate) use sweep::sweep;
pub use sweep::{SweepOptions, Swept, SweptCollection};
