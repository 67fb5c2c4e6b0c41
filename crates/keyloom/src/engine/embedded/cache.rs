//! Cells that were read by their key, kept in memory up to a bound.
//!
//! An entry says from which commit on it is true, and serves only readers whose snapshot is at
//! that commit or after it. What remains to be ruled out is an entry that is no longer true:
//!
//! 1. A reader takes snapshot 5 and loads the old cell.
//! 2. The commit thread changes the cell with commit 6 and publishes it.
//! 3. The reader puts the old cell, true from 5 on, into the cache. A reader at 6 would get it.
//!
//! Keys are therefore divided into classes, and each class remembers the last commit that changed
//! one of its keys. A reader whose snapshot is older than that does not fill; step 3 is refused.
//! The class is locked from the check to the fill, and by the commit thread while it changes the
//! entry, which it does before it publishes the commit. So whenever a reader at snapshot s finds
//! an entry that is true from s or earlier, no commit up to s has changed the cell since.

use std::hash::{BuildHasher, RandomState};
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use quick_cache::Weighter;
use quick_cache::sync::Cache;

const CLASSES: usize = 64;

/// What an entry weighs besides its bytes: the entry itself, its allocations and its place in the
/// tables, rounded up so that the bound holds.
const ENTRY_OVERHEAD_BYTES: usize = 160;

/// A guess that only sizes the cache's tables at first.
const ENTRY_BYTES_TYPICAL: u64 = 512;

#[derive(Clone, Debug)]
struct Entry {
    /// The first commit whose readers may have it.
    since: u64,
    /// The cell as it is stored, in an allocation of its own: a slice of fjall's would keep a
    /// whole block in memory, and the bound would not hold.
    stored: Bytes,
}

#[derive(Clone)]
struct Weigh;

impl Weighter<Box<[u8]>, Entry> for Weigh {
    fn weight(&self, key: &Box<[u8]>, entry: &Entry) -> u64 {
        (key.len() + entry.stored.len() + ENTRY_OVERHEAD_BYTES) as u64
    }
}

/// Cells by their stored keys. See the [module's](self) description.
pub(super) struct RecordCache {
    entries: Option<Cache<Box<[u8]>, Entry, Weigh>>,
    last_changes: [Mutex<u64>; CLASSES],
    hasher: RandomState,
}

impl RecordCache {
    /// A cache of at most so many bytes; 0 for none.
    pub(super) fn new(bytes_max: u64) -> Self {
        let items = usize::try_from(bytes_max / ENTRY_BYTES_TYPICAL).unwrap_or(usize::MAX);
        RecordCache {
            entries: (bytes_max > 0).then(|| Cache::with_weighter(items, bytes_max, Weigh)),
            last_changes: std::array::from_fn(|_| Mutex::new(0)),
            hasher: RandomState::new(),
        }
    }

    /// What the entries weigh.
    pub(super) fn bytes(&self) -> u64 {
        self.entries.as_ref().map_or(0, Cache::weight)
    }

    /// The cell as a reader of that snapshot must see it, if it is here.
    pub(super) fn get(&self, key: &[u8], snapshot: u64) -> Option<Bytes> {
        let entry = self.entries.as_ref()?.get(key)?;
        (entry.since <= snapshot).then_some(entry.stored)
    }

    /// Keeps what a reader of that snapshot loaded, unless that may be out of date.
    pub(super) fn fill(&self, key: &[u8], snapshot: u64, loaded: &[u8]) {
        let Some(entries) = &self.entries else { return };
        let last_change = self.class(key);
        if *last_change <= snapshot {
            let stored = Bytes::copy_from_slice(loaded);
            entries.insert(key.into(), Entry { since: snapshot, stored });
        }
    }

