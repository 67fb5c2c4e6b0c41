//! Cells that were read by their key, kept in memory up to a bound.
//!
//! [Small](super::small) cells are kept at once, and have most of the memory: a cell of a hundred
//! bytes costs as much to find in fjall's tables as one of some hundreds, and takes a fifth of its
//! room. [Others](super::large) are kept when they are read again. A cell may have become small or
//! large since it was kept, so that both are told of every change.

use bytes::Bytes;

use super::hashed::KeyRef;
use super::large::LargeCells;
use super::small::SmallCells;

/// The part of the memory that is for small cells, in thirds.
const SMALL_THIRDS: u64 = 2;

/// Cells by their stored keys. See the [module's](self) description.
pub(super) struct RecordCache {
    small: SmallCells,
    large: LargeCells,
}

impl RecordCache {
    /// A cache of at most so many bytes; 0 for none.
    pub(super) fn new(bytes_max: u64) -> Self {
        let small_bytes_max = bytes_max / 3 * SMALL_THIRDS;
        RecordCache {
            small: SmallCells::new(small_bytes_max),
            large: LargeCells::new(bytes_max - small_bytes_max),
        }
    }

    /// What all cells take.
    pub(super) fn bytes(&self) -> u64 {
        self.small.bytes() + self.large.bytes()
    }

    /// The cell as a reader of that snapshot must see it, if it is here.
    pub(super) fn get(&self, key: KeyRef<'_>, snapshot: u64) -> Option<Bytes> {
        self.small.get(key, snapshot).or_else(|| self.large.get(key, snapshot))
    }

    /// Keeps what a reader of that snapshot loaded, unless it may be out of date.
    pub(super) fn fill(&self, key: KeyRef<'_>, snapshot: u64, loaded: &[u8]) {
        if self.small.takes(key, loaded) {
            self.small.fill(key, snapshot, loaded);
        } else {
            self.large.fill(key, snapshot, loaded);
        }
    }

    /// Notes that a commit changes a cell, before the commit is published. Only cells that are
    /// here already are kept: a bulk load must not push out what readers want.
    pub(super) fn change(&self, key: KeyRef<'_>, commit: u64, stored: Option<&[u8]>) {
        self.small.change(key, commit, stored);
        self.large.change(key, commit, stored);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

    use std::sync::RwLock;
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::super::hashed::key;
    use super::*;

    const SMALL: usize = 20;
    const LARGE: usize = 2_000;

    fn cache() -> RecordCache {
        RecordCache::new(1 << 20)
    }

    #[test]
    fn a_small_cell_is_kept_at_its_first_read_and_a_large_one_at_its_second() {
        let (cache, large) = (cache(), [7; LARGE]);
        cache.fill(key(b"small"), 1, b"v");
        cache.fill(key(b"large"), 1, &large);
        assert_eq!(cache.get(key(b"small"), 1).unwrap(), "v");
        assert_eq!(cache.get(key(b"large"), 1), None);
        cache.fill(key(b"large"), 1, &large);
        assert_eq!(cache.get(key(b"large"), 1).unwrap(), large[..]);
    }

    #[test]
    fn a_cell_that_changes_its_size_is_never_found_as_it_was() {
        let (cache, sizes) = (cache(), [SMALL, LARGE, SMALL, SMALL, LARGE, LARGE, SMALL]);
        for (commit, size) in (1..).zip(sizes) {
            let stored = vec![commit as u8; size];
            cache.change(key(b"k"), commit, Some(&stored));
            let kept = cache.get(key(b"k"), commit);
            assert!(kept.is_none_or(|kept| kept == stored), "commit {commit}");
            cache.fill(key(b"k"), commit, &stored);
            cache.fill(key(b"k"), commit, &stored);
            assert_eq!(cache.get(key(b"k"), commit).unwrap(), stored);
        }
        cache.change(key(b"k"), 99, None);
        assert_eq!(cache.get(key(b"k"), 99), None);
    }

    /// A writer and readers on a model store: every answer, from the cache or not, must be what
    /// the reader's own snapshot holds. Cells are now small and now large.
    #[test]
    fn readers_never_get_a_cell_of_another_moment() {
        const KEYS: u8 = 4;
        const COMMITS: u64 = 20_000;
        let cache = cache();
        // The history of each key: at which commits it was written. A cell's bytes tell the number
        // of the commit that wrote it, so that the right answer at a snapshot is known.
        let stored = |commit: u64| {
            let size = if commit.is_multiple_of(3) { LARGE } else { SMALL };
            let mut bytes = commit.to_be_bytes().to_vec();
            bytes.resize(size, 0);
            bytes
        };
        let history: Vec<RwLock<Vec<u64>>> =
            (0..KEYS).map(|_| RwLock::new(vec![0])).collect::<Vec<_>>();
        let published = RwLock::new(0u64);
        let is_done = AtomicBool::new(false);
        let value_at = |key: u8, snapshot: u64| {
            let commits = history[usize::from(key)].read().unwrap();
            *commits.iter().rev().find(|&&commit| commit <= snapshot).unwrap()
        };
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    let mut turn = 0u8;
                    while !is_done.load(Ordering::Acquire) {
                        turn = turn.wrapping_add(1);
                        let key = turn % KEYS;
                        let snapshot = *published.read().unwrap();
                        let expected = stored(value_at(key, snapshot));
                        match cache.get(self::key(&[key]), snapshot) {
                            Some(found) => {
                                assert_eq!(&found[..], &expected[..], "key {key} at {snapshot}");
                            }
                            None => {
                                std::thread::yield_now();
                                cache.fill(self::key(&[key]), snapshot, &expected);
                                cache.fill(self::key(&[key]), snapshot, &expected);
                            }
                        }
                    }
                });
            }
            for commit in 1..=COMMITS {
                let key = (commit % u64::from(KEYS)) as u8;
                history[usize::from(key)].write().unwrap().push(commit);
                cache.change(self::key(&[key]), commit, Some(&stored(commit)));
                *published.write().unwrap() = commit;
            }
            is_done.store(true, Ordering::Release);
        });
    }
}
