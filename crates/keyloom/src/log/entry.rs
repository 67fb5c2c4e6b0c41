//! One entry of the log as bytes.
//!
//! | part | bytes |
//! | --- | --- |
//! | format | `01` |
//! | time | number: milliseconds since 1970 |
//! | acting user | text; empty for none |
//! | stamps | count, then 24 bytes each: every stamp of the entry once |
//! | cells | count, then each: area (text), key (text), `00` for a deletion, or `01`, stamp and content (text) for a put, or `02`, stamp and integers for an addition |
//! | changes | count, then each: collection (text); the place of its record among the cells, plus 1, or 0 and area and key where the batch did not write the record; the stamp before, plus 1, or 0; integers that were added to the record's counters |
//!
//! A number has seven bits a byte, lowest first, the top bit set on all bytes but the last. A
//! text is its length and its bytes. A stamp is its place among the stamps. Integers are a count,
//! then each a name (text) and a value, mapped from 0, -1, 1, -2 … to the numbers 0, 1, 2, 3 ….

use std::collections::{BTreeMap, HashMap};

use bytes::{Buf, Bytes};

use crate::engine::{Addition, Address, Area, Batch, Effect, Integers, Stamp};
use crate::error::{Error, ErrorKind, Result};
use crate::record::{Version, now_ms};

const FORMAT: u8 = 1;
const DELETED: u8 = 0;
const PUT: u8 = 1;
const ADDED: u8 = 2;
const NUMBER_BYTES_MAX: usize = 10;

/// Who changed something, and when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Author {
    /// Milliseconds since 1970.
    pub(crate) at: u64,
    pub(crate) by: Option<String>,
}

impl Author {
    /// The program itself, now.
    pub(crate) fn program() -> Self {
        Author { at: now_ms(), by: None }
    }
}

/// What is told of a batch besides its cells.
#[derive(Clone, Debug)]
pub(crate) struct Note {
    pub(crate) author: Author,
    pub(crate) changes: Vec<Told>,
}

impl Note {
    /// What the program itself does to a space, without changing a record.
    pub(crate) fn of_program() -> Self {
        Note { author: Author::program(), changes: Vec::new() }
    }
}

/// A record that a batch changes. What it becomes is among the cells of the batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Told {
    pub(crate) collection: String,
    pub(crate) address: Address,
    /// The version before; `None` when the record was not there.
    pub(crate) before: Option<Version>,
    /// What is added to the record's counters.
    pub(crate) increments: Integers,
}

/// What a record became.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Became {
    Written {
        version: Version,
        text: Bytes,
    },
    Deleted,
    /// Only its counters changed.
    Untouched,
}

/// An entry as it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) author: Author,
    /// What the batch wrote. Additions have no bounds: they were kept when it was committed.
    pub(crate) cells: Vec<(Address, Effect)>,
    pub(crate) changes: Vec<(Told, Became)>,
}

/// The entry for a batch.
pub(crate) fn encode(note: &Note, batch: &Batch) -> Bytes {
    let written: Vec<(&Address, &Effect)> = batch
        .entries
        .iter()
        .filter_map(|entry| Some((&entry.address, entry.effect.as_ref()?)))
        .collect();
    let stamps = Stamps::of(&written, &note.changes);
    let mut out = Out(Vec::with_capacity(batch.weight() + 64 * (1 + stamps.all.len())));
    out.0.push(FORMAT);
    out.number(note.author.at);
    out.text(note.author.by.as_deref().unwrap_or_default().as_bytes());
    out.count(stamps.all.len());
    stamps.all.iter().for_each(|stamp| out.0.extend_from_slice(&stamp.0));
    out.count(written.len());
    for (address, effect) in &written {
        out.address(address);
        out.effect(effect, &stamps);
    }
    let places: HashMap<&Address, usize> =
        written.iter().enumerate().map(|(place, (address, _))| (*address, place)).collect();
    out.count(note.changes.len());
    for told in &note.changes {
        out.text(told.collection.as_bytes());
        match places.get(&told.address) {
            Some(place) => out.count(place + 1),
            None => {
                out.count(0);
                out.address(&told.address);
            }
        }
        out.count(told.before.map_or(0, |version| 1 + stamps.place(version.stamp())));
        out.integers(told.increments.iter().map(|(name, delta)| (name.as_str(), *delta)));
    }
    out.0.into()
}

