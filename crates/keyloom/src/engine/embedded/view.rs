//! What readers see: the last snapshot that was published, and the caches beside it.
//!
//! Reads run on the caller's thread. They share the snapshot by counting references, hold no
//! lock while they read, and never wait for a writer. Long ones [give way](super::super::quantum)
//! to other tasks, and go on at the same moment.

use std::sync::{Arc, Mutex, PoisonError, RwLock, Weak};

use bytes::{Buf, Bytes};

use super::super::log_waiters::LogWaiters;
use super::super::quantum::Quantum;
use super::super::{
    Address, Area, Cell, Direction, Link, Range, Recipe, Row, Space, Stretch, Trail, successor,
    target_of,
};
use super::cache::{Cache, KeptList, KeptRow, KeyHasher, Record, Recorder};
use super::fjall::{AbsenceCheck, Database, Stored};
use super::hashed::KeyRef;
use super::layout::{self, StoredRange};
use crate::error::{Error, ErrorKind, Result};

/// The place where the commit thread leaves snapshots and readers find them.
pub(super) struct View {
    published: RwLock<Option<Arc<Published>>>,
    cache: Cache,
    log_waiters: LogWaiters,
    /// The moments that somebody holds. They end with this view.
    pins: Mutex<Vec<Weak<View>>>,
}

/// One published moment of the store.
pub(super) struct Published {
    /// How many groups were published before it since the store was opened.
    pub(super) commit: u64,
    stored: Stored,
    /// The short cut to what is absent; `None` at a moment that is held.
    absence: Option<AbsenceCheck>,
}

impl Published {
    /// All that was written so far.
    pub(super) fn new(commit: u64, database: &Database) -> Self {
        Published { commit, stored: database.stored(), absence: Some(database.absence()) }
    }
}

impl View {
    pub(super) fn new(first: Published, cache: Cache) -> Self {
        let (published, log_waiters) = (RwLock::new(Some(Arc::new(first))), LogWaiters::default());
        View { published, cache, log_waiters, pins: Mutex::default() }
    }

    /// The moment at which to read, as a view of its own that stays at it. It ends when this one is
    /// closed. No cache is filled by whoever reads it: mostly that is all of a store, once.
    pub(super) fn pin(&self) -> Result<Arc<View>> {
        // Whoever closes this view comes before, and there is no moment any more, or after, and
        // finds this one among the others.
        let mut pins = self.pins.lock().unwrap_or_else(PoisonError::into_inner);
        let Published { commit, stored, .. } = &*self.moment()?.published;
        let held = Published { commit: *commit, stored: stored.hold()?, absence: None };
        let pinned = Arc::new(View::new(held, Cache::none()));
        pins.retain(|pin| pin.strong_count() > 0);
        pins.push(Arc::downgrade(&pinned));
        Ok(pinned)
    }

    /// How many moments somebody holds.
    pub(super) fn pins(&self) -> usize {
        let pins = self.pins.lock().unwrap_or_else(PoisonError::into_inner);
        pins.iter().filter_map(Weak::upgrade).filter(|pin| !pin.is_closed()).count()
    }

    /// The moment at which to read.
    pub(super) fn moment(&self) -> Result<Moment<'_>> {
        let published = self.published.read().unwrap_or_else(PoisonError::into_inner).clone();
        let published = published.ok_or_else(closed)?;
        Ok(Moment { published, cache: &self.cache })
    }

    /// Replaces what readers see from now on. The caches must know of the changes already.
    pub(super) fn publish(&self, next: Published) {
        let next = Some(Arc::new(next));
        let mut published = self.published.write().unwrap_or_else(PoisonError::into_inner);
        let last = std::mem::replace(&mut *published, next);
        // Dropping a snapshot takes locks of fjall's, so it is done outside of ours.
        drop(published);
        drop(last);
    }

    /// Ends all reading, also of moments that are held.
    pub(super) fn close(&self) {
        let last = self.published.write().unwrap_or_else(PoisonError::into_inner).take();
        drop(last);
        let pins = std::mem::take(&mut *self.pins.lock().unwrap_or_else(PoisonError::into_inner));
        pins.iter().filter_map(Weak::upgrade).for_each(|pin| pin.close());
    }

    pub(super) fn is_closed(&self) -> bool {
        self.published.read().unwrap_or_else(PoisonError::into_inner).is_none()
    }

    pub(super) fn cache(&self) -> &Cache {
        &self.cache
    }

    /// What wakes those who wait for a log to grow.
    pub(super) fn log_waiters(&self) -> &LogWaiters {
        &self.log_waiters
    }
}

