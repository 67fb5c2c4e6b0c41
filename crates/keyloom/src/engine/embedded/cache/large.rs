//! Cells that are not small, kept in memory when they are read for the second time.
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

use std::hash::{Hash, Hasher};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use quick_cache::sync::{Cache, DefaultLifecycle};
use quick_cache::{Equivalent, Weighter};

use super::hashed::{AsReckoned, KeyRef};

/// Gives stored keys their hashes.
pub(super) type KeyHasher = quick_cache::DefaultHashBuilder;

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

/// A stored key in an allocation of its own.
struct KeptKey {
    hash: u64,
    bytes: Box<[u8]>,
}

impl KeptKey {
    fn copy(key: KeyRef<'_>) -> Self {
        KeptKey { hash: key.hash, bytes: key.bytes.into() }
    }
}

impl PartialEq for KeptKey {
    fn eq(&self, other: &Self) -> bool {
        self.hash == other.hash && self.bytes == other.bytes
    }
}

impl Eq for KeptKey {}

impl Hash for KeptKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.hash);
    }
}

impl Equivalent<KeptKey> for KeyRef<'_> {
    fn equivalent(&self, kept: &KeptKey) -> bool {
        self.hash == kept.hash && *self.bytes == *kept.bytes
    }
}

#[derive(Clone)]
struct Weigh;

impl Weighter<KeptKey, Entry> for Weigh {
    fn weight(&self, key: &KeptKey, entry: &Entry) -> u64 {
        (key.bytes.len() + entry.stored.len() + ENTRY_OVERHEAD_BYTES) as u64
    }
}

/// Which keys were asked for a short while ago. Most cells of a large store are read once in a
/// long time. To keep them costs more than to read them did, and pushes out what is wanted again;
/// so a cell is kept when it is read for the second time.
struct Doorkeeper {
    /// Each key has one place, and the last one that came to it leaves its mark.
    marks: Box<[AtomicU32]>,
}

impl Doorkeeper {
    fn new(places: usize) -> Self {
        Doorkeeper { marks: (0..places).map(|_| AtomicU32::new(0)).collect() }
    }

    /// Whether this key came before, and no other one to its place since.
    fn knows(&self, hash: u64) -> bool {
        let (place, mark) = ((hash >> 32) as usize % self.marks.len().max(1), hash as u32);
        self.marks.get(place).is_some_and(|last| last.swap(mark, Ordering::Relaxed) == mark)
    }
}

/// See the [module's](self) description.
pub(super) struct LargeCells {
    entries: Option<Cache<KeptKey, Entry, Weigh, AsReckoned>>,
    doorkeeper: Doorkeeper,
    last_changes: [Mutex<u64>; CLASSES],
}

impl LargeCells {
    /// Cells of at most so many bytes together; 0 for none.
    pub(super) fn new(bytes_max: u64) -> Self {
        let items = usize::try_from(bytes_max / ENTRY_BYTES_TYPICAL).unwrap_or(usize::MAX);
        let marks_bytes = (items * size_of::<AtomicU32>()) as u64;
        let entries = || {
            let (hasher, lifecycle) = (AsReckoned::default(), DefaultLifecycle::default());
            Cache::with(items, bytes_max - marks_bytes, Weigh, hasher, lifecycle)
        };
        LargeCells {
            entries: (bytes_max > 0).then(entries),
            doorkeeper: Doorkeeper::new(items),
            last_changes: std::array::from_fn(|_| Mutex::new(0)),
        }
    }

    /// What the entries weigh.
    pub(super) fn bytes(&self) -> u64 {
        self.entries.as_ref().map_or(0, Cache::weight)
    }

    /// The cell as a reader of that snapshot must see it, if it is here.
    pub(super) fn get(&self, key: KeyRef<'_>, snapshot: u64) -> Option<Bytes> {
        let entry = self.entries.as_ref()?.get(&key)?;
        (entry.since <= snapshot).then_some(entry.stored)
    }

    /// Keeps what a reader of that snapshot loaded, if it was loaded before, and unless it may be
    /// out of date.
    pub(super) fn fill(&self, key: KeyRef<'_>, snapshot: u64, loaded: &[u8]) {
        let Some(entries) = &self.entries else { return };
        if !self.doorkeeper.knows(key.hash) {
            return;
        }
        let last_change = self.class(key.hash);
        if *last_change <= snapshot {
            let stored = Bytes::copy_from_slice(loaded);
            entries.insert(KeptKey::copy(key), Entry { since: snapshot, stored });
        }
    }

