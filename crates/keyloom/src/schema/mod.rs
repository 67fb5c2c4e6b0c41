//! What is declared: collections, fields, indexes, and the rules of their change.
//!
//! Text (TOML or JSON) or `#[derive(Record)]` becomes a [`SchemaDeclaration`], which compiles to
//! a [`Schema`] or to the list of everything that is wrong with it.

mod body;
mod catalog;
mod compile;
mod condition;
mod declaration;
mod evolution;
mod json;
mod load;
mod model;
mod problem;
mod read;
mod suggest;
mod table;
mod toml;
mod transitions;

pub use declaration::{
    CollectionDeclaration, Comparison, FieldDeclaration, FieldType, Illegal, IndexDeclaration,
    PointOf, SchemaDeclaration, TestDeclaration,
};
pub use model::Schema;
#[allow(unused_imports)]
pub(crate) use {
    body::{BodySchema, Violation},
    catalog::{Catalog, IndexState},
    condition::{Condition, Test},
    evolution::{Change, Class, Evolution, Subject, evolve},
    model::{Collection, Field, FieldKind, Holds, Index, IndexKind, MAX_DEFAULT},
    transitions::{Transitions, Verdict},
};
