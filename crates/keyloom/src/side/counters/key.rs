//! Where the counters of a record are. The name of an area has no colon, so that each such key
//! names one record.

use bytes::Bytes;

use crate::engine::{Address, Area, KEY_BYTES_MAX, ShowKey};
use crate::error::{Error, ErrorKind, Result};
use crate::own::{OwnKey, OwnKind};
use crate::schema::Collection;

/// Where the counters of a record are; `None` when it can have none: the collection declares
/// none, or the record's key is too long.
pub(crate) fn counter_address(collection: &Collection, key: &[u8]) -> Option<Address> {
    if collection.counters.is_empty() {
        return None;
    }
    let own = OwnKey::Counters { area: collection.area.name(), record: key }.address();
    (own.key.len() <= KEY_BYTES_MAX).then_some(own)
}

/// As [`counter_address`], for a record of a collection with counters that is about to have some.
pub(crate) fn required_counter_address(collection: &Collection, key: &[u8]) -> Result<Address> {
    counter_address(collection, key).ok_or_else(|| {
        let names = OwnKind::Counters.words().len() + collection.area.name().len() + 1;
        Error::new(ErrorKind::LimitExceeded, "the key of a record with counters is too long")
            .with("collection", &collection.name)
            .with("bytes", key.len())
            .with("bytes at most", KEY_BYTES_MAX - names)
            .with("key", ShowKey(&key[..key.len().min(64)]))
    })
}

/// The record whose counters are at a key of Keyloom's own area; `None` for other keys.
pub(crate) fn counted_record(key: &Bytes) -> Option<Address> {
    match OwnKey::decode(key)? {
        OwnKey::Counters { area, record } => {
            Some(Address::new(Area::new(area).ok()?, key.slice_ref(record)))
        }
        _ => None,
    }
}
