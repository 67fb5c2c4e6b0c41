//! Idempotency keys: a write that is sent twice happens once. A cell for its key keeps the answer.
//!
//! | key in the area `~` | holds |
//! | --- | --- |
//! | `idempotency:{user}:{key}` | what was asked, when, and the answer |
//!
//! The write's own batch puts the cell, under the condition that no write with the key came before.
//! So there is an answer exactly if the write happened.

mod claim;
mod kept;
mod key;

pub(crate) use claim::Claim;
pub(crate) use kept::{Answer, Kept};
pub(crate) use key::{IdempotencyKey, is_key_address, own_range};
