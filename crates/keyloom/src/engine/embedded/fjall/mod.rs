//! Everything that touches fjall, and lsm-tree under it.
//!
//! fjall is a fine store of tables, and we are faster with it than its documented interface would
//! allow. The price is that we rest on how it works inside. This page lists every such assumption.
//! Both crates are pinned to one version each, since no version number promises any of this. Whoever
//! takes a new version goes through the list.
//!
//! # What is looked at while a store is open
//!
//! The store itself is asked ([`self_check`]). What turns out wrong is not done any more ([`trust`]);
//! then everything is right, and something takes longer. A warning says so once, and the figure
//! `disabled short cuts` counts it. `tests` break each assumption in [`internals`].
//!
//! | assumed | used by | if it were wrong | looked at |
//! | --- | --- | --- | --- |
//! | Filters of tables know keys by `Builder::get_hash`. `Table::get` with `u64::MAX` gives whatever the table has of a key, `Run::get_for_key` the one table of a run that may have it, and `current_version` all tables. | [`absence`] | A key that is there looks absent, and a unique value is given twice. | when a store is opened, on the first and the last key of up to 32 tables; and before keys leave the memtable filter |
//! | Memtables become tables in the order in which they were filled, and `get_highest_persisted_seqno` tells how far. | [`memtable_filter`] | The filter forgets keys that are in memory: as above. | before a filter is discarded, on the last keys that went into it |
//! | A database without a journal numbers from 0 on. `supervisor.seqno` and `snapshot_tracker` take a higher number, and readers see what is below. | [`database`] | Readers do not see what is in tables. | when a store is opened. If it is wrong, fjall opens once more: it finds the journal that it has just made, and numbers by itself |
//! | Nothing is only in memory when `sealed_memtable_count` is 0 after a rotation, and `get_highest_memtable_seqno` has nothing. | [`database`], which then removes the journal | The last batches before a close are lost. | before the journal is removed, on the last keys that were written |
//! | A batch in the journal takes at most 32 bytes for each cell besides its bytes, and 64 for itself. | [`journal_preallocation`] | A zero could overwrite a batch. | before zeros are written: they go over zeros alone |
//! | A journal begins with a batch, which ends with `FJL` and the number of the format. What fjall cannot read it takes for the end, and cuts off. | [`journal_repair`] | A journal of another version would be lost. | when a store is opened; it is refused |
//!
//! # What tests look at
//!
//! | assumed | used by | if it were wrong | test |
//! | --- | --- | --- | --- |
//! | The bytes of a batch in the journal, and `N.jnl` as its name. fjall refuses a last batch whose checksum is wrong. | [`journal_repair`] | A store does not open after a loss of power. | `a_torn_last_batch_is_cut_off`, in journals that fjall writes |
//! | A journal that is new has 64 MiB and reads as zeros behind its last batch. One that was there before is written at its end. | [`journal_preallocation`] | Syncs take longer. | `blocks_are_there_before_they_are_needed`, `a_journal_has_its_blocks_ahead` |
//! | `get_version_for_snapshot` gives the memtables and tables of an open snapshot, and `create_internal_range` reads them later too. | [`stored`] | A backup has another moment than it says. | `a_moment_that_is_held_keeps_nothing_that_came_after_it`, and the conformance suite's pins |
//! | fjall halts writes at 4 sealed memtables and at 30 runs, for ever if its threads have stopped. `compact` merges on our thread as theirs would. | [`database`] | A write waits without end after a failure. | `tests/embedded_faults.rs` |
//! | `persist` reports that a thread of fjall's has failed, before anything is written. | [`fault`] | An error says that a write may have happened where it did not. | `tests/embedded_faults.rs` |
//! | A group of changes in one batch has one number, and is replayed as a whole or not at all. | [`database`] | Half of a group survives a kill. | `tests/embedded_crash.rs` |
//! | fjall's first thread leaves merges to the others, and spins while it waits for them. | [`database`], which asks for four threads | Writers have less of the processor. | none; see `docs/performance/merges.md` |
//!
//! `docs/performance/fjall.md` tells what each of these brings, and what it would cost to do without.

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