/// Every stamp of an entry once. Most entries have one or two.
struct Stamps {
    all: Vec<Stamp>,
    places: HashMap<Stamp, usize>,
}

impl Stamps {
    fn of(written: &[(&Address, &Effect)], changes: &[Told]) -> Self {
        let of_cells = written.iter().filter_map(|(_, effect)| match effect {
            Effect::Put { stamp, .. } | Effect::Add { stamp, .. } => Some(*stamp),
            Effect::Delete => None,
        });
        let before = changes.iter().filter_map(|told| told.before).map(Version::stamp);
        let mut stamps = Stamps { all: Vec::new(), places: HashMap::new() };
        for stamp in of_cells.chain(before) {
            let place = stamps.all.len();
            if *stamps.places.entry(stamp).or_insert(place) == place {
                stamps.all.push(stamp);
            }
        }
        stamps
    }

    fn place(&self, stamp: Stamp) -> usize {
        // Every stamp that is asked for was gathered above.
        self.places.get(&stamp).copied().unwrap_or_default()
    }
}

struct Out(Vec<u8>);

impl Out {
    fn number(&mut self, mut value: u64) {
        while value > 0x7f {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    fn count(&mut self, value: usize) {
        self.number(value as u64);
    }

    fn text(&mut self, text: &[u8]) {
        self.count(text.len());
        self.0.extend_from_slice(text);
    }

    fn address(&mut self, address: &Address) {
        self.text(address.area.name().as_bytes());
        self.text(&address.key);
    }

    fn effect(&mut self, effect: &Effect, stamps: &Stamps) {
        match effect {
            Effect::Delete => self.0.push(DELETED),
            Effect::Put { stamp, bytes } => {
                self.0.push(PUT);
                self.count(stamps.place(*stamp));
                self.text(bytes);
            }
            Effect::Add { stamp, additions } => {
                self.0.push(ADDED);
                self.count(stamps.place(*stamp));
                self.integers(additions.iter().map(|one| (one.name.as_str(), one.delta)));
            }
        }
    }

    fn integers<'i>(&mut self, integers: impl ExactSizeIterator<Item = (&'i str, i64)>) {
        self.count(integers.len());
        for (name, value) in integers {
            self.text(name.as_bytes());
            self.number(((value << 1) ^ (value >> 63)) as u64);
        }
    }
}

impl Entry {
    /// Reads an entry. Contents are shared with the bytes that are given, not copied.
    pub(crate) fn decode(bytes: &Bytes) -> Result<Self> {
        if bytes.first().is_some_and(|format| *format > FORMAT) {
            return Err(Error::new(
                ErrorKind::UnknownFormat,
                "an entry of the log has a format that this version does not know",
            )
            .with("format", bytes[0])
            .with("known", FORMAT));
        }
        let mut rest = In(bytes.clone());
        let entry = rest.entry().filter(|_| rest.0.is_empty());
        entry.ok_or_else(|| {
            Error::new(ErrorKind::Corrupt, "an entry of the log cannot be understood")
        })
    }

    /// When the batch was made, read alone.
    pub(crate) fn time(bytes: &Bytes) -> Result<u64> {
        let mut rest = In(bytes.clone());
        let time = rest.byte().filter(|format| *format == FORMAT).and_then(|_| rest.number());
        time.ok_or_else(|| {
            Error::new(ErrorKind::Corrupt, "an entry of the log cannot be understood")
        })
    }
}

/// What is left to read. Every method is `None` where the bytes end too early or mean nothing.
struct In(Bytes);

impl In {
    fn entry(&mut self) -> Option<Entry> {
        self.byte().filter(|format| *format == FORMAT)?;
        let at = self.number()?;
        let by = Some(self.string()?).filter(|by| !by.is_empty());
        let stamps = self.many(Self::stamp)?;
        let cells = self.many(|rest| {
            let address = rest.address()?;
            let effect = rest.effect(&stamps)?;
            Some((address, effect))
        })?;
        let changes = self.many(|rest| rest.change(&stamps, &cells))?;
        Some(Entry { author: Author { at, by }, cells, changes })
    }

