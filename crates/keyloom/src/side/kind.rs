//! The seam between a kind of cell beside records and everything that goes over all kinds.

use std::fmt::Debug;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use serde_json::Value;

use super::KINDS;
use super::finding::{Finding, Flaw};
use super::work::{Refused, Work};
use crate::engine::{Address, Cell, Condition, Effect, Range, Rejection, Row, Stamp};
use crate::error::Result;
use crate::own::own_address;
use crate::schema::{Aggregate, Collection, Index, Keyspace, Schema};
use crate::space::{GoesOn, Live, Loaded, PurgeOptions, Purged, Session, Under};

/// A kind of cell that is kept beside records. What a kind has no use for it leaves out.
#[async_trait]
pub(crate) trait Kind: Debug + Sync {
    /// What it is called where progress is kept.
    fn name(&self) -> &'static str;

    /// Adds the cells that have to be seen before [`write`](Self::write). Most kinds need none, so
    /// that an insert needs no read.
    fn reads(&self, _loaded: &Loaded, _work: &Work<'_>, _asked: &mut Vec<Address>) {}

    /// Adds what a commit writes, given what was seen at [`reads`](Self::reads). It is part of the
    /// same batch as the records.
    fn write(
        &self,
        _commit: &Commit<'_>,
        _seen: &[Option<Cell>],
        _cells: &mut Vec<SideCell>,
    ) -> Result<()> {
        Ok(())
    }

    /// Where the cells lie that verify looks at one by one.
    fn verified(&self, _schema: &Schema) -> Option<Range> {
        None
    }

    /// The cells that tell whether the cell of a row is right, itself first.
    fn witnesses(&self, _judging: &Judging<'_>, row: &Row) -> Vec<Address> {
        vec![own_address(row.key.clone())]
    }

    /// What is wrong with a cell, given what is at its witnesses; `None` when nothing is.
    fn judge(
        &self,
        _judging: &Judging<'_>,
        _witnesses: &[Address],
        _cells: &[Option<Cell>],
    ) -> Option<Flaw> {
        None
    }

    /// Looks for better witnesses of a cell that seems to be wrong.
    async fn search(
        &self,
        _live: &Live,
        _row: &Row,
        witnesses: Vec<Address>,
    ) -> Result<Vec<Address>> {
        Ok(witnesses)
    }

    /// Compares the next of what cannot be judged cell by cell; `None` when there is no more.
    async fn compare(
        &self,
        _live: &Live,
        _loaded: &Loaded,
        _after: Option<&Part>,
    ) -> Under<Option<Compared>> {
        Ok(None)
    }

    /// Removes what need not be kept any longer, in bounded batches.
    async fn purge(
        &self,
        _session: &Session,
        _options: &PurgeOptions,
        _goes_on: GoesOn<'_>,
    ) -> Result<Purged> {
        Ok(Purged::default())
    }

    /// The keys beside the records of a collection, for people.
    fn describe(&self, _example: &Example<'_>) -> Vec<OwnPattern> {
        Vec::new()
    }

    /// The keys that belong to the whole space, for people.
    fn describe_space(&self) -> Vec<OwnPattern> {
        Vec::new()
    }
}

/// A commit that is put together.
pub(crate) struct Commit<'c> {
    pub(crate) session: &'c Session,
    pub(crate) loaded: &'c Loaded,
    pub(crate) work: &'c Work<'c>,
}

/// One cell that a commit touches besides records and index entries. No two of a batch have the
/// same address.
pub(crate) struct SideCell {
    pub(crate) address: Address,
    pub(crate) condition: Option<Condition>,
    pub(crate) effect: Option<Effect>,
    pub(crate) role: &'static CellRole,
    /// Which of those that have the role.
    pub(crate) number: usize,
}

/// What a cell of a batch is for.
#[derive(Debug)]
pub(crate) struct CellRole {
    /// Why the batch was rejected at the cell with this number.
    pub(crate) explain: fn(usize, &Work<'_>, &Rejection) -> Refused,
    /// Whether a failed condition only says that the batch has to be assembled again.
    pub(crate) is_renewed: bool,
    /// Whether what it adds up to is part of the answer.
    pub(crate) is_answered: bool,
}

impl CellRole {
    /// The role of cells whose failure is final, unless their explanation says otherwise.
    pub(crate) const fn explained(explain: fn(usize, &Work<'_>, &Rejection) -> Refused) -> Self {
        CellRole { explain, is_renewed: false, is_answered: false }
    }
}

/// Everything that a commit writes besides records and index entries.
pub(crate) async fn side_cells(
    session: &Session,
    loaded: &Loaded,
    work: &Work<'_>,
) -> Result<Vec<SideCell>> {
    let (mut asked, mut ends) = (Vec::new(), [0; KINDS.len()]);
    for (kind, end) in KINDS.iter().zip(&mut ends) {
        kind.reads(loaded, work, &mut asked);
        *end = asked.len();
    }
    let seen = if asked.is_empty() { Vec::new() } else { session.live.get(&asked).await? };
    let commit = Commit { session, loaded, work };
    let (mut cells, mut start) = (Vec::new(), 0);
    for (kind, end) in KINDS.iter().zip(ends) {
        kind.write(&commit, &seen[start..end], &mut cells)?;
        start = end;
    }
    Ok(cells)
}

/// What cells are judged by, besides their witnesses.
pub(crate) struct Judging<'j> {
    pub(crate) loaded: &'j Loaded,
    pub(crate) keyspace: &'j Keyspace,
    /// When the verification began.
    pub(crate) now: u64,
}

/// What is compared as a whole, by collection and name. Parts are compared in their order.
pub(crate) type Part = (String, String);

/// What comparing a part came to.
pub(crate) struct Compared {
    pub(crate) part: Part,
    pub(crate) findings: Vec<(Finding, Cure)>,
    /// How much writers changed each time that it was looked at.
    pub(crate) unsettled: u64,
}

/// What puts right what a comparison found.
#[derive(Clone, Debug)]
pub(crate) enum Cure {
    /// The aggregate is counted anew.
    CountAnew(Arc<Aggregate>),
    /// The cell is deleted, if it is as it was seen.
    Delete(Address, Stamp),
}

/// A made-up record, of which examples of keys are made.
pub(crate) struct Example<'e> {
    pub(crate) collection: &'e Collection,
    pub(crate) key: &'e Bytes,
    pub(crate) value: &'e Value,
    /// The key that an index has for it.
    pub(crate) entry: &'e dyn Fn(&Index) -> Bytes,
}

/// The moment of all examples: 14 November 2023, 22:13:20 UTC.
pub(crate) const EXAMPLE_MS: u64 = 1_700_000_000_000;

/// One kind of key in Keyloom's own area, described for people.
pub(crate) struct OwnPattern {
    pub(crate) template: String,
    /// The index or aggregate that it belongs to.
    pub(crate) index: Option<String>,
    pub(crate) what: String,
    pub(crate) holds: &'static str,
    pub(crate) key: Bytes,
    pub(crate) value: String,
    pub(crate) read_by: String,
}
