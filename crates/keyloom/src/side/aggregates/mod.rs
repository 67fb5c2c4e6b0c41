//! Counts and sums of groups of records, and marks of records that are counted.

mod clean;
mod describe;
mod keys;
mod purge;
mod total;
mod verify;
mod write;

use std::time::Duration;

use async_trait::async_trait;

pub(crate) use self::clean::clean;
pub(crate) use self::total::{Total, unreadable_cell};
pub(crate) use self::write::{Additions, Share, share};
use super::kind::{Commit, Compared, Example, Kind, OwnPattern, Part, SideCell};
use crate::engine::{Address, Cell};
use crate::error::Result;
use crate::side::work::Work;
use crate::space::{GoesOn, Live, Loaded, PurgeOptions, Purged, Session, Under};

/// Where batches show cell by cell: within this time, each shows as a whole.
pub(crate) const SHOWN_WITHIN: Duration = Duration::from_millis(200);

/// Counts and sums.
pub(crate) const AGGREGATES: &dyn Kind = &Aggregates;

#[derive(Debug)]
struct Aggregates;

#[async_trait]
impl Kind for Aggregates {
    fn name(&self) -> &'static str {
        "aggregates"
    }

    fn reads(&self, loaded: &Loaded, work: &Work<'_>, asked: &mut Vec<Address>) {
        write::reads(loaded, work, asked);
    }

    fn write(
        &self,
        commit: &Commit<'_>,
        seen: &[Option<Cell>],
        cells: &mut Vec<SideCell>,
    ) -> Result<()> {
        write::write(commit.loaded, commit.work, seen, cells)
    }

    async fn compare(
        &self,
        live: &Live,
        loaded: &Loaded,
        after: Option<&Part>,
    ) -> Under<Option<Compared>> {
        verify::compare(live, loaded, after).await
    }

    async fn purge(
        &self,
        session: &Session,
        options: &PurgeOptions,
        goes_on: GoesOn<'_>,
    ) -> Result<Purged> {
        purge::purge_groups(session, options, goes_on).await
    }

    fn describe(&self, example: &Example<'_>) -> Vec<OwnPattern> {
        let aggregates = example.collection.aggregates.values();
        aggregates.flat_map(|aggregate| describe::describe(example, aggregate)).collect()
    }
}
