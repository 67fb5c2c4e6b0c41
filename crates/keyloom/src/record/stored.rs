//! Records as they lie in the store.

use bytes::Bytes;
use serde_json::Value;

use crate::engine::{Cell, ShowKey};
use crate::error::{Error, ErrorKind, Result};
use crate::schema::Collection;

/// A record in the store, and its text, if it is one and lies where its own fields say; otherwise
/// why not.
pub(crate) fn read_record(
    collection: &Collection,
    key: &Bytes,
    cell: &Cell,
) -> Result<(Value, Bytes), String> {
    let text = cell.bytes().ok_or("it holds integers, not a record")?;
    let value: Value =
        serde_json::from_slice(text).map_err(|error| format!("it is not JSON: {error}"))?;
    if !value.is_object() {
        return Err("it is not a JSON object".to_owned());
    }
    match record_key(collection, &value) {
        Ok(own) if own == *key => Ok((value, text.clone())),
        Ok(own) => Err(format!("its fields give another key: {}", ShowKey(&own))),
        Err(error) => Err(format!("its fields give no key: {error}")),
    }
}

/// The key of a record, made of its own fields.
pub(crate) fn record_key(collection: &Collection, record: &Value) -> Result<Bytes> {
    let values: Vec<&Value> = collection
        .key_paths
        .iter()
        .map(|path| {
            collection.value(path, record).ok_or_else(|| {
                Error::new(ErrorKind::InvalidRecord, "a field of the record's key is missing")
                    .with("collection", &collection.name)
                    .with("field", path)
            })
        })
        .collect::<Result<_>>()?;
    key_of_values(collection, &values)
}

/// The key of a record, made of values in the order of its template.
pub(crate) fn key_of_values(collection: &Collection, values: &[&Value]) -> Result<Bytes> {
    if values.len() != collection.key_paths.len() {
        return Err(Error::new(
            ErrorKind::InvalidArgument,
            "the record's key has another number of fields",
        )
        .with("collection", &collection.name)
        .with("key", &collection.key.source)
        .with("values given", values.len()));
    }
    collection
        .key
        .encode(values)
        .map_err(|refusal| refusal.into_error().with("collection", &collection.name))
}
