//! What a commit writes besides records and index entries, in Keyloom's own area. Each subject has
//! a file that turns the work of a commit into the cells it needs; this one puts them together.

mod aggregates;
mod counters;
mod history;
mod idempotency;
mod leases;

pub(crate) use aggregates::{Additions, Share, refused as aggregate_refused, share};
pub(super) use idempotency::claim_entry;
pub(crate) use leases::LeaseHold;

use super::assemble::{Role, Work};
use crate::engine::{Address, Condition, Effect};
use crate::error::Result;
use crate::space::Loaded;
use crate::space::Session;

pub(super) use counters::explain as explain_counters;
pub(crate) use counters::{Addend, Counting, Moved, NO_COUNTING, Start};

/// One cell that a commit touches besides records and index entries. No two of a batch have the
/// same address.
pub(super) struct Beside {
    pub(super) address: Address,
    pub(super) condition: Option<Condition>,
    pub(super) effect: Option<Effect>,
    /// What it is for, to explain a rejection.
    pub(super) role: Role<'static>,
}

/// Everything that a commit writes besides records and index entries.
pub(super) async fn beside(
    session: &Session,
    loaded: &Loaded,
    work: &Work<'_>,
) -> Result<Vec<Beside>> {
    let mut cells = aggregates::aggregates(session, loaded, work).await?;
    cells.extend(counters::cells(work)?);
    cells.extend(history::cells(session, work.changes));
    cells.extend(idempotency::cells(session, work.changes)?);
    cells.extend(leases::leases(work));
    Ok(cells)
}
