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
//! A list says from which commit on it is true, and serves only readers whose moment is at that
//! commit or after it. The commit thread removes what it changes before it publishes the commit,
//! and a reader keeps what it read only if the [clock](super::clock) knows of no change at all since
//! its moment: such a reader may have missed the removal.
//!
//! Records are in many lists, and are not searched for. A record is served only if the clock knows
//! of no change of its key since the list was kept.
//!
//! Where lists do not fit, a hand goes round. Those that were not read often since it came by last
//! are [packed](list), so that two take the room of one. When little is left to pack, those of the
//! packed ones go that were not read at all. A packed list that is
//! read often is unpacked for good. Once lists did not fit, a list is kept only at its [second
//! reading](super::doorkeeper).

mod list;
mod recorder;

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use bytes::Bytes;

use super::clock::{Clock, Reader};
use super::doorkeeper::Doorkeeper;
use crate::engine::embedded::layout::StoredRange;
use crate::engine::{Direction, Recipe};
use list::{Head, PackedList};
pub(in crate::engine::embedded) use list::{KeptList, KeptRow};
pub(in crate::engine::embedded) use recorder::{Record, Recorder};

/// What is longer is read for another purpose than a list, and hardly a second time.
const ROWS_MAX: usize = 128;

/// How often a list is read, while the hand goes round once, to be worth its room. In the stead of a
/// list that is unpacked another one is packed, which takes longer than some readings of a packed list.
const READS_OFTEN: u8 = 4;

/// As long as plain lists take more than this part of the room, they are packed before any list goes.
const PLAIN_PART: usize = 4;

/// A guess that only sizes the table of lists that were asked for.
const LIST_BYTES_TYPICAL: u64 = 2 * 1024;

/// See the [module's](self) description.
pub(super) struct ListCache {
    weight_max: AtomicUsize,
    kept: RwLock<Kept>,
    /// Whether lists ever did not fit.
    is_short: AtomicBool,
    doorkeeper: Doorkeeper,
    clock: Arc<Clock>,
}

#[derive(Default)]
struct Kept {
    /// By the lowest keys of their extents, which do not overlap.
    lists: BTreeMap<Bytes, Slot>,
    weight: usize,
    /// What of that plain lists weigh.
    plain_weight: usize,
    /// Where the search for something to pack or to push out goes on: it goes round and round, and
    /// passes over what was read since it last came by.
    hand: Bytes,
}

/// A list as it is kept.
#[derive(Clone)]
enum Slot {
    Plain(Arc<KeptList>),
    Packed(Arc<PackedList>),
}

/// What the hand does with a list.
enum Step {
    Pass,
    Pack(Arc<KeptList>),
    Remove,
}

impl Slot {
    fn head(&self) -> &Arc<Head> {
        match self {
            Slot::Plain(list) => &list.head,
            Slot::Packed(list) => &list.head,
        }
    }

    fn weight(&self) -> usize {
        match self {
            Slot::Plain(list) => list.weight(),
            Slot::Packed(list) => list.weight(),
        }
    }

    fn plain_weight(&self) -> usize {
        match self {
            Slot::Plain(list) => list.weight(),
            Slot::Packed(_) => 0,
        }
    }
}

impl ListCache {
    /// A cache of at most so many bytes; 0 for none.
    pub(super) fn new(bytes_max: u64, clock: Arc<Clock>) -> Self {
        let weight_max = usize::try_from(bytes_max).unwrap_or(usize::MAX);
        let places = usize::try_from(bytes_max / LIST_BYTES_TYPICAL).unwrap_or(usize::MAX);
        ListCache {
            weight_max: AtomicUsize::new(weight_max),
            kept: RwLock::default(),
            is_short: AtomicBool::new(false),
            doorkeeper: Doorkeeper::new(places),
            clock,
        }
    }

    /// What the kept lists weigh.
    pub(super) fn bytes(&self) -> u64 {
        self.read().weight as u64
    }

