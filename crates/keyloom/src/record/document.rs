//! A record as stored: its key, its version and its JSON text.

use std::fmt;

use bytes::Bytes;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::key::Key;
use super::version::Version;
use crate::engine::ShowKey;
use crate::error::{Error, ErrorKind, Result};

/// A stored record. Its JSON text is shared with the store's cache if possible, and is parsed only
/// on demand.
#[derive(Clone, PartialEq, Eq)]
pub struct Document {
    /// The record's key.
    pub key: Key,
    /// The version, which a later write can require.
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

    /// The JSON text, byte for byte as stored. If the record has counters, they are in it.
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

/// The current record, for a write that was refused.
impl Error {
    /// The current record with its counters, if a write was refused because the record is not in
    /// the expected version: the [`VersionConflict`](ErrorKind::VersionConflict) of a conditional
    /// write.
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
