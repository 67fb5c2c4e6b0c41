//! The cells of leases: work that one worker has for a time.
//!
//! | area | key | value |
//! | --- | --- | --- |
//! | `~` | `lease:{collection}:{index}:{SHA-256 of the entry's key, in hex}` | `{"entry":"flow:index:due:…","owner":"worker-1","until":1700000060000}` |
//!
//! The key is a hash, since an entry's key may be as long as a key can be. The cell's stamp tells
//! one lease from another: it changes whenever the work is given to somebody, and with every
//! extension.

use serde::{Deserialize, Serialize};

use crate::engine::{Address, Cell, Effect};
use crate::error::{Error, ErrorKind, Result};
use crate::own::{Digest, OwnKey};
use crate::record::Version;
use crate::schema::Schema;

/// What a lease's cell holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LeaseContent {
    /// The key of the entry that is leased.
    pub(crate) entry: String,
    /// Who has it.
    pub(crate) owner: String,
    /// When it runs out, in milliseconds since 1970.
    pub(crate) until: u64,
}

impl LeaseContent {
    /// What a cell says; `None` when it is no lease.
    pub(crate) fn of(cell: &Cell) -> Option<Self> {
        serde_json::from_slice(cell.bytes()?).ok()
    }

    pub(crate) fn put(&self, version: Version) -> Result<Effect> {
        let bytes = serde_json::to_vec(self).map_err(|error| {
            Error::new(ErrorKind::Internal, "a lease cannot be written as JSON").with_source(error)
        })?;
        Ok(Effect::Put { stamp: version.stamp(), bytes: bytes.into() })
    }
}

/// Where the lease of an entry lies.
pub(crate) fn lease_address(collection: &str, index: &str, entry: &[u8]) -> Address {
    OwnKey::Lease { collection, index, entry: Digest::of(&[entry]) }.address()
}

/// The collection and the index that a lease belongs to, by its key.
pub(super) fn place(key: &[u8]) -> Option<(&str, &str)> {
    match OwnKey::decode(key)? {
        OwnKey::Lease { collection, index, .. } => Some((collection, index)),
        _ => None,
    }
}

/// Where the entry of a lease lies; `None` when the schema knows no such index.
pub(super) fn entry(schema: &Schema, key: &[u8], content: &LeaseContent) -> Option<Address> {
    let (collection, index) = place(key)?;
    let index = schema.collections.get(collection)?.indexes.get(index)?;
    Some(Address::new(index.area.clone(), content.entry.clone()))
}