    /// The first rows of a range, at least `limit` of them or all, as the reader must see them, if
    /// they are here.
    pub(super) fn get(
        &self,
        range: &StoredRange,
        limit: usize,
        direction: Direction,
        commit: u64,
    ) -> Option<Arc<KeptList>> {
        if limit > ROWS_MAX {
            return None;
        }
        let found = self.read().find(range, limit, direction, commit)?.clone();
        let reads = found.head().note_reading(READS_OFTEN);
        match found {
            Slot::Plain(list) => Some(list),
            Slot::Packed(packed) => {
                let list = Arc::new(packed.unpack()?);
                if reads >= READS_OFTEN {
                    self.replace(Slot::Plain(Arc::clone(&list)));
                    self.shrink();
                }
                Some(list)
            }
        }
    }

    /// Whether a list of at most so many rows may be kept.
    pub(super) fn takes(&self, limit: usize) -> bool {
        self.weight_max() > 0 && limit <= ROWS_MAX
    }

    /// To write down a scan of at most so many rows of a range with that hash, if it may be kept.
    pub(super) fn recorder(&self, limit: usize, hash: impl FnOnce() -> u64) -> Option<Recorder> {
        let is_wanted = || !self.is_short.load(Ordering::Relaxed) || self.doorkeeper.knows(hash());
        (self.takes(limit) && is_wanted()).then(|| Recorder::new(limit))
    }

    /// Keeps what a reader has read, unless that may be out of date, and gives it back.
    pub(super) fn fill(
        &self,
        recorder: Recorder,
        range: StoredRange,
        direction: Direction,
        recipe: Option<&Recipe>,
        commit: u64,
    ) -> Option<Arc<KeptList>> {
        let list = recorder.finish(range, direction, recipe, commit, &self.clock)?;
        let list = Arc::new(list);
        let mut kept = self.write();
        let reader = Reader { clock: &self.clock, commit };
        if !reader.is_all_current() || !kept.make_place(&list.head) {
            return None;
        }
        kept.insert(Slot::Plain(Arc::clone(&list)));
        drop(kept);
        self.shrink();
        Some(list)
    }

