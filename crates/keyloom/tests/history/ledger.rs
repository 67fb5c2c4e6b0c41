//! What the history of some records must be, kept by the simplest means: everything that happened,
//! in order.

use std::collections::BTreeMap;

use keyloom::{Document, HistoryEntry, HistoryKind, Version};
use serde_json::Value;

/// One version of one incarnation.
#[derive(Clone, Debug)]
pub struct Fact {
    pub version: Version,
    pub at: u64,
    pub by: Option<String>,
    pub kind: HistoryKind,
    pub key: String,
    pub from: Option<String>,
    pub record: Option<Value>,
}

/// A record left a key with this version of this incarnation.
#[derive(Clone, Copy, Debug)]
struct Left {
    incarnation: usize,
    place: usize,
}

#[derive(Default)]
pub struct Ledger {
    /// The versions of each incarnation, in order.
    incarnations: Vec<Vec<Fact>>,
    present: BTreeMap<String, usize>,
    left: BTreeMap<String, Vec<Left>>,
    /// What was at a key from a time on, in order.
    states: BTreeMap<String, Vec<(u64, Option<Version>)>>,
    /// How many versions of an incarnation are kept.
    kept: Option<usize>,
}

impl Ledger {
    pub fn new(kept: Option<usize>) -> Self {
        Ledger { kept, ..Ledger::default() }
    }

    pub fn present(&self, key: &str) -> Option<&Fact> {
        self.incarnations[*self.present.get(key)?].last()
    }

    pub fn write(&mut self, document: &Document, at: u64, by: Option<&str>) {
        let key = document.key.to_string();
        let is_new = !self.present.contains_key(&key);
        let place = *self.present.entry(key.clone()).or_insert(self.incarnations.len());
        if is_new {
            self.incarnations.push(Vec::new());
        }
        let kind = if is_new { HistoryKind::Created } else { HistoryKind::Updated };
        self.add(place, fact(document, at, by, kind, None));
    }

    pub fn delete(&mut self, key: &str, at: u64, by: Option<&str>) {
        let incarnation = self.present.remove(key).unwrap();
        let last = self.incarnations[incarnation].last().unwrap().clone();
        let text = last.version.to_string();
        let (hex, _) = text.split_once('-').unwrap();
        let version = format!("{hex}-{}", last.version.revision() + 1).parse().unwrap();
        let by = by.map(str::to_owned);
        let kind = HistoryKind::Deleted;
        self.add(incarnation, Fact { version, at, by, kind, from: None, record: None, ..last });
        self.leave(key, incarnation);
    }

    pub fn rename(&mut self, from: &str, document: &Document, at: u64, by: Option<&str>) {
        let incarnation = self.present.remove(from).unwrap();
        self.present.insert(document.key.to_string(), incarnation);
        let fact = fact(document, at, by, HistoryKind::Renamed, Some(from.to_owned()));
        self.add(incarnation, fact);
        self.leave(from, incarnation);
        self.states.entry(from.to_owned()).or_default().push((at, None));
    }

    fn add(&mut self, incarnation: usize, fact: Fact) {
        let version = fact.record.is_some().then_some(fact.version);
        self.states.entry(fact.key.clone()).or_default().push((fact.at, version));
        self.incarnations[incarnation].push(fact);
    }

    fn leave(&mut self, key: &str, incarnation: usize) {
        let place = self.incarnations[incarnation].len() - 1;
        self.left.entry(key.to_owned()).or_default().push(Left { incarnation, place });
    }

    fn is_kept(&self, incarnation: usize, place: usize) -> bool {
        self.kept.is_none_or(|kept| self.incarnations[incarnation].len() - place <= kept)
    }

    /// What a listing of the key gives: versions, newest first, and whether each shows its record.
    pub fn listing(&self, key: &str) -> Vec<(&Fact, Option<&Value>)> {
        let here = self.present.get(key).map(|incarnation| Left {
            incarnation: *incarnation,
            place: self.incarnations[*incarnation].len() - 1,
        });
        let left = self.left.get(key).into_iter().flatten().rev().copied();
        let mut listing = Vec::new();
        for (stretch, Left { incarnation, place: last }) in here.into_iter().chain(left).enumerate()
        {
            for place in (0..=last).rev() {
                let fact = &self.incarnations[incarnation][place];
                if place != last && fact.from.as_deref() == Some(key) {
                    break;
                }
                let hidden = place == last && !(stretch == 0 && here.is_some());
                if self.is_kept(incarnation, place) {
                    listing.push((fact, fact.record.as_ref().filter(|_| !hidden)));
                }
            }
        }
        listing
    }

    /// Every version that was ever at the key, with whether it is kept.
    pub fn versions(&self, key: &str) -> Vec<(&Fact, bool)> {
        let all = self.incarnations.iter().enumerate().flat_map(|(incarnation, facts)| {
            let with_kept = move |(place, fact)| (fact, self.is_kept(incarnation, place));
            facts.iter().enumerate().map(with_kept)
        });
        all.filter(|(fact, _)| fact.key == key).collect()
    }

    /// The version at the key at a time, with whether it is kept; `None` when nothing was there.
    pub fn as_of(&self, key: &str, time: u64) -> Option<(&Fact, bool)> {
        let states = self.states.get(key)?;
        let version = states.iter().rev().find(|(at, _)| *at <= time)?.1?;
        self.versions(key).into_iter().find(|(fact, _)| fact.version == version)
    }

    /// Whether some version is kept no more.
    pub fn has_lost(&self) -> bool {
        let mut places = self.incarnations.iter().enumerate();
        places.any(|(incarnation, _)| !self.is_kept(incarnation, 0))
    }
}

fn fact(
    document: &Document,
    at: u64,
    by: Option<&str>,
    kind: HistoryKind,
    from: Option<String>,
) -> Fact {
    Fact {
        version: document.version,
        at,
        by: by.map(str::to_owned),
        kind,
        key: document.key.to_string(),
        from,
        record: Some(document.json().unwrap()),
    }
}

/// Panics unless the entry tells the fact.
pub fn check(entry: &HistoryEntry<Value>, fact: &Fact, record: Option<&Value>) {
    assert_eq!(
        (entry.version, entry.at_ms, &entry.by, entry.kind, &entry.key, &entry.renamed_from),
        (fact.version, fact.at, &fact.by, fact.kind, &fact.key, &fact.from)
    );
    assert_eq!(entry.record.as_ref(), record, "{entry:?}");
}
