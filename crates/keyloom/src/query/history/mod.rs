//! What a record was: its versions, newest first, and one of them by its number or by a time.
//!
//! Everything is reached by the record's key. The record that is there names its incarnation;
//! those that were there before left traces under the key.

mod as_of;
mod list;
mod subject;

pub(crate) use as_of::{as_of, at_version};
pub use list::HistoryEntry;
pub(crate) use list::history;
