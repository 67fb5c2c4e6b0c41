//! Small cells, such as claims and counts, kept in memory from their first read on, as close
//! together as they can lie.
//!
//! A look-up by a unique value reads a claim of some ninety bytes, and then its record. To find a
//! claim in fjall's tables takes half as long as to read the record, and keeping it with an
//! allocation of its own would take three times its bytes. So small cells lie in *pages*: the hash
//! of a key says in which page its cell is, if it is here at all, and a page has one allocation for
//! all its cells, one after the other, and a directory in front of them. When a page is full, cells
//! make room that were not read for a while.
//!
//! A reader is given a cell only if the [clock](super::clock) knows of no change of its key since the
//! reader's moment, and fills under the same condition. The commit thread changes what is here before
//! it publishes the commit.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{PoisonError, RwLock};

use bytes::Bytes;

use super::super::hashed::KeyRef;
use super::clock::Reader;

/// The longest cell, with its key, that is small.
const CELL_BYTES_MAX: usize = 256;

/// What a page takes: its directory, its cells, and what it needs besides. To find a cell means to
/// wait for memory, at the directory and at the cell, and both waits are shorter within one page of
/// the processor's.
const PAGE_BYTES: usize = 4096;
const CELLS_MAX: usize = 64;
/// A page with its shelf.
const PLACE_BYTES: u64 = (PAGE_BYTES + size_of::<RwLock<Shelf>>()) as u64;
const CELLS_BYTES: usize = PAGE_BYTES - CELLS_MAX * size_of::<Slot>() - 2 * size_of::<usize>();

/// See the [module's](self) description.
pub(super) struct SmallCells {
    shelves: Box<[RwLock<Shelf>]>,
    pages: AtomicU64,
}

/// Where a page is, if a cell ever came to it.
type Shelf = Option<Box<Page>>;

struct Page {
    /// One slot for each cell, in the order in which they came, and then empty ones.
    directory: [Slot; CELLS_MAX],
    cells: usize,
    /// Which cell is the next to make room.
    hand: usize,
    /// The cells in the same order, each after its key.
    bytes: [u8; CELLS_BYTES],
}

/// A cell in its page.
#[derive(Default)]
struct Slot {
    /// Some bits of the key's hash: most cells that are not meant are told apart by them.
    tag: u16,
    /// Where the cell ends. It begins where the one before it ends.
    end: u16,
    key_bytes: u8,
    /// Whether it was read since the hand last came by.
    is_used: AtomicBool,
}

impl SmallCells {
    /// Cells of at most so many bytes together; 0 for none.
    pub(super) fn new(bytes_max: u64) -> Self {
        let shelves = bytes_max / PLACE_BYTES;
        SmallCells {
            shelves: (0..shelves).map(|_| RwLock::default()).collect(),
            pages: AtomicU64::new(0),
        }
    }

    /// Whether a cell is small enough to be kept here.
    pub(super) fn takes(&self, key: KeyRef<'_>, stored: &[u8]) -> bool {
        // The length of a key goes into one byte.
        !self.shelves.is_empty()
            && key.bytes.len() < CELL_BYTES_MAX
            && key.bytes.len() + stored.len() <= CELL_BYTES_MAX
    }

    /// What all of it takes.
    pub(super) fn bytes(&self) -> u64 {
        let shelves = self.shelves.len() * size_of::<RwLock<Shelf>>();
        shelves as u64 + self.pages.load(Ordering::Relaxed) * PAGE_BYTES as u64
    }

    /// The cell as the reader must see it, if it is here.
    pub(super) fn get(&self, key: KeyRef<'_>, reader: Reader<'_>) -> Option<Bytes> {
        let shelf = self.shelf(key)?.read().unwrap_or_else(PoisonError::into_inner);
        let page = shelf.as_ref()?;
        let place = page.find(key).filter(|_| reader.is_current(key.hash))?;
        page.mark_used(place);
        Some(Bytes::copy_from_slice(page.cell(place)))
    }

    /// Keeps what a reader loaded, unless it may be out of date.
    pub(super) fn fill(&self, key: KeyRef<'_>, reader: Reader<'_>, loaded: &[u8]) {
        let Some(shelf) = self.shelf(key) else { return };
        let mut shelf = shelf.write().unwrap_or_else(PoisonError::into_inner);
        if !reader.is_current(key.hash) {
            return;
        }
        let page = shelf.get_or_insert_with(|| {
            self.pages.fetch_add(1, Ordering::Relaxed);
            Box::default()
        });
        // Another reader may have been faster.
        if page.find(key).is_none() {
            page.push(key, loaded);
        }
    }

    /// Brings a cell up to date, after its change was noted and before it is published. Only a cell
    /// that is here already is kept, if it is still small.
    pub(super) fn change(&self, key: KeyRef<'_>, stored: Option<&[u8]>) {
        let Some(shelf) = self.shelf(key) else { return };
        let mut shelf = shelf.write().unwrap_or_else(PoisonError::into_inner);
        let Some(page) = shelf.as_mut() else { return };
        if let Some(place) = page.find(key) {
            page.remove(place);
            if let Some(stored) = stored.filter(|stored| self.takes(key, stored)) {
                page.push(key, stored);
            }
        }
    }

