//! Engines around engines: each passes the calls on, and adds one thing on the way.
//!
//! | wrapper | what it adds | what it is for |
//! | --- | --- | --- |
//! | [`Metered`] | counts of calls, cells and bytes | tests that assert what an operation costs |
//! | [`Mirror`] | a second engine that must answer alike | finding where two engines differ |
//! | [`Torn`] | batches that show cell by cell | code that must not rest on snapshots |
//! | [`Unreliable`] | failures and unknown outcomes | code that must survive a network |

mod metered;
mod mirror;
mod torn;
mod unreliable;

pub use metered::{Metered, Usage};
pub use mirror::Mirror;
pub use torn::Torn;
pub use unreliable::{CommitFault, Injected, Unreliable};
