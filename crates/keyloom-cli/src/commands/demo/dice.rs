//! Random choices that are the same for the same seed, on every machine.

/// A small random number generator (SplitMix64): the demo needs variety, not secrets.
pub(super) struct Dice(u64);

const ID_LETTERS: &[u8] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const CODE_LETTERS: &[u8] = b"23456789ABCDEFGHJKLMNPQRSTUVWXYZ";

impl Dice {
    /// The dice of one subject, independent of other subjects.
    pub(super) fn new(seed: u64, subject: &str) -> Self {
        let mixed = subject.bytes().fold(seed ^ 0x6b65_796c_6f6f_6d00, |mixed, byte| {
            (mixed ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        Dice(mixed)
    }

    /// The next number.
    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `end`; zero if `end` is zero.
    pub(super) fn below(&mut self, end: u64) -> u64 {
        self.next() % end.max(1)
    }

    /// One of these. The type ensures that there is at least one.
    pub(super) fn one<'a, T: ?Sized, const N: usize>(&mut self, all: &[&'a T; N]) -> &'a T {
        const { assert!(N > 0, "one of nothing") };
        all[self.below(N as u64) as usize]
    }

    /// One of these, the first ones far more often: most of the work is done by a few people.
    pub(super) fn mostly<'a, T: ?Sized, const N: usize>(&mut self, all: &[&'a T; N]) -> &'a T {
        const { assert!(N > 0, "one of nothing") };
        let (first, second) = (self.below(N as u64), self.below(N as u64));
        all[first.min(second) as usize]
    }

    /// `true` with this probability, in percent.
    pub(super) fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    /// An id of 26 characters that begins with its number, so that ids sort in the order of
    /// creation.
    pub(super) fn id(&mut self, number: u64) -> String {
        let head = letters(ID_LETTERS, number, 8);
        head + &(0..18).map(|_| self.letter(ID_LETTERS)).collect::<String>()
    }

    /// A unique code for a number.
    pub(super) fn code(number: u64) -> String {
        // An odd factor only permutes the numbers of 30 bits, so no two share a code.
        let mixed = number.wrapping_mul(0x2545_f491) & 0x3fff_ffff;
        format!("A-{}", letters(CODE_LETTERS, mixed, 6))
    }

    /// A UUID of version 4, in simple form.
    pub(super) fn uuid(&mut self) -> String {
        let (high, low) = (self.next(), self.next());
        let high = (high & !0xf000) | 0x4000;
        let low = (low & !(0b11 << 62)) | (0b10 << 62);
        format!("{high:016x}{low:016x}")
    }

    fn letter(&mut self, letters: &[u8]) -> char {
        let place = self.below(letters.len() as u64) as usize;
        letters.get(place).map_or('0', |letter| char::from(*letter))
    }
}

/// A number in the digits of an alphabet.
fn letters(alphabet: &[u8], mut number: u64, width: usize) -> String {
    let base = alphabet.len() as u64;
    let mut text = vec!['0'; width];
    for place in text.iter_mut().rev() {
        *place = alphabet.get((number % base) as usize).map_or('0', |letter| char::from(*letter));
        number /= base;
    }
    text.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_and_another_something_else() {
        let of = |seed, subject| Dice::new(seed, subject).id(7);
        assert_eq!(of(1, "a"), of(1, "a"));
        assert_ne!(of(1, "a"), of(2, "a"));
        assert_ne!(of(1, "a"), of(1, "b"));
    }

    #[test]
    fn no_two_codes_are_the_same() {
        let codes: BTreeSet<String> = (0..200_000).map(Dice::code).collect();
        assert_eq!(codes.len(), 200_000);
    }

    #[test]
    fn ids_and_uuids_have_their_forms() {
        let mut dice = Dice::new(1, "forms");
        for number in 0..1000 {
            let (id, uuid) = (dice.id(number), dice.uuid());
            assert_eq!((id.len(), uuid.len()), (26, 32));
            assert_eq!(&uuid[12..13], "4");
            assert!("89ab".contains(&uuid[16..17]), "{uuid}");
        }
    }
}
