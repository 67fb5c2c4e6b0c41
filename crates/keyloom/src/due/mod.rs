//! What falls due: expired records to sweep, and work to be done.

mod lease;
mod maintain;
mod maintainer;
mod sweep;
mod take;

pub use lease::Lease;
pub(crate) use maintain::maintain;
pub use maintain::{MaintainOptions, Maintained};
pub use maintainer::{Maintainer, MaintainerReport};
pub(crate) use sweep::sweep;
pub use sweep::{SweepOptions, Swept, SweptCollection};
pub(crate) use take::take;
pub use take::{Due, DueItem};
