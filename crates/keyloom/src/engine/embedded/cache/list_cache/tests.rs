//! Lists kept, packed, pushed out, changed and witnessed, with a clock as the room has it.

#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

use std::sync::RwLock;

use proptest::prelude::*;

use super::recorder::BLOCK_BYTES_MAX;
use super::*;
use crate::engine::Area;
use crate::engine::random::Random;

/// The keys of the tests are one byte each; a cell's bytes are the commit that wrote it.
type Store = BTreeMap<Vec<u8>, u64>;
type Rows = Vec<(Vec<u8>, u64)>;

/// The lists with a clock, as the room has them.
struct Timed {
    lists: ListCache,
    clock: Arc<Clock>,
}

impl Timed {
    fn new(bytes_max: u64) -> Self {
        let clock = Arc::new(Clock::new());
        Timed { lists: ListCache::new(bytes_max, Arc::clone(&clock)), clock }
    }

    /// As of a range that was asked for before.
    fn recorder(&self, limit: usize) -> Option<Recorder> {
        let first = self.lists.recorder(limit, || 7);
        first.or_else(|| self.lists.recorder(limit, || 7))
    }

    /// Changes keys of one byte each.
    fn change(&self, commit: u64, keys: &[u8]) {
        self.clock.note(commit, keys.iter().map(|key| hash(*key)));
        self.lists.change(keys.chunks(1));
    }
}

impl std::ops::Deref for Timed {
    type Target = ListCache;

    fn deref(&self) -> &ListCache {
        &self.lists
    }
}

/// Hashes that differ where the keys do.
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
    cache: &Timed,
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

fn is_kept(cache: &Timed, range: &StoredRange, limit: usize, snapshot: u64) -> bool {
    cache.get(range, limit, Direction::Forward, snapshot).is_some()
}

fn store(keys: std::ops::Range<u8>) -> Store {
    keys.map(|key| (vec![key], 0)).collect()
}

#[test]
fn what_was_read_serves_its_own_snapshot_and_later_ones() {
    let (cache, store) = (Timed::new(1 << 20), store(0..50));
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
    let (cache, store) = (Timed::new(1 << 20), store(0..50));
    read(&cache, &store, range(10, 40), 5, Direction::Forward, 0);
    cache.change(1, &[9, 16, 39]);
    assert!(is_kept(&cache, &range(10, 40), 5, 1), "the rows are 10 to 14");
    cache.change(2, &[15]);
    assert!(!is_kept(&cache, &range(10, 40), 5, 2));
}

#[test]
fn a_late_reader_cannot_keep_what_it_read() {
    let (cache, store) = (Timed::new(1 << 20), store(0..50));
    cache.change(6, &[12]);
    read(&cache, &store, range(10, 40), 5, Direction::Forward, 5);
    assert!(!is_kept(&cache, &range(10, 40), 5, 6));
    read(&cache, &store, range(10, 40), 5, Direction::Forward, 6);
    assert!(is_kept(&cache, &range(10, 40), 5, 6));
}

#[test]
fn what_is_in_use_stays_and_what_is_not_gives_way() {
    let (cache, store) = (Timed::new(1 << 20), store(0..50));
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
    let (cache, store) = (Timed::new(weight_max), store(0..255));
    for round in 0..10 {
        for start in 0..250 {
            read(&cache, &store, range(start, start + 1), 5, Direction::Forward, 0);
            let is_first = round == 0 && start == 0;
            assert!(is_first || is_kept(&cache, &range(0, 1), 5, 0), "{round} {start}");
        }
    }
    let kept = cache.read();
    assert!(kept.weight <= weight_max as usize && kept.lists.len() > 20);
    assert_eq!(kept.weight, kept.lists.values().map(Slot::weight).sum::<usize>());
    assert_eq!(kept.plain_weight, kept.lists.values().map(Slot::plain_weight).sum::<usize>());
}

