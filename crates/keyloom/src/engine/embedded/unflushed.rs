//! Which keys fjall may have in memory.
//!
//! A cell that is to be absent mostly is, and nowhere does it take longer to find that out than in
//! a memtable: a list of some hundred thousand keys, where each step of the search waits for the
//! memory. So the commit thread marks the keys that it writes, by their hashes, and a key without a
//! mark needs to be looked for in the tables alone, whose filters are quick to say no.
//!
//! Marks cannot be taken back one by one. They are made in one field until that has enough of them
//! and the tables have everything of the one before; then they go on in an empty field.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// For how many bytes of a memtable a field has one word, which is a 64th of it. fjall reckons 80
/// bytes or more for a cell. With six keys for each word, one in thirty keys without a mark is taken
/// for one with it, and of usual keys fewer.
const MEMTABLE_BYTES_PER_WORD: u64 = 512;

/// 16 MiB, for memtables of 1 GiB. Larger ones are looked into more often than they need be.
const WORDS_MAX: u64 = 1 << 21;

/// For how many words a field has one key before it may be the older one. After as many more it is
/// asked again what the tables have.
const WORDS_PER_LOOK: usize = 8;

/// Two bits for each key, both in one word.
struct Field(Box<[AtomicU64]>);

impl Field {
    fn new(words: usize, word: u64) -> Arc<Self> {
        Arc::new(Field((0..words).map(|_| AtomicU64::new(word)).collect()))
    }

    /// Marks a key. One thread does so at a time; who reads meanwhile looks at a moment before.
    fn mark(&self, hash: u64) {
        let (word, bits) = self.place(hash);
        word.store(word.load(Ordering::Relaxed) | bits, Ordering::Relaxed);
    }

    fn is_marked(&self, hash: u64) -> bool {
        let (word, bits) = self.place(hash);
        word.load(Ordering::Relaxed) & bits == bits
    }

    fn place(&self, hash: u64) -> (&AtomicU64, u64) {
        let bit = |part: u64| 1 << (part % u64::from(u64::BITS));
        let word = ((hash >> 32) * self.0.len() as u64) >> 32;
        (&self.0[word as usize], bit(hash) | bit(hash >> 8))
    }
}

/// The marks that were there when a moment was published, and some that came after it.
#[derive(Clone)]
pub(super) struct Marks {
    older: Option<Arc<Field>>,
    newer: Arc<Field>,
}

impl Marks {
    /// Whether fjall may have the key in memory. If not, its tables have what there is of it.
    pub(super) fn may_have(&self, hash: u64) -> bool {
        let is_older = || self.older.as_ref().is_some_and(|older| older.is_marked(hash));
        self.newer.is_marked(hash) || is_older()
    }
}

/// The marks as the commit thread keeps them.
pub(super) struct Unflushed {
    marks: Marks,
    /// All keys of the older field were written in batches with lower numbers.
    older_end: u64,
    /// How many keys the newer field has, and with how many the tables are looked at.
    newer_keys: usize,
    next_look: usize,
}

impl Unflushed {
    /// Of a store that was just opened, and whose next batch has this number. If fjall has replayed
    /// a journal, nothing is known of what it has in memory until the tables have it.
    pub(super) fn new(memtable_bytes: u64, next_number: u64, is_replayed: bool) -> Self {
        let words = (memtable_bytes / MEMTABLE_BYTES_PER_WORD).clamp(1, WORDS_MAX) as usize;
        let older = is_replayed.then(|| Field::new(words, u64::MAX));
        Unflushed {
            marks: Marks { older, newer: Field::new(words, 0) },
            older_end: next_number,
            newer_keys: 0,
            next_look: 0,
        }
    }

    /// What readers need of it, when something is published.
    pub(super) fn marks(&self) -> Marks {
        self.marks.clone()
    }

    /// Marks the keys of a batch, before it is published.
    pub(super) fn note(&mut self, hashes: impl ExactSizeIterator<Item = u64>) {
        self.newer_keys += hashes.len();
        hashes.for_each(|hash| self.marks.newer.mark(hash));
    }

