//! Cells that are not small, kept in memory when they are read for the second time.
//!
//! A reader is given a cell only if the [clock](super::clock) knows of no change of its key since the
//! reader's moment. What remains to be ruled out is a cell that is no longer true:
//!
//! 1. A reader takes the moment after commit 5 and loads the old cell.
//! 2. The commit thread changes the cell with commit 6 and publishes it.
//! 3. The reader puts the old cell into the cache. A reader of a later moment would get it.
//!
//! So keys are divided into classes with a lock each, which a reader holds from the question to the
//! clock to the end of the fill, and the commit thread while it changes the cell. Step 3 is refused.

use std::hash::{Hash, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use quick_cache::sync::{Cache, DefaultLifecycle};
use quick_cache::{Equivalent, Weighter};

use super::super::hashed::{AsReckoned, KeyRef};
use super::clock::Reader;
use super::doorkeeper::Doorkeeper;

/// Gives stored keys their hashes.
pub(in crate::engine::embedded) type KeyHasher = quick_cache::DefaultHashBuilder;

const CLASSES: usize = 64;

/// What an entry weighs besides its bytes: the entry itself, its allocations and its place in the
/// tables, rounded up so that the bound holds.
const ENTRY_OVERHEAD_BYTES: usize = 160;

/// A guess that only sizes the cache's tables at first.
const ENTRY_BYTES_TYPICAL: u64 = 512;

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

impl Weighter<KeptKey, Bytes> for Weigh {
    fn weight(&self, key: &KeptKey, stored: &Bytes) -> u64 {
        weight(key.bytes.len(), stored.len())
    }
}

fn weight(key_bytes: usize, stored_bytes: usize) -> u64 {
    (key_bytes + stored_bytes + ENTRY_OVERHEAD_BYTES) as u64
}

/// See the [module's](self) description.
pub(super) struct LargeCells {
    /// Cells as they are stored, in allocations of their own: a slice of fjall's would keep a whole
    /// block in memory, and the bound would not hold.
    entries: Option<Cache<KeptKey, Bytes, Weigh, AsReckoned>>,
    doorkeeper: Doorkeeper,
    bytes_max: u64,
    /// What all entries together weighed that were ever kept.
    kept_ever_bytes: AtomicU64,
    classes: [Mutex<()>; CLASSES],
}

impl LargeCells {
    /// Cells of at most so many bytes together; 0 for none.
    pub(super) fn new(bytes_max: u64) -> Self {
        let items = usize::try_from(bytes_max / ENTRY_BYTES_TYPICAL).unwrap_or(usize::MAX);
        let marks_bytes = (items * Doorkeeper::BYTES_PER_PLACE) as u64;
        let entries = || {
            let (hasher, lifecycle) = (AsReckoned::default(), DefaultLifecycle::default());
            Cache::with(items, bytes_max - marks_bytes, Weigh, hasher, lifecycle)
        };
        LargeCells {
            entries: (bytes_max > 0).then(entries),
            doorkeeper: Doorkeeper::new(items),
            bytes_max,
            kept_ever_bytes: AtomicU64::new(0),
            classes: std::array::from_fn(|_| Mutex::default()),
        }
    }

    /// What the entries weigh.
    pub(super) fn bytes(&self) -> u64 {
        self.entries.as_ref().map_or(0, Cache::weight)
    }

    /// At least what the entries ever weighed at once.
    pub(super) fn claimed_bytes(&self) -> u64 {
        self.kept_ever_bytes.load(Ordering::Relaxed).min(self.bytes_max)
    }

    /// The cell as the reader must see it, if it is here.
    pub(super) fn get(&self, key: KeyRef<'_>, reader: Reader<'_>) -> Option<Bytes> {
        let stored = self.entries.as_ref()?.get(&key)?;
        // Not before: a change that comes in between would be seen in the cell alone.
        reader.is_current(key.hash).then_some(stored)
    }

    /// Keeps what a reader loaded, if it was loaded before, and unless it may be out of date.
    pub(super) fn fill(&self, key: KeyRef<'_>, reader: Reader<'_>, loaded: &[u8]) {
        let Some(entries) = &self.entries else { return };
        if !self.doorkeeper.knows(key.hash) {
            return;
        }
        let _class = self.lock_class(key.hash);
        if reader.is_current(key.hash) {
            self.note_kept(key, loaded);
            entries.insert(KeptKey::copy(key), Bytes::copy_from_slice(loaded));
        }
    }

    /// Brings a cell up to date, after its change was noted and before it is published. Only cells
    /// that are here already are kept: a bulk load must not push out what readers want.
    pub(super) fn change(&self, key: KeyRef<'_>, stored: Option<&[u8]>) {
        let Some(entries) = &self.entries else { return };
        let _class = self.lock_class(key.hash);
        match stored {
            Some(stored) if entries.contains_key(&key) => {
                self.note_kept(key, stored);
                // The old one may have been pushed out meanwhile, which is as good.
                let stored = Bytes::copy_from_slice(stored);
                let _ = entries.replace(KeptKey::copy(key), stored, false);
            }
            Some(_) => {}
            None => {
                entries.remove(&key);
            }
        }
    }

    fn note_kept(&self, key: KeyRef<'_>, stored: &[u8]) {
        self.kept_ever_bytes.fetch_add(weight(key.bytes.len(), stored.len()), Ordering::Relaxed);
    }

    fn lock_class(&self, hash: u64) -> MutexGuard<'_, ()> {
        let class = hash as usize % CLASSES;
        self.classes[class].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

    use super::super::super::hashed::key;
    use super::super::clock::Clock;
    use super::*;

    fn cache() -> Timed {
        Timed::new(1 << 20)
    }

    /// The cells with a clock, as the room has them.
    struct Timed {
        cells: LargeCells,
        clock: Clock,
    }

    impl Timed {
        fn new(bytes_max: u64) -> Self {
            Timed { cells: LargeCells::new(bytes_max), clock: Clock::new() }
        }

        fn get(&self, key: KeyRef<'_>, commit: u64) -> Option<Bytes> {
            self.cells.get(key, Reader { clock: &self.clock, commit })
        }

        fn fill(&self, key: KeyRef<'_>, commit: u64, loaded: &[u8]) {
            self.cells.fill(key, Reader { clock: &self.clock, commit }, loaded);
        }

        fn change(&self, key: KeyRef<'_>, commit: u64, stored: Option<&[u8]>) {
            self.clock.note(commit, [key.hash].into_iter());
            self.cells.change(key, stored);
        }
    }

    /// Loads twice what is not here, since a cell is kept at the second time.
    fn fill(cache: &Timed, bytes: &[u8], snapshot: u64, value: &[u8]) {
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
        let cache = Timed::new(1 << 18);
        let wanted: Vec<[u8; 1]> = (0..100).map(|number| [number]).collect();
        wanted.iter().for_each(|bytes| fill(&cache, bytes, 1, &[1; 300]));
        for number in 0..10_000u32 {
            cache.fill(key(&number.to_be_bytes()), 1, &[0; 300]);
        }
        assert!(wanted.iter().all(|bytes| cache.get(key(bytes), 1).is_some()));
        assert_eq!(cache.cells.entries.as_ref().unwrap().len(), wanted.len());
    }

    #[test]
    fn a_cell_serves_every_moment_since_its_last_change() {
        let cache = cache();
        cache.change(key(b"k"), 5, Some(b"v"));
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
        let cache = Timed::new(0);
        fill(&cache, b"k", 1, b"v");
        assert_eq!(cache.get(key(b"k"), 1), None);
    }

    #[test]
    fn the_bound_holds() {
        let bytes_max = 1 << 16;
        let cache = Timed::new(bytes_max);
        for number in 0..10_000u32 {
            fill(&cache, &number.to_be_bytes(), 1, &[0; 300]);
        }
        let entries = cache.cells.entries.as_ref().unwrap();
        assert!(entries.weight() <= bytes_max, "{} bytes", entries.weight());
        assert!(entries.len() > 50, "{} entries", entries.len());
    }
}
