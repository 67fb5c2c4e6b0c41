#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

use proptest::prelude::*;

use super::*;

/// A key that owns its parts.
#[derive(Clone, Debug)]
enum Kept {
    Single(bool),
    Task([String; 3]),
    Notes([String; 3], u32),
    Counters(String, Vec<u8>),
    Cell([String; 2], u32, Vec<u8>, u16),
    Mark([String; 2], u32, Vec<u8>),
    Version(String, Stamp),
    Trace(String, Vec<u8>, u64, Stamp),
    Lease([String; 2], Vec<u8>),
    Answer(String, String),
    End(String, Vec<u8>),
}

impl Kept {
    fn key(&self) -> OwnKey<'_> {
        match self {
            Kept::Single(true) => OwnKey::Catalog,
            Kept::Single(false) => OwnKey::Epoch,
            Kept::Task([kind, collection, name]) => OwnKey::Task { kind, collection, name },
            Kept::Notes([kind, collection, name], page) => {
                OwnKey::TaskNotes { kind, collection, name, page: *page }
            }
            Kept::Counters(area, record) => OwnKey::Counters { area, record },
            Kept::Cell([collection, name], generation, group, number) => OwnKey::AggregateCell {
                collection,
                name,
                generation: *generation,
                group,
                number: *number,
            },
            Kept::Mark([collection, name], generation, record) => OwnKey::AggregateMark {
                collection,
                name,
                generation: *generation,
                record: Digest::of(&[record]),
            },
            Kept::Version(collection, version) => {
                OwnKey::HistoryVersion { collection, version: *version }
            }
            Kept::Trace(collection, record, at, version) => {
                OwnKey::trace(collection, record, *at, *version)
            }
            Kept::Lease([collection, index], entry) => {
                OwnKey::Lease { collection, index, entry: Digest::of(&[entry]) }
            }
            Kept::Answer(user, key) => OwnKey::answer(user, key),
            Kept::End(collection, entry) => OwnKey::End { collection, entry },
        }
    }
}

/// Names that look like words, like numbers and like each other.
fn name() -> impl Strategy<Value = String> {
    let words = OwnKind::ALL.map(|kind| kind.words().trim_end_matches(':').replace(':', "-"));
    prop_oneof![
        prop::sample::select(words.to_vec()),
        prop::sample::select(vec!["left", "version", "mark", "1", "10", "a", "ab", "a-b", "a_b"])
            .prop_map(str::to_owned),
        "[a-z][a-z0-9_.-]{0,5}",
    ]
}

fn bytes() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        prop::collection::vec(prop::sample::select(b":%0a!\0\x01\x7f\xff/1".to_vec()), 0..6),
        prop::collection::vec(any::<u8>(), 0..KEY_BYTES_MAX),
        Just(b"%sha256.".to_vec()),
    ]
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a:%\\x00é1]{0,6}",
        (1..256_usize, prop::sample::select(vec![':', '%', 'a']))
            .prop_map(|(length, letter)| letter.to_string().repeat(length)),
    ]
}

fn stamp() -> impl Strategy<Value = Stamp> {
    // Few incarnations and revisions, so that two stamps are often of one record.
    let revision = prop_oneof![0..12_u64, any::<u64>()];
    (0..3_u8, revision).prop_map(|(incarnation, revision)| {
        let mut stamp = Stamp([incarnation; Stamp::BYTES]);
        stamp.0[16..].copy_from_slice(&revision.to_be_bytes());
        stamp
    })
}

fn group() -> impl Strategy<Value = Vec<u8>> {
    let value = prop_oneof![Just(b"a!:".to_vec()), Just(b"1:".to_vec()), Just(b"0:".to_vec())];
    let values = prop::collection::vec(value, 0..3);
    values.prop_map(|values| [vec![b":".to_vec()], values].concat().concat())
}

fn kept() -> impl Strategy<Value = Kept> {
    let names = || [name(), name()];
    let generation = || prop_oneof![0..12_u32, any::<u32>()];
    let at = prop_oneof![0..12_u64, Just(TIME_MAX), any::<u64>()];
    prop_oneof![
        any::<bool>().prop_map(Kept::Single),
        [name(), name(), name()].prop_map(Kept::Task),
        ([name(), name(), name()], generation()).prop_map(|(names, page)| Kept::Notes(names, page)),
        (name(), bytes()).prop_map(|(area, record)| Kept::Counters(area, record)),
        (names(), generation(), group(), any::<u16>())
            .prop_map(|(names, generation, group, of)| Kept::Cell(names, generation, group, of)),
        (names(), generation(), bytes())
            .prop_map(|(names, generation, record)| Kept::Mark(names, generation, record)),
        (name(), stamp()).prop_map(|(name, version)| Kept::Version(name, version)),
        (name(), bytes(), at, stamp())
            .prop_map(|(name, record, at, version)| Kept::Trace(name, record, at, version)),
        (names(), bytes()).prop_map(|(names, entry)| Kept::Lease(names, entry)),
        (text(), text()).prop_map(|(user, key)| Kept::Answer(user, key)),
        (name(), bytes()).prop_map(|(name, entry)| Kept::End(name, entry)),
    ]
}

