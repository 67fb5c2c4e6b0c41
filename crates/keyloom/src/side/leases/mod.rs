//! Work that one worker has for a time: a cell for each entry that somebody works on.

mod cell;
mod describe;
mod sweep;
mod verify;
mod write;

pub(crate) use self::cell::{LeaseContent, lease_address};
pub(crate) use self::sweep::sweep_leases;
pub(crate) use self::write::LeaseHold;
use super::finding::Flaw;
use super::kind::{Commit, Example, Judging, Kind, OwnPattern, SideCell};
use crate::engine::{Address, Cell, Range, Row};
use crate::error::Result;
use crate::own::OwnKind;
use crate::schema::Schema;

/// Who works on which entry.
#[derive(Debug)]
pub(super) struct Leases;

impl Kind for Leases {
    fn name(&self) -> &'static str {
        "leases"
    }

    fn write(
        &self,
        commit: &Commit<'_>,
        _: &[Option<Cell>],
        cells: &mut Vec<SideCell>,
    ) -> Result<()> {
        cells.extend(write::cells(commit.work));
        Ok(())
    }

    fn verified(&self, _: &Schema) -> Option<Range> {
        Some(OwnKind::Lease.range())
    }

    fn witnesses(&self, judging: &Judging<'_>, row: &Row) -> Vec<Address> {
        verify::witnesses(judging.loaded, row)
    }

    fn judge(
        &self,
        judging: &Judging<'_>,
        witnesses: &[Address],
        cells: &[Option<Cell>],
    ) -> Option<Flaw> {
        verify::judge(judging.loaded, judging.now, witnesses, cells)
    }

    fn describe(&self, example: &Example<'_>) -> Vec<OwnPattern> {
        describe::describe(example).into_iter().collect()
    }
}
