//! The change log of a space: what an entry tells, and how long entries are kept.
//!
//! An entry tells two things of one batch. For those who watch, which records changed, in which
//! versions and through whom. For those who replay, every cell that the batch wrote, byte for
//! byte: records, index entries, the catalog and whatever else was in it. So a replay needs to
//! know nothing of what the cells are for.

mod decode;
mod encode;
mod entry;
mod keep;
#[cfg(test)]
mod tests;
mod wire;

pub(crate) use encode::encode;
pub(crate) use entry::{Author, Became, Entry, Note, Told};
pub use keep::Trimmed;
pub(crate) use keep::{trim, trim_now_and_then};
pub(crate) use wire::{In, Out};
