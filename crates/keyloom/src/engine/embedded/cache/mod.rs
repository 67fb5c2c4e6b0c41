//! What is kept in memory of the store: cells that were read by their key, and lists.
//!
//! Whoever reads takes what is here with [`read_cell`](Cache::read_cell) and
//! [`read_list`](Cache::read_list), and may leave what had to be loaded. The commit thread says what
//! a commit changes with [`change`](Cache::change), before it publishes the commit. Between the two
//! stands one [`clock`], by which nothing old is ever found here: its page tells why.
//!
//! Lists have a share of the memory, and cells another. What cells have not taken yet is for lists
//! until they do.

mod cells;
mod clock;
mod doorkeeper;
mod hits;
mod large;
mod list_cache;
mod small;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;

use super::super::{Direction, Recipe};
use super::hashed::KeyRef;
use super::layout::StoredRange;
use super::options::Options;
use cells::CellCache;
use clock::{Clock, Reader};
use hits::Hits;
pub(super) use large::KeyHasher;
use list_cache::ListCache;
pub(super) use list_cache::{KeptList, KeptRow, Record, Recorder};

/// In what steps cells take their share back from lists.
const LOAN_STEP_BYTES: u64 = 1 << 20;

/// See the [module's](self) description.
pub(super) struct Cache {
    clock: Arc<Clock>,
    cells: CellCache,
    cell_hits: Hits,
    lists: ListCache,
    list_hits: Hits,
    /// What lists and cells may take together, what cells may, and what of that they claim.
    bytes_max: u64,
    cell_bytes_max: u64,
    claimed_by_cells: AtomicU64,
    /// The one for all stored keys.
    hasher: KeyHasher,
}

impl Cache {
    /// An empty cache of a store that was just opened.
    pub(super) fn new(options: &Options) -> Self {
        Cache::with(options.record_cache_bytes, options.list_cache_bytes, Clock::new())
    }

    /// A cache that keeps nothing, of a moment at which nothing changes.
    pub(super) fn none() -> Self {
        Cache::with(0, 0, Clock::stopped())
    }

    fn with(cell_bytes_max: u64, list_bytes_max: u64, clock: Clock) -> Self {
        let (clock, cells) = (Arc::new(clock), CellCache::new(cell_bytes_max));
        // Whoever wants no lists at all does not want them for a while either.
        let bytes_max = match list_bytes_max {
            0 => 0,
            bytes => bytes.saturating_add(cell_bytes_max),
        };
        let claimed = claim(&cells, cell_bytes_max);
        let lists = ListCache::new(bytes_max.saturating_sub(claimed), Arc::clone(&clock));
        Cache {
            clock,
            cells,
            cell_hits: Hits::default(),
            lists,
            list_hits: Hits::default(),
            bytes_max,
            cell_bytes_max,
            claimed_by_cells: AtomicU64::new(claimed),
            hasher: KeyHasher::default(),
        }
    }

    /// How many bytes the cells and the lists take.
    pub(super) fn bytes(&self) -> (u64, u64) {
        (self.cells.bytes(), self.lists.bytes())
    }

    /// How often cells, and lists, were here when they were asked for, and how often not.
    pub(super) fn hits(&self) -> [(u64, u64); 2] {
        [self.cell_hits.read(), self.list_hits.read()]
    }

    /// What gives stored keys their hashes.
    pub(super) fn hasher(&self) -> &KeyHasher {
        &self.hasher
    }

    /// The cell as a reader at the moment after that commit must see it, if it is here.
    pub(super) fn read_cell(&self, key: KeyRef<'_>, commit: u64) -> Option<Bytes> {
        let found = self.cells.get(key, self.reader(commit));
        self.cell_hits.note(found.is_some());
        found
    }

    /// Keeps a cell that a reader at that moment has loaded, unless it may be out of date.
    pub(super) fn keep_cell(&self, key: KeyRef<'_>, commit: u64, loaded: &[u8]) {
        self.cells.fill(key, self.reader(commit), loaded);
        let claimed = claim(&self.cells, self.cell_bytes_max);
        if claimed > self.claimed_by_cells.fetch_max(claimed, Ordering::Relaxed) {
            self.lists.set_bytes_max(self.bytes_max.saturating_sub(claimed));
        }
    }

    /// The first rows of a range, at least `limit` of them or all, as a reader at that moment must
    /// see them, if they are here.
    pub(super) fn read_list(
        &self,
        range: &StoredRange,
        limit: usize,
        direction: Direction,
        commit: u64,
    ) -> Option<Arc<KeptList>> {
        let found = self.lists.get(range, limit, direction, commit);
        self.list_hits.note(found.is_some());
        found
    }

