//! Which keys fjall may have in its memtables: a Bloom filter.
//!
//! A cell that is to be absent mostly is, and nowhere does it take longer to find that out than in
//! a memtable: a skip list of some hundred thousand keys, where each step of the search waits for
//! the memory. So the commit thread adds the keys that it writes to a filter, by their hashes. A key
//! that the filter rules out needs to be looked for in the tables alone, whose own filters are quick
//! to say no.
//!
//! Keys cannot be removed from a filter one by one. They go into one filter until that has enough of
//! them and the tables have everything of the one before; then that one is discarded, and they go on
//! in an empty one.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::super::hashed::Key;

/// For how many bytes of a memtable a filter has one word, which is a 64th of it. fjall reckons 80
/// bytes or more for a cell. With six keys for each word, one in thirty keys that were not added
/// looks as if it had been, and of usual keys fewer.
const MEMTABLE_BYTES_PER_WORD: u64 = 512;

/// 16 MiB, for memtables of 1 GiB. Larger ones are looked into more often than they need be.
const WORDS_MAX: u64 = 1 << 21;

/// For how many words a filter has one key before it may be the older one. After as many more it is
/// asked again what the tables have.
const WORDS_PER_LOOK: usize = 8;

/// How many keys of a filter are kept, to ask the tables for them before it is discarded.
const WITNESSES_MAX: usize = 8;

/// Two bits for each key, both in one word.
struct BloomFilter(Box<[AtomicU64]>);

impl BloomFilter {
    fn new(words: usize, word: u64) -> Arc<Self> {
        Arc::new(BloomFilter((0..words).map(|_| AtomicU64::new(word)).collect()))
    }

    /// Adds a key. One thread does so at a time; who reads meanwhile looks at a moment before.
    fn add(&self, hash: u64) {
        let (word, bits) = self.place(hash);
        word.store(word.load(Ordering::Relaxed) | bits, Ordering::Relaxed);
    }

    fn contains(&self, hash: u64) -> bool {
        let (word, bits) = self.place(hash);
        word.load(Ordering::Relaxed) & bits == bits
    }

    fn place(&self, hash: u64) -> (&AtomicU64, u64) {
        let bit = |part: u64| 1 << (part % u64::from(u64::BITS));
        let word = ((hash >> 32) * self.0.len() as u64) >> 32;
        (&self.0[word as usize], bit(hash) | bit(hash >> 8))
    }
}

/// The keys that were there when a moment was published, and some that came after it.
#[derive(Clone)]
pub(crate) struct FilterSnapshot {
    older: Option<Arc<BloomFilter>>,
    newer: Arc<BloomFilter>,
}

impl FilterSnapshot {
    /// Whether fjall may have the key in memory. If not, its tables have what there is of it.
    pub(crate) fn may_contain(&self, hash: u64) -> bool {
        let is_older = || self.older.as_ref().is_some_and(|older| older.contains(hash));
        self.newer.contains(hash) || is_older()
    }
}

/// A key that was added to a filter.
pub(crate) struct Witness {
    hash: u64,
    pub(crate) key: Box<[u8]>,
}

/// The filters as the commit thread keeps them.
pub(crate) struct MemtableFilter {
    current: FilterSnapshot,
    /// All keys of the older filter were written in batches with lower numbers.
    older_end: u64,
    /// Some of the keys that were added last to each filter. Were a filter discarded too early, they
    /// would be those still in memory.
    older_witnesses: Vec<Witness>,
    newer_witnesses: Vec<Witness>,
    groups: usize,
    /// How many keys the newer filter has, and with how many the tables are looked at.
    newer_keys: usize,
    next_look: usize,
}

impl MemtableFilter {
    /// Of a store that was just opened, and whose next batch has this number. If fjall may have
    /// replayed a journal, nothing is known of what it has in memory until the tables have it.
    pub(crate) fn new(memtable_bytes: u64, next_number: u64, is_replayed: bool) -> Self {
        let words = (memtable_bytes / MEMTABLE_BYTES_PER_WORD).clamp(1, WORDS_MAX) as usize;
        let older = is_replayed.then(|| BloomFilter::new(words, u64::MAX));
        MemtableFilter {
            current: FilterSnapshot { older, newer: BloomFilter::new(words, 0) },
            older_end: next_number,
            older_witnesses: Vec::new(),
            newer_witnesses: Vec::new(),
            groups: 0,
            newer_keys: 0,
            next_look: 0,
        }
    }

