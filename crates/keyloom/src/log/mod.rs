//! The change log of a space: its entries, and how long they are kept.
//!
//! An entry describes one batch in two ways. For watchers it lists which records changed, in which
//! versions and by whom. For a replay it has every cell that the batch wrote, byte for byte:
//! records, index entries, the catalog and everything else. So a replay need not know what the
//! cells mean.

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
