//! One client: it owns some records alone, writes and reads them through the library, and holds
//! every answer against what it knows.

use std::collections::{BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use keyloom::{Collection, Document, Error, ErrorKind, Fate, Store, Stored, Version, Written};
use serde_json::Value;

use super::claims::{Claim, Claims, Holder, Move};
use super::counters::{Counted, Tallies};
use super::keyed::KeyedCounts;
use super::random::Random;
use super::shape::Shape;
use super::shared::Increments;
use super::values::{CLIENT, Draw, identity};

/// How many operations are shown when one of them gives a wrong answer.
const LOGGED: usize = 20;

/// What all clients of a run share.
pub struct World {
    pub shapes: Vec<Shape>,
    pub claims: Mutex<Claims>,
    pub log: Mutex<VecDeque<String>>,
    /// How many clients there are; with one, every answer is known exactly.
    pub clients: usize,
    /// How many records of each collection a client has at most.
    pub slots: usize,
    /// Whether the engine fails now and then.
    pub faults: bool,
    /// Whether the engine reads one moment.
    pub snapshot: bool,
    pub increments: Increments,
    pub counted: Counted,
    pub keyed_counts: KeyedCounts,
}

impl World {
    pub fn claims(&self) -> MutexGuard<'_, Claims> {
        self.claims.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn note(&self, line: String) {
        let mut log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        if log.len() == LOGGED {
            log.pop_front();
        }
        log.push_back(line);
    }
}

/// A record that is in the store.
#[derive(Clone, Debug, PartialEq)]
pub struct Known {
    pub key: String,
    pub version: Version,
    pub value: Value,
}

impl Known {
    pub fn of_written(written: Written<Value>) -> Self {
        Known::of(&written.into_document())
    }

    pub fn of(document: &Document) -> Self {
        let value = document.json().unwrap();
        Known { key: document.key.to_string(), version: document.version, value }
    }

    /// Panics unless this is what was read.
    pub fn check(&self, stored: &Stored<Value>) {
        let read = Known {
            key: stored.key.to_string(),
            version: stored.version,
            value: stored.value.clone(),
        };
        assert_eq!(read, *self, "a record is not as it was written");
    }
}

/// A place for one record.
#[derive(Clone, Debug, Default)]
pub struct Slot {
    pub known: Option<Known>,
    /// A version that the record had and has no more.
    pub stale: Option<Version>,
    /// Every state that the record was in, in order.
    pub past: Vec<Known>,
}

impl Slot {
    pub fn value(&self) -> Option<&Value> {
        self.known.as_ref().map(|known| &known.value)
    }

    /// The record is now this.
    pub fn set(&mut self, known: Option<Known>) {
        let version = |known: &Option<Known>| known.as_ref().map(|known| known.version);
        if version(&self.known) != version(&known) {
            self.stale = version(&self.known).or(self.stale);
            self.past.extend(known.clone());
        }
        self.known = known;
    }
}

/// A client of the store.
pub struct Client {
    pub world: Arc<World>,
    pub number: usize,
    pub random: Random,
    pub store: Store,
    pub collections: Vec<Collection<Value>>,
    pub slots: Vec<Vec<Slot>>,
    /// Its records with counters.
    pub tallies: Tallies,
    /// Whether its handle knows the newer schema, and all of its indexes are built.
    pub later: bool,
    pub done: u64,
}

impl Client {
    pub async fn new(world: Arc<World>, number: usize, seed: u64, store: Store) -> Self {
        let slots = vec![vec![Slot::default(); world.slots]; world.shapes.len()];
        let random = Random::new(seed.wrapping_add(number as u64 * 0x1234_5678_9abc_def1));
        let mut client = Client {
            world,
            number,
            random,
            collections: Vec::new(),
            slots,
            tallies: Tallies::default(),
            store: store.clone(),
            later: false,
            done: 0,
        };
        client.use_store(store, false).await;
        client
    }

    /// Goes on through another handle.
    pub async fn use_store(&mut self, store: Store, later: bool) {
        self.collections.clear();
        for shape in &self.world.shapes {
            self.collections.push(retried(|| store.documents(&shape.name)).await);
        }
        self.store = store;
        self.later = later;
    }

    /// Does so many random operations.
    pub async fn run(&mut self, operations: u64) {
        for _ in 0..operations {
            let collection = self.random.below(self.world.shapes.len());
            let slot = self.random.below(self.world.slots);
            match self.random.below(100) {
                0..42 => self.write(collection, slot).await,
                42..53 => self.get(collection, slot).await,
                53..57 => self.get_many(collection).await,
                57..63 => self.get_by(collection).await,
                63..82 => self.browse(collection).await,
                82..86 => self.count(collection).await,
                86..89 => self.keys(collection).await,
                89 => self.near().await,
                90..92 => self.share().await,
                92 => self.count_with_key().await,
                93..96 => self.tally().await,
                _ => self.transact().await,
            }
            self.done += 1;
        }
    }

    pub fn note(&self, line: impl FnOnce() -> String) {
        self.world.note(format!("client {} {}", self.number, line()));
    }

    pub fn shape(&self, collection: usize) -> &Shape {
        &self.world.shapes[collection]
    }

    pub fn draw(&mut self) -> Draw<'_> {
        Draw {
            client: self.number,
            random: &mut self.random,
            rivals: self.world.slots * self.world.clients / 2,
            generate: !self.world.faults,
        }
    }

    pub fn holder(&self, collection: usize, slot: usize) -> Holder {
        (self.number, collection, slot)
    }

    /// The exclusive values of a record, as it is or would be.
    pub fn claims_of(&self, collection: usize, record: Option<&Value>) -> BTreeSet<Claim> {
        let shape = self.shape(collection);
        let claims = record.map(|record| shape.claims(record)).unwrap_or_default();
        claims.into_iter().map(|(index, values)| (shape.name.clone(), index, values)).collect()
    }

    pub fn a_move(&self, collection: usize, slot: usize, after: Option<&Value>) -> Move {
        Move {
            holder: self.holder(collection, slot),
            before: self.claims_of(collection, self.slots[collection][slot].value()),
            after: self.claims_of(collection, after),
        }
    }

    /// The values that name the record of a slot, which need not be there.
    pub fn key_values(&self, collection: usize, slot: usize) -> Vec<Value> {
        let shape = self.shape(collection);
        let present = self.slots[collection][slot].value();
        shape.key_values(&Value::Object(identity(&shape.name, self.number, slot, present)))
    }

    /// Whether a record that was read belongs to this client, and in which slot it is.
    pub fn slot_of(&self, collection: usize, key: &str, record: &Value) -> Option<usize> {
        if record[CLIENT] != self.number {
            return None;
        }
        let is_it = |slot: &Slot| slot.known.as_ref().is_some_and(|known| known.key == key);
        let slot = self.slots[collection].iter().position(is_it);
        Some(slot.unwrap_or_else(|| panic!("{key} was deleted, or was never there")))
    }

    /// Whether an error can only come of an injected fault that changed nothing.
    pub fn is_fault(&self, error: &Error) -> bool {
        self.world.faults
            && error.kind() == ErrorKind::Unavailable
            && error.fate() == Fate::DidNotHappen
    }

    /// The answer of a read; `None` when it failed by an injected fault.
    pub fn read<T>(&self, answer: Result<T, Error>) -> Option<T> {
        match answer {
            Ok(answer) => Some(answer),
            Err(error) if self.is_fault(&error) => None,
            Err(error) => panic!("a read failed: {error:?}"),
        }
    }

    /// What the store holds in a slot now, whatever faults are injected.
    pub async fn settled(&self, collection: usize, slot: usize) -> Option<Known> {
        let values = self.key_values(collection, slot);
        let documents = &self.collections[collection];
        let read = retried(|| documents.get_document(values.clone())).await;
        read.as_ref().map(Known::of)
    }

    /// Whether the collection has an index of the newer schema that may be asked.
    pub fn asks_later(&self, collection: usize) -> bool {
        self.later && self.shape(collection).has_later()
    }
}

/// The answer of a call that is repeated until no fault is injected.
pub async fn retried<T, F: Future<Output = Result<T, Error>>>(mut call: impl FnMut() -> F) -> T {
    loop {
        match call().await {
            Ok(answer) => return answer,
            Err(error) if error.kind() == ErrorKind::Unavailable => {}
            Err(error) => panic!("{error:?}"),
        }
    }
}
