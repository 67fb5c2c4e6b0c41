//! The first rows of ranges that were read, kept in memory up to a bound, with the records that
//! they led to.
//!
//! A list reads the beginning of one range, such as the newest entries of a user, and the records
//! that the entries name. fjall merges the range from several tables, each of which is searched
//! for both its ends; the records lie all over the memory, and each has to be waited for. That
//! costs more than all that is done with them. Lists that are read again are served from here,
//! where all that they need lies in one piece.
//!
//! What is kept for a range covers an *extent*: the keys from the end at which the scan began to
//! the one that told it that there is more, or the whole range when there is not. A commit that
//! changes no key of the extent leaves the rows as they are. Extents do not overlap, so that a key
//! lies in one at most, and the commit thread finds it by one search in order.
//!
//! What is kept says from which commit on it is true, as in the [record cache](super::cache), and
//! serves only readers whose snapshot is at that commit or after it. The commit thread removes
//! what it changes before it publishes the commit, and a reader keeps what it read only if no
//! commit has changed anything since its snapshot: such a reader may have missed the removal.
//!
//! Records are in many lists, and are not searched for. Instead all keys are divided into classes,
//! each class remembers the last commit that changed one of its keys, and a record is served only
//! if its class has not changed since the list was kept. A reader whose snapshot holds a change
//! finds it noted, since it was noted before it was published.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use bytes::Bytes;

use super::super::{Direction, Evidence, Recipe, Witness, successor};
use super::hashed::KeyRef;
use super::layout::StoredRange;

/// What is longer is read for another purpose than a list, and hardly a second time.
const ROWS_MAX: usize = 128;
const BLOCK_BYTES_MAX: usize = 64 * 1024;

/// What a stretch weighs besides its bytes: itself and its place in the map, rounded up so that
/// the bound holds.
const STRETCH_OVERHEAD_BYTES: usize = 320;

/// How many bytes of the cache there is a class for, within bounds.
const BYTES_PER_CLASS: u64 = 256;
const CLASSES_MIN: u64 = 1 << 10;
const CLASSES_MAX: u64 = 1 << 18;

/// The first rows of one range.
#[derive(Debug)]
pub(super) struct KeptStretch {
    range: StoredRange,
    direction: Direction,
    /// The first commit whose readers may have it.
    since: u64,
    /// How its entries were followed; `None` when they were not, or when one led nowhere.
    recipe: Option<Recipe>,
    /// Everything as it is stored, row by row in one allocation.
    block: Bytes,
    places: Vec<Place>,
    /// The stored key after the last row, if the range has one.
    beyond: Option<Bytes>,
    trace: Arc<Trace>,
    /// The lowest key of the extent, and the lowest above it.
    extent: (Bytes, Bytes),
    /// Whether it was read since the hand last came by.
    is_used: AtomicBool,
}

/// Where the parts of a row end in the block: its key, its cell, and of what it led to the key
/// (not as it is stored, but within its area) and the cell.
#[derive(Clone, Copy, Debug)]
struct Place {
    key: u32,
    cell: u32,
    target: u32,
    record: u32,
    /// The class of the record.
    class: u32,
}

/// One row that was kept. All parts share one block.
pub(super) struct KeptRow {
    pub(super) stored_key: Bytes,
    pub(super) stored: Bytes,
    /// The key that the entry led to.
    pub(super) target: Bytes,
    /// What was there; `None` when that may have changed.
    pub(super) stored_record: Option<Bytes>,
}

impl KeptStretch {
    /// The stored keys and cells, in the order of the scan.
    pub(super) fn rows(&self) -> impl Iterator<Item = (Bytes, Bytes)> {
        self.starts_and_places()
            .map(|(start, place)| (self.part(start, place.key), self.part(place.key, place.cell)))
    }