fn revision(version: Stamp) -> u64 {
    u64::from_be_bytes(version.0[16..].try_into().unwrap())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4_000, ..ProptestConfig::default() })]

    #[test]
    fn a_key_is_read_as_it_was_made(kept in kept()) {
        let key = kept.key();
        let encoded = key.encode();
        prop_assert_eq!(OwnKey::decode(&encoded), Some(key));
    }

    #[test]
    fn no_two_share_a_key(one in kept(), other in kept()) {
        prop_assert_eq!(one.key().encode() == other.key().encode(), one.key() == other.key());
    }

    #[test]
    fn what_is_read_is_made_again(
        kind in prop::sample::select(OwnKind::ALL.to_vec()),
        tail in prop_oneof![bytes(), kept().prop_map(|kept| {
            let key = kept.key();
            key.encode()[key.kind().words().len()..].to_vec()
        })],
    ) {
        let key = [kind.words().as_bytes(), &tail].concat();
        if let Some(read) = OwnKey::decode(&key) {
            prop_assert_eq!(&read.encode()[..], &key[..]);
        }
        let _ = OwnRange::generation_of(&key);
    }

    #[test]
    fn a_kind_holds_its_own_keys(kept in kept()) {
        let key = kept.key();
        for kind in OwnKind::ALL {
            prop_assert_eq!(kind.range().contains(&key.encode()), kind == key.kind());
        }
        prop_assert_eq!(OwnKind::of(&key.encode()), Some(key.kind()));
    }

    #[test]
    fn a_range_holds_its_own_keys(
        one in kept(),
        other in kept(),
        // Often of the same names, so that only what follows them differs.
        mixed in any::<bool>(),
        after in prop::option::of(prop_oneof![0..12_u64, Just(TIME_MAX), any::<u64>()]),
    ) {
        let other = if mixed { with_names_of(&one, other) } else { other };
        let encoded = other.key().encode();
        match (&one, &other) {
            (Kept::Cell([c, n], g, groups, _), _) => {
                let (collection, name, generation) = (&c[..], &n[..], *g);
                let range = OwnRange::Groups { collection, name, generation, groups };
                let is_in = matches!(&other, Kept::Cell([oc, on], og, group, _)
                    if (oc, on, og) == (c, n, g) && group.starts_with(groups));
                prop_assert_eq!(range.range().contains(&encoded), is_in);
                for kind in [OwnKind::AggregateCell, OwnKind::AggregateMark] {
                    let names = match &other {
                        Kept::Cell(names, og, ..) if kind == OwnKind::AggregateCell => Some((names, og)),
                        Kept::Mark(names, og, _) if kind == OwnKind::AggregateMark => Some((names, og)),
                        _ => None,
                    };
                    let is_of = names.is_some_and(|([oc, on], _)| (oc, on) == (c, n));
                    let range = OwnRange::Aggregate { kind, collection, name };
                    prop_assert_eq!(range.range().contains(&encoded), is_of);
                    let is_of = is_of && names.is_some_and(|(_, og)| og == g);
                    let range = OwnRange::Generation { kind, collection, name, generation };
                    prop_assert_eq!(range.range().contains(&encoded), is_of);
                    prop_assert_eq!(OwnRange::generation_of(&encoded) == Some(range), is_of);
                }
            }
            (Kept::Task([kind, ..]), _) => {
                let is_in = matches!(&other, Kept::Task([of, ..]) | Kept::Notes([of, ..], _) if of == kind);
                prop_assert_eq!(OwnRange::Tasks { kind }.range().contains(&encoded), is_in);
            }
            (Kept::Version(collection, of), _) => {
                let (a, b) = (revision(*of), after.unwrap_or(u64::MAX));
                let (first, last) = (a.min(b), a.max(b));
                let is_in = matches!(&other, Kept::Version(name, version)
                    if name == collection
                        && version.0[..16] == of.0[..16]
                        && (first..=last).contains(&revision(*version)));
                let range = OwnRange::Versions { collection, of: *of, first, last };
                prop_assert_eq!(range.range().contains(&encoded), is_in);
            }
            (Kept::Trace(collection, record, ..), _) => {
                let is_in = matches!(&other, Kept::Trace(name, of, at, _)
                    if name == collection
                        && of == record
                        && after.is_none_or(|after| (*at).min(TIME_MAX) > after));
                let range = OwnRange::Traces { collection, record, after };
                prop_assert_eq!(range.range().contains(&encoded), is_in);
            }
            _ => {}
        }
        let is_of_a_history =
            matches!(other.key().kind(), OwnKind::HistoryVersion | OwnKind::HistoryTrace);
        prop_assert_eq!(OwnRange::Histories.range().contains(&encoded), is_of_a_history);
    }
}

