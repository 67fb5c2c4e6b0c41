//! Keyloom keeps records and every index over them consistent on any key-value store.

mod error;
#[allow(dead_code, unused, clippy::todo)]
mod key;
#[allow(dead_code)]
mod schema;

pub mod engine;

pub use error::{Error, ErrorKind, Fate, Result};
pub use schema::{
    CollectionDeclaration, Comparison, FieldDeclaration, FieldType, Illegal, IndexDeclaration,
    PointOf, Schema, SchemaDeclaration, TestDeclaration,
};