    /// To write down a list of at most so many rows, if it may be kept: while memory is short only
    /// lists are that were asked for before.
    pub(super) fn recorder(&self, range: &StoredRange, limit: usize) -> Option<Recorder> {
        self.lists.recorder(limit, || KeyRef::new(&range.start, &self.hasher).hash)
    }

    /// Whether a list of at most so many rows may ever be kept.
    pub(super) fn takes_lists_of(&self, limit: usize) -> bool {
        self.lists.takes(limit)
    }

    /// Keeps a list that a reader at that moment has read, unless it may be out of date, and gives
    /// it back.
    pub(super) fn keep_list(
        &self,
        recorder: Recorder,
        range: StoredRange,
        direction: Direction,
        recipe: Option<&Recipe>,
        commit: u64,
    ) -> Option<Arc<KeptList>> {
        self.lists.fill(recorder, range, direction, recipe, commit)
    }

    /// Brings everything up to date with a commit, before the commit is published.
    pub(super) fn change<'c>(
        &self,
        commit: u64,
        changes: impl Iterator<Item = (KeyRef<'c>, Option<&'c [u8]>)> + Clone,
    ) {
        self.clock.note(commit, changes.clone().map(|(key, _)| key.hash));
        for (key, stored) in changes.clone() {
            self.cells.change(key, stored);
        }
        self.lists.change(changes.map(|(key, _)| key.bytes));
    }

    /// Whether a key of this hash is certainly as it was right after that commit.
    pub(super) fn is_unchanged_since(&self, commit: u64, hash: u64) -> bool {
        self.clock.is_unchanged_since(commit, hash)
    }

    fn reader(&self, commit: u64) -> Reader<'_> {
        Reader { clock: &self.clock, commit }
    }
}