/// The error of every call after `close`.
pub(super) fn closed() -> Error {
    Error::new(ErrorKind::Closed, "the store was closed")
}

/// Where a cell stays that had to be loaded. One copy is enough.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Keep {
    InCache,
    WithList,
    Nowhere,
}

/// Reads at one published moment.
pub(super) struct Moment<'v> {
    published: Arc<Published>,
    cache: &'v Cache,
}

impl Moment<'_> {
    /// Which commit was the last one before this moment.
    pub(super) fn commit(&self) -> u64 {
        self.published.commit
    }

    /// Whether a key of this hash is certainly as it was right after that commit.
    pub(super) fn is_unchanged_since(&self, commit: u64, hash: u64) -> bool {
        self.cache.is_unchanged_since(commit, hash)
    }

    /// What fjall has, past the caches.
    pub(super) fn stored(&self) -> &Stored {
        &self.published.stored
    }

    /// What gives stored keys their hashes.
    pub(super) fn hasher(&self) -> &KeyHasher {
        self.cache.hasher()
    }

    /// The cell at a stored key.
    pub(super) fn load(&self, key: KeyRef<'_>) -> Result<Option<Cell>> {
        let stored = self.load_stored(key, Keep::InCache)?;
        stored.map(|stored| layout::decode(key.bytes, stored)).transpose()
    }

    /// As [`load`](Self::load), of a key that has no hash yet.
    fn load_at(&self, stored_key: &[u8]) -> Result<Option<Cell>> {
        self.load(KeyRef::new(stored_key, self.hasher()))
    }

    /// The cell at a stored key as it is stored, from the cache or from fjall.
    pub(super) fn load_stored(&self, key: KeyRef<'_>, keep: Keep) -> Result<Option<Bytes>> {
        if let Some(kept) = self.cache.read_cell(key, self.commit()) {
            return Ok(Some(kept));
        }
        let loaded = self.load_past_caches(key.bytes)?;
        if let (Some(loaded), Keep::InCache) = (&loaded, keep) {
            self.cache.keep_cell(key, self.commit(), loaded);
        }
        Ok(loaded)
    }

    /// The cell at a stored key as it is stored, from fjall.
    pub(super) fn load_past_caches(&self, stored_key: &[u8]) -> Result<Option<Bytes>> {
        self.stored().get(stored_key)
    }

    /// The same, of a cell that mostly is not there, and for those who will ask whether it has changed
    /// since this moment: if it has, the answer may be `None` though it was there.
    pub(super) fn load_if_unchanged(&self, key: KeyRef<'_>) -> Result<Option<Bytes>> {
        match &self.published.absence {
            Some(absence) if absence.rules_out(key)? => Ok(None),
            _ => self.load_past_caches(key.bytes),
        }
    }

    /// Many cells.
    pub(super) async fn get(
        &self,
        space: &Space,
        addresses: &[Address],
    ) -> Result<Vec<Option<Cell>>> {
        let (mut buffer, mut quantum) = (Vec::new(), Quantum::default());
        let mut cells = Vec::with_capacity(addresses.len());
        for address in addresses {
            let cell = self.load_address(space, address, &mut buffer)?;
            quantum.note(cell.as_ref().and_then(Cell::bytes).map_or(0, Bytes::len));
            cells.push(cell);
            if quantum.is_used_up() {
                quantum.pay().await;
            }
        }
        quantum.pay().await;
        Ok(cells)
    }

    fn load_address(
        &self,
        space: &Space,
        address: &Address,
        buffer: &mut Vec<u8>,
    ) -> Result<Option<Cell>> {
        layout::stored_key(space, &address.area, &address.key, buffer);
        self.load_at(buffer)
    }

    /// The areas of a space, each found by one look behind the one before.
    pub(super) fn areas(&self, space: &Space) -> Result<Vec<Area>> {
        let (mut start, end) = layout::stored_space(space);
        let mut areas = Vec::new();
        while let Some((stored_key, _)) = self.stored().range(&start, &end).next().transpose()? {
            let area = layout::area_of(space, &stored_key)?;
            start = layout::stored_range(space, &Range::all(area.clone())).end;
            areas.push(area);
        }
        Ok(areas)
    }

    /// The rows of several ranges.
    pub(super) async fn scan(
        &self,
        space: &Space,
        ranges: &[Range],
        limit: usize,
        direction: Direction,
    ) -> Result<Vec<Stretch<Row>>> {
        let (mut stretches, mut quantum) = (Vec::with_capacity(ranges.len()), Quantum::default());
        for range in ranges {
            stretches.push(self.scan_range(space, range, limit, direction, &mut quantum).await?);
        }
        quantum.pay().await;
        Ok(stretches)
    }

    async fn scan_range(
        &self,
        space: &Space,
        range: &Range,
        limit: usize,
        direction: Direction,
        quantum: &mut Quantum,
    ) -> Result<Stretch<Row>> {
        if limit == 0 || range.is_empty() {
            return Ok(Stretch::new(Vec::new(), false));
        }
        if let Some(key) = range.only_key() {
            let rows = self.row(space, range, key)?.into_iter().collect();
            return Ok(Stretch::new(rows, false));
        }
        let place = layout::stored_range(space, range);
        let kept = self.cache.read_list(&place, limit, direction, self.commit());
        let mut recorder = if kept.is_none() { self.cache.recorder(&place, limit) } else { None };
        let mut rows = Vec::new();
        let row = |stored_key: Bytes, stored: Bytes| {
            if let Some(recorder) = &mut recorder {
                recorder.add(&stored_key, &stored, None);
            }
            let bytes = stored.len();
            rows.push(decode_row(stored_key, stored, place.prefix_bytes)?);
            Ok(bytes)
        };
        let beyond = self.walk(&place, limit, direction, kept.as_deref(), row, quantum).await?;
        let filled = self.keep(recorder, beyond.as_deref(), place, direction, None);
        let witness = kept.or(filled).map(|kept| kept.witness(self.commit()));
        Ok(Stretch { rows, more: beyond.is_some(), witness })
    }

    /// The entries of several ranges with the records that they name, all of this moment.
    pub(super) async fn follow(
        &self,
        space: &Space,
        trails: &[Trail<'_>],
        limit: usize,
        direction: Direction,
    ) -> Result<Vec<Stretch<Link>>> {
        let (mut stretches, mut quantum) = (Vec::with_capacity(trails.len()), Quantum::default());
        for trail in trails {
            stretches.push(self.follow_range(space, trail, limit, direction, &mut quantum).await?);
        }
        quantum.pay().await;
        Ok(stretches)
    }

    async fn follow_range(
        &self,
        space: &Space,
        trail: &Trail<'_>,
        limit: usize,
        direction: Direction,
        quantum: &mut Quantum,
    ) -> Result<Stretch<Link>> {
        let Trail { range, recipe } = trail;
        if limit == 0 || range.is_empty() {
            return Ok(Stretch::new(Vec::new(), false));
        }
        if let Some(key) = range.only_key() {
            let row = self.row(space, range, key)?;
            let links = row.map(|entry| self.follow_row(space, recipe, entry));
            return Ok(Stretch::new(links.into_iter().collect::<Result<_>>()?, false));
        }
        let place = layout::stored_range(space, range);
        let kept = self.cache.read_list(&place, limit, direction, self.commit());
        if let Some(kept) = &kept
            && let Some(rows) = kept.followed(limit, recipe)
        {
            let rows = rows.map(|row| self.link(space, recipe, row, place.prefix_bytes));
            let rows = rows.collect::<Result<_>>()?;
            let more = kept.key_beyond(limit).is_some();
            return Ok(Stretch { rows, more, witness: kept.witness_followed(self.commit()) });
        }
        let mut recorder = self.cache.recorder(&place, limit);
        // Records of a list that is not kept at its first reading wait for the second with it.
        let keep = match self.cache.takes_lists_of(limit) {
            true => Keep::WithList,
            false => Keep::InCache,
        };
        let (mut rows, mut buffer) = (Vec::new(), Vec::new());
        let row =
            |stored_key: Bytes, stored: Bytes| {
                let entry = decode_row(stored_key.clone(), stored.clone(), place.prefix_bytes)?;
                let target = target_of(recipe, &entry);
                let (mut record, mut hash) = (None, 0);
                if let Some(target) = &target {
                    layout::stored_key(space, &target.area, &target.key, &mut buffer);
                    let key = KeyRef::new(&buffer, self.hasher());
                    record = self.load_stored(key, keep)?;
                    hash = key.hash;
                }
                if let Some(recorder) = &mut recorder {
                    let led_to = target.as_ref().zip(record.as_ref()).map(|(target, record)| {
                        Record { target: &target.key, stored: record, hash }
                    });
                    recorder.add(&stored_key, &stored, led_to);
                }
                let bytes = stored.len() + record.as_ref().map_or(0, Bytes::len);
                let record = record.map(|record| layout::decode(&buffer, record)).transpose()?;
                rows.push(Link { entry, target: target.map(|target| target.key), record });
                Ok(bytes)
            };
        let beyond = self.walk(&place, limit, direction, kept.as_deref(), row, quantum).await?;
        let filled = self.keep(recorder, beyond.as_deref(), place, direction, Some(recipe));
        let witness = filled.and_then(|filled| filled.witness_followed(self.commit()));
        Ok(Stretch { rows, more: beyond.is_some(), witness })
    }

    /// The row of a range that has one key only. Looking for it is far cheaper than walking.
    fn row(&self, space: &Space, range: &Range, key: &Bytes) -> Result<Option<Row>> {
        let mut stored_key = Vec::new();
        layout::stored_key(space, &range.area, key, &mut stored_key);
        Ok(self.load_at(&stored_key)?.map(|cell| Row { key: key.clone(), cell }))
    }

    fn follow_row(&self, space: &Space, recipe: &Recipe, entry: Row) -> Result<Link> {
        let target = target_of(recipe, &entry);
        let record = match &target {
            Some(target) => self.load_address(space, target, &mut Vec::new())?,
            None => None,
        };
        Ok(Link { entry, target: target.map(|target| target.key), record })
    }

    /// A row that was kept, with its record as it is at this moment.
    fn link(
        &self,
        space: &Space,
        recipe: &Recipe,
        row: KeptRow,
        prefix_bytes: usize,
    ) -> Result<Link> {
        let KeptRow { stored_key, stored, target, stored_record } = row;
        let entry = decode_row(stored_key, stored, prefix_bytes)?;
        let record = match stored_record {
            Some(stored_record) => Some(layout::decode(&target, stored_record)?),
            None => {
                let mut stored_key = Vec::new();
                layout::stored_key(space, &recipe.area, &target, &mut stored_key);
                self.load_at(&stored_key)?
            }
        };
        Ok(Link { entry, target: Some(target), record })
    }

    /// Gives the first rows of a range, from what was kept or from fjall, and returns the key
    /// after them. `row` says how many bytes it has read for one.
    async fn walk(
        &self,
        place: &StoredRange,
        limit: usize,
        direction: Direction,
        kept: Option<&KeptList>,
        mut row: impl FnMut(Bytes, Bytes) -> Result<usize>,
        quantum: &mut Quantum,
    ) -> Result<Option<Bytes>> {
        if let Some(kept) = kept {
            for (stored_key, stored) in kept.rows().take(limit) {
                quantum.note(row(stored_key, stored)?);
            }
            return Ok(kept.key_beyond(limit));
        }
        let (mut start, mut end) = (place.start.clone(), place.end.clone());
        let mut left = limit;
        loop {
            // What iterates does not stay over a pause. Making it anew costs little against a
            // quantum of rows.
            let stopped_at = {
                let mut found = self.stored().range(&start, &end);
                let mut next = || match direction {
                    Direction::Forward => found.next(),
                    Direction::Backward => found.next_back(),
                };
                loop {
                    let Some((stored_key, stored)) = next().transpose()? else { return Ok(None) };
                    if left == 0 {
                        return Ok(Some(stored_key));
                    }
                    left -= 1;
                    quantum.note(row(stored_key.clone(), stored)?);
                    if quantum.is_used_up() {
                        break stored_key;
                    }
                }
            };
            quantum.pay().await;
            match direction {
                Direction::Forward => start = successor(&stopped_at).into(),
                Direction::Backward => end = stopped_at.into(),
            }
            if start >= end {
                return Ok(None);
            }
        }
    }

    fn keep(
        &self,
        recorder: Option<Recorder>,
        beyond: Option<&[u8]>,
        place: StoredRange,
        direction: Direction,
        recipe: Option<&Recipe>,
    ) -> Option<Arc<KeptList>> {
        let mut recorder = recorder?;
        beyond.into_iter().for_each(|stored_key| recorder.stop_before(stored_key));
        self.cache.keep_list(recorder, place, direction, recipe, self.commit())
    }
}

