//! Encodes a batch as a log entry.

use std::collections::HashMap;

use bytes::Bytes;

use super::entry::{ADDED, DELETED, FORMAT, Note, PUT, Told};
use super::wire::Out;
use crate::engine::{Address, Batch, Effect, Stamp};
use crate::own::is_of_this_store;
use crate::record::Version;

/// The entry for a batch.
pub(crate) fn encode(note: &Note, batch: &Batch) -> Bytes {
    let written: Vec<(&Address, &Effect)> = batch
        .entries
        .iter()
        .filter(|entry| !is_of_this_store(&entry.address))
        .filter_map(|entry| Some((&entry.address, entry.effect.as_ref()?)))
        .collect();
    let stamps = Stamps::of(&written, &note.changes);
    let mut out = Out(Vec::with_capacity(batch.weight() + 64 * (1 + stamps.all.len())));
    out.0.push(FORMAT);
    out.number(note.author.at);
    out.text(note.author.by.as_deref().unwrap_or_default().as_bytes());
    out.count(stamps.all.len());
    stamps.all.iter().for_each(|stamp| out.stamp(*stamp));
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

/// Every stamp of an entry, each once. Most entries have one or two.
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
        // Every stamp that is looked up was collected above.
        self.places.get(&stamp).copied().unwrap_or_default()
    }
}

impl Out {
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
}
