//! What was counted of records: one cell of integers beside each that has counters.
//!
//! | record | its counters |
//! | --- | --- |
//! | `flow:stats:mail` in the default area | `counter::flow:stats:mail` |
//! | `a/b` in the area `runs` | `counter:runs:a/b` |

mod describe;
mod key;
mod read;
mod verify;
mod write;

pub(crate) use self::key::counter_address;
pub(crate) use self::read::{Counted, Fetched, fetch, fetch_one, reveal};
pub(super) use self::write::NO_COUNTING;
pub(crate) use self::write::{Addend, Counting, Moved, Start};
use super::finding::Flaw;
use super::kind::{Commit, Example, Judging, Kind, OwnPattern, SideCell};
use crate::engine::{Address, Cell, Range, Row};
use crate::error::Result;
use crate::own::OwnKind;
use crate::schema::Schema;

/// What was counted of records.
#[derive(Debug)]
pub(super) struct Counters;

impl Kind for Counters {
    fn name(&self) -> &'static str {
        "counters"
    }

    fn write(
        &self,
        commit: &Commit<'_>,
        _: &[Option<Cell>],
        cells: &mut Vec<SideCell>,
    ) -> Result<()> {
        write::cells(commit.work, cells)
    }

    fn verified(&self, schema: &Schema) -> Option<Range> {
        let are_declared = schema.collections.values().any(|it| !it.counters.is_empty());
        are_declared.then(|| OwnKind::Counters.range())
    }

    fn witnesses(&self, _: &Judging<'_>, row: &Row) -> Vec<Address> {
        verify::witnesses(&row.key)
    }

    fn judge(
        &self,
        judging: &Judging<'_>,
        witnesses: &[Address],
        cells: &[Option<Cell>],
    ) -> Option<Flaw> {
        verify::judge(judging.keyspace, &witnesses.first()?.key, cells)
    }

    fn describe(&self, example: &Example<'_>) -> Vec<OwnPattern> {
        describe::describe(example).into_iter().collect()
    }
}