#[test]
fn long_scans_are_not_kept() {
    let cache = Timed::new(1 << 20);
    assert!(cache.recorder(ROWS_MAX + 1).is_none());
    assert!(Timed::new(0).recorder(1).is_none());
    let mut recorder = cache.recorder(5).unwrap();
    (0..5).for_each(|key| recorder.add(&[key], &[0; BLOCK_BYTES_MAX / 4], None));
    cache.fill(recorder, range(0, 9), Direction::Forward, None, 0);
    assert!(!is_kept(&cache, &range(0, 9), 5, 0));
}

fn recipe(area: &str) -> Recipe {
    Recipe { area: Area::new(area).unwrap(), cuts: Vec::new(), parts: Vec::new() }
}

/// Keeps the rows 0 to 9, each of which leads to the key 100 higher.
fn followed(snapshot: u64) -> Timed {
    let cache = Timed::new(1 << 20);
    let mut recorder = cache.recorder(10).unwrap();
    for key in 0..10 {
        let target = Record { target: &[key + 100], stored: b"r", hash: hash(key + 100) };
        recorder.add(&[key], b"e", Some(target));
    }
    cache.fill(recorder, range(0, 10), Direction::Forward, Some(&recipe("a")), snapshot);
    cache
}

/// The targets of the first rows, with whether their records can be had.
fn targets(cache: &Timed, limit: usize, recipe: &Recipe) -> Option<Vec<(u8, bool)>> {
    let kept = cache.get(&range(0, 10), limit, Direction::Forward, 9).unwrap();
    let rows = kept.followed(limit, recipe)?;
    Some(rows.map(|row| (row.target[0], row.stored_record.is_some())).collect())
}

#[test]
fn a_record_is_served_until_it_may_have_changed() {
    let cache = followed(3);
    cache.change(4, &[200]);
    assert_eq!(targets(&cache, 3, &recipe("a")).unwrap(), [(100, true), (101, true), (102, true)]);
    cache.change(5, &[101]);
    let all = targets(&cache, 10, &recipe("a")).unwrap();
    assert!(all.iter().enumerate().all(|(place, row)| *row == (100 + place as u8, place != 1)));
    assert_eq!(targets(&cache, 3, &recipe("a")), None, "one of three is too many");
}

#[test]
fn a_record_that_changed_before_the_list_was_kept_is_served() {
    let cache = Timed::new(1 << 20);
    cache.change(3, &[100]);
    let mut recorder = cache.recorder(1).unwrap();
    recorder.add(&[0], b"e", Some(Record { target: &[100], stored: b"r", hash: hash(100) }));
    cache.fill(recorder, range(0, 10), Direction::Forward, Some(&recipe("a")), 3);
    assert_eq!(targets(&cache, 1, &recipe("a")).unwrap(), [(100, true)]);
}

#[test]
fn what_was_followed_otherwise_or_led_nowhere_is_followed_again() {
    let cache = followed(3);
    assert_eq!(targets(&cache, 3, &recipe("b")), None);
    let mut recorder = cache.recorder(2).unwrap();
    recorder.add(&[0], b"e", Some(Record { target: &[100], stored: b"r", hash: hash(100) }));
    recorder.add(&[1], b"e", None);
    cache.fill(recorder, range(0, 10), Direction::Forward, Some(&recipe("a")), 3);
    assert_eq!(targets(&cache, 2, &recipe("a")), None);
    assert_eq!(cache.get(&range(0, 10), 2, Direction::Forward, 9).unwrap().rows().count(), 2);
}

fn any_direction() -> impl Strategy<Value = Direction> {
    prop_oneof![Just(Direction::Forward), Just(Direction::Backward)]
}

#[derive(Clone, Debug)]
enum Deed {
    Read(u8, u8, usize, Direction),
    Change(Vec<(u8, bool)>),
}

fn any_deed() -> impl Strategy<Value = Deed> {
    let change = proptest::collection::vec((0_u8..30, any::<bool>()), 1..3);
    prop_oneof![
        4 => (0_u8..8, 0_u8..9, 1_usize..4, any_direction())
            .prop_map(|(a, b, limit, direction)| Deed::Read(a.min(b) * 4, a.max(b) * 4, limit, direction)),
        3 => change.prop_map(Deed::Change),
    ]
}

