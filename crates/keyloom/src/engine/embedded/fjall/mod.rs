//! Everything that touches fjall and lsm-tree, the store of tables under it.

mod database;
mod fault;
mod journal;
mod journal_preallocation;
mod journal_repair;
mod memtable_filter;
mod stored;

pub(super) use database::{Database, Survives, tables_lack};
pub(super) use fault::Fault;
pub(super) use memtable_filter::FilterSnapshot;
pub(super) use stored::{Rows, Stored};
