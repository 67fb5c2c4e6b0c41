//! Keyloom keeps records and every index over them consistent on any key-value store.

mod error;
mod key;
mod query;
mod record;
mod schema;
mod store;
mod write;

pub mod blocking;
pub mod engine;
pub mod typed;

pub use keyloom_derive::{Choice, Record};

pub use error::{Error, ErrorKind, Fate, Result};
pub use query::{Cursor, Near, Nearby, Order, Page, Problem, ProblemKind, Query, Stopped};
pub use record::{Document, Version};
pub use schema::{
    Applied, Change, Class, CollectionDeclaration, Comparison, FieldDeclaration, FieldType,
    Illegal, IndexDeclaration, IndexState, PointOf, Schema, SchemaDeclaration, Test,
    TestDeclaration,
};
pub use store::{Collection, KeyFields, Store, Stored, TransactionCollection};
pub use typed::{Choice, DateTime, Id, Point, Record, Timestamp, Uuid};
pub use write::{Effect, Retry, Transaction, Written};