proptest! {
    /// Whatever is read and changed in whatever order, the cache answers as the store does,
    /// and extents never overlap.
    #[test]
    fn answers_are_those_of_the_store(steps in proptest::collection::vec(any_deed(), 1..200)) {
        let cache = Timed::new(4_000);
        let mut store = Store::new();
        let mut commit = 0;
        for step in steps {
            match step {
                Deed::Read(start, end, limit, direction) => {
                    let range = range(start, end);
                    let (rows, beyond) = scan(&store, &range, limit, direction);
                    let found = read(&cache, &store, range, limit, direction, commit);
                    prop_assert_eq!(found, (rows, beyond.is_some()));
                }
                Deed::Change(keys) => {
                    commit += 1;
                    let changed: Vec<u8> = keys.iter().map(|(key, _)| *key).collect();
                    for (key, is_put) in keys {
                        if is_put {
                            store.insert(vec![key], commit);
                        } else {
                            store.remove(&vec![key]);
                        }
                    }
                    cache.change(commit, &changed);
                }
            }
            let kept = cache.read();
            let weights = kept.lists.values().map(|one| (one.weight(), one.plain_weight()));
            let sums = weights.fold((0, 0), |sums, one| (sums.0 + one.0, sums.1 + one.1));
            prop_assert_eq!(sums, (kept.weight, kept.plain_weight));
            let extents: Vec<_> = kept.lists.values().map(|one| &one.head().extent).collect();
            prop_assert!(extents.is_sorted_by(|a, b| a.1 <= b.0));
        }
    }
}

