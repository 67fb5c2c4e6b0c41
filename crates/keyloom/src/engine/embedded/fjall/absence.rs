//! Tells that a key is absent without a search of the memtables.

use std::sync::Arc;

use fjall::Keyspace;

use super::super::hashed::KeyRef;
use super::fault;
use super::internals::Internals;
use super::memtable_filter::FilterSnapshot;
use super::trust::{ShortCut, Trust};
use crate::error::Result;

/// The short cut, for one published moment.
pub(crate) struct AbsenceCheck {
    cells: Keyspace,
    filter: FilterSnapshot,
    internals: Internals,
    trust: Arc<Trust>,
}

impl AbsenceCheck {
    pub(super) fn new(
        cells: Keyspace,
        filter: FilterSnapshot,
        internals: Internals,
        trust: Arc<Trust>,
    ) -> Self {
        AbsenceCheck { cells, filter, internals, trust }
    }

    /// Whether the key is certainly absent at this moment, unless a later batch has removed it: the
    /// tables are looked at as they are now, and a merge takes out what was removed.
    pub(crate) fn rules_out(&self, key: KeyRef<'_>) -> Result<bool> {
        if self.filter.may_contain(key.hash) || !self.trust.has(ShortCut::Absence) {
            return Ok(false);
        }
        self.internals.tables_lack(&self.cells, key.bytes).map_err(fault::reading)
    }
}
