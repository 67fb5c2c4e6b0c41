//! The key of a record, as text that is shared with the store's cache.

use std::borrow::Borrow;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::Deref;

use bytes::Bytes;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The key of a record, as its template writes it: a text that is cheap to clone.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key(Bytes);

impl Key {
    pub(crate) fn new(bytes: Bytes) -> Self {
        Key(bytes)
    }

    /// The key as text.
    pub fn as_str(&self) -> &str {
        // Templates write only text; a foreign key that is not text never becomes a record's key.
        std::str::from_utf8(&self.0).unwrap_or_default()
    }

    pub(crate) fn bytes(&self) -> &Bytes {
        &self.0
    }
}

impl Deref for Key {
    type Target = str;

    fn deref(&self) -> &str {
        self.as_str()
    }
}

impl AsRef<str> for Key {
    fn as_ref(&self) -> &str {
        self
    }
}

impl AsRef<[u8]> for Key {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl Borrow<str> for Key {
    fn borrow(&self) -> &str {
        self
    }
}

// Hashes as text does, so that maps can be searched by text.
impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_str().hash(state);
    }
}

/// Compares a key with texts, on either side.
macro_rules! compares_with {
    ($($text:ty),*) => {$(
        impl PartialEq<$text> for Key {
            fn eq(&self, other: &$text) -> bool {
                let other: &str = other.as_ref();
                self.as_str() == other
            }
        }

        impl PartialEq<Key> for $text {
            fn eq(&self, other: &Key) -> bool {
                other == self
            }
        }
    )*};
}

compares_with!(str, &str, String);

impl From<Key> for String {
    fn from(key: Key) -> Self {
        key.as_str().to_owned()
    }
}

impl Serialize for Key {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self)
    }
}

impl<'de> Deserialize<'de> for Key {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Key(String::deserialize(deserializer)?.into()))
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self)
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}