    /// The shelf to which a key belongs.
    fn shelf(&self, key: KeyRef<'_>) -> Option<&RwLock<Shelf>> {
        // The upper half of the hash, as a part of all shelves.
        let place = ((key.hash >> 32) * self.shelves.len() as u64) >> 32;
        self.shelves.get(place as usize)
    }
}

impl Default for Page {
    fn default() -> Self {
        Page {
            directory: std::array::from_fn(|_| Slot::default()),
            cells: 0,
            hand: 0,
            bytes: [0; CELLS_BYTES],
        }
    }
}

impl Page {
    /// The place of the cell that has this key.
    fn find(&self, key: KeyRef<'_>) -> Option<usize> {
        let (tag, key_bytes) = (tag(key), key.bytes.len());
        let is_meant = |place: usize, slot: &Slot| {
            slot.tag == tag
                && usize::from(slot.key_bytes) == key_bytes
                && self.key(place) == key.bytes
        };
        let mut slots = self.directory[..self.cells].iter().enumerate();
        slots.find_map(|(place, slot)| is_meant(place, slot).then_some(place))
    }

    /// Where the cell at a place begins, or would begin.
    fn start(&self, place: usize) -> usize {
        place.checked_sub(1).map_or(0, |before| usize::from(self.directory[before].end))
    }

    fn key(&self, place: usize) -> &[u8] {
        let start = self.start(place);
        &self.bytes[start..start + usize::from(self.directory[place].key_bytes)]
    }

    fn cell(&self, place: usize) -> &[u8] {
        let Slot { end, key_bytes, .. } = self.directory[place];
        &self.bytes[self.start(place) + usize::from(key_bytes)..usize::from(end)]
    }

    /// Only the first to read it writes, so that a cell which all readers want stays in the caches
    /// of all their processors.
    fn mark_used(&self, place: usize) {
        let is_used = &self.directory[place].is_used;
        if !is_used.load(Ordering::Relaxed) {
            is_used.store(true, Ordering::Relaxed);
        }
    }

    /// Adds a small cell that is not here, and removes others for it if need be.
    fn push(&mut self, key: KeyRef<'_>, stored: &[u8]) {
        self.make_room(key.bytes.len() + stored.len());
        let start = self.start(self.cells);
        let (middle, end) = (start + key.bytes.len(), start + key.bytes.len() + stored.len());
        self.bytes[start..middle].copy_from_slice(key.bytes);
        self.bytes[middle..end].copy_from_slice(stored);
        self.directory[self.cells] = Slot {
            tag: tag(key),
            end: end as u16,
            key_bytes: key.bytes.len() as u8,
            is_used: AtomicBool::new(false),
        };
        self.cells += 1;
    }

    /// Cells leave until there is room for one of so many bytes. The hand goes round, and passes
    /// over those that were read since it last came by.
    fn make_room(&mut self, bytes: usize) {
        while self.cells == CELLS_MAX || self.start(self.cells) + bytes > CELLS_BYTES {
            if self.hand >= self.cells {
                self.hand = 0;
            }
            if self.directory[self.hand].is_used.swap(false, Ordering::Relaxed) {
                self.hand += 1;
            } else {
                self.remove(self.hand);
            }
        }
    }

    fn remove(&mut self, place: usize) {
        let (start, end) = (self.start(place), self.start(place + 1));
        let last = self.start(self.cells);
        self.bytes.copy_within(end..last, start);
        self.directory[place..self.cells].rotate_left(1);
        self.cells -= 1;
        for behind in &mut self.directory[place..self.cells] {
            behind.end -= (end - start) as u16;
        }
        // The hand stays before the cell that it was before.
        if place < self.hand {
            self.hand -= 1;
        }
    }
}

