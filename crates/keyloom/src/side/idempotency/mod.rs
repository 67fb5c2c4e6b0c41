//! A write that is sent twice happens once: the cell in which its key keeps the answer.
//!
//! | key in the area `~` | holds |
//! | --- | --- |
//! | `idempotency:{user}:{key}` | what was asked, when, and the answer |
//!
//! The cell is put by the batch of the write itself, under the condition that no write with the
//! key came before. So there is an answer exactly if the write happened.

mod describe;
mod kept;
mod purge;
mod verify;
mod write;

use async_trait::async_trait;

pub(crate) use self::kept::{Answer, CREATED, Kept, REPLACED};
pub(crate) use self::purge::is_over;
pub(crate) use self::write::{came_first, claim_entry};
use super::finding::Flaw;
use super::kind::{Commit, Judging, Kind, OwnPattern, SideCell};
use crate::engine::{Address, Cell, Range};
use crate::error::Result;
use crate::own::OwnKind;
use crate::schema::Schema;
use crate::space::{GoesOn, PurgeOptions, Purged, Session};

/// The answers to writes that carry a key.
pub(crate) const ANSWERS: &dyn Kind = &Answers;

#[derive(Debug)]
struct Answers;

#[async_trait]
impl Kind for Answers {
    fn name(&self) -> &'static str {
        "answers"
    }

    fn write(
        &self,
        commit: &Commit<'_>,
        _: &[Option<Cell>],
        cells: &mut Vec<SideCell>,
    ) -> Result<()> {
        cells.extend(write::cell(commit.session, commit.work.changes)?);
        Ok(())
    }

    fn verified(&self, _: &Schema) -> Option<Range> {
        Some(OwnKind::Answer.range())
    }

    fn judge(
        &self,
        _: &Judging<'_>,
        witnesses: &[Address],
        cells: &[Option<Cell>],
    ) -> Option<Flaw> {
        verify::judge(&witnesses.first()?.key, cells.first()?.as_ref()?)
    }

    async fn purge(
        &self,
        session: &Session,
        options: &PurgeOptions,
        goes_on: GoesOn<'_>,
    ) -> Result<Purged> {
        purge::purge_answers(session, options, goes_on).await
    }

    fn describe_space(&self) -> Vec<OwnPattern> {
        describe::describe()
    }
}