    /// Removes the lists that a commit changes, after that was noted and before it is published.
    pub(super) fn change<'k>(&self, keys: impl Iterator<Item = &'k [u8]>) {
        if self.weight_max() == 0 {
            return;
        }
        let mut kept = self.write();
        for key in keys {
            if let Some(start) = kept.extent_around(key) {
                kept.remove(&start);
            }
        }
    }

    /// Another bound from now on, which holds when this returns.
    pub(super) fn set_bytes_max(&self, bytes_max: u64) {
        let weight_max = usize::try_from(bytes_max).unwrap_or(usize::MAX);
        self.weight_max.store(weight_max, Ordering::Relaxed);
        self.shrink();
    }

    /// Packs lists, and removes packed ones, until the rest fits. It begins with those that nobody
    /// has read lately. A list is packed outside the lock, so that readers go on meanwhile.
    fn shrink(&self) {
        loop {
            let cool = self.write().next_cool(self.weight_max());
            let Some(list) = cool else { return };
            self.is_short.store(true, Ordering::Relaxed);
            match list.pack() {
                Some(packed) => {
                    list.head.reads.store(0, Ordering::Relaxed);
                    self.replace(Slot::Packed(Arc::new(packed)));
                }
                None => list.head.resists_packing.store(true, Ordering::Relaxed),
            }
        }
    }

    /// Puts the same list in another form in its place, if it is still kept.
    fn replace(&self, slot: Slot) {
        let mut kept = self.write();
        if kept.holds(slot.head()) {
            kept.insert(slot);
        }
    }

    fn weight_max(&self) -> usize {
        self.weight_max.load(Ordering::Relaxed)
    }

    fn read(&self) -> RwLockReadGuard<'_, Kept> {
        self.kept.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Kept> {
        self.kept.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Kept {
    fn find(
        &self,
        range: &StoredRange,
        limit: usize,
        direction: Direction,
        commit: u64,
    ) -> Option<&Slot> {
        let found = match direction {
            Direction::Forward => self.lists.get(&range.start[..]),
            // An extent that reaches up to the range's end is the last that begins below it.
            Direction::Backward => self.last_below(&range.end),
        };
        found.filter(|slot| slot.head().serves(range, limit, direction, commit))
    }

    fn last_below(&self, key: &[u8]) -> Option<&Slot> {
        let below = (Bound::Unbounded, Bound::Excluded(key));
        self.lists.range::<[u8], _>(below).next_back().map(|(_, slot)| slot)
    }

    /// The lowest key of the extent that holds a key.
    fn extent_around(&self, key: &[u8]) -> Option<Bytes> {
        let up_to = (Bound::Unbounded, Bound::Included(key));
        let (start, slot) = self.lists.range::<[u8], _>(up_to).next_back()?;
        (key < &slot.head().extent.1[..]).then(|| start.clone())
    }

    /// Removes what overlaps a new list; `false` when something of that is in use. It is then taken
    /// for unused until it is read again, so that it cannot stay in the way for ever.
    fn make_place(&mut self, new: &Head) -> bool {
        let (start, end) = &new.extent;
        let mut overlapping: Vec<Bytes> = self.extent_around(start).into_iter().collect();
        let inside = (Bound::Excluded(&start[..]), Bound::Excluded(&end[..]));
        overlapping.extend(self.lists.range::<[u8], _>(inside).map(|(key, _)| key.clone()));
        let others = overlapping.iter().filter_map(|key| self.lists.get(key)).map(Slot::head);
        let is_free = others.fold(true, |is_free, other| {
            let is_same = other.range == new.range && other.direction == new.direction;
            let is_read = other.reads.swap(0, Ordering::Relaxed) > 0;
            is_free && (is_same || !is_read)
        });
        if is_free {
            overlapping.iter().for_each(|key| self.remove(key));
        }
        is_free
    }

    /// Whether this very list is kept, in whichever form.
    fn holds(&self, head: &Arc<Head>) -> bool {
        self.lists.get(&head.extent.0).is_some_and(|slot| Arc::ptr_eq(slot.head(), head))
    }

    /// Keeps a list, instead of the one that begins where it does.
    fn insert(&mut self, slot: Slot) {
        self.weight += slot.weight();
        self.plain_weight += slot.plain_weight();
        let start = slot.head().extent.0.clone();
        if let Some(before) = self.lists.insert(start, slot) {
            self.weight -= before.weight();
            self.plain_weight -= before.plain_weight();
        }
    }

    fn remove(&mut self, start: &[u8]) {
        if let Some(slot) = self.lists.remove(start) {
            self.weight -= slot.weight();
            self.plain_weight -= slot.plain_weight();
            slot.head().trace.is_kept.store(false, Ordering::Release);
        }
    }

    /// A list to be packed, or `None` when all fits. What is packed and was not read goes meanwhile.
    fn next_cool(&mut self, weight_max: usize) -> Option<Arc<KeptList>> {
        while self.weight > weight_max {
            let onward = (Bound::Excluded(&self.hand[..]), Bound::Unbounded);
            let next = self.lists.range::<[u8], _>(onward).next();
            let (start, slot) = next.or_else(|| self.lists.first_key_value())?;
            let start = start.clone();
            let reads = slot.head().reads.load(Ordering::Relaxed);
            let resists_packing = slot.head().resists_packing.load(Ordering::Relaxed);
            let is_plain_short = self.plain_weight <= weight_max / PLAIN_PART;
            let step = match slot {
                Slot::Plain(list) if !resists_packing && reads < READS_OFTEN => {
                    Step::Pack(Arc::clone(list))
                }
                Slot::Plain(_) if resists_packing && reads == 0 => Step::Remove,
                Slot::Packed(_) if is_plain_short && reads == 0 => Step::Remove,
                _ => Step::Pass,
            };
            if let Step::Pass = step {
                slot.head().reads.store(0, Ordering::Relaxed);
            }
            self.hand.clone_from(&start);
            match step {
                Step::Pack(list) => return Some(list),
                Step::Remove => self.remove(&start),
                Step::Pass => {}
            }
        }
        None
    }
}

#[cfg(test)]
mod tests;