    /// The key that follows the first `limit` rows.
    pub(super) fn key_beyond(&self, limit: usize) -> Option<Bytes> {
        let inside = self.starts_and_places().nth(limit);
        inside.map(|(start, place)| self.part(start, place.key)).or_else(|| self.beyond.clone())
    }

    /// Evidence for the rows as a reader of that snapshot was given them.
    pub(super) fn witness(&self, snapshot: u64) -> Witness {
        Witness::new(self.trace.clone(), snapshot)
    }

    /// The same for the records too, if all rows led to some.
    pub(super) fn witness_followed(&self, snapshot: u64) -> Option<Witness> {
        self.recipe.as_ref().map(|_| self.witness(snapshot))
    }

    fn starts_and_places(&self) -> impl Iterator<Item = (u32, &Place)> {
        let starts = std::iter::once(0).chain(self.places.iter().map(|place| place.record));
        starts.zip(&self.places)
    }

    fn part(&self, start: u32, end: u32) -> Bytes {
        self.block.slice(start as usize..end as usize)
    }

    fn serves(&self, range: &StoredRange, limit: usize, direction: Direction, at: u64) -> bool {
        self.since <= at
            && self.direction == direction
            && self.range == *range
            && (self.places.len() >= limit || self.beyond.is_none())
    }

    fn weight(&self) -> usize {
        let keys = [&self.extent.0, &self.extent.1, self.beyond.as_ref().unwrap_or(&self.extent.0)];
        self.block.len()
            + self.range.start.len()
            + self.range.end.len()
            + keys.iter().map(|key| key.len()).sum::<usize>()
            + self.places.len() * (size_of::<Place>() + size_of::<u32>())
            + STRETCH_OVERHEAD_BYTES
    }
}

/// What outlives a stretch as long as somebody holds a witness of it.
#[derive(Debug)]
struct Trace {
    /// Whether the stretch is kept, so that no commit changed a key of its extent.
    is_kept: AtomicBool,
    /// The classes of the records that were kept with it.
    classes: Box<[u32]>,
    last_changes: Arc<[AtomicU64]>,
}

impl Evidence for Trace {
    fn stands(&self, moment: u64) -> bool {
        let is_unchanged = |class: &u32| is_unchanged(&self.last_changes, *class, moment);
        self.is_kept.load(Ordering::Acquire) && self.classes.iter().all(is_unchanged)
    }
}

/// Whether no key of a class has changed after a commit.
fn is_unchanged(last_changes: &[AtomicU64], class: u32, commit: u64) -> bool {
    let last = last_changes.get(class as usize);
    last.is_some_and(|last| last.load(Ordering::Acquire) <= commit)
}

/// Writes down what a scan gives, as long as it is short enough to be kept.
pub(super) struct Recorder {
    block: Vec<u8>,
    places: Vec<Place>,
    is_followed: bool,
    beyond: Option<Bytes>,
}

impl Recorder {
    /// Adds the next row with the key and the cell that it led to, and the class of these.
    pub(super) fn add(&mut self, stored_key: &[u8], stored: &[u8], record: Option<Record<'_>>) {
        if self.is_too_long() {
            return;
        }
        self.is_followed &= record.is_some();
        let Record { target, stored: stored_record, class } = record.unwrap_or_default();
        let mut end_of = |part: &[u8]| {
            self.block.extend_from_slice(part);
            // The block is hardly longer than what is kept at most.
            self.block.len() as u32
        };
        self.places.push(Place {
            key: end_of(stored_key),
            cell: end_of(stored),
            target: end_of(target),
            record: end_of(stored_record),
            class,
        });
    }

    /// Notes the key after the last row, which is not part of the answer.
    pub(super) fn stop_before(&mut self, stored_key: &[u8]) {
        self.beyond = Some(Bytes::copy_from_slice(stored_key));
    }

    fn is_too_long(&self) -> bool {
        self.block.len() > BLOCK_BYTES_MAX
    }

