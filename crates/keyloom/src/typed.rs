//! What `#[derive(Record)]` implements.

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::Result;
use crate::schema::Schema;

/// A Rust type whose values are records of one collection.
pub trait Record: Serialize + DeserializeOwned + Send + Sync + 'static {
    /// The name of the collection.
    const COLLECTION: &'static str;

    /// The schema that the type declares: its collection.
    fn schema() -> Result<Schema>;
}