fn decode_row(stored_key: Bytes, stored: Bytes, prefix_bytes: usize) -> Result<Row> {
    let cell = layout::decode(&stored_key, stored)?;
    let mut key = stored_key;
    key.advance(prefix_bytes);
    Ok(Row { key, cell })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

    use super::super::{Embedded, Options};
    use super::*;
    use crate::engine::{Addition, Area, Batch, Condition, Effect, Engine, Fence, Outcome, Stamp};

    fn stamp(number: u8) -> Stamp {
        Stamp([number; Stamp::BYTES])
    }

    fn address(key: &'static str) -> Address {
        Address::new(Area::default_area(), key)
    }

    fn is_kept(store: &Embedded, key: &'static str) -> bool {
        let (moment, mut stored_key) = (store.view.moment().unwrap(), Vec::new());
        layout::stored_key(&Space::main(), &Area::default_area(), key.as_bytes(), &mut stored_key);
        let key = KeyRef::new(&stored_key, moment.hasher());
        moment.cache.read_cell(key, moment.commit()).is_some()
    }

    #[tokio::test]
    async fn writers_keep_what_they_will_ask_for_again_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let store = Embedded::open(folder.path(), Options::default()).unwrap();
        let put = || Some(Effect::Put { stamp: stamp(1), bytes: Bytes::from_static(b"cell") });
        let mut first = Batch::new(Space::main());
        first.push(address("fence"), None, put());
        first.push(address("record"), None, put());
        store.commit(first).await.unwrap();
        for _ in 0..3 {
            let mut batch = Batch::new(Space::main());
            batch.fence = Some(Fence { address: address("fence"), stamp: stamp(1) });
            let addition = Addition { name: "n".into(), delta: 1, min: None, max: None };
            let effect = Effect::Add { stamp: stamp(2), additions: vec![addition] };
            batch.push(address("count"), None, Some(effect));
            batch.push(address("record"), Some(Condition::Unchanged(stamp(1))), None);
            store.commit(batch).await.unwrap();
        }
        assert!(is_kept(&store, "fence") && is_kept(&store, "count"));
        assert!(!is_kept(&store, "record"));
        store.close().await.unwrap();
    }

    #[tokio::test]
    async fn what_is_to_be_absent_is_looked_for_past_the_caches() {
        let folder = tempfile::tempdir().unwrap();
        let store = Embedded::open(folder.path(), Options::default()).unwrap();
        let looks = || store.view.cache.hits()[0];
        let claim = async |condition| {
            let mut batch = Batch::new(Space::main());
            let put = Effect::Put { stamp: stamp(1), bytes: Bytes::from_static(b"cell") };
            batch.push(address("claim"), Some(condition), Some(put));
            store.commit(batch).await.unwrap()
        };
        assert!(matches!(claim(Condition::Absent).await, Outcome::Committed(_)));
        assert!(matches!(claim(Condition::Absent).await, Outcome::Rejected(_)));
        assert_eq!(looks(), (0, 0));
        assert!(matches!(claim(Condition::Present).await, Outcome::Committed(_)));
        assert_eq!(looks(), (0, 1));
        store.close().await.unwrap();
    }
}
