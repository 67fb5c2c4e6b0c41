//! A write that is sent twice happens once: the cell in which its key keeps the answer.
//!
//! | key in the area `~` | holds |
//! | --- | --- |
//! | `idempotency:{user}:{key}` | what was asked, when, and the answer |
//!
//! The cell is put by the batch of the write itself, under the condition that no write with the
//! key came before. So there is an answer exactly if the write happened.

mod claim;
mod kept;
mod key;

pub(crate) use claim::Claim;
pub(crate) use kept::{Answer, Kept};
pub(crate) use key::IdempotencyKey;
