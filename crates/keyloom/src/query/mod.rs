//! One question becomes records.

mod after;
mod count;
mod counted;
mod cursor;
mod explain;
mod freshness;
mod geo;
mod groups;
mod history;
mod page;
mod plan;
mod predicate;
mod reader;
mod swept;
mod walk;

pub use count::Counted;
pub(crate) use count::{count, count_entries};
pub use cursor::Cursor;
pub(crate) use cursor::{Asked, Binding, Position};
pub use freshness::Freshness;
pub(crate) use geo::near;
pub use geo::{Near, Nearby};
pub use groups::{Group, GroupPage, GroupQuery, GroupTotal, TopGroups};
pub(crate) use groups::{Total, group, group_total, groups, top_groups};
pub use history::HistoryEntry;
pub(crate) use history::{as_of, at_version, history};
pub use page::{Page, Problem, ProblemKind, Stopped};
pub(crate) use page::{documents, explained, keys};
pub(crate) use predicate::TAKE_MAX;
pub use predicate::{Order, Query};
pub(crate) use reader::{has_entry, unreadable};
pub(crate) use swept::swept_until;
