//! Wrappers around engines: each passes calls on, and adds one thing.
//!
//! | wrapper | what it adds | what it is for |
//! | --- | --- | --- |
//! | [`Metered`] | counts of calls, cells and bytes | tests that assert what an operation costs |
//! | [`Mirror`] | a second engine with the same answers | finding where two engines differ |
//! | [`Torn`] | batches that become visible cell by cell | code that must not rely on snapshots |
//! | [`Unreliable`] | failures and unknown outcomes | code that must survive a network |

mod metered;
mod mirror;
mod torn;
mod unreliable;

pub use metered::{Metered, Usage};
pub use mirror::Mirror;
pub use torn::Torn;
pub use unreliable::{CommitFault, Injected, Unreliable};