    fn change(&mut self, stamps: &[Stamp], cells: &[(Address, Effect)]) -> Option<(Told, Became)> {
        let collection = self.string()?;
        let (address, became) = match self.place()? {
            None => (self.address()?, Became::Untouched),
            Some(place) => {
                let (address, effect) = cells.get(place)?;
                let became = match effect {
                    Effect::Put { stamp, bytes } => Became::Written {
                        version: Version::from_stamp(*stamp),
                        text: bytes.clone(),
                    },
                    Effect::Delete => Became::Deleted,
                    Effect::Add { .. } => return None,
                };
                (address.clone(), became)
            }
        };
        let before = match self.place()? {
            None => None,
            Some(place) => Some(Version::from_stamp(*stamps.get(place)?)),
        };
        let increments: BTreeMap<String, i64> = self.integers()?.into_iter().collect();
        Some((Told { collection, address, before, increments }, became))
    }

    fn effect(&mut self, stamps: &[Stamp]) -> Option<Effect> {
        let kind = self.byte()?;
        if kind == DELETED {
            return Some(Effect::Delete);
        }
        let stamp = *stamps.get(self.count()?)?;
        match kind {
            PUT => Some(Effect::Put { stamp, bytes: self.text()? }),
            ADDED => {
                let addition = |(name, delta)| Addition { name, delta, min: None, max: None };
                let additions = self.integers()?.into_iter().map(addition).collect();
                Some(Effect::Add { stamp, additions })
            }
            _ => None,
        }
    }

    fn integers(&mut self) -> Option<Vec<(String, i64)>> {
        self.many(|rest| {
            let name = rest.string()?;
            let value = rest.number()?;
            Some((name, (value >> 1) as i64 ^ -((value & 1) as i64)))
        })
    }

    fn address(&mut self) -> Option<Address> {
        let area = self.string()?;
        let area = if area == Area::own().name() { Area::own() } else { Area::new(&area).ok()? };
        Some(Address::new(area, self.text()?))
    }

    /// A place plus 1, or 0 for none.
    fn place(&mut self) -> Option<Option<usize>> {
        Some(self.count()?.checked_sub(1))
    }

    fn stamp(&mut self) -> Option<Stamp> {
        let stamp = Stamp(*self.0.first_chunk()?);
        self.0.advance(Stamp::BYTES);
        Some(stamp)
    }

    /// A count and that many items. Each has a byte at least, so that a wrong count cannot ask for
    /// more memory than the entry has bytes.
    fn many<T>(&mut self, mut item: impl FnMut(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        let count = self.count().filter(|count| *count <= self.0.len())?;
        (0..count).map(|_| item(self)).collect()
    }

    fn string(&mut self) -> Option<String> {
        String::from_utf8(self.text()?.into()).ok()
    }

    fn text(&mut self) -> Option<Bytes> {
        let length = self.count().filter(|length| *length <= self.0.len())?;
        Some(self.0.split_to(length))
    }

    fn count(&mut self) -> Option<usize> {
        self.number()?.try_into().ok()
    }

    fn number(&mut self) -> Option<u64> {
        let mut value = 0u64;
        for place in 0..NUMBER_BYTES_MAX {
            let byte = self.byte()?;
            let (bits, shift) = (u64::from(byte & 0x7f), 7 * place);
            if bits << shift >> shift != bits {
                return None;
            }
            value |= bits << shift;
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }

    fn byte(&mut self) -> Option<u8> {
        let byte = *self.0.first()?;
        self.0.advance(1);
        Some(byte)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

    use proptest::collection::{btree_map, vec};
    use proptest::prelude::*;

    use super::*;
    use crate::engine::Space;

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
                    Effect::Put { stamp, bytes } => Became::Written {
                        version: Version::from_stamp(*stamp),
                        text: bytes.clone(),
                    },
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
}
