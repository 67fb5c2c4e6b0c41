//! The alphabets of fixed-width segments. Each is sorted by bytes, so that byte order is value
//! order, and mirrored for `desc`: the first character is exchanged with the last, and so on.

use crate::key::class::Class;
use crate::key::geohash;

pub(super) static BITS: Alphabet = Alphabet::new(b"01");
pub(super) static DIGITS: Alphabet = Alphabet::new(b"0123456789");
pub(super) static HEX: Alphabet = Alphabet::new(b"0123456789abcdef");
pub(super) static ID: Alphabet = Alphabet::new(ID_ALPHABET);
pub(super) static CODE: Alphabet = Alphabet::new(CODE_ALPHABET);
pub(super) static GEOHASH: Alphabet = Alphabet::new(geohash::LETTERS);

/// The characters of an id.
pub(crate) const ID_ALPHABET: &[u8; 62] =
    b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// The characters that the `*` in a code's pattern stands for: digits and letters that cannot be
/// mistaken for one another.
pub(crate) const CODE_ALPHABET: &[u8; 32] = b"23456789ABCDEFGHJKLMNPQRSTUVWXYZ";

pub(super) struct Alphabet {
    #[cfg(test)]
    letters: &'static [u8],
    pub(super) class: Class,
    /// The mirror image of each byte.
    mirrored: [u8; 256],
}

impl Alphabet {
    const fn new(letters: &'static [u8]) -> Self {
        let mut mirrored = [0; 256];
        let mut byte = 0;
        while byte < mirrored.len() {
            mirrored[byte] = byte as u8;
            byte += 1;
        }
        let mut place = 0;
        while place < letters.len() {
            mirrored[letters[place] as usize] = letters[letters.len() - 1 - place];
            place += 1;
        }
        Alphabet {
            #[cfg(test)]
            letters,
            class: Class::of(letters),
            mirrored,
        }
    }

    /// The character as far from the end as `byte` is from the start. A byte outside the alphabet
    /// stays as it is.
    pub(super) fn mirror(&self, byte: u8) -> u8 {
        self.mirrored[usize::from(byte)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alphabets_are_sorted_and_mirrors_undo_themselves() {
        for alphabet in [&BITS, &DIGITS, &HEX, &ID, &CODE, &GEOHASH] {
            assert!(alphabet.letters.is_sorted_by(|a, b| a < b));
            for &letter in alphabet.letters {
                assert_eq!(alphabet.mirror(alphabet.mirror(letter)), letter);
            }
            let mirrored: Vec<u8> = alphabet.letters.iter().map(|&l| alphabet.mirror(l)).collect();
            assert!(mirrored.is_sorted_by(|a, b| a > b));
            assert_eq!(alphabet.mirror(b'!'), b'!');
        }
    }
}
