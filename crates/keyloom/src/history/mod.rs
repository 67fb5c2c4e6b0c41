//! What a record was: the cells of its history, how they are named and read, and how they go.
//!
//! | cell | key in the area `~` | holds |
//! | --- | --- | --- |
//! | a version | `history:version:{collection}:{incarnation}:{revision}` | who made it of what, and when |
//! | a trace | `history:left:{collection}:{key}:{time}:{incarnation}:{revision}` | the record's key |
//!
//! The incarnation in the stamp of a record leads to its versions. A trace is left where a record
//! no longer is, so that its versions are found by the key that it had.

mod difference;
mod keys;
mod past;
mod purge;

pub use difference::Difference;
pub(crate) use keys::{
    Trace, trace_address, trace_of, traces_of, version_address, version_of, versions_of,
};
pub use past::HistoryKind;
pub(crate) use past::Past;
pub(crate) use purge::purge_history;
