//! Schemas: collections, fields, indexes, and how they may change.
//!
//! Text (TOML or JSON) or `#[derive(Record)]` becomes a [`SchemaDeclaration`]. It compiles to a
//! [`Schema`], or to a list of everything that is wrong with it.

mod aggregate;
mod body;
mod catalog;
mod compile;
mod condition;
mod counters;
mod declaration;
mod evolution;
mod expiry;
mod json;
mod keyspace;
mod load;
mod model;
mod probe;
mod problem;
mod read;
mod suggest;
mod table;
mod target;
#[cfg(test)]
mod tests;
mod toml;
mod transitions;
mod warning;

pub use catalog::IndexState;
pub use condition::Test;
pub use declaration::{
    Access, AggregateDeclaration, CollectionDeclaration, Comparison, CounterDeclaration,
    FieldDeclaration, FieldType, HistoryDeclaration, IdempotencyDeclaration, Illegal,
    IndexDeclaration, LogDeclaration, PointOf, SchemaDeclaration, TestDeclaration,
};
pub use evolution::{Change, Class};
pub use model::Schema;
pub use suggest::nearest;
pub use warning::Warning;
pub(crate) use {
    aggregate::{Aggregate, COUNT, SUM, SUMMED_MAX},
    body::Violation,
    catalog::{Catalog, CursorSecret, Generation, Generations, restored_backup, restoring_mark},
    condition::Condition,
    counters::Counters,
    evolution::{Evolution, evolve},
    expiry::{EXPIRY_INDEX, MomentForm},
    keyspace::{KeyOwner, Keyspace},
    model::{Collection, Field, FieldKind, Holds, Index, IndexKind},
    suggest::is_slip,
    target::{followed_key_of, record_key_of},
    transitions::Verdict,
    warning::lookalikes,
};