    /// Forgets the older keys, if the tables have them. The next batch has that number; the tables
    /// say the highest number that they have anything of.
    pub(super) fn forget_flushed(
        &mut self,
        next_number: u64,
        highest_flushed: impl FnOnce() -> Option<u64>,
    ) {
        if self.newer_keys < self.next_look {
            return;
        }
        let words = self.marks.newer.0.len();
        self.next_look = self.newer_keys + words.div_ceil(WORDS_PER_LOOK);
        // Memory becomes tables in the order in which it was filled. A part of a later batch can
        // only be there after all of those before it.
        let is_flushed = || highest_flushed().is_some_and(|highest| highest >= self.older_end);
        if self.marks.older.is_none() || is_flushed() {
            let newer = std::mem::replace(&mut self.marks.newer, Field::new(words, 0));
            self.marks.older = Some(newer);
            self.older_end = next_number;
            (self.newer_keys, self.next_look) = (0, words.div_ceil(WORDS_PER_LOOK));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::hash::BuildHasher;

    use proptest::prelude::*;

    use super::super::cache::KeyHasher;
    use super::*;

    const MEMTABLE_BYTES: u64 = 1 << 20;
    const NOTHING_FLUSHED: fn() -> Option<u64> = || None;

    /// Hashes as keys have them, others for each number.
    fn hashes(numbers: std::ops::Range<u64>) -> Vec<u64> {
        let hasher = KeyHasher::default();
        numbers.map(|number| hasher.hash_one(number)).collect()
    }

    fn note(unflushed: &mut Unflushed, hashes: &[u64]) {
        unflushed.note(hashes.iter().copied());
    }

    fn count(marks: &Marks, hashes: &[u64]) -> usize {
        hashes.iter().filter(|&&hash| marks.may_have(hash)).count()
    }

    #[test]
    fn of_keys_without_a_mark_few_are_taken_for_others() {
        let mut unflushed = Unflushed::new(MEMTABLE_BYTES, 1, false);
        let cells = MEMTABLE_BYTES / 80;
        let keys = hashes(0..cells + 10_000);
        let (marked, unmarked) = keys.split_at(cells as usize);
        assert_eq!(count(&unflushed.marks(), &keys), 0);
        note(&mut unflushed, marked);
        assert_eq!(count(&unflushed.marks(), marked), marked.len());
        let mistaken = count(&unflushed.marks(), unmarked);
        assert!(mistaken < 500, "{mistaken} of 10,000");
    }

    #[test]
    fn the_memory_for_marks_has_a_bound() {
        let mut unflushed = Unflushed::new(u64::MAX, 1, true);
        note(&mut unflushed, &[0, u64::MAX]);
        assert_eq!(unflushed.marks.newer.0.len() as u64, WORDS_MAX);
        assert_eq!(count(&unflushed.marks(), &[0, u64::MAX]), 2);
    }

    #[test]
    fn a_moment_knows_the_keys_before_it_whatever_is_forgotten_later() {
        let mut unflushed = Unflushed::new(MEMTABLE_BYTES, 1, false);
        let keys = hashes(0..10_000);
        note(&mut unflushed, &keys[..1_000]);
        unflushed.forget_flushed(2, NOTHING_FLUSHED);
        let before = unflushed.marks();
        for number in 2..10 {
            let batch = number as usize * 1_000;
            note(&mut unflushed, &keys[batch..batch + 1_000]);
            unflushed.forget_flushed(number + 1, || Some(number));
        }
        assert_eq!(count(&before, &keys[..1_000]), 1_000);
        assert!(count(&unflushed.marks(), &keys[..1_000]) < 100);
    }

    #[test]
    fn nothing_is_known_of_what_was_replayed_until_the_tables_have_a_batch_after_it() {
        let mut unflushed = Unflushed::new(MEMTABLE_BYTES, 7, true);
        let keys = hashes(0..4_000);
        let is_known = |unflushed: &Unflushed| count(&unflushed.marks(), &keys[3_000..]) < 100;
        note(&mut unflushed, &keys[..1_000]);
        unflushed.forget_flushed(8, NOTHING_FLUSHED);
        assert!(!is_known(&unflushed));
        note(&mut unflushed, &keys[1_000..2_000]);
        unflushed.forget_flushed(9, || Some(6));
        assert!(!is_known(&unflushed));
        note(&mut unflushed, &keys[2_000..3_000]);
        unflushed.forget_flushed(10, || Some(7));
        assert!(is_known(&unflushed));
        assert_eq!(count(&unflushed.marks(), &keys[..3_000]), 3_000);
    }

    proptest! {
        /// Batches of some keys, and after each the number of the last batch that a flush has got to,
        /// which may have left some of that batch in memory.
        #[test]
        fn no_key_is_forgotten_that_may_be_in_memory(
            memtable_bytes in prop_oneof![Just(0_u64), Just(4_096), Just(64 << 10)],
            batches in proptest::collection::vec((1..200_u64, any::<proptest::sample::Index>()), 1..60),
        ) {
            let mut unflushed = Unflushed::new(memtable_bytes, 1, false);
            let (mut written, mut flushed) = (Vec::new(), 0);
            for (number, (keys, flushed_to)) in (1_u64..).zip(&batches) {
                let batch = hashes(number * 1_000..number * 1_000 + keys);
                note(&mut unflushed, &batch);
                written.push(batch);
                flushed += flushed_to.index((number - flushed) as usize + 1) as u64;
                unflushed.forget_flushed(number + 1, || (flushed > 0).then_some(flushed));
                let in_memory = written.iter().skip((flushed as usize).saturating_sub(1));
                for keys in in_memory {
                    prop_assert_eq!(count(&unflushed.marks(), keys), keys.len());
                }
            }
        }
    }
}