    /// Notes that a commit changes a cell, before the commit is published. Only cells that are
    /// here already are kept: a bulk load must not push out what readers want.
    pub(super) fn change(&self, key: KeyRef<'_>, commit: u64, stored: Option<&[u8]>) {
        let Some(entries) = &self.entries else { return };
        let mut last_change = self.class(key.hash);
        *last_change = commit;
        match stored {
            Some(stored) if entries.contains_key(&key) => {
                let entry = Entry { since: commit, stored: Bytes::copy_from_slice(stored) };
                // The old one may have been pushed out meanwhile, which is as good.
                let _ = entries.replace(KeptKey::copy(key), entry, false);
            }
            Some(_) => {}
            None => {
                entries.remove(&key);
            }
        }
    }

    fn class(&self, hash: u64) -> MutexGuard<'_, u64> {
        let class = hash as usize % CLASSES;
        self.last_changes[class].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

    use super::super::hashed::key;
    use super::*;

    fn cache() -> LargeCells {
        LargeCells::new(1 << 20)
    }

    /// Loads twice what is not here, since a cell is kept at the second time.
    fn fill(cache: &LargeCells, bytes: &[u8], snapshot: u64, value: &[u8]) {
        cache.fill(key(bytes), snapshot, value);
        cache.fill(key(bytes), snapshot, value);
    }

    #[test]
    fn a_cell_is_kept_when_it_is_loaded_for_the_second_time() {
        let cache = cache();
        cache.fill(key(b"k"), 1, b"v");
        assert_eq!(cache.get(key(b"k"), 1), None);
        cache.fill(key(b"k"), 1, b"v");
        assert_eq!(cache.get(key(b"k"), 1).unwrap(), "v");
    }

    #[test]
    fn what_is_loaded_once_takes_no_room() {
        let cache = LargeCells::new(1 << 18);
        let wanted: Vec<[u8; 1]> = (0..100).map(|number| [number]).collect();
        wanted.iter().for_each(|bytes| fill(&cache, bytes, 1, &[1; 300]));
        for number in 0..10_000u32 {
            cache.fill(key(&number.to_be_bytes()), 1, &[0; 300]);
        }
        assert!(wanted.iter().all(|bytes| cache.get(key(bytes), 1).is_some()));
        assert_eq!(cache.entries.as_ref().unwrap().len(), wanted.len());
    }

    #[test]
    fn an_entry_serves_its_own_snapshot_and_later_ones() {
        let cache = cache();
        fill(&cache, b"k", 5, b"v");
        assert_eq!(cache.get(key(b"k"), 4), None);
        assert_eq!(cache.get(key(b"k"), 5).unwrap(), "v");
        assert_eq!(cache.get(key(b"k"), 9).unwrap(), "v");
    }

    #[test]
    fn a_late_reader_cannot_fill_what_a_commit_has_changed() {
        let cache = cache();
        cache.change(key(b"k"), 6, Some(b"new"));
        fill(&cache, b"k", 5, b"old");
        assert_eq!(cache.get(key(b"k"), 6), None);
        fill(&cache, b"k", 6, b"new");
        assert_eq!(cache.get(key(b"k"), 6).unwrap(), "new");
    }

    #[test]
    fn a_commit_replaces_what_is_here_and_adds_nothing() {
        let cache = cache();
        fill(&cache, b"k", 1, b"old");
        cache.change(key(b"k"), 2, Some(b"new"));
        assert_eq!(cache.get(key(b"k"), 1), None);
        assert_eq!(cache.get(key(b"k"), 2).unwrap(), "new");
        cache.change(key(b"other"), 3, Some(b"new"));
        assert_eq!(cache.get(key(b"other"), 3), None);
        cache.change(key(b"k"), 4, None);
        assert_eq!(cache.get(key(b"k"), 4), None);
    }

    #[test]
    fn no_memory_means_no_cache() {
        let cache = LargeCells::new(0);
        fill(&cache, b"k", 1, b"v");
        assert_eq!(cache.get(key(b"k"), 1), None);
    }

    #[test]
    fn the_bound_holds() {
        let bytes_max = 1 << 16;
        let cache = LargeCells::new(bytes_max);
        for number in 0..10_000u32 {
            fill(&cache, &number.to_be_bytes(), 1, &[0; 300]);
        }
        let entries = cache.entries.as_ref().unwrap();
        assert!(entries.weight() <= bytes_max, "{} bytes", entries.weight());
        assert!(entries.len() > 50, "{} entries", entries.len());
    }
}
