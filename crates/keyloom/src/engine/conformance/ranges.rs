//! Scans: byte order, bounds, limits, both directions, several ranges at once.

use bytes::Bytes;

use super::super::{
    Address, Area, Direction, EngineExt, KEY_BYTES_MAX, Range, Row, after_prefix, successor,
};
use super::runner::{Check, checks};
use super::subject::{Subject, add, area, at, put, space};

const BOTH: [Direction; 2] = [Direction::Forward, Direction::Backward];

/// Keys in byte order, including those that are easily sorted wrongly: zero bytes, high bytes,
/// prefixes of others, digits as text, and text that is not ASCII.
const SORTED: [&[u8]; 20] = [
    b"\x00",
    b"\x00\x00",
    b"\x00\xff",
    b"\x01",
    b"10",
    b"9",
    b":",
    b"A",
    b"a",
    b"a\x00",
    b"a\x00\x00",
    b"a:",
    b"aa",
    b"a\xff",
    b"a\xff\xff",
    b"b",
    b"\xc3\xa9",
    b"\xfe\xff",
    b"\xff",
    b"\xff\xff",
];

pub(super) fn checks() -> Vec<Check> {
    checks![
        the_order_is_that_of_bytes,
        bounds_include_the_start_and_exclude_the_end,
        prefixes,
        bounds_that_are_no_keys,
        ranges_of_one_key,
        limits_cut_and_pages_join,
        a_limit_of_zero_gives_nothing,
        several_ranges_are_answered_each_by_itself,
        rows_carry_their_cells,
        deleted_keys_are_gone_from_scans,
        random_ranges_agree_with_a_sorted_list,
    ]
}

fn whole() -> Range {
    Range::all(Area::default_area())
}

fn between(start: &[u8], end: Option<&[u8]>) -> Range {
    Range { start: Bytes::copy_from_slice(start), end: end.map(Bytes::copy_from_slice), ..whole() }
}

/// Puts the keys, in an order that the seed decides.
async fn fill(it: &mut Subject, keys: &[&[u8]]) {
    let mut keys = keys.to_vec();
    it.random.shuffle(&mut keys);
    for keys in keys.chunks(it.engine.capabilities().batch_entries_max) {
        it.apply(keys.iter().map(|key| put(at(key), key)).collect()).await;
    }
}

/// The given keys that belong to the range, in this direction.
fn expected(sorted: &[&[u8]], range: &Range, direction: Direction) -> Vec<Bytes> {
    let within = sorted.iter().filter(|key| range.contains(key));
    let mut keys: Vec<Bytes> = within.map(|key| Bytes::copy_from_slice(key)).collect();
    if direction == Direction::Backward {
        keys.reverse();
    }
    keys
}

/// Reads a range page by page, and checks every page.
async fn paged(it: &Subject, range: &Range, limit: usize, direction: Direction) -> Vec<Bytes> {
    let mut left = range.clone();
    let mut keys = Vec::new();
    loop {
        let page = it.engine.scan_one(&space(), &left, limit, direction).await.expect("a scan");
        assert!(page.rows.len() <= limit, "{} rows for a limit of {limit}", page.rows.len());
        let stray = page.rows.iter().find(|row| !left.contains(&row.key));
        assert!(stray.is_none(), "{stray:?} does not belong to {left:?}");
        assert!(!page.more || !page.rows.is_empty(), "more to come, but no row to continue from");
        keys.extend(page.rows.into_iter().map(|row: Row| row.key));
        match keys.last() {
            Some(last) if page.more => left = left.after(last, direction),
            Some(_) | None => return keys,
        }
    }
}

async fn the_order_is_that_of_bytes(mut it: Subject) {
    assert!(SORTED.is_sorted());
    fill(&mut it, &SORTED).await;
    for direction in BOTH {
        assert_eq!(it.keys(&whole(), direction).await, expected(&SORTED, &whole(), direction));
    }
}

