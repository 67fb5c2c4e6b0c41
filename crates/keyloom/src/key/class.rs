//! Sets of bytes.

use std::fmt;

/// A set of bytes, one bit each.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Class([u64; 4]);

impl Class {
    pub(super) const EMPTY: Class = Class([0; 4]);

    /// Exactly these bytes.
    pub(super) const fn of(bytes: &[u8]) -> Class {
        let mut class = Class::EMPTY;
        let mut place = 0;
        while place < bytes.len() {
            class = class.with(bytes[place]);
            place += 1;
        }
        class
    }

    /// The bytes from `low` to `high`, both included.
    pub(super) const fn between(low: u8, high: u8) -> Class {
        let mut class = Class::EMPTY;
        let mut byte = low as usize;
        while byte <= high as usize {
            class = class.with(byte as u8);
            byte += 1;
        }
        class
    }

    pub(super) const fn with(mut self, byte: u8) -> Class {
        self.0[(byte >> 6) as usize] |= 1 << (byte & 63);
        self
    }

    pub(super) const fn contains(&self, byte: u8) -> bool {
        self.0[(byte >> 6) as usize] >> (byte & 63) & 1 == 1
    }

    pub(super) fn and(self, other: Class) -> Class {
        Class(std::array::from_fn(|word| self.0[word] & other.0[word]))
    }

    pub(super) fn without(self, other: Class) -> Class {
        Class(std::array::from_fn(|word| self.0[word] & !other.0[word]))
    }

    pub(super) fn is_empty(&self) -> bool {
        *self == Class::EMPTY
    }

    /// The bytes of the class, lowest first.
    pub(super) fn bytes(self) -> impl Iterator<Item = u8> {
        (0..=255).filter(move |&byte| self.contains(byte))
    }

    /// The class of what these bytes become.
    pub(super) fn map(self, change: impl Fn(u8) -> u8) -> Class {
        self.bytes().fold(Class::EMPTY, |class, byte| class.with(change(byte)))
    }
}

impl fmt::Debug for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.bytes().map(|byte| byte.escape_ascii().to_string())).finish()
    }
}