    /// What readers need of it, when something is published.
    pub(crate) fn snapshot(&self) -> FilterSnapshot {
        self.current.clone()
    }

    /// Adds the keys of a group of batches, before it is published.
    pub(crate) fn add<'k>(&mut self, keys: impl ExactSizeIterator<Item = &'k Key>) {
        self.newer_keys += keys.len();
        let last = keys.inspect(|key| self.current.newer.add(key.hash)).last();
        if let Some(Key { hash, bytes }) = last {
            // A copy: the bytes of a batch are one piece, and none of it is kept for a key of it.
            let witness = Witness { hash: *hash, key: bytes[..].into() };
            match self.newer_witnesses.get_mut(self.groups % WITNESSES_MAX) {
                Some(oldest) => *oldest = witness,
                None => self.newer_witnesses.push(witness),
            }
            self.groups += 1;
        }
    }

    /// Some of the keys that were added last.
    pub(crate) fn witnesses(&self) -> impl Iterator<Item = &Witness> {
        self.older_witnesses.iter().chain(&self.newer_witnesses)
    }

    /// Discards the older filter, if the tables have its keys. The next batch has that number; the
    /// tables say the highest number that they have anything of, and whether they have some keys that
    /// should not be in memory any more.
    pub(crate) fn discard_flushed(
        &mut self,
        next_number: u64,
        highest_flushed: impl FnOnce() -> Option<u64>,
        tables_have: impl FnOnce(&mut dyn Iterator<Item = &Witness>) -> bool,
    ) {
        if self.newer_keys < self.next_look {
            return;
        }
        let words = self.current.newer.0.len();
        self.next_look = self.newer_keys + words.div_ceil(WORDS_PER_LOOK);
        let newer = &self.current.newer;
        let is_flushed = || {
            highest_flushed().is_some_and(|highest| highest >= self.older_end)
                && tables_have(
                    &mut self.older_witnesses.iter().filter(|it| !newer.contains(it.hash)),
                )
        };
        if self.current.older.is_none() || is_flushed() {
            let newer = std::mem::replace(&mut self.current.newer, BloomFilter::new(words, 0));
            self.current.older = Some(newer);
            self.older_end = next_number;
            self.older_witnesses = std::mem::take(&mut self.newer_witnesses);
            self.groups = 0;
            (self.newer_keys, self.next_look) = (0, words.div_ceil(WORDS_PER_LOOK));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::hash::BuildHasher;

    use bytes::Bytes;
    use proptest::prelude::*;

    use super::super::super::cache::KeyHasher;
    use super::*;

    const MEMTABLE_BYTES: u64 = 1 << 20;
    const NOTHING_FLUSHED: fn() -> Option<u64> = || None;

    /// Hashes as keys have them, others for each number.
    fn hashes(numbers: std::ops::Range<u64>) -> Vec<u64> {
        let hasher = KeyHasher::default();
        numbers.map(|number| hasher.hash_one(number)).collect()
    }

    fn add(filter: &mut MemtableFilter, hashes: &[u64]) {
        let key = |&hash| Key { hash, bytes: Bytes::copy_from_slice(&u64::to_be_bytes(hash)) };
        filter.add(hashes.iter().map(key).collect::<Vec<_>>().iter());
    }

    fn count(snapshot: &FilterSnapshot, hashes: &[u64]) -> usize {
        hashes.iter().filter(|&&hash| snapshot.may_contain(hash)).count()
    }

    #[test]
    fn few_keys_that_were_not_added_look_as_if_they_had_been() {
        let mut filter = MemtableFilter::new(MEMTABLE_BYTES, 1, false);
        let cells = MEMTABLE_BYTES / 80;
        let keys = hashes(0..cells + 10_000);
        let (added, others) = keys.split_at(cells as usize);
        assert_eq!(count(&filter.snapshot(), &keys), 0);
        add(&mut filter, added);
        assert_eq!(count(&filter.snapshot(), added), added.len());
        let mistaken = count(&filter.snapshot(), others);
        assert!(mistaken < 500, "{mistaken} of 10,000");
    }

    #[test]
    fn the_memory_of_a_filter_has_a_bound() {
        let mut filter = MemtableFilter::new(u64::MAX, 1, true);
        add(&mut filter, &[0, u64::MAX]);
        assert_eq!(filter.current.newer.0.len() as u64, WORDS_MAX);
        assert_eq!(count(&filter.snapshot(), &[0, u64::MAX]), 2);
    }

    #[test]
    fn a_moment_knows_the_keys_before_it_whatever_is_discarded_later() {
        let mut filter = MemtableFilter::new(MEMTABLE_BYTES, 1, false);
        let keys = hashes(0..10_000);
        add(&mut filter, &keys[..1_000]);
        filter.discard_flushed(2, NOTHING_FLUSHED, |_| true);
        let before = filter.snapshot();
        for number in 2..10 {
            let batch = number as usize * 1_000;
            add(&mut filter, &keys[batch..batch + 1_000]);
            filter.discard_flushed(number + 1, || Some(number), |_| true);
        }
        assert_eq!(count(&before, &keys[..1_000]), 1_000);
        assert!(count(&filter.snapshot(), &keys[..1_000]) < 100);
    }

    #[test]
    fn nothing_is_known_of_what_was_replayed_until_the_tables_have_a_batch_after_it() {
        let mut filter = MemtableFilter::new(MEMTABLE_BYTES, 7, true);
        let keys = hashes(0..4_000);
        let is_known = |filter: &MemtableFilter| count(&filter.snapshot(), &keys[3_000..]) < 100;
        add(&mut filter, &keys[..1_000]);
        filter.discard_flushed(8, NOTHING_FLUSHED, |_| true);
        assert!(!is_known(&filter));
        add(&mut filter, &keys[1_000..2_000]);
        filter.discard_flushed(9, || Some(6), |_| true);
        assert!(!is_known(&filter));
        add(&mut filter, &keys[2_000..3_000]);
        filter.discard_flushed(10, || Some(7), |_| true);
        assert!(is_known(&filter));
        assert_eq!(count(&filter.snapshot(), &keys[..3_000]), 3_000);
    }

    #[test]
    fn a_filter_stays_whose_keys_the_tables_deny() {
        let mut filter = MemtableFilter::new(MEMTABLE_BYTES, 1, false);
        let keys = hashes(0..40_000);
        let mut asked = Vec::new();
        for (number, batch) in (1..).zip(keys.chunks(1_000)) {
            add(&mut filter, batch);
            filter.discard_flushed(
                number + 1,
                || Some(number),
                |witnesses| {
                    asked.extend(witnesses.map(|witness| witness.hash));
                    false
                },
            );
        }
        assert!(asked.contains(&keys[999]), "the last key of the first filter is asked for");
        assert_eq!(count(&filter.snapshot(), &keys), keys.len());
    }

    proptest! {
        /// Batches of some keys, and after each the number of the last batch that a flush has got to,
        /// which may have left some of that batch in memory.
        #[test]
        fn no_key_is_discarded_that_may_be_in_memory(
            memtable_bytes in prop_oneof![Just(0_u64), Just(4_096), Just(64 << 10)],
            batches in proptest::collection::vec((1..200_u64, any::<proptest::sample::Index>()), 1..60),
        ) {
            let mut filter = MemtableFilter::new(memtable_bytes, 1, false);
            let (mut written, mut flushed) = (Vec::new(), 0);
            for (number, (keys, flushed_to)) in (1_u64..).zip(&batches) {
                let batch = hashes(number * 1_000..number * 1_000 + keys);
                add(&mut filter, &batch);
                written.push(batch);
                flushed += flushed_to.index((number - flushed) as usize + 1) as u64;
                filter.discard_flushed(number + 1, || (flushed > 0).then_some(flushed), |_| true);
                let in_memory = written.iter().skip((flushed as usize).saturating_sub(1));
                for keys in in_memory {
                    prop_assert_eq!(count(&filter.snapshot(), keys), keys.len());
                }
            }
        }
    }
}