async fn bounds_include_the_start_and_exclude_the_end(mut it: Subject) {
    fill(&mut it, &SORTED).await;
    for direction in BOTH {
        for start in SORTED {
            let open = between(start, None);
            assert_eq!(it.keys(&open, direction).await, expected(&SORTED, &open, direction));
            for end in SORTED {
                let range = between(start, Some(end));
                let found = it.keys(&range, direction).await;
                assert_eq!(found, expected(&SORTED, &range, direction), "{range:?}");
            }
        }
    }
}

async fn prefixes(mut it: Subject) {
    fill(&mut it, &SORTED).await;
    let under = |prefix: &'static [u8]| Range::prefix(Area::default_area(), prefix);
    for (prefix, count) in
        [(&b"a"[..], 7), (b"a\x00", 2), (b"a\xff", 2), (b"\xff", 2), (b"\x00", 3), (b"zz", 0)]
    {
        assert_eq!(it.keys(&under(prefix), Direction::Forward).await.len(), count, "{prefix:?}");
        assert_eq!(it.keys(&under(prefix), Direction::Backward).await.len(), count, "{prefix:?}");
    }
    assert_eq!(it.keys(&under(b""), Direction::Forward).await.len(), SORTED.len());
    assert_eq!(after_prefix(b"\xff\xff"), None);
}

/// A bound is a position between keys, not a key: it may be empty, or longer than any key.
async fn bounds_that_are_no_keys(mut it: Subject) {
    let longest = [b'k'; KEY_BYTES_MAX];
    let keys = [&b"a"[..], &longest, b"z"];
    fill(&mut it, &keys).await;
    let beyond = successor(&longest);
    for direction in BOTH {
        assert_eq!(it.keys(&between(&beyond, None), direction).await, ["z"]);
        let up_to = it.keys(&between(b"", Some(&beyond)), direction).await;
        assert_eq!(up_to, expected(&keys[..2], &whole(), direction));
        for (start, end) in [(&b"z"[..], &b"a"[..]), (b"a", b"a"), (b"", b""), (&beyond, b"k")] {
            assert!(it.keys(&between(start, Some(end)), direction).await.is_empty());
        }
        assert_eq!(paged(&it, &whole(), 1, direction).await, expected(&keys, &whole(), direction));
    }
}

/// An engine may look the key up instead of scanning.
async fn ranges_of_one_key(mut it: Subject) {
    fill(&mut it, &SORTED).await;
    let absent: [&[u8]; 4] = [b"0", b"a\x00\x00\x00", b"c", b"\xff\xff\xff"];
    for key in SORTED.into_iter().chain(absent) {
        let range = between(key, Some(&successor(key)));
        for (direction, limit) in BOTH.into_iter().flat_map(|way| [(way, 1), (way, 9)]) {
            let found = it.engine.scan_one(&space(), &range, limit, direction).await;
            let found = found.expect("a scan succeeds");
            assert!(!found.more, "there is no other key in {range:?}");
            let keys: Vec<Bytes> = found.rows.into_iter().map(|row| row.key).collect();
            assert_eq!(keys, expected(&SORTED, &range, direction), "{range:?}");
        }
    }
}

async fn limits_cut_and_pages_join(mut it: Subject) {
    fill(&mut it, &SORTED).await;
    for direction in BOTH {
        for range in [whole(), between(b"9", Some(b"b")), between(b"a\x00", Some(b"a\x00\x01"))] {
            for limit in [1, 2, 3, 7, 19, 20, 21, usize::MAX] {
                let found = paged(&it, &range, limit, direction).await;
                let expected = expected(&SORTED, &range, direction);
                assert_eq!(found, expected, "{range:?}, limit {limit}, {direction:?}");
            }
        }
    }
}