/// What cells have taken so far, in steps, so that lists give way now and then only.
fn claim(cells: &CellCache, bytes_max: u64) -> u64 {
    let steps = cells.claimed_bytes().div_ceil(LOAN_STEP_BYTES);
    steps.saturating_mul(LOAN_STEP_BYTES).min(bytes_max)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

    use std::collections::BTreeMap;
    use std::sync::RwLock;

    use super::*;
    use crate::engine::random::Random;

    const SMALL: usize = 20;
    const LARGE: usize = 2_000;
    const MIB: u64 = 1 << 20;

    fn cache() -> Cache {
        Cache::with(MIB, MIB, Clock::new())
    }

    fn key<'k>(cache: &Cache, bytes: &'k [u8]) -> KeyRef<'k> {
        KeyRef::new(bytes, cache.hasher())
    }

    fn change(cache: &Cache, commit: u64, bytes: &[u8], stored: Option<&[u8]>) {
        cache.change(commit, std::iter::once((key(cache, bytes), stored)));
    }

    #[test]
    fn a_small_cell_is_kept_at_its_first_read_and_a_large_one_at_its_second() {
        let (cache, large) = (cache(), [7; LARGE]);
        let get = |bytes| cache.read_cell(key(&cache, bytes), 1);
        cache.keep_cell(key(&cache, b"small"), 1, b"v");
        cache.keep_cell(key(&cache, b"large"), 1, &large);
        assert_eq!(get(b"small").unwrap(), "v");
        assert_eq!(get(b"large"), None);
        cache.keep_cell(key(&cache, b"large"), 1, &large);
        assert_eq!(get(b"large").unwrap(), large[..]);
    }

    #[test]
    fn a_cell_that_changes_its_size_is_never_found_as_it_was() {
        let (cache, sizes) = (cache(), [SMALL, LARGE, SMALL, SMALL, LARGE, LARGE, SMALL]);
        let k = || key(&cache, b"k");
        for (commit, size) in (1..).zip(sizes) {
            let stored = vec![commit as u8; size];
            change(&cache, commit, b"k", Some(&stored));
            let kept = cache.read_cell(k(), commit);
            assert!(kept.is_none_or(|kept| kept == stored), "commit {commit}");
            cache.keep_cell(k(), commit, &stored);
            cache.keep_cell(k(), commit, &stored);
            assert_eq!(cache.read_cell(k(), commit).unwrap(), stored);
        }
        change(&cache, 99, b"k", None);
        assert_eq!(cache.read_cell(k(), 99), None);
    }

    /// The list of all keys, as a reader at that moment keeps it.
    fn keep_list(cache: &Cache, rows: &BTreeMap<u8, u64>, commit: u64) {
        let mut recorder = cache.recorder(&everything(), usize::from(u8::MAX) / 2).unwrap();
        rows.iter().for_each(|(key, cell)| recorder.add(&[*key], &cell.to_be_bytes(), None));
        cache.keep_list(recorder, everything(), Direction::Forward, None, commit);
    }

    fn everything() -> StoredRange {
        StoredRange { start: vec![0], end: vec![u8::MAX], prefix_bytes: 0 }
    }

    fn read_list(cache: &Cache, commit: u64) -> Option<BTreeMap<u8, u64>> {
        let kept = cache.read_list(&everything(), 100, Direction::Forward, commit)?;
        let number = |cell: Bytes| u64::from_be_bytes(cell[..].try_into().unwrap());
        Some(kept.rows().map(|(key, cell)| (key[0], number(cell))).collect())
    }

    #[test]
    fn lists_have_what_cells_have_not_taken_yet() {
        let cache = Cache::with(8 * MIB, MIB, Clock::new());
        let list = |number: u32| {
            let start = number.to_be_bytes().to_vec();
            let end = (number + 1).to_be_bytes().to_vec();
            let range = StoredRange { start, end, prefix_bytes: 0 };
            let asked_before = cache.recorder(&range, 1);
            let mut recorder = asked_before.or_else(|| cache.recorder(&range, 1)).unwrap();
            let mut random = Random::new(u64::from(number));
            let row: Vec<u8> = (0..4_000).map(|_| random.below(256) as u8).collect();
            recorder.add(&number.to_be_bytes(), &row, None);
            cache.keep_list(recorder, range, Direction::Forward, None, 1);
        };
        (0..10_000).for_each(list);
        let (cells, lists) = cache.bytes();
        assert!(lists > 6 * MIB && cells + lists <= 9 * MIB, "{cells} and {lists}");
        for number in 0..60_000_u32 {
            for size in [100, 600] {
                let bytes = [&number.to_be_bytes()[..], &[size as u8]].concat();
                cache.keep_cell(key(&cache, &bytes), 1, &vec![1; size]);
                cache.keep_cell(key(&cache, &bytes), 1, &vec![1; size]);
            }
        }
        let (cells, lists) = cache.bytes();
        assert!(cells > 7 * MIB, "{cells}");
        assert!(lists <= MIB, "lists kept {lists} of what cells have a right to");
        (10_000..20_000).for_each(list);
        assert!(cache.bytes().1 <= MIB);
    }

    /// One writer and some readers on a model store: whatever is found, cell or list, must be what
    /// the reader's own moment holds, and after a commit was published nobody finds what was before
    /// it. Readers dawdle between reading and keeping, and cells are now small and now large.
    #[test]
    fn nothing_old_is_found_whoever_fills_while_commits_go_on() {
        const KEYS: u8 = 4;
        const COMMITS: u64 = 20_000;
        let cache = cache();
        // A cell's bytes tell the number of the commit that wrote it.
        let stored = |commit: u64| {
            let size = if commit.is_multiple_of(3) { LARGE } else { SMALL };
            let mut bytes = commit.to_be_bytes().to_vec();
            bytes.resize(size, 0);
            bytes
        };
        let first: BTreeMap<u8, u64> = (1..=KEYS).map(|key| (key, 0)).collect();
        let published = RwLock::new((0_u64, Arc::new(first)));
        let read = |seed: u64| {
            let mut random = Random::new(seed);
            loop {
                let (commit, rows) = published.read().unwrap().clone();
                if commit == COMMITS {
                    return;
                }
                let number = 1 + random.below(usize::from(KEYS)) as u8;
                let (bytes, expected) = ([number], stored(rows[&number]));
                match cache.read_cell(key(&cache, &bytes), commit) {
                    Some(found) => assert_eq!(found, expected, "key {number} at {commit}"),
                    None => {
                        std::thread::yield_now();
                        cache.keep_cell(key(&cache, &bytes), commit, &expected);
                        cache.keep_cell(key(&cache, &bytes), commit, &expected);
                    }
                }
                match read_list(&cache, commit) {
                    Some(found) => assert_eq!(found, *rows, "the list at {commit}"),
                    None => {
                        std::thread::yield_now();
                        keep_list(&cache, &rows, commit);
                    }
                }
            }
        };
        std::thread::scope(|scope| {
            for seed in 0..3 {
                let read = &read;
                scope.spawn(move || read(seed));
            }
            for commit in 1..=COMMITS {
                let number = 1 + (commit % u64::from(KEYS)) as u8;
                let mut rows = BTreeMap::clone(&published.read().unwrap().1);
                rows.insert(number, commit);
                change(&cache, commit, &[number], Some(&stored(commit)));
                *published.write().unwrap() = (commit, Arc::new(rows));
                if commit.is_multiple_of(8) {
                    std::thread::yield_now();
                }
            }
        });
    }
}