    /// What was written down; `None` when it is too long, or when the range holds no key at all.
    fn finish(
        self,
        range: StoredRange,
        direction: Direction,
        recipe: Option<&Recipe>,
        since: u64,
        last_changes: &Arc<[AtomicU64]>,
    ) -> Option<KeptStretch> {
        if self.is_too_long() || range.start >= range.end {
            return None;
        }
        let recipe = recipe.filter(|_| self.is_followed);
        let classes = match recipe {
            Some(_) => self.places.iter().map(|place| place.class).collect(),
            None => Box::default(),
        };
        let copy = |key: &[u8]| Bytes::copy_from_slice(key);
        let extent = match (&self.beyond, direction) {
            (None, _) => (copy(&range.start), copy(&range.end)),
            (Some(beyond), Direction::Forward) => (copy(&range.start), successor(beyond)),
            (Some(beyond), Direction::Backward) => (beyond.clone(), copy(&range.end)),
        };
        Some(KeptStretch {
            range,
            direction,
            since,
            recipe: recipe.cloned(),
            block: self.block.into_boxed_slice().into(),
            trace: Arc::new(Trace {
                is_kept: AtomicBool::new(true),
                classes,
                last_changes: last_changes.clone(),
            }),
            places: self.places,
            beyond: self.beyond,
            extent,
            is_used: AtomicBool::new(false),
        })
    }
}

/// What an entry led to.
#[derive(Clone, Copy, Default)]
pub(super) struct Record<'r> {
    pub(super) target: &'r [u8],
    pub(super) stored: &'r [u8],
    pub(super) class: u32,
}

/// See the [module's](self) description.
pub(super) struct StretchCache {
    weight_max: usize,
    kept: RwLock<Kept>,
    /// The last commit that changed a key of each class; empty when nothing is kept.
    last_changes: Arc<[AtomicU64]>,
}

#[derive(Default)]
struct Kept {
    /// By the lowest keys of their extents, which do not overlap.
    stretches: BTreeMap<Bytes, Arc<KeptStretch>>,
    weight: usize,
    /// The last commit that changed anything.
    last_change: u64,
    /// Where the search for something to push out goes on: it goes round and round, and passes
    /// over what was used since it last came by.
    hand: Bytes,
}

impl StretchCache {
    /// A cache of at most so many bytes; 0 for none.
    pub(super) fn new(bytes_max: u64) -> Self {
        let classes = match bytes_max {
            0 => 0,
            bytes => (bytes / BYTES_PER_CLASS).clamp(CLASSES_MIN, CLASSES_MAX),
        };
        let classes_bytes = classes * size_of::<AtomicU64>() as u64;
        let weight_max = bytes_max.saturating_sub(classes_bytes);
        StretchCache {
            weight_max: usize::try_from(weight_max).unwrap_or(usize::MAX),
            kept: RwLock::default(),
            last_changes: (0..classes).map(|_| AtomicU64::new(0)).collect(),
        }
    }

    /// What the kept stretches weigh.
    pub(super) fn bytes(&self) -> u64 {
        self.read().weight as u64
    }

    /// The first rows of a range, at least `limit` of them or all, as a reader of that snapshot
    /// must see them, if they are here.
    pub(super) fn get(
        &self,
        range: &StoredRange,
        limit: usize,
        direction: Direction,
        snapshot: u64,
    ) -> Option<Arc<KeptStretch>> {
        if self.weight_max == 0 || limit > ROWS_MAX {
            return None;
        }
        let kept = self.read();
        let found = match direction {
            Direction::Forward => kept.stretches.get(&range.start[..]),
            // An extent that reaches up to the range's end is the last that begins below it.
            Direction::Backward => kept.last_below(&range.end).map(|(_, stretch)| stretch),
        };
        let found = found.filter(|stretch| stretch.serves(range, limit, direction, snapshot))?;
        found.is_used.store(true, Ordering::Relaxed);
        Some(Arc::clone(found))
    }

