//! One change becomes one batch.

mod assemble;
mod attempts;
mod beside;
mod entries;
mod guard;
mod increment;
mod logged;
mod make_way;
mod once;
mod operations;
mod retry;
mod together;
mod transaction;
mod transaction_update;
mod update;

pub(crate) use assemble::{Change, Work};
pub(crate) use beside::{Additions, LeaseHold, Share, share};
pub(crate) use entries::{
    Image, Lenience, entries_of, entry_keys_of, entry_value, stored_keys_of, stored_refusal_of,
};
pub use increment::{Counters, Increment};
pub(crate) use increment::{counters, increment};
pub(crate) use once::{
    Added, Begun, Failed, Json, Replay, Request, Sending, commit_claimed, once,
    purge_idempotency_keys,
};
pub use operations::Effect;
pub(crate) use operations::{
    Current, Origin, Whole, WrittenDocument, commit, delete, discard, insert, key_of_values,
    not_found, read, read_record, record_key, replace, upsert,
};
pub use retry::Retry;
pub(crate) use together::{Together, insert_together, is_of_record};
pub use transaction::Transaction;
pub(crate) use transaction::run;
pub(crate) use update::{rename, revise, update, update_with_retry, upsert_with};
