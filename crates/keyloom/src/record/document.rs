//! A record as it lies in the store: its key, its version and its JSON text.

use std::fmt;

use bytes::Bytes;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::key::Key;
use super::version::Version;
use crate::engine::ShowKey;
use crate::error::{Error, ErrorKind, Result};

/// A stored record. The JSON text is shared with the store's cache where it can be, and is
/// parsed only when asked for.
#[derive(Clone, PartialEq, Eq)]
pub struct Document {
    /// The record's key.
    pub key: Key,
    /// The version, to guard a later write.
    pub version: Version,
    text: Bytes,
}

impl Document {
    pub(crate) fn new(key: Bytes, version: Version, text: Bytes) -> Self {
        Document { key: Key::new(key), version, text }
    }

    /// The same record with another text.
    pub(crate) fn with_text(self, text: Bytes) -> Self {
        Document { text, ..self }
    }

    /// The JSON text, byte for byte as it is stored; of a record with counters, with these in
    /// place.
    pub fn text(&self) -> &[u8] {
        &self.text
    }

    /// The JSON text without a copy.
    pub fn into_text(self) -> Bytes {
        self.text
    }

    /// The record as JSON.
    pub fn json(&self) -> Result<Value> {
        self.read()
    }

    /// The record as a typed value.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T> {
        serde_json::from_slice(&self.text).map_err(|error| {
            Error::new(ErrorKind::Corrupt, "a stored record cannot be read")
                .with("key", ShowKey(self.key.bytes()))
                .with("reason", &error)
                .with_source(error)
        })
    }
}

/// What a refused write could have known.
impl Error {
    /// The record as it is now, with its counters, where a write was refused because it is not in
    /// the version that was expected: a [`VersionConflict`](ErrorKind::VersionConflict) of a
    /// guarded write.
    pub fn current(&self) -> Option<&Document> {
        self.carried()
    }
}

impl fmt::Debug for Document {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}@{} {}",
            ShowKey(self.key.bytes()),
            self.version,
            String::from_utf8_lossy(&self.text)
        )
    }
}