    /// The first `limit` rows of a stretch and what they led to; `None` when it was not followed
    /// in this way, or when more than a quarter of the records may have changed: it is then better
    /// read and kept anew.
    pub(super) fn followed<'s>(
        &'s self,
        stretch: &'s KeptStretch,
        limit: usize,
        recipe: &Recipe,
    ) -> Option<impl ExactSizeIterator<Item = KeptRow>> {
        if stretch.recipe.as_ref() != Some(recipe) {
            return None;
        }
        let places = &stretch.places[..limit.min(stretch.places.len())];
        let is_unchanged =
            |place: &Place| is_unchanged(&self.last_changes, place.class, stretch.since);
        let unchanged: Vec<bool> = places.iter().map(is_unchanged).collect();
        let changed = unchanged.iter().filter(|is_unchanged| !**is_unchanged).count();
        if changed * 4 > places.len() {
            return None;
        }
        let mut start = 0;
        Some(places.iter().zip(unchanged).map(move |(place, is_unchanged)| {
            let row = KeptRow {
                stored_key: stretch.part(start, place.key),
                stored: stretch.part(place.key, place.cell),
                target: stretch.part(place.cell, place.target),
                stored_record: is_unchanged.then(|| stretch.part(place.target, place.record)),
            };
            start = place.record;
            row
        }))
    }

    /// The class of a key with this hash.
    pub(super) fn class(&self, hash: u64) -> u32 {
        let classes = self.last_changes.len().max(1) as u64;
        (hash % classes) as u32
    }

    /// To write down a scan of at most so many rows, if it may be kept.
    pub(super) fn recorder(&self, limit: usize) -> Option<Recorder> {
        (self.weight_max > 0 && limit <= ROWS_MAX).then(|| Recorder {
            block: Vec::new(),
            places: Vec::with_capacity(limit),
            is_followed: true,
            beyond: None,
        })
    }

    /// Keeps what a reader of that snapshot has read, unless that may be out of date, and gives
    /// it back.
    pub(super) fn fill(
        &self,
        recorder: Recorder,
        range: StoredRange,
        direction: Direction,
        recipe: Option<&Recipe>,
        snapshot: u64,
    ) -> Option<Arc<KeptStretch>> {
        let stretch = recorder.finish(range, direction, recipe, snapshot, &self.last_changes)?;
        let stretch = Arc::new(stretch);
        let mut kept = self.write();
        if kept.last_change > snapshot || !kept.make_place(&stretch) {
            return None;
        }
        kept.weight += stretch.weight();
        kept.stretches.insert(stretch.extent.0.clone(), stretch.clone());
        kept.shrink(self.weight_max);
        Some(stretch)
    }

    /// Notes that a commit changes these cells, before the commit is published.
    pub(super) fn change<'k>(&self, commit: u64, keys: impl Iterator<Item = KeyRef<'k>>) {
        if self.weight_max == 0 {
            return;
        }
        let mut kept = self.write();
        kept.last_change = commit;
        for KeyRef { hash, bytes: stored_key } in keys {
            if let Some(class) = self.last_changes.get(self.class(hash) as usize) {
                class.store(commit, Ordering::Release);
            }
            if let Some(start) = kept.extent_around(stored_key) {
                kept.remove(&start);
            }
        }
    }

    fn read(&self) -> RwLockReadGuard<'_, Kept> {
        self.kept.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Kept> {
        self.kept.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Kept {
    fn last_below(&self, key: &[u8]) -> Option<(&Bytes, &Arc<KeptStretch>)> {
        self.stretches.range::<[u8], _>((Bound::Unbounded, Bound::Excluded(key))).next_back()
    }

    /// The lowest key of the extent that holds a key.
    fn extent_around(&self, key: &[u8]) -> Option<Bytes> {
        let up_to = (Bound::Unbounded, Bound::Included(key));
        let (start, stretch) = self.stretches.range::<[u8], _>(up_to).next_back()?;
        (key < &stretch.extent.1[..]).then(|| start.clone())
    }

    /// Removes what overlaps a new stretch; `false` when something of that is in use. It is then
    /// taken for unused until it is read again, so that it cannot stay in the way for ever.
    fn make_place(&mut self, stretch: &KeptStretch) -> bool {
        let (start, end) = &stretch.extent;
        let mut overlapping: Vec<Bytes> = self.extent_around(start).into_iter().collect();
        let inside = (Bound::Excluded(&start[..]), Bound::Excluded(&end[..]));
        overlapping.extend(self.stretches.range::<[u8], _>(inside).map(|(key, _)| key.clone()));
        let is_free = overlapping.iter().filter_map(|key| self.stretches.get(key)).fold(
            true,
            |is_free, other| {
                let is_same = other.range == stretch.range && other.direction == stretch.direction;
                let is_used = other.is_used.swap(false, Ordering::Relaxed);
                is_free && (is_same || !is_used)
            },
        );
        if is_free {
            overlapping.iter().for_each(|key| self.remove(key));
        }
        is_free
    }

    fn remove(&mut self, start: &[u8]) {
        if let Some(stretch) = self.stretches.remove(start) {
            self.weight -= stretch.weight();
            stretch.trace.is_kept.store(false, Ordering::Release);
        }
    }

    /// Pushes out what was not used for longest, roughly, until the rest fits.
    fn shrink(&mut self, weight_max: usize) {
        while self.weight > weight_max {
            let onward = (Bound::Excluded(&self.hand[..]), Bound::Unbounded);
            let next = self.stretches.range::<[u8], _>(onward).next();
            let Some((start, stretch)) = next.or_else(|| self.stretches.first_key_value()) else {
                return;
            };
            let (start, is_used) = (start.clone(), stretch.is_used.swap(false, Ordering::Relaxed));
            if !is_used {
                self.remove(&start);
            }
            self.hand = start;
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

    use std::sync::RwLock;

    use proptest::prelude::*;

    use super::*;
    use crate::engine::Area;
    use crate::engine::random::Random;

    /// The keys of the tests are one byte each; a cell's bytes are the commit that wrote it.
    type Store = BTreeMap<Vec<u8>, u64>;
    type Rows = Vec<(Vec<u8>, u64)>;

    /// Keys that change, with hashes that differ where the keys do.
    fn keys(bytes: &[u8]) -> impl Iterator<Item = KeyRef<'_>> {
        bytes.chunks(1).map(|key| KeyRef { hash: hash(key[0]), bytes: key })
    }

    fn hash(key: u8) -> u64 {
        u64::from(key)
    }

    fn range(start: u8, end: u8) -> StoredRange {
        StoredRange { start: vec![start], end: vec![end], prefix_bytes: 0 }
    }

    /// The first rows as a scan gives them, and the key after them.
    fn scan(
        store: &Store,
        range: &StoredRange,
        limit: usize,
        direction: Direction,
    ) -> (Rows, Option<Vec<u8>>) {
        let rows = store
            .range(range.start.clone()..range.end.clone())
            .map(|(key, commit)| (key.clone(), *commit));
        let mut rows: Vec<_> = match direction {
            Direction::Forward => rows.take(limit + 1).collect(),
            Direction::Backward => rows.rev().take(limit + 1).collect(),
        };
        let beyond = if rows.len() > limit { rows.pop() } else { None };
        (rows, beyond.map(|(key, _)| key))
    }

    /// Reads through the cache, as a reader of that snapshot does.
    fn read(
        cache: &StretchCache,
        store: &Store,
        range: StoredRange,
        limit: usize,
        direction: Direction,
        snapshot: u64,
    ) -> (Rows, bool) {
        if let Some(kept) = cache.get(&range, limit, direction, snapshot) {
            let number = |cell: Bytes| u64::from_be_bytes(cell[..].try_into().unwrap());
            let rows = kept.rows().take(limit).map(|(key, cell)| (key.to_vec(), number(cell)));
            return (rows.collect(), kept.key_beyond(limit).is_some());
        }
        let (rows, beyond) = scan(store, &range, limit, direction);
        let mut recorder = cache.recorder(limit).unwrap();
        rows.iter().for_each(|(key, commit)| recorder.add(key, &commit.to_be_bytes(), None));
        beyond.iter().for_each(|key| recorder.stop_before(key));
        cache.fill(recorder, range, direction, None, snapshot);
        (rows, beyond.is_some())
    }

    fn is_kept(cache: &StretchCache, range: &StoredRange, limit: usize, snapshot: u64) -> bool {
        cache.get(range, limit, Direction::Forward, snapshot).is_some()
    }

    fn store(keys: std::ops::Range<u8>) -> Store {
        keys.map(|key| (vec![key], 0)).collect()
    }

    #[test]
    fn what_was_read_serves_its_own_snapshot_and_later_ones() {
        let (cache, store) = (StretchCache::new(1 << 20), store(0..50));
        read(&cache, &store, range(10, 40), 5, Direction::Forward, 3);
        assert!(is_kept(&cache, &range(10, 40), 5, 3));
        assert!(is_kept(&cache, &range(10, 40), 2, 9), "fewer rows are there as well");
        assert!(!is_kept(&cache, &range(10, 40), 6, 9), "more are not");
        assert!(!is_kept(&cache, &range(10, 40), 5, 2), "an earlier snapshot");
        assert!(!is_kept(&cache, &range(10, 39), 5, 3), "another range");
        assert!(cache.get(&range(10, 40), 5, Direction::Backward, 3).is_none());
    }

    #[test]
    fn a_change_removes_what_it_touches_and_nothing_else() {
        let (cache, store) = (StretchCache::new(1 << 20), store(0..50));
        read(&cache, &store, range(10, 40), 5, Direction::Forward, 0);
        cache.change(1, keys(&[9, 16, 39]));
        assert!(is_kept(&cache, &range(10, 40), 5, 1), "the rows are 10 to 14");
        cache.change(2, keys(&[15]));
        assert!(!is_kept(&cache, &range(10, 40), 5, 2));
    }

    #[test]
    fn a_late_reader_cannot_keep_what_it_read() {
        let (cache, store) = (StretchCache::new(1 << 20), store(0..50));
        cache.change(6, keys(&[12]));
        read(&cache, &store, range(10, 40), 5, Direction::Forward, 5);
        assert!(!is_kept(&cache, &range(10, 40), 5, 6));
        read(&cache, &store, range(10, 40), 5, Direction::Forward, 6);
        assert!(is_kept(&cache, &range(10, 40), 5, 6));
    }

    #[test]
    fn what_is_in_use_stays_and_what_is_not_gives_way() {
        let (cache, store) = (StretchCache::new(1 << 20), store(0..50));
        read(&cache, &store, range(10, 40), 5, Direction::Forward, 0);
        assert!(is_kept(&cache, &range(10, 40), 5, 0));
        read(&cache, &store, range(12, 40), 5, Direction::Forward, 0);
        assert!(!is_kept(&cache, &range(12, 40), 5, 0), "in the way of one in use");
        read(&cache, &store, range(12, 40), 5, Direction::Forward, 0);
        assert!(is_kept(&cache, &range(12, 40), 5, 0), "which was not used since");
        assert!(!is_kept(&cache, &range(10, 40), 5, 0));
    }

    #[test]
    fn the_bound_holds_and_what_is_used_stays() {
        let weight_max = 20_000;
        let (cache, store) = (StretchCache::new(weight_max), store(0..255));
        for round in 0..10 {
            for start in 0..250 {
                read(&cache, &store, range(start, start + 1), 5, Direction::Forward, 0);
                let is_first = round == 0 && start == 0;
                assert!(is_first || is_kept(&cache, &range(0, 1), 5, 0), "{round} {start}");
            }
        }
        let kept = cache.read();
        assert!(kept.weight <= weight_max as usize && kept.stretches.len() > 20);
        assert_eq!(kept.weight, kept.stretches.values().map(|one| one.weight()).sum::<usize>());
    }

    #[test]
    fn long_scans_are_not_kept() {
        let cache = StretchCache::new(1 << 20);
        assert!(cache.recorder(ROWS_MAX + 1).is_none());
        assert!(StretchCache::new(0).recorder(1).is_none());
        let mut recorder = cache.recorder(5).unwrap();
        (0..5).for_each(|key| recorder.add(&[key], &[0; BLOCK_BYTES_MAX / 4], None));
        cache.fill(recorder, range(0, 9), Direction::Forward, None, 0);
        assert!(!is_kept(&cache, &range(0, 9), 5, 0));
    }

    fn recipe(area: &str) -> Recipe {
        Recipe { area: Area::new(area).unwrap(), cuts: Vec::new(), parts: Vec::new() }
    }

    /// Keeps the rows 0 to 9, each of which leads to the key 100 higher.
    fn followed(snapshot: u64) -> StretchCache {
        let cache = StretchCache::new(1 << 20);
        let mut recorder = cache.recorder(10).unwrap();
        for key in 0..10 {
            let (target, class) = ([key + 100], cache.class(hash(key + 100)));
            recorder.add(&[key], b"e", Some(Record { target: &target, stored: b"r", class }));
        }
        cache.fill(recorder, range(0, 10), Direction::Forward, Some(&recipe("a")), snapshot);
        cache
    }

    /// The targets of the first rows, with whether their records can be had.
    fn targets(cache: &StretchCache, limit: usize, recipe: &Recipe) -> Option<Vec<(u8, bool)>> {
        let kept = cache.get(&range(0, 10), limit, Direction::Forward, 9).unwrap();
        let rows = cache.followed(&kept, limit, recipe)?;
        Some(rows.map(|row| (row.target[0], row.stored_record.is_some())).collect())
    }

    #[test]
    fn a_record_is_served_until_it_may_have_changed() {
        let cache = followed(3);
        cache.change(4, keys(&[200]));
        assert_eq!(
            targets(&cache, 3, &recipe("a")).unwrap(),
            [(100, true), (101, true), (102, true)]
        );
        cache.change(5, keys(&[101]));
        let all = targets(&cache, 10, &recipe("a")).unwrap();
        assert!(all.iter().enumerate().all(|(place, row)| *row == (100 + place as u8, place != 1)));
        assert_eq!(targets(&cache, 3, &recipe("a")), None, "one of three is too many");
    }

    #[test]
    fn a_record_that_changed_before_the_list_was_kept_is_served() {
        let cache = StretchCache::new(1 << 20);
        cache.change(3, keys(&[100]));
        let mut recorder = cache.recorder(1).unwrap();
        let class = cache.class(hash(100));
        recorder.add(&[0], b"e", Some(Record { target: &[100], stored: b"r", class }));
        cache.fill(recorder, range(0, 10), Direction::Forward, Some(&recipe("a")), 3);
        assert_eq!(targets(&cache, 1, &recipe("a")).unwrap(), [(100, true)]);
    }

    #[test]
    fn what_was_followed_otherwise_or_led_nowhere_is_followed_again() {
        let cache = followed(3);
        assert_eq!(targets(&cache, 3, &recipe("b")), None);
        let mut recorder = cache.recorder(2).unwrap();
        let class = cache.class(hash(100));
        recorder.add(&[0], b"e", Some(Record { target: &[100], stored: b"r", class }));
        recorder.add(&[1], b"e", None);
        cache.fill(recorder, range(0, 10), Direction::Forward, Some(&recipe("a")), 3);
        assert_eq!(targets(&cache, 2, &recipe("a")), None);
        assert_eq!(cache.get(&range(0, 10), 2, Direction::Forward, 9).unwrap().rows().count(), 2);
    }

    fn any_direction() -> impl Strategy<Value = Direction> {
        prop_oneof![Just(Direction::Forward), Just(Direction::Backward)]
    }

    #[derive(Clone, Debug)]
    enum Step {
        Read(u8, u8, usize, Direction),
        Change(Vec<(u8, bool)>),
    }

    fn any_step() -> impl Strategy<Value = Step> {
        let change = proptest::collection::vec((0_u8..30, any::<bool>()), 1..3);
        prop_oneof![
            4 => (0_u8..8, 0_u8..9, 1_usize..4, any_direction())
                .prop_map(|(a, b, limit, direction)| Step::Read(a.min(b) * 4, a.max(b) * 4, limit, direction)),
            3 => change.prop_map(Step::Change),
        ]
    }

    proptest! {
        /// Whatever is read and changed in whatever order, the cache answers as the store does,
        /// and extents never overlap.
        #[test]
        fn answers_are_those_of_the_store(steps in proptest::collection::vec(any_step(), 1..200)) {
            let cache = StretchCache::new(CLASSES_MIN * 8 + 4_000);
            let mut store = Store::new();
            let mut commit = 0;
            for step in steps {
                match step {
                    Step::Read(start, end, limit, direction) => {
                        let range = range(start, end);
                        let (rows, beyond) = scan(&store, &range, limit, direction);
                        let found = read(&cache, &store, range, limit, direction, commit);
                        prop_assert_eq!(found, (rows, beyond.is_some()));
                    }
                    Step::Change(keys) => {
                        commit += 1;
                        let changed: Vec<u8> = keys.iter().map(|(key, _)| *key).collect();
                        for (key, is_put) in keys {
                            if is_put {
                                store.insert(vec![key], commit);
                            } else {
                                store.remove(&vec![key]);
                            }
                        }
                        cache.change(commit, self::keys(&changed));
                    }
                }
                let kept = cache.read();
                let extents: Vec<_> = kept.stretches.values().map(|one| &one.extent).collect();
                prop_assert!(extents.is_sorted_by(|a, b| a.1 <= b.0));
            }
        }
    }

    /// A writer and readers on a model store: every answer, kept or not, must be what the reader's
    /// own snapshot holds.
    #[test]
    fn readers_never_get_rows_of_another_moment() {
        const COMMITS: u64 = 5_000;
        let cache = StretchCache::new(1 << 16);
        let published = RwLock::new((0, Arc::new(store(0..20))));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut random = Random::new(1);
                for commit in 1..=COMMITS {
                    let key = (random.below(20)) as u8;
                    let mut next = Store::clone(&published.read().unwrap().1);
                    if random.below(2) == 0 {
                        next.remove(&vec![key]);
                    } else {
                        next.insert(vec![key], commit);
                    }
                    cache.change(commit, keys(&[key]));
                    *published.write().unwrap() = (commit, Arc::new(next));
                }
            });
            for seed in 2..5 {
                let (cache, published) = (&cache, &published);
                scope.spawn(move || {
                    let mut random = Random::new(seed);
                    loop {
                        let (snapshot, store) = published.read().unwrap().clone();
                        if snapshot == COMMITS {
                            break;
                        }
                        let start = random.below(4) as u8 * 5;
                        let asked = || range(start, start + 5);
                        let (rows, beyond) = scan(&store, &asked(), 3, Direction::Forward);
                        let found = read(cache, &store, asked(), 3, Direction::Forward, snapshot);
                        assert_eq!(found, (rows, beyond.is_some()), "from {start} at {snapshot}");
                    }
                });
            }
        });
    }
}
