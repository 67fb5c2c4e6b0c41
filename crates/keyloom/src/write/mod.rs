//! One change becomes one batch.

mod assemble;
mod attempts;
mod building_claims;
mod bulk_insert;
mod displace_expired;
mod entries;
mod idempotent;
mod increment;
mod logged;
mod operations;
mod transaction;
mod transaction_update;
mod update;

pub(crate) use bulk_insert::{BulkInsert, bulk_insert, is_of_record};
pub(crate) use entries::{
    Image, Lenience, entries_of, entry_keys_of, entry_value, stored_keys_of, stored_refusal_of,
};
pub(crate) use idempotent::{
    Added, Begun, Failed, Json, Replay, Request, Sending, commit_claimed, once,
};
pub use increment::{Counters, Increment};
pub(crate) use increment::{counters, increment};
pub use operations::Effect;
pub(crate) use operations::{
    Origin, Whole, WrittenDocument, commit, delete, discard, insert, not_found, read, replace,
    upsert,
};
pub use transaction::Transaction;
pub(crate) use transaction::run;
pub(crate) use update::{rename, revise, update, update_with_retry, upsert_with};
