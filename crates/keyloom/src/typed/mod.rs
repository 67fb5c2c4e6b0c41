//! Records as Rust types: the trait that [`#[derive(Record)]`](macro@crate::Record) implements, and
//! typed queries.
//!
//! A query begins at an index (`approvals.by_requester("ana")`) and continues segment by segment
//! along the index's template. It may end in one range and one order, and then gives pages, keys or
//! a count. Every step is a type, so a query that no index could answer does not compile.

mod answer;
mod choice;
mod expected;
mod field;
mod lookup;
mod near;
mod pages;
mod parts;
mod queries;
mod query;
mod record;
mod select;
mod values;

pub use answer::{Answer, Documents, Keys, Paging, Reads, Records};
pub use choice::Choice;
pub use expected::{Counted, Moment};
pub use field::{Each, ElementSegment, Field, Segment};
pub use lookup::TypedLookup;
pub use near::TypedNear;
pub use pages::Pages;
pub use parts::QueryParts;
pub use queries::TypedQueries;
pub use query::{Open, Ranged, Settled, TakesOrder, TypedQuery};
pub use record::Record;
pub use select::{
    Equals, Fraction, Integer, Ordered, Prefixed, Selects, SortedText, Timelike, Whole,
};
pub use values::{DateTime, Id, Point, Timestamp, Uuid};

#[doc(hidden)]
pub use {
    choice::{Probe, ProbeChoice, ProbeOther},
    expected::{expect_counter, expect_moment},
    field::{DIGITS, declare_elements, declare_map},
    record::body,
    serde_json::Value,
};
