//! Leases that a commit rests on, and ends.

use crate::engine::{Address, Condition, Effect, Stamp};
use crate::error::{Error, ErrorKind};
use crate::side::kind::{CellRole, SideCell};
use crate::side::work::{Refused, Work};

static ROLE: CellRole =
    CellRole::explained(|number, work, _| Refused::Final(work.leases[number].lost()));

/// A lease that must still be its worker's when the commit happens.
#[derive(Clone, Debug)]
pub(crate) struct LeaseHold {
    /// The lease's cell.
    pub(crate) address: Address,
    /// The stamp that the cell has while nobody else took the work.
    pub(crate) stamp: Stamp,
    /// The worker.
    pub(crate) owner: String,
    /// Whether the commit ends the lease.
    pub(crate) ends: bool,
}

impl LeaseHold {
    /// The error for a lease that is no longer its worker's.
    pub(crate) fn lost(&self) -> Error {
        Error::new(
            ErrorKind::LeaseLost,
            "the lease ran out and the work was given to another, or it is done; nothing was written",
        )
        .with("worker", &self.owner)
    }
}

pub(super) fn cells<'w>(work: &Work<'w>) -> impl Iterator<Item = SideCell> + use<'w> {
    work.leases.iter().enumerate().map(|(number, lease)| SideCell {
        address: lease.address.clone(),
        condition: Some(Condition::Unchanged(lease.stamp)),
        effect: lease.ends.then_some(Effect::Delete),
        role: &ROLE,
        number,
    })
}
