//! Keyloom keeps records and every index over them consistent on any key-value store.

mod counted;
mod error;
mod index;
mod key;
mod query;
#[cfg(doctest)]
mod readme;
mod record;
mod schema;
mod session;
mod store;
mod write;

pub mod blocking;
pub mod engine;
pub mod typed;

#[doc = include_str!("typed/choice.md")]
pub use keyloom_derive::Choice;
#[doc = include_str!("typed/record.md")]
pub use keyloom_derive::Record;

pub use error::{Error, ErrorKind, Fate, Result};
pub use index::{
    Built, Finding, FindingCounts, FindingKind, Repair, RepairOptions, SweptGroups, Verification,
    VerifiedChunk, Verifier, VerifyOptions,
};
pub use query::{
    Cursor, Group, GroupPage, GroupQuery, Near, Nearby, Order, Page, Problem, ProblemKind, Query,
    Stopped,
};
pub use record::{Document, Version};
pub use schema::{
    AggregateDeclaration, Applied, Change, Class, CollectionDeclaration, Comparison,
    CounterDeclaration, FieldDeclaration, FieldType, Illegal, IndexDeclaration, IndexState,
    PointOf, Schema, SchemaDeclaration, Test, TestDeclaration, Warning,
};
pub use session::Clock;
pub use store::{
    Collection, KeyFields, Listed, Listing, Plain, Store, Stored, TransactionCollection,
};
pub use typed::{Choice, DateTime, Id, Point, Record, Timestamp, Uuid};
pub use write::{Effect, Increment, Retry, Transaction, Written};

/// Entrances for the fuzz targets; not part of the API.
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub use key::fuzzing;