    /// Notes that a commit changes a cell, before the commit is published. Only cells that are
    /// here already are kept: a bulk load must not push out what readers want.
    pub(super) fn change(&self, key: &[u8], commit: u64, stored: Option<&[u8]>) {
        let Some(entries) = &self.entries else { return };
        let mut last_change = self.class(key);
        *last_change = commit;
        match stored {
            Some(stored) if entries.contains_key(key) => {
                let entry = Entry { since: commit, stored: Bytes::copy_from_slice(stored) };
                // The old one may have been pushed out meanwhile, which is as good.
                let _ = entries.replace(key.into(), entry, false);
            }
            Some(_) => {}
            None => {
                entries.remove(key);
            }
        }
    }

    fn class(&self, key: &[u8]) -> MutexGuard<'_, u64> {
        let class = self.hasher.hash_one(key) as usize % CLASSES;
        self.last_changes[class].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

    use std::sync::RwLock;
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    fn cache() -> RecordCache {
        RecordCache::new(1 << 20)
    }

    fn fill(cache: &RecordCache, key: &[u8], snapshot: u64, value: &'static [u8]) {
        cache.fill(key, snapshot, value);
    }

    #[test]
    fn an_entry_serves_its_own_snapshot_and_later_ones() {
        let cache = cache();
        fill(&cache, b"k", 5, b"v");
        assert_eq!(cache.get(b"k", 4), None);
        assert_eq!(cache.get(b"k", 5).unwrap(), "v");
        assert_eq!(cache.get(b"k", 9).unwrap(), "v");
    }

    #[test]
    fn a_late_reader_cannot_fill_what_a_commit_has_changed() {
        let cache = cache();
        cache.change(b"k", 6, Some(b"new"));
        fill(&cache, b"k", 5, b"old");
        assert_eq!(cache.get(b"k", 6), None);
        fill(&cache, b"k", 6, b"new");
        assert_eq!(cache.get(b"k", 6).unwrap(), "new");
    }

    #[test]
    fn a_commit_replaces_what_is_here_and_adds_nothing() {
        let cache = cache();
        fill(&cache, b"k", 1, b"old");
        cache.change(b"k", 2, Some(b"new"));
        assert_eq!(cache.get(b"k", 1), None);
        assert_eq!(cache.get(b"k", 2).unwrap(), "new");
        cache.change(b"other", 3, Some(b"new"));
        assert_eq!(cache.get(b"other", 3), None);
        cache.change(b"k", 4, None);
        assert_eq!(cache.get(b"k", 4), None);
    }

    #[test]
    fn no_memory_means_no_cache() {
        let cache = RecordCache::new(0);
        fill(&cache, b"k", 1, b"v");
        assert_eq!(cache.get(b"k", 1), None);
    }

    #[test]
    fn the_bound_holds() {
        let bytes_max = 1 << 16;
        let cache = RecordCache::new(bytes_max);
        for number in 0..10_000u32 {
            cache.fill(&number.to_be_bytes(), 1, &[0; 300]);
        }
        let entries = cache.entries.as_ref().unwrap();
        assert!(entries.weight() <= bytes_max, "{} bytes", entries.weight());
        assert!(entries.len() > 50, "{} entries", entries.len());
    }

    /// A writer and readers on a model store: every answer, from the cache or not, must be what
    /// the reader's own snapshot holds.
    #[test]
    fn readers_never_get_a_cell_of_another_moment() {
        const KEYS: u8 = 4;
        const COMMITS: u64 = 20_000;
        let cache = cache();
        // The history of each key: at which commits it was written. A cell's bytes are the number
        // of the commit that wrote it, so that the right answer at a snapshot is known.
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
                        let expected = value_at(key, snapshot).to_be_bytes();
                        match cache.get(&[key], snapshot) {
                            Some(found) => {
                                assert_eq!(&found[..], &expected[..], "key {key} at {snapshot}");
                            }
                            None => {
                                std::thread::yield_now();
                                cache.fill(&[key], snapshot, &expected);
                            }
                        }
                    }
                });
            }
            for commit in 1..=COMMITS {
                let key = (commit % u64::from(KEYS)) as u8;
                history[usize::from(key)].write().unwrap().push(commit);
                cache.change(&[key], commit, Some(&commit.to_be_bytes()));
                *published.write().unwrap() = commit;
            }
            is_done.store(true, Ordering::Release);
        });
    }
}
