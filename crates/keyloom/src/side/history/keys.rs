//! The keys of a history, by the versions of records.

use crate::engine::{Address, Range};
use crate::own::{OwnKey, OwnRange};
use crate::record::Version;

/// Where a record was until a version that is no longer there: deleted, or moved to another key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Trace {
    /// When it left.
    pub(crate) at: u64,
    /// The version with which it left.
    pub(crate) version: Version,
}

/// The cell of one version.
pub(crate) fn version_address(collection: &str, version: Version) -> Address {
    OwnKey::HistoryVersion { collection, version: version.stamp() }.address()
}

/// The versions of an incarnation, in order, from one revision to another, both included.
pub(crate) fn versions_of(collection: &str, of: Version, first: u64, last: u64) -> Range {
    OwnRange::Versions { collection, of: of.stamp(), first, last }.range()
}

/// The collection and the version whose cell this is; `None` for another key.
pub(crate) fn version_of(key: &[u8]) -> Option<(&str, Version)> {
    match OwnKey::decode(key)? {
        OwnKey::HistoryVersion { collection, version } => {
            Some((collection, Version::from_stamp(version)))
        }
        _ => None,
    }
}

/// The cell of one trace under the record's key.
pub(crate) fn trace_address(collection: &str, record: &[u8], trace: Trace) -> Address {
    OwnKey::trace(collection, record, trace.at, trace.version.stamp()).address()
}

/// The traces under a record's key that were left after this time, in order of time.
pub(crate) fn traces_of(collection: &str, record: &[u8], after: Option<u64>) -> Range {
    OwnRange::Traces { collection, record, after }.range()
}

/// The collection and the trace that a key names; `None` for another key.
pub(crate) fn trace_of(key: &[u8]) -> Option<(&str, Trace)> {
    match OwnKey::decode(key)? {
        OwnKey::HistoryTrace { collection, at, version, .. } => {
            Some((collection, Trace { at, version: Version::from_stamp(version) }))
        }
        _ => None,
    }
}
