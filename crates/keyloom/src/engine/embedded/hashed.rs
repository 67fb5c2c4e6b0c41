//! Stored keys with their hashes.
//!
//! A key is hashed once for each call, by whoever brings it, and all that look for it later take
//! that hash: the cache with its clock, and the groups.

use std::hash::{BuildHasher, Hash, Hasher};

use bytes::Bytes;

/// A stored key, with its hash.
#[derive(Clone, Debug)]
pub(super) struct Key {
    pub(super) hash: u64,
    pub(super) bytes: Bytes,
}

impl Key {
    pub(super) fn as_ref(&self) -> KeyRef<'_> {
        KeyRef { hash: self.hash, bytes: &self.bytes }
    }
}

impl PartialEq for Key {
    fn eq(&self, other: &Self) -> bool {
        self.hash == other.hash && self.bytes == other.bytes
    }
}

impl Eq for Key {}

impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.hash);
    }
}

/// A stored key that somebody else has, with its hash.
#[derive(Clone, Copy, Debug)]
pub(super) struct KeyRef<'k> {
    pub(super) hash: u64,
    pub(super) bytes: &'k [u8],
}

impl<'k> KeyRef<'k> {
    pub(super) fn new(bytes: &'k [u8], hasher: &impl BuildHasher) -> Self {
        KeyRef { hash: hasher.hash_one(bytes), bytes }
    }
}

impl Hash for KeyRef<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.hash);
    }
}

/// Passes on a hash that was reckoned before.
#[derive(Clone, Copy, Default)]
pub(super) struct AsReckoned(u64);

impl Hasher for AsReckoned {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }

    fn write(&mut self, bytes: &[u8]) {
        // Only `u64` is ever hashed with this; anything else still gets a hash that is right.
        for &byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(byte);
        }
    }
}

impl BuildHasher for AsReckoned {
    type Hasher = AsReckoned;

    fn build_hasher(&self) -> AsReckoned {
        AsReckoned(0)
    }
}

/// A key for tests. Any hash will do that is the same for the same bytes.
#[cfg(test)]
pub(super) fn key(bytes: &[u8]) -> KeyRef<'_> {
    KeyRef::new(bytes, &std::hash::BuildHasherDefault::<std::hash::DefaultHasher>::default())
}
