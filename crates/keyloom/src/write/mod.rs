//! One change becomes one batch.

mod assemble;
mod entries;
mod guard;
mod operations;
mod retry;
mod transaction;

pub(crate) use entries::{Image, entry_keys_of, entry_value};
pub use operations::{Effect, Written};
pub(crate) use operations::{delete, insert, key_of_values, record_key, replace, upsert};
pub use retry::Retry;
pub use transaction::Transaction;
pub(crate) use transaction::run;
