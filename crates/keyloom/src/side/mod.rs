//! What Keyloom keeps beside records, in its own area: each kind of cell has a room of its own.
//!
//! | room | keeps |
//! | --- | --- |
//! | `aggregates/` | counts and sums of groups, and marks of records that are counted |
//! | `counters/` | what was counted of a record, as named integers |
//! | `history/` | versions of records, and where they were |
//! | `idempotency/` | the answers to writes that carry a key |
//! | `leases/` | who works on which entry |
//!
//! A room is a [`Kind`]: it tells what a commit writes, how a cell is judged and what puts it right,
//! what is removed in time, and how its keys are described. Commits, verify and repair,
//! maintenance and the keyspace know the kinds by the table below alone.
//!
//! The ends of records are no such kind. They are entries of an index, which every commit, build
//! and verify keeps like any other.

mod aggregates;
mod counters;
mod finding;
mod history;
mod idempotency;
mod kind;
mod leases;
mod work;

pub(crate) use aggregates::{
    AGGREGATES, Additions, SHOWN_WITHIN, Share, Total, clean, share, unreadable_cell,
};
pub(crate) use counters::{
    Addend, Counted, Counting, Fetched, Moved, Start, counter_address, fetch, fetch_one, reveal,
};
pub use finding::{Finding, FindingCounts, FindingKind};
pub use history::{Difference, HistoryKind};
pub(crate) use history::{
    HISTORY, Past, Trace, trace_address, trace_of, traces_of, version_address, version_of,
    versions_of,
};
pub(crate) use idempotency::{
    ANSWERS, Answer, CREATED, Kept, REPLACED, came_first, claim_entry, is_over,
};
pub(crate) use kind::{
    CellRole, Compared, Cure, EXAMPLE_MS, Example, Judging, Kind, OwnPattern, Part, SideCell,
    side_cells,
};
pub(crate) use leases::{LeaseContent, LeaseHold, lease_address, sweep_leases};
pub(crate) use work::{After, Before, Change, Current, Refused, Work, record_text};

/// Every kind, in the order in which commits write their cells.
pub(crate) static KINDS: [&dyn Kind; 5] =
    [&counters::Counters, AGGREGATES, HISTORY, ANSWERS, &leases::Leases];
