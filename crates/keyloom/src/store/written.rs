//! A record that was written: its key and version, and its value on request.

use std::fmt;
use std::marker::PhantomData;

use bytes::Bytes;
use serde::de::DeserializeOwned;

use crate::error::Result;
use crate::record::{Document, Key, Version};
use crate::write::{Effect, WrittenDocument};

/// A record that was written, as it is now: with generated values and counters.
///
/// It has a key and a version, like a [`Stored`](crate::Stored). The record itself is decoded from
/// its JSON only when [`value`](Self::value) asks for it, since most programs know what they wrote.
/// And if a type cannot read its own JSON, a write that succeeded must not look like a failure.
pub struct Written<T> {
    /// The record's key.
    pub key: Key,
    /// The version, which a later write can require.
    pub version: Version,
    /// What the write did.
    pub effect: Effect,
    text: Bytes,
    kind: PhantomData<fn() -> T>,
}

impl<T> Written<T> {
    /// The JSON text as stored. If the record has counters, they are in it.
    pub fn text(&self) -> &[u8] {
        &self.text
    }

    /// The record as stored.
    pub fn into_document(self) -> Document {
        Document::new(self.key.bytes().clone(), self.version, self.text)
    }
}

impl<T: DeserializeOwned> Written<T> {
    /// The record.
    pub fn value(&self) -> Result<T> {
        Document::new(self.key.bytes().clone(), self.version, self.text.clone()).read()
    }
}

impl<T> From<WrittenDocument> for Written<T> {
    fn from(written: WrittenDocument) -> Self {
        let WrittenDocument { document, effect } = written;
        let (key, version) = (document.key.clone(), document.version);
        Written { key, version, effect, text: document.into_text(), kind: PhantomData }
    }
}

impl<T> Clone for Written<T> {
    fn clone(&self) -> Self {
        let Written { key, version, effect, text, kind } = self;
        let (key, text) = (key.clone(), text.clone());
        Written { key, version: *version, effect: *effect, text, kind: *kind }
    }
}

impl<T> PartialEq for Written<T> {
    fn eq(&self, other: &Self) -> bool {
        (&self.key, self.version, self.effect, &self.text)
            == (&other.key, other.version, other.effect, &other.text)
    }
}

impl<T> Eq for Written<T> {}

impl<T> fmt::Debug for Written<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} {:?}", self.effect, self.clone().into_document())
    }
}
