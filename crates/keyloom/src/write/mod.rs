//! One change becomes one batch.

mod assemble;
mod beside;
mod entries;
mod guard;
mod increment;
mod operations;
mod retry;
mod transaction;
mod update;

pub(crate) use beside::{Additions, Share, share};
pub(crate) use entries::{Image, entry_keys_of, entry_value};
pub use increment::Increment;
pub(crate) use increment::increment;
pub(crate) use operations::{
    Current, Origin, Whole, delete, insert, key_of_values, record_key, replace, upsert,
};
pub use operations::{Effect, Written};
pub use retry::Retry;
pub use transaction::Transaction;
pub(crate) use transaction::run;
pub(crate) use update::{rename, revise, update, update_with_retry, upsert_with};