async fn a_limit_of_zero_gives_nothing(mut it: Subject) {
    fill(&mut it, &SORTED).await;
    for direction in BOTH {
        let found = it.engine.scan(&space(), &[whole(), whole()], 0, direction).await;
        let found = found.expect("a scan succeeds");
        assert_eq!(found.len(), 2);
        assert!(found.iter().all(|stretch| stretch.rows.is_empty() && !stretch.more));
    }
}

async fn several_ranges_are_answered_each_by_itself(mut it: Subject) {
    fill(&mut it, &SORTED).await;
    it.apply(vec![put(Address::new(area("other"), "o"), "o")]).await;
    let other = Range::all(area("other"));
    let ranges = [
        between(b"b", None),
        between(b"a", Some(b"b")),
        between(b"a\x00", Some(b"aa")),
        between(b"q", Some(b"q")),
        between(b"z", Some(b"a")),
        between(b"a", Some(b"b")),
        whole(),
    ];
    for direction in BOTH {
        for limit in [1, 3, 100] {
            let asked = [&ranges[..], std::slice::from_ref(&other)].concat();
            let found = it.engine.scan(&space(), &asked, limit, direction).await.expect("a scan");
            assert_eq!(found.len(), asked.len(), "one answer for each range");
            for (stretch, range) in found.iter().zip(&ranges) {
                let keys: Vec<&Bytes> = stretch.rows.iter().map(|row| &row.key).collect();
                let expected = expected(&SORTED, range, direction);
                assert!(keys.len() <= limit);
                assert!(keys.iter().copied().eq(&expected[..keys.len()]), "{range:?}: {keys:?}");
                assert!(stretch.more || keys.len() == expected.len(), "{range:?} ends early");
                assert!(!stretch.more || !keys.is_empty());
            }
            assert_eq!(found[ranges.len()].rows[0].key, "o");
        }
        assert_eq!(it.engine.scan(&space(), &[], 10, direction).await.expect("a scan"), []);
    }
}

async fn rows_carry_their_cells(it: Subject) {
    it.apply(vec![put(at("a"), "A"), add(at("n"), &[("x", -1), ("y", 2)]), put(at("z"), "")]).await;
    for row in it.everything().await {
        assert_eq!(it.cell(&at(&row.key)).await.as_ref(), Some(&row.cell));
    }
}

async fn deleted_keys_are_gone_from_scans(mut it: Subject) {
    fill(&mut it, &SORTED).await;
    let (gone, left): (Vec<_>, Vec<_>) = SORTED.iter().enumerate().partition(|(n, _)| n % 3 == 0);
    it.apply(gone.iter().map(|(_, key)| super::subject::delete(at(key))).collect()).await;
    let left: Vec<&[u8]> = left.into_iter().map(|(_, key)| *key).collect();
    for direction in BOTH {
        assert_eq!(paged(&it, &whole(), 2, direction).await, expected(&left, &whole(), direction));
    }
}

async fn random_ranges_agree_with_a_sorted_list(mut it: Subject) {
    let mut keys: Vec<Vec<u8>> = (0..300).map(|_| random_key(&mut it)).collect();
    keys.sort();
    keys.dedup();
    let keys: Vec<&[u8]> = keys.iter().map(|key| &key[..]).collect();
    fill(&mut it, &keys).await;
    for _ in 0..200 * it.scale {
        let start = random_key(&mut it);
        let end = random_key(&mut it);
        let range = between(&start, Some(&end[..]).filter(|_| !it.random.chance(0.1)));
        let direction = *it.random.pick(&BOTH);
        let limit = 1 + it.random.below(40);
        let found = paged(&it, &range, limit, direction).await;
        assert_eq!(found, expected(&keys, &range, direction), "{range:?}, {direction:?}, {limit}");
    }
}

/// Short keys of few different bytes, so that many are prefixes of one another.
fn random_key(it: &mut Subject) -> Vec<u8> {
    let length = 1 + it.random.below(5);
    (0..length).map(|_| *it.random.pick(&[0x00, 0x01, b'a', 0x7f, 0x80, 0xfe, 0xff])).collect()
}