fn tag(key: KeyRef<'_>) -> u16 {
    key.hash as u16
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::super::super::hashed::key;
    use super::super::clock::Clock;
    use super::*;

    /// All keys meet in one page.
    fn one_page() -> Timed {
        Timed::new(PLACE_BYTES)
    }

    /// The cells with a clock, as the room has them.
    struct Timed {
        cells: SmallCells,
        clock: Clock,
    }

    impl Timed {
        fn new(bytes_max: u64) -> Self {
            Timed { cells: SmallCells::new(bytes_max), clock: Clock::new() }
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

    #[test]
    fn a_page_takes_what_it_is_reckoned_at() {
        assert_eq!(size_of::<Page>(), PAGE_BYTES);
        // Ends of cells are told in 16 bits, lengths of keys in 8, and a page has room for any cell.
        assert!(CELLS_BYTES <= usize::from(u16::MAX));
        assert!(CELL_BYTES_MAX <= CELLS_BYTES && CELL_BYTES_MAX <= usize::from(u8::MAX) + 1);
    }

    #[test]
    fn a_cell_serves_every_moment_since_its_last_change() {
        let cells = one_page();
        cells.change(key(b"k"), 4, Some(b"v"));
        cells.fill(key(b"k"), 5, b"v");
        assert_eq!(cells.get(key(b"k"), 3), None);
        assert_eq!(cells.get(key(b"k"), 4).unwrap(), "v");
        assert_eq!(cells.get(key(b"k"), 9).unwrap(), "v");
    }

    #[test]
    fn a_late_reader_cannot_fill_what_a_commit_has_changed() {
        let cells = one_page();
        cells.change(key(b"k"), 6, Some(b"new"));
        cells.fill(key(b"k"), 5, b"old");
        assert_eq!(cells.get(key(b"k"), 6), None);
        cells.fill(key(b"k"), 6, b"new");
        assert_eq!(cells.get(key(b"k"), 6).unwrap(), "new");
    }

    #[test]
    fn a_commit_replaces_what_is_here_and_adds_nothing() {
        let cells = one_page();
        cells.fill(key(b"k"), 1, b"old");
        cells.change(key(b"k"), 2, Some(b"new"));
        assert_eq!(cells.get(key(b"k"), 1), None);
        assert_eq!(cells.get(key(b"k"), 2).unwrap(), "new");
        cells.change(key(b"other"), 3, Some(b"new"));
        assert_eq!(cells.get(key(b"other"), 3), None);
        cells.change(key(b"k"), 4, Some(&[0; CELL_BYTES_MAX]));
        assert_eq!(cells.get(key(b"k"), 4), None);
    }

    #[test]
    fn what_is_too_long_is_not_taken() {
        let cells = one_page();
        assert!(cells.cells.takes(key(b"k"), &[0; CELL_BYTES_MAX - 1]));
        assert!(!cells.cells.takes(key(b"k"), &[0; CELL_BYTES_MAX]));
        assert!(!cells.cells.takes(key(&[1; CELL_BYTES_MAX]), b""));
        assert!(!SmallCells::new(0).takes(key(b"k"), b"v"));
    }

    #[test]
    fn a_cell_that_is_read_again_and_again_stays() {
        let cells = one_page();
        cells.fill(key(b"wanted"), 1, b"v");
        for number in 0..10_000u32 {
            cells.fill(key(&number.to_be_bytes()), 1, &[0; 80]);
            assert_eq!(cells.get(key(b"wanted"), 1).unwrap(), "v", "after {number} others");
        }
    }

    #[test]
    fn the_bound_holds_and_the_room_is_used() {
        let (bytes_max, cell) = (1 << 20, [0; 90]);
        let cells = Timed::new(bytes_max);
        for number in 0..100_000u32 {
            cells.fill(key(&number.to_be_bytes()), 1, &cell);
        }
        assert!(cells.cells.bytes() <= bytes_max, "{} bytes", cells.cells.bytes());
        let numbers = 0..100_000u32;
        let kept = numbers.filter(|number| cells.get(key(&number.to_be_bytes()), 1).is_some());
        let kept_bytes = kept.count() * (size_of::<u32>() + cell.len());
        assert!(kept_bytes as u64 > bytes_max / 10 * 8, "{kept_bytes} bytes of cells");
    }

    #[derive(Clone, Debug)]
    enum Step {
        Read(u8),
        Change(u8, Option<Vec<u8>>),
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let cell = || prop::collection::vec(any::<u8>(), 0..300);
        let step = prop_oneof![
            3 => (0..80u8).prop_map(Step::Read),
            1 => (0..80u8, prop::option::of(cell())).prop_map(|(key, cell)| Step::Change(key, cell)),
        ];
        prop::collection::vec(step, 0..400)
    }

    proptest! {
        /// Whatever is done in one page, a cell is found as it is in the store, or not at all.
        #[test]
        fn what_is_found_is_what_is_there(steps in steps()) {
            let cells = one_page();
            // Keys of all lengths, some of which begin others.
            let keys: Vec<Vec<u8>> = (0..80u8).map(|number| vec![number / 8; 1 + usize::from(number)]).collect();
            let mut store: HashMap<u8, Vec<u8>> = (0..80).map(|number| (number, vec![number; usize::from(number)])).collect();
            for (commit, step) in (1..).zip(steps) {
                match step {
                    Step::Read(number) => {
                        let key = key(&keys[usize::from(number)]);
                        let there = store.get(&number);
                        match cells.get(key, commit) {
                            Some(found) => prop_assert_eq!(Some(&found[..]), there.map(Vec::as_slice)),
                            None => {
                                if let Some(there) = there.filter(|there| cells.cells.takes(key, there)) {
                                    cells.fill(key, commit, there);
                                    prop_assert_eq!(&cells.get(key, commit).unwrap()[..], &there[..]);
                                }
                            }
                        }
                    }
                    Step::Change(number, cell) => {
                        cells.change(key(&keys[usize::from(number)]), commit, cell.as_deref());
                        match cell {
                            Some(cell) => store.insert(number, cell),
                            None => store.remove(&number),
                        };
                    }
                }
            }
        }
    }
}
