//! The trait that `#[derive(Record)]` implements.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::queries::TypedQueries;
use crate::error::{Error, ErrorKind, Result};
use crate::schema::{CollectionDeclaration, Schema, SchemaDeclaration};

/// A Rust type whose values are records of one collection. Made by
/// [`#[derive(Record)]`](macro@crate::Record).
pub trait Record: Serialize + DeserializeOwned + Send + Sync + 'static {
    /// The name of the collection.
    const COLLECTION: &'static str;

    /// The queries of the collection: the type that a [`Collection`](crate::Collection) of this
    /// type derefs to. The derive makes it a trait object with a `by_…` method for each index.
    type Queries: ?Sized;

    /// The collection that the type declares, as a schema file would.
    fn declaration() -> Result<CollectionDeclaration>;

    /// The names of its members in JSON, declared or not, so that a query for one of them does not
    /// count as a slip. `None` if the type alone does not tell.
    fn members() -> Option<&'static [&'static str]> {
        None
    }

    /// The queries of a collection.
    fn queries<W: TypedQueries<Self>>(of: &W) -> &Self::Queries;

    /// The schema that the type declares: its collection, checked.
    fn schema() -> Result<Schema> {
        let collections = [(Self::COLLECTION.to_owned(), Self::declaration()?)];
        Schema::from_declaration(SchemaDeclaration {
            collections: collections.into(),
            ..SchemaDeclaration::default()
        })
    }
}

/// The JSON Schema in `#[record(body = …)]`.
pub fn body(text: &str) -> Result<Value> {
    let schema = serde_json::json!({ "collection": { "body": { "key": "x", "body": text } } });
    let read: SchemaDeclaration = serde_json::from_value(schema).map_err(|error| {
        Error::new(ErrorKind::InvalidSchema, "the body's JSON Schema cannot be read")
            .with("reason", &error)
            .with_source(error)
    })?;
    Ok(read.collections.into_values().find_map(|collection| collection.body).unwrap_or_default())
}
