//! Counters, and how they follow their records: through updates, deletes, moves and transactions.
//!
//! Each client has a few records of its own, and knows every number exactly. One record is
//! counted in by all, and must have lost none at the end.

use std::collections::BTreeMap;
use std::sync::Mutex;

use keyloom::{
    Collection, Error, ErrorKind, Fate, Increment, Query, Result, Store, Stored, Transaction,
};
use serde_json::{Value, json};

use super::client::{Client, retried};

/// The name of the collection.
pub const TALLY: &str = "tally";

/// How many records a client has at most.
const SLOTS: usize = 4;

/// The client of the record that all count in.
const EVERYBODY: i64 = -1;

const NAMES: [&str; 5] = ["stats.low", "stats.any", "hits.a", "hits.b", "hits.c"];

/// A record and its counters.
#[derive(Clone, Debug, PartialEq)]
pub struct Tally {
    label: i64,
    counters: BTreeMap<&'static str, i64>,
}

impl Tally {
    fn new(label: i64) -> Self {
        Tally { label, counters: BTreeMap::new() }
    }

    fn value(&self, name: &str) -> i64 {
        self.counters.get(name).copied().unwrap_or(0)
    }

    /// Adds, unless a sum would leave its bounds: then nothing changes.
    fn add(&mut self, deltas: &[(&'static str, i64)]) -> bool {
        let mut after = self.clone();
        for (name, delta) in deltas {
            *after.counters.entry(name).or_default() += delta;
        }
        let is_sound = after.counters.iter().all(|(name, value)| match *name {
            "stats.low" => *value >= 0,
            "stats.any" => true,
            _ => *value <= 20,
        });
        if is_sound {
            *self = after;
        }
        is_sound
    }

    /// As it is read. A member of a family is compared only if it is not zero.
    fn shown(&self, client: usize, slot: usize) -> Value {
        let hits = NAMES[2..].iter().filter(|name| self.value(name) != 0);
        let hits: BTreeMap<&str, i64> =
            hits.map(|name| (&name["hits.".len()..], self.value(name))).collect();
        json!({
            "client": client, "n": slot, "label": self.label, "hits": hits,
            "stats": { "low": self.value("stats.low"), "any": self.value("stats.any") },
        })
    }
}

/// What is in the slots of one client.
pub type Tallies = [Option<Tally>; SLOTS];

/// How often everybody's record was counted in: for certain, and perhaps.
#[derive(Default)]
pub struct Counted(Mutex<(i64, i64)>);

/// Creates the record that all count in.
pub async fn prepare(store: &Store) {
    let tallies = retried(|| store.documents(TALLY)).await;
    let record = json!({ "client": EVERYBODY, "n": 0, "label": 0 });
    retried(|| tallies.upsert(&record)).await;
}

/// No count is lost, and none is made up.
pub async fn check(store: &Store, counted: &Counted) {
    let tallies = retried(|| store.documents(TALLY)).await;
    let record = retried(|| tallies.get((EVERYBODY, 0))).await.unwrap();
    let (certain, perhaps) = *counted.0.lock().unwrap();
    let found = record.value["stats"]["any"].as_i64().unwrap();
    assert!(
        (certain..=certain + perhaps).contains(&found),
        "{certain} increments and perhaps {perhaps} more, but {found} were counted"
    );
}

fn record(client: usize, slot: usize, label: i64) -> Value {
    json!({ "client": client, "n": slot, "label": label })
}

/// What was read, in the form in which it is compared.
fn comparable(stored: &Stored<Value>) -> Value {
    let mut value = stored.value.clone();
    if value.get("hits").is_none() {
        value["hits"] = json!({});
    }
    value["hits"].as_object_mut().unwrap().retain(|_, count| *count != 0);
    value
}

/// What the steps of one transaction at one record come to: 0 counts, 1 deletes, 2 creates, 3
/// looks. Creations look too; what is counted blindly is told at the commit.
fn forecast(
    present: Option<Tally>,
    steps: &[usize],
    deltas: &[(&'static str, i64)],
) -> std::result::Result<Option<Tally>, ErrorKind> {
    let (mut sight, mut is_known) = (present, false);
    let mut added = Vec::new();
    for step in steps {
        match (step, &sight) {
            (0, None) if is_known => return Err(ErrorKind::NotFound),
            (0, _) => added.extend(deltas),
            (1, Some(_)) => {
                (sight, is_known) = (None, true);
                added.clear();
            }
            (2, Some(_)) => return Err(ErrorKind::AlreadyExists),
            (2, None) if !added.is_empty() => return Err(ErrorKind::InvalidArgument),
            (2, None) => (sight, is_known) = (Some(Tally::new(1)), true),
            _ => is_known = true,
        }
    }
    match &mut sight {
        None if !added.is_empty() => Err(ErrorKind::NotFound),
        Some(tally) if !tally.clone().add(&added) => Err(ErrorKind::OutOfBounds),
        Some(tally) => {
            tally.add(&added);
            Ok(sight)
        }
        None => Ok(None),
    }
}

/// What an operation comes to.
type Forecast = std::result::Result<Tallies, ErrorKind>;

impl Client {
    pub async fn tally(&mut self) {
        let slot = self.random.below(SLOTS);
        let tallies = self.store.documents(TALLY).await;
        let Some(tallies) = self.read(tallies) else { return };
        match self.random.below(14) {
            0..3 => self.count_one(&tallies, slot).await,
            3 => self.count_two(&tallies).await,
            4 => self.count_together(&tallies).await,
            5 | 6 => self.create(&tallies, slot).await,
            7 => self.relabel(&tallies, slot).await,
            8 => self.remove(&tallies, slot).await,
            9 => self.move_tally(&tallies, slot).await,
            10 | 11 => self.tally_in_transaction(slot).await,
            _ => self.look_at_tallies(&tallies).await,
        }
    }

    fn deltas(&mut self) -> Vec<(&'static str, i64)> {
        let count = 1 + self.random.below(3);
        let mut delta = || (*self.random.pick(&NAMES), self.random.below(9) as i64 - 3);
        (0..count).map(|_| delta()).collect()
    }

    /// Holds the answer of a write against what it should have come to.
    async fn settle_tally(&mut self, what: &str, answer: Result<()>, forecast: Forecast) {
        self.note(|| format!("tally: {what} → {forecast:?}"));
        match (answer, forecast) {
            (Ok(()), Ok(after)) => self.tallies = after,
            (Err(error), _) if self.is_fault(&error) => {}
            (Err(error), forecast)
                if self.world.faults && error.fate() == Fate::MayHaveHappened =>
            {
                let now = self.stored_tallies().await;
                let after = forecast.unwrap_or_else(|_| self.tallies.clone());
                assert!(
                    now == self.shown_tallies(&after) || now == self.shown_tallies(&self.tallies),
                    "neither before nor after {what}: {now:?}"
                );
                if now == self.shown_tallies(&after) {
                    self.tallies = after;
                }
            }
            (Err(error), Err(kind)) if error.kind() == kind => {}
            (answer, forecast) => panic!("{what} came to {answer:?} instead of {forecast:?}"),
        }
    }

    fn shown_tallies(&self, tallies: &Tallies) -> Vec<Option<Value>> {
        let shown = tallies
            .iter()
            .enumerate()
            .map(|(slot, tally)| tally.as_ref().map(|tally| tally.shown(self.number, slot)));
        shown.collect()
    }

    async fn stored_tallies(&self) -> Vec<Option<Value>> {
        let tallies = retried(|| self.store.documents(TALLY)).await;
        let keys = || (0..SLOTS).map(|slot| (self.number as u64, slot as u64));
        let found = retried(|| tallies.get_many(keys())).await;
        found.iter().map(|stored| stored.as_ref().map(comparable)).collect()
    }

    fn tally_key(&self, slot: usize) -> (u64, u64) {
        (self.number as u64, slot as u64)
    }

    async fn count_one(&mut self, tallies: &Collection<Value>, slot: usize) {
        let mut deltas = self.deltas();
        let is_unknown = self.random.percent(5);
        if is_unknown {
            deltas.push(("stats.unheard", 1));
        }
        let mut after = self.tallies.clone();
        let forecast = match &mut after[slot] {
            _ if is_unknown => Err(ErrorKind::InvalidArgument),
            None => Err(ErrorKind::NotFound),
            Some(tally) => match tally.add(&deltas) {
                true => Ok(after),
                false => Err(ErrorKind::OutOfBounds),
            },
        };
        let answer = tallies.increment(self.tally_key(slot), deltas.clone()).await;
        if let (Ok(now), Ok(after)) = (&answer, &forecast) {
            let tally = after[slot].as_ref().unwrap();
            for name in NAMES {
                assert_eq!(now.get(name).copied().unwrap_or(0), tally.value(name), "{name}");
            }
        }
        self.settle_tally(&format!("count {slot} {deltas:?}"), answer.map(drop), forecast).await;
    }

    /// Two records, all or nothing; maybe the same one twice.
    async fn count_two(&mut self, tallies: &Collection<Value>) {
        let slots = [self.random.below(SLOTS), self.random.below(SLOTS)];
        let deltas = [self.deltas(), self.deltas()];
        let mut after = self.tallies.clone();
        let mut wanted: BTreeMap<usize, Vec<(&'static str, i64)>> = BTreeMap::new();
        for (slot, deltas) in slots.iter().zip(&deltas) {
            wanted.entry(*slot).or_default().extend(deltas);
        }
        // The first that fails is told, in the order of what was asked.
        let mut failed = None;
        for slot in slots {
            let Some(deltas) = wanted.remove(&slot) else { continue };
            let kind = match &mut after[slot] {
                None => Some(ErrorKind::NotFound),
                Some(tally) => (!tally.add(&deltas)).then_some(ErrorKind::OutOfBounds),
            };
            failed = failed.or(kind);
        }
        let what = format!("count {slots:?} {deltas:?}");
        let asked = slots.map(|slot| self.tally_key(slot)).into_iter().zip(deltas);
        let answer = match self.random.percent(50) {
            true => tallies.increment_many(asked).await.map(drop),
            false => {
                let one = |(key, deltas): ((u64, u64), Vec<(&str, i64)>)| {
                    let increment = Increment::of(TALLY, key);
                    deltas.into_iter().fold(increment, |it, (name, delta)| it.add(name, delta))
                };
                self.store.increment_many(asked.map(one)).await.map(drop)
            }
        };
        self.settle_tally(&what, answer, failed.map_or(Ok(after), Err)).await;
    }

    async fn count_together(&mut self, tallies: &Collection<Value>) {
        self.note(|| "count together".to_owned());
        let answer = tallies.increment((EVERYBODY, 0), [("stats.any", 1)]).await;
        let mut counted = self.world.counted.0.lock().unwrap();
        match answer {
            Ok(_) => counted.0 += 1,
            Err(error) if self.is_fault(&error) => {}
            Err(error) if self.world.faults && error.fate() == Fate::MayHaveHappened => {
                counted.1 += 1;
            }
            Err(error) => panic!("{error:?}"),
        }
    }

    async fn create(&mut self, tallies: &Collection<Value>, slot: usize) {
        let label = self.random.below(4) as i64;
        let mut after = self.tallies.clone();
        let forecast = match &after[slot] {
            Some(_) => Err(ErrorKind::AlreadyExists),
            None => {
                after[slot] = Some(Tally::new(label));
                Ok(after)
            }
        };
        let mut new = record(self.number, slot, label);
        if self.random.percent(50) {
            new["stats"] = json!({ "low": 0 });
        }
        let answer = tallies.insert(&new).await;
        self.settle_tally(&format!("create {slot}"), answer.map(drop), forecast).await;
    }

    /// Changes the record, by one of several ways, and no counter of it.
    async fn relabel(&mut self, tallies: &Collection<Value>, slot: usize) {
        let label = self.random.below(4) as i64;
        let mut after = self.tallies.clone();
        let shown = after[slot].as_ref().map(|tally| tally.shown(self.number, slot));
        let forecast = match &mut after[slot] {
            None => Err(ErrorKind::NotFound),
            Some(tally) => {
                tally.label = label;
                Ok(after)
            }
        };
        let key = self.tally_key(slot);
        let answer = match self.random.below(4) {
            0 => tallies.update_with_retry(key, &json!({ "label": label })).await.map(drop),
            1 => tallies.replace(&record(self.number, slot, label)).await.map(drop),
            2 => {
                let mut whole = shown.unwrap_or_else(|| record(self.number, slot, label));
                whole["label"] = json!(label);
                tallies.replace(&whole).await.map(drop)
            }
            _ => {
                let change = |tally: &mut Value| {
                    tally["label"] = json!(label);
                    Ok(())
                };
                tallies.modify(key, change).await.map(drop)
            }
        };
        self.settle_tally(&format!("relabel {slot} {label}"), answer, forecast).await;
    }

    async fn remove(&mut self, tallies: &Collection<Value>, slot: usize) {
        let mut after = self.tallies.clone();
        after[slot] = None;
        let answer = tallies.delete(self.tally_key(slot)).await;
        self.settle_tally(&format!("remove {slot}"), answer.map(drop), Ok(after)).await;
    }

    async fn move_tally(&mut self, tallies: &Collection<Value>, slot: usize) {
        let to = self.random.below(SLOTS);
        let mut after = self.tallies.clone();
        let forecast = match (&self.tallies[slot], &self.tallies[to]) {
            (None, _) => Err(ErrorKind::NotFound),
            (Some(_), Some(_)) if to != slot => Err(ErrorKind::AlreadyExists),
            _ => {
                after[to] = after[slot].take();
                Ok(after)
            }
        };
        let change = |tally: &mut Value| {
            tally["n"] = json!(to);
            Ok(())
        };
        let answer = tallies.rename(self.tally_key(slot), change).await;
        self.settle_tally(&format!("move {slot} to {to}"), answer.map(drop), forecast).await;
    }

    /// Steps at one record in one transaction: counting, deleting, creating, looking.
    async fn tally_in_transaction(&mut self, slot: usize) {
        let steps: Vec<usize> =
            (0..1 + self.random.below(5)).map(|_| self.random.below(4)).collect();
        let deltas = self.deltas();
        let forecast = forecast(self.tallies[slot].clone(), &steps, &deltas).map(|tally| {
            let mut after = self.tallies.clone();
            after[slot] = tally;
            after
        });
        let what = format!("transaction at {slot} {steps:?} {deltas:?}");
        let (key, new) = (self.tally_key(slot), record(self.number, slot, 1));
        let attempt = async |transaction: Transaction| {
            let tallies = transaction.documents(TALLY)?;
            for step in &steps {
                match step {
                    0 => tallies.increment(key, deltas.iter().copied()).await?,
                    1 => tallies.delete(key).await.map(drop)?,
                    2 => tallies.insert(&new).await.map(drop)?,
                    _ => tallies.get(key).await.map(drop)?,
                }
            }
            Ok::<(), Error>(())
        };
        let answer = self.store.transaction(attempt).await;
        self.settle_tally(&what, answer, forecast).await;
    }

    /// Every way to read shows every counter.
    async fn look_at_tallies(&mut self, tallies: &Collection<Value>) {
        self.note(|| "tally: look".to_owned());
        let wanted: Vec<Value> = self.shown_tallies(&self.tallies).into_iter().flatten().collect();
        let keys = (0..SLOTS).map(|slot| self.tally_key(slot)).collect::<Vec<_>>();
        let answer = tallies.get_many(keys).await;
        let Some(found) = self.read(answer) else { return };
        let found: Vec<Value> = found.iter().flatten().map(comparable).collect();
        assert_eq!(found, wanted);
        let query = Query::new().equal("client", self.number as u64).index("label");
        let answer = tallies.page(&query).await;
        let Some(page) = self.read(answer) else { return };
        assert!(page.problems.is_empty(), "{:?}", page.problems);
        let mut found: Vec<Value> = page.records.iter().map(comparable).collect();
        found.sort_by_key(|record| record["n"].as_u64());
        assert_eq!(found, wanted);
    }

    /// Everything is as it should be when nobody works.
    pub async fn check_tallies(&self) {
        assert_eq!(self.stored_tallies().await, self.shown_tallies(&self.tallies));
    }
}
