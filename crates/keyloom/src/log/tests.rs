//! Entries as bytes, and back.

#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

use std::collections::BTreeMap;

use bytes::Bytes;
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;

use super::entry::FORMAT;
use super::{Author, Became, Entry, Note, Told, encode};
use crate::engine::{Addition, Address, Area, Batch, Effect, Integers, Space, Stamp};
use crate::error::ErrorKind;
use crate::record::Version;

fn any_stamp() -> impl Strategy<Value = Stamp> {
    // Few, so that some are shared.
    (0u8..4).prop_map(|byte| Stamp([byte; Stamp::BYTES]))
}

fn any_integers() -> impl Strategy<Value = Integers> {
    btree_map("[a-z.]{1,4}", any::<i64>(), 0..3)
}

fn any_effect() -> impl Strategy<Value = Effect> {
    let bytes = vec(any::<u8>(), 0..300).prop_map(Bytes::from);
    let additions = |integers: Integers| {
        let addition = |(name, delta)| Addition { name, delta, min: None, max: None };
        integers.into_iter().map(addition).collect()
    };
    prop_oneof![
        Just(Effect::Delete),
        (any_stamp(), bytes).prop_map(|(stamp, bytes)| Effect::Put { stamp, bytes }),
        (any_stamp(), any_integers()).prop_map(move |(stamp, integers)| Effect::Add {
            stamp,
            additions: additions(integers)
        }),
    ]
}

fn any_address() -> impl Strategy<Value = Address> {
    let area =
        prop_oneof!["[a-z]{0,2}".prop_map(|name| Area::new(&name).unwrap()), Just(Area::own())];
    (area, vec(any::<u8>(), 1..5)).prop_map(|(area, key)| Address::new(area, key))
}

type Parts = (Author, BTreeMap<Address, Option<Effect>>, Vec<(Told, bool)>);

fn any_parts() -> impl Strategy<Value = Parts> {
    let author =
        (any::<u64>(), proptest::option::of(".{1,9}")).prop_map(|(at, by)| Author { at, by });
    let before = proptest::option::of(any_stamp().prop_map(Version::from_stamp));
    let told = (".{0,5}", any_address(), before, any_integers()).prop_map(
        |(collection, address, before, increments)| Told {
            collection,
            address,
            before,
            increments,
        },
    );
    let cells = btree_map(any_address(), proptest::option::of(any_effect()), 0..6);
    (author, cells, vec((told, any::<bool>()), 0..4))
}

/// The batch and the note, and what must be read of them.
fn example((author, cells, told): Parts) -> (Batch, Note, Entry) {
    let mut batch = Batch::new(Space::main());
    for (address, effect) in &cells {
        batch.push(address.clone(), None, effect.clone());
    }
    let written: Vec<(Address, Effect)> =
        cells.into_iter().filter_map(|(address, effect)| Some((address, effect?))).collect();
    let mut changes = Vec::new();
    for (place, (mut told, is_written)) in told.into_iter().enumerate() {
        // Half of the changes are of cells that the batch writes.
        if is_written && let Some((address, effect)) = written.get(place) {
            let became = match effect {
                Effect::Put { stamp, bytes } => {
                    Became::Written { version: Version::from_stamp(*stamp), text: bytes.clone() }
                }
                Effect::Delete => Became::Deleted,
                Effect::Add { .. } => continue,
            };
            told.address = address.clone();
            changes.push((told, became));
        } else if written.iter().all(|(address, _)| *address != told.address) {
            changes.push((told, Became::Untouched));
        }
    }
    let note = Note {
        author: author.clone(),
        changes: changes.iter().map(|(told, _)| told.clone()).collect(),
    };
    (batch, note, Entry { author, cells: written, changes })
}

#[test]
fn an_example_byte_by_byte() {
    let mut batch = Batch::new(Space::main());
    let stamp = Stamp([7; Stamp::BYTES]);
    let address = Address::new(Area::default_area(), "note:1");
    batch.push(address.clone(), None, Some(Effect::Put { stamp, bytes: "{}".into() }));
    let gone = Address::new(Area::new("x").unwrap(), "k");
    batch.push(gone, None, Some(Effect::Delete));
    let told = Told {
        collection: "note".into(),
        address,
        before: None,
        increments: [("n".to_owned(), -2)].into(),
    };
    let author = Author { at: 300, by: Some("ana".into()) };
    let bytes = encode(&Note { author, changes: vec![told] }, &batch);
    let expected = [
        &b"\x01\xac\x02\x03ana\x01"[..],
        &[7; 24],
        b"\x02\x00\x06note:1\x01\x00\x02{}\x01x\x01k\x00",
        b"\x01\x04note\x01\x00\x01\x01n\x03",
    ];
    assert_eq!(bytes, expected.concat());
}

#[test]
fn a_newer_format_is_told_apart_from_damage() {
    let newer = Entry::decode(&Bytes::from_static(&[FORMAT + 1, 9, 9]));
    assert_eq!(newer.unwrap_err().kind(), ErrorKind::UnknownFormat);
    for damaged in [&b""[..], b"\x00", b"\x01", b"\x01\x00\x00\x00\x00\x00\x00"] {
        let error = Entry::decode(&Bytes::copy_from_slice(damaged)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{damaged:?}");
    }
    assert!(Entry::decode(&Bytes::from_static(b"\x01\x00\x00\x00\x00\x00")).is_ok());
}

proptest! {
    #[test]
    fn decoding_undoes_encoding(parts in any_parts()) {
        let (batch, note, entry) = example(parts);
        let bytes = encode(&note, &batch);
        prop_assert_eq!(Entry::decode(&bytes).unwrap(), entry);
        prop_assert_eq!(Entry::time(&bytes).unwrap(), note.author.at);
    }

    #[test]
    fn damage_never_panics(parts in any_parts(), place in any::<prop::sample::Index>(), byte in any::<u8>()) {
        let (batch, note, _) = example(parts);
        let mut bytes = encode(&note, &batch).to_vec();
        let place = place.index(bytes.len());
        let _ = Entry::decode(&Bytes::copy_from_slice(&bytes[..place]));
        bytes[place] = byte;
        let _ = Entry::decode(&bytes.into());
    }
}