/// The other key, of the same collection as the first if both have one, and of the same name and
/// record.
fn with_names_of(one: &Kept, other: Kept) -> Kept {
    match (one, other) {
        (
            Kept::Cell(names, ..) | Kept::Mark(names, ..),
            Kept::Cell(_, generation, group, number),
        ) => Kept::Cell(names.clone(), generation, group, number),
        (Kept::Cell(names, ..) | Kept::Mark(names, ..), Kept::Mark(_, generation, record)) => {
            Kept::Mark(names.clone(), generation, record)
        }
        (Kept::Version(name, _), Kept::Version(_, version)) => Kept::Version(name.clone(), version),
        (Kept::Trace(name, record, ..), Kept::Trace(_, _, at, version)) => {
            Kept::Trace(name.clone(), record.clone(), at, version)
        }
        (_, other) => other,
    }
}

#[test]
fn ranges_of_kinds_are_disjoint() {
    for (place, one) in OwnKind::ALL.into_iter().enumerate() {
        for other in OwnKind::ALL.into_iter().skip(place + 1) {
            let (one, other) = (one.range(), other.range());
            let is_apart = one.end.as_ref().unwrap() <= &other.start
                || other.end.as_ref().unwrap() <= &one.start;
            assert!(is_apart, "{one:?} {other:?}");
        }
    }
}

#[test]
fn keys_are_as_the_table_says() {
    let mut version = Stamp([0x0a; Stamp::BYTES]);
    version.0[16..].copy_from_slice(&3_u64.to_be_bytes());
    let hash = "2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae";
    let incarnation = "0a".repeat(16);
    let digest = Digest::of(&[b"foo"]);
    let (collection, name) = ("run", "seconds");
    for (key, expected) in [
        (OwnKey::Catalog, "catalog".to_owned()),
        (OwnKey::Epoch, "epoch".to_owned()),
        (OwnKey::Task { kind: "build", collection, name }, "task:build:run:seconds".to_owned()),
        (OwnKey::Counters { area: "", record: b"a:b" }, "counter::a:b".to_owned()),
        (
            OwnKey::AggregateCell { collection, name, generation: 1, group: b":a!:b!:", number: 0 },
            "aggregate:run:seconds:1:a!:b!:0".to_owned(),
        ),
        (
            OwnKey::AggregateMark { collection, name, generation: 2, record: digest },
            format!("aggregate-mark:run:seconds:2:{hash}"),
        ),
        (
            OwnKey::HistoryVersion { collection, version },
            format!("history:version:run:{incarnation}:00000000000000000003"),
        ),
        (
            OwnKey::trace(collection, b"a:1", 17, version),
            format!("history:left:run:a%3A1:0000000000017:{incarnation}:00000000000000000003"),
        ),
        (
            OwnKey::Lease { collection, index: "due", entry: digest },
            format!("lease:run:due:{hash}"),
        ),
        (OwnKey::answer("a:b", "order-17"), "idempotency:a%3Ab:order-17".to_owned()),
        (OwnKey::answer("", "order-17"), "idempotency::order-17".to_owned()),
        (OwnKey::End { collection, entry: b"17:run:1" }, "expiry:run:17:run:1".to_owned()),
    ] {
        assert_eq!(key.encode(), expected.as_bytes());
        assert_eq!(OwnKey::decode(expected.as_bytes()), Some(key));
    }
}

#[test]
fn what_is_too_long_is_hashed() {
    let long = vec![b':'; 400];
    let version = Stamp([1; Stamp::BYTES]);
    let key = OwnKey::trace("note", &long, 1, version);
    assert!(matches!(&key, OwnKey::HistoryTrace { record: Text::Hashed(_), .. }));
    assert!(key.address().check().is_ok());
    let colons = ":".repeat(255);
    let key = OwnKey::answer(&colons, &colons);
    assert!(matches!(&key, OwnKey::HashedAnswer(_)));
    assert!(key.address().check().is_ok());
}

#[test]
fn what_no_name_encodes_to_is_no_key() {
    for key in [
        "catalogue",
        "epoch:",
        "aggregate:run:seconds:01:a!:0",
        "aggregate:run:seconds:1:a!:00",
        "aggregate:run:seconds:1:a!:+1",
        "aggregate-mark:run:seconds:1:2C26",
        "history:version:note:0a:3",
        "history:gone",
        "lease:run:due",
        "idempotency:ana",
        "idempotency:a%3ab:k",
        "idempotency:ana:k:more",
        "idempotency:a\u{1}:k",
    ] {
        assert_eq!(OwnKey::decode(key.as_bytes()), None, "{key}");
    }
}
