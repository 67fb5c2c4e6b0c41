//! What a record was: the cells of its history, how they are named and read, and how they go.
//!
//! | cell | key in the area `~` | holds |
//! | --- | --- | --- |
//! | a version | `history:version:{collection}:{incarnation}:{revision}` | who made it of what, and when |
//! | a trace | `history:left:{collection}:{key}:{time}:{incarnation}:{revision}` | the record's key |
//!
//! The incarnation in the stamp of a record leads to its versions. A trace is left where a record
//! no longer is, so that its versions are found by the key that it had.

mod describe;
mod difference;
mod keys;
mod past;
mod purge;
mod verify;
mod write;

use async_trait::async_trait;

pub use self::difference::Difference;
pub(crate) use self::keys::{
    Trace, trace_address, trace_of, traces_of, version_address, version_of, versions_of,
};
pub use self::past::HistoryKind;
pub(crate) use self::past::Past;
use super::finding::Flaw;
use super::kind::{Commit, Example, Judging, Kind, OwnPattern, SideCell};
use crate::engine::{Address, Cell, Range, Row};
use crate::error::Result;
use crate::own::OwnRange;
use crate::schema::Schema;
use crate::space::{GoesOn, Live, PurgeOptions, Purged, Session};

/// What records were.
pub(crate) const HISTORY: &dyn Kind = &History;

#[derive(Debug)]
struct History;

#[async_trait]
impl Kind for History {
    fn name(&self) -> &'static str {
        "history"
    }

    fn write(
        &self,
        commit: &Commit<'_>,
        _: &[Option<Cell>],
        cells: &mut Vec<SideCell>,
    ) -> Result<()> {
        write::cells(commit.session, commit.work.changes, cells);
        Ok(())
    }

    fn verified(&self, _: &Schema) -> Option<Range> {
        Some(OwnRange::Histories.range())
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
        verify::judge(judging.loaded, witnesses, cells)
    }

    async fn search(
        &self,
        live: &Live,
        row: &Row,
        witnesses: Vec<Address>,
    ) -> Result<Vec<Address>> {
        verify::search(live, row, witnesses).await
    }

    async fn purge(
        &self,
        session: &Session,
        options: &PurgeOptions,
        goes_on: GoesOn<'_>,
    ) -> Result<Purged> {
        purge::purge_history(session, options, goes_on).await
    }

    fn describe(&self, example: &Example<'_>) -> Vec<OwnPattern> {
        describe::describe(example)
    }
}
