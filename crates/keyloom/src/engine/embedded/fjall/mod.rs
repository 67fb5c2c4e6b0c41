//! Everything that touches fjall and lsm-tree, the store of tables under it.

mod absence;
mod database;
mod fault;
mod internals;
mod journal;
mod journal_preallocation;
mod journal_repair;
mod memtable_filter;
mod self_check;
mod stored;
#[cfg(test)]
mod tests;
mod trust;

pub(super) use absence::AbsenceCheck;
pub(super) use database::{Database, Survives};
pub(super) use fault::Fault;
pub(super) use internals::Internals;
pub(super) use stored::{Rows, Stored};
pub(super) use trust::Trust;
