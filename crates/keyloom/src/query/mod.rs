//! One question becomes records.

mod counted;
mod cursor;
mod explain;
mod geo;
mod groups;
mod page;
mod plan;
mod predicate;
mod walk;

pub use cursor::Cursor;
pub(crate) use cursor::{Asked, Binding, Position};
pub(crate) use geo::near;
pub use geo::{Near, Nearby};
pub use groups::{Group, GroupPage, GroupQuery};
pub(crate) use groups::{Total, group, groups, top_groups};
pub use page::{Page, Problem, ProblemKind, Stopped};
pub(crate) use page::{count, documents, explained, has_entry, keys, unreadable};
pub(crate) use predicate::TAKE_MAX;
pub use predicate::{Order, Query};
