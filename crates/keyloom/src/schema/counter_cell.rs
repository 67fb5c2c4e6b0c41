//! The address of a record's counters: one cell of integers in Keyloom's own area.
//!
//! | record | its counters |
//! | --- | --- |
//! | `flow:stats:mail` in the default area | `counter::flow:stats:mail` |
//! | `a/b` in the area `runs` | `counter:runs:a/b` |
//!
//! An area's name has no colon, so each such key belongs to exactly one record.

use bytes::Bytes;

use super::model::Collection;
use crate::engine::{Address, Area, KEY_BYTES_MAX, Range, ShowKey};
use crate::error::{Error, ErrorKind, Result};

const PREFIX: &[u8] = b"counter:";

/// The address of a record's counters; `None` if the record can have none, because the collection
/// declares none or the record's key is too long.
pub(crate) fn counter_address(collection: &Collection, key: &[u8]) -> Option<Address> {
    if collection.counters.is_empty() {
        return None;
    }
    let own = [PREFIX, collection.area.name().as_bytes(), b":", key].concat();
    (own.len() <= KEY_BYTES_MAX).then(|| Address::new(Area::own(), own))
}

/// As [`counter_address`], for a record whose counters are about to be written.
pub(crate) fn required_counter_address(collection: &Collection, key: &[u8]) -> Result<Address> {
    counter_address(collection, key).ok_or_else(|| {
        let longest = KEY_BYTES_MAX - PREFIX.len() - collection.area.name().len() - 1;
        Error::new(ErrorKind::LimitExceeded, "the key of a record with counters is too long")
            .with("collection", &collection.name)
            .with("bytes", key.len())
            .with("bytes at most", longest)
            .with("key", ShowKey(&key[..key.len().min(64)]))
    })
}

/// The range of all counters.
pub(crate) fn counter_range() -> Range {
    Range::prefix(Area::own(), Bytes::from_static(PREFIX))
}

/// The record whose counters lie at this key of Keyloom's own area; `None` for other keys.
pub(crate) fn counted_record(key: &Bytes) -> Option<Address> {
    let rest = key.strip_prefix(PREFIX)?;
    let colon = rest.iter().position(|byte| *byte == b':')?;
    let area = Area::new(std::str::from_utf8(&rest[..colon]).ok()?).ok()?;
    Some(Address::new(area, key.slice(PREFIX.len() + colon + 1..)))
}
