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
        let mut word = 0;
        while word < 4 {
            class.0[word] = up_to(high, word) & !(if low == 0 { 0 } else { up_to(low - 1, word) });
            word += 1;
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
        let Class(mut words) = self;
        std::iter::from_fn(move || {
            let (place, word) = words.iter_mut().enumerate().find(|(_, word)| **word != 0)?;
            let bit = word.trailing_zeros();
            *word &= *word - 1;
            Some((place as u32 * 64 + bit) as u8)
        })
    }

    /// The class of the bytes that `change` gives for these.
    pub(super) fn map(self, change: impl Fn(u8) -> u8) -> Class {
        self.bytes().fold(Class::EMPTY, |class, byte| class.with(change(byte)))
    }
}

/// The bits of a word for the bytes from 0 to `last`.
const fn up_to(last: u8, word: usize) -> u64 {
    let (last_word, last_bit) = ((last >> 6) as usize, last & 63);
    if word < last_word {
        u64::MAX
    } else if word == last_word {
        u64::MAX >> (63 - last_bit)
    } else {
        0
    }
}

impl fmt::Debug for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.bytes().map(|byte| byte.escape_ascii().to_string())).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_holds_exactly_its_bytes() {
        for (low, high) in [(0, 0), (0, 255), (63, 64), (0x80, 0xbf), (255, 255), (1, 200)] {
            let class = Class::between(low, high);
            assert_eq!(class.bytes().collect::<Vec<u8>>(), (low..=high).collect::<Vec<u8>>());
            assert!((0..=255).all(|byte| class.contains(byte) == (low..=high).contains(&byte)));
        }
        assert!(Class::between(2, 1).is_empty());
        assert_eq!(Class::of(b"ab").map(|byte| byte + 1), Class::of(b"bc"));
        assert_eq!(Class::of(b"ab").without(Class::of(b"bc")), Class::of(b"a"));
        assert_eq!(Class::of(b"ab").and(Class::of(b"bc")), Class::of(b"b"));
    }
}