/// A writer and readers on a model store: every answer, kept or not, must be what the reader's
/// own snapshot holds.
#[test]
fn readers_never_get_rows_of_another_moment() {
    const COMMITS: u64 = 5_000;
    let cache = Timed::new(1 << 16);
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
                cache.change(commit, &[key]);
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

/// Reads a list of five rows that have much in common, from the cache or not; says whether all
/// are right.
fn read_long(cache: &Timed, list: u8) -> bool {
    let asked = range(list * 5, list * 5 + 5);
    let keys = || list * 5..list * 5 + 5;
    if let Some(kept) = cache.get(&asked, 5, Direction::Forward, 0) {
        let recipe = recipe("a");
        let rows = kept.followed(5, &recipe).unwrap();
        let is_right = |(key, row): (u8, KeptRow)| {
            row.stored_key == [key][..]
                && row.stored == row_of(key)[..]
                && row.stored_record.unwrap() == row_of(key)[..]
        };
        return keys().zip(rows).all(is_right);
    }
    let mut recorder = cache.recorder(5).unwrap();
    for key in keys() {
        // Another key than the entry's.
        let hash = 1_000 + hash(key);
        let record = Record { target: &[key], stored: &row_of(key), hash };
        recorder.add(&[key], &row_of(key), Some(record));
    }
    cache.fill(recorder, asked, Direction::Forward, Some(&recipe("a")), 0);
    true
}

fn row_of(key: u8) -> [u8; 400] {
    [key; 400]
}

fn is_packed(cache: &Timed, list: u8) -> Option<bool> {
    let kept = cache.lists.read();
    kept.lists.get(&[list * 5][..]).map(|slot| matches!(slot, Slot::Packed(_)))
}

#[test]
fn lists_are_packed_before_any_goes() {
    // Each takes about 5 KB, and packed less than one.
    let cache = Timed::new(24_000);
    (0..12).for_each(|list| assert!(read_long(&cache, list)));
    let forms: Vec<_> = (0..12).map(|list| is_packed(&cache, list)).collect();
    assert!(forms.iter().all(Option::is_some), "{forms:?}");
    assert!(forms.contains(&Some(true)) && forms.contains(&Some(false)), "{forms:?}");
    assert!(cache.bytes() <= 24_000);
    assert!((0..12).all(|list| read_long(&cache, list)));
}

#[test]
fn no_list_goes_while_there_are_plain_ones_to_pack() {
    // All twenty fit when they are packed, and then some of them plain.
    let cache = Timed::new(30_000);
    for _ in 0..50 {
        (0..20).for_each(|list| assert!(read_long(&cache, list)));
    }
    assert!((0..20).all(|list| is_packed(&cache, list).is_some()));
    assert!(cache.bytes() <= 30_000);
}

#[test]
fn a_packed_list_that_is_read_often_is_unpacked_for_good() {
    let cache = Timed::new(24_000);
    (0..12).for_each(|list| assert!(read_long(&cache, list)));
    let packed = (0..12).find(|&list| is_packed(&cache, list) == Some(true)).unwrap();
    for _ in 0..READS_OFTEN {
        assert_eq!(is_packed(&cache, packed), Some(true));
        assert!(read_long(&cache, packed));
    }
    assert_eq!(is_packed(&cache, packed), Some(false));
    assert!(cache.bytes() <= 24_000);
}

#[test]
fn lists_are_kept_when_they_are_read_again_once_memory_is_short() {
    let cache = Timed::new(24_000);
    (0..3).for_each(|list| assert!(read_long(&cache, list)));
    assert!(cache.lists.recorder(5, || 99).is_some(), "there is room");
    (3..12).for_each(|list| assert!(read_long(&cache, list)));
    assert!(cache.lists.recorder(5, || 88).is_none());
    assert!(cache.lists.recorder(5, || 88).is_some());
}

#[test]
fn a_list_that_cannot_be_packed_goes_when_it_is_not_read() {
    let cache = Timed::new(10_000);
    let mut random = Random::new(1);
    let noise: Vec<u8> = (0..3_000).map(|_| random.below(256) as u8).collect();
    for list in 0..12 {
        let mut recorder = cache.recorder(1).unwrap();
        recorder.add(&[list], &noise, None);
        cache.fill(recorder, range(list, list + 1), Direction::Forward, None, 0);
        assert!(list == 0 || is_kept(&cache, &range(0, 1), 1, 0), "{list}");
        assert!(cache.bytes() <= 10_000);
    }
    assert!(!is_kept(&cache, &range(5, 6), 1, 0));
}

#[test]
fn a_change_removes_a_packed_list_and_ends_its_witnesses() {
    let cache = Timed::new(24_000);
    (0..12).for_each(|list| assert!(read_long(&cache, list)));
    let packed = (0..12).find(|&list| is_packed(&cache, list) == Some(true)).unwrap();
    let asked = range(packed * 5, packed * 5 + 5);
    let witness = cache.get(&asked, 5, Direction::Forward, 0).unwrap().witness(0);
    assert!(witness.stands());
    cache.change(1, &[packed * 5 + 2]);
    assert!(!witness.stands());
    assert_eq!(is_packed(&cache, packed), None);
}

#[test]
fn what_a_commit_removed_while_it_was_packed_does_not_come_back() {
    let cache = Timed::new(24_000);
    assert!(read_long(&cache, 0));
    let list = cache.get(&range(0, 5), 5, Direction::Forward, 0).unwrap();
    let packed = Slot::Packed(Arc::new(list.pack().unwrap()));
    cache.lists.replace(packed.clone());
    assert_eq!(is_packed(&cache, 0), Some(true));
    cache.change(1, &[2]);
    cache.lists.replace(packed);
    assert_eq!(is_packed(&cache, 0), None);
}

#[test]
fn a_smaller_bound_holds_at_once() {
    let cache = Timed::new(24_000);
    (0..12).for_each(|list| assert!(read_long(&cache, list)));
    cache.set_bytes_max(4_000);
    assert!(cache.bytes() <= 4_000, "{} bytes", cache.bytes());
    assert!((0..12).all(|list| read_long(&cache, list)));
}
