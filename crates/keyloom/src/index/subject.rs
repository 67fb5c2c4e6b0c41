//! What the building of an index is about, so that it goes on only while that is the same.

use sha2::{Digest, Sha256};

use crate::error::{Error, ErrorKind, Result};
use crate::schema::Collection;
use crate::space::{Loaded, Subject};

/// The task that makes an index or an aggregate complete.
pub(super) fn subject(
    loaded: &Loaded,
    kind: &str,
    collection: &Collection,
    name: &str,
    number: u64,
) -> Result<Subject> {
    let (kind, definition) = (kind.to_owned(), definition(loaded, collection, name)?);
    let (collection, name) = (collection.name.clone(), name.to_owned());
    Ok(Subject { kind, collection, name, number, definition })
}

/// A digest of everything declared that entries of the index depend on. Other indexes of the
/// collection may come and go.
fn definition(loaded: &Loaded, collection: &Collection, name: &str) -> Result<String> {
    let mut declared = loaded.catalog.schema.collections.get(&collection.name).cloned();
    if let Some(declared) = &mut declared {
        for indexes in [&mut declared.index, &mut declared.unique, &mut declared.geo] {
            indexes.retain(|index, _| index == name);
        }
        for aggregates in [&mut declared.count, &mut declared.sum] {
            aggregates.retain(|aggregate, _| aggregate == name);
        }
        declared.counters.clear();
        (declared.body, declared.history) = (None, None);
    }
    let text = serde_json::to_vec(&declared).map_err(|source| {
        Error::new(ErrorKind::Internal, "a declaration cannot be written as JSON")
            .with_source(source)
    })?;
    Ok(Sha256::digest(text).iter().map(|byte| format!("{byte:02x}")).collect())
}
