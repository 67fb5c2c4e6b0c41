//! A record that was read: its value, key and version.

use std::ops::Deref;

use serde::de::DeserializeOwned;

use crate::error::Result;
use crate::record::{Document, Key, Version};

/// A record that was read. It derefs to the value.
#[derive(Clone, Debug, PartialEq)]
pub struct Stored<T> {
    /// The record's key.
    pub key: Key,
    /// The version, which a later write can require.
    pub version: Version,
    /// The record.
    pub value: T,
}

impl<T: DeserializeOwned> Stored<T> {
    pub(crate) fn read(document: &Document) -> Result<Self> {
        Ok(Stored { value: document.read()?, key: document.key.clone(), version: document.version })
    }
}

impl<T> Stored<T> {
    /// The value alone.
    pub fn into_value(self) -> T {
        self.value
    }
}

impl<T> Deref for Stored<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}
