//! Collections with counts and sums, random work on them, and what the aggregates must say,
//! computed from the records alone.

#![allow(dead_code, reason = "each test file uses its part")]

use std::collections::BTreeMap;
use std::sync::Arc;

use keyloom::engine::{
    Addition, Address, Area, Batch, Direction, Effect, Embedded, EmbeddedOptions, Engine,
    EngineExt, Memory, Outcome, Range, Row, Space, Stamp, Torn,
};
use keyloom::{Collection, ErrorKind, GroupQuery, Query, Schema, Store};
use serde_json::{Value, json};

pub const RECORDS: &str = r#"
[collection.run]
key = "flow:run:{flow}:{id}"

[collection.run.fields]
flow     = "text"
id       = "text"
status   = { type = "enum", values = ["queued", "running", "done", "done-late", "dead"] }
seconds  = "integer"
priority = { type = "integer", digits = 2 }
started  = "timestamp"

[collection.run.index.started]
key = "run:started:{flow}:{started desc}:{id}"

[collection.run.index.seconds]
key = "run:seconds:{flow}:{seconds}:{id}"

[collection.note]
key = "note:{id}"
area = "notes"
fields = { id = "text", tag = "text", size = "integer", done = "boolean" }
"#;

pub const AGGREGATES: &str = r#"
[collection.run.count.by_status]
group = ["status"]

[collection.run.count.all]
group = []

[collection.run.count.urgent]
group = ["flow"]
where = { priority = { gte = 5 } }

[collection.run.sum.seconds_by_flow]
field = "seconds"
group = ["flow", "status"]

[collection.note.sum.size]
field = "size"
group = ["done", "tag"]
where = { size = { present = true } }
"#;

pub const NAMES: [(&str, &str); 5] = [
    ("run", "by_status"),
    ("run", "all"),
    ("run", "urgent"),
    ("run", "seconds_by_flow"),
    ("note", "size"),
];

pub fn bare() -> Schema {
    Schema::from_toml(RECORDS).unwrap()
}

pub fn schema() -> Schema {
    Schema::from_toml(&format!("{RECORDS}\n{AGGREGATES}")).unwrap()
}

/// Memory, embedded and torn. The folder lives as long as the engine.
pub fn engines() -> Vec<(Arc<dyn Engine>, Option<tempfile::TempDir>)> {
    let folder = tempfile::tempdir().unwrap();
    let embedded = Embedded::open(folder.path(), EmbeddedOptions::default()).unwrap();
    vec![
        (Arc::new(Memory::new()), None),
        (Arc::new(embedded), Some(folder)),
        (Arc::new(Torn::new(Arc::new(Memory::new()), 7)), None),
    ]
}

/// Small numbers that look random, the same each time.
pub struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Self {
        Dice(seed.wrapping_add(0x9e37_79b9_7f4a_7c15))
    }

    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % bound
    }

    pub fn pick<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.below(of.len() as u64) as usize]
    }

    fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }
}

/// Texts that like to break out of their segments.
pub const TEXTS: [&str; 9] = ["nightly", "night", "", "a:b", "%3A", "ñ", "a\u{0}b", "a!", ":0"];

const STATUSES: [&str; 5] = ["queued", "running", "done", "done-late", "dead"];

fn run(dice: &mut Dice, ids: u64) -> Value {
    let (flow, id) = run_key(dice, ids);
    let mut record = json!({ "flow": flow, "id": id });
    if dice.chance(80) {
        record["status"] = (*dice.pick(&STATUSES)).into();
    }
    if dice.chance(70) {
        record["seconds"] = (dice.below(2000) as i64 - 1000).into();
    }
    if dice.chance(60) {
        record["priority"] = dice.below(10).into();
    }
    record
}

fn run_key(dice: &mut Dice, ids: u64) -> (String, String) {
    ((*dice.pick(&TEXTS)).to_owned(), format!("r{}", dice.below(ids)))
}

fn note(dice: &mut Dice, ids: u64) -> Value {
    let mut record = json!({ "id": format!("n{}", dice.below(ids)), "done": dice.chance(50) });
    if dice.chance(80) {
        record["tag"] = (*dice.pick(&TEXTS)).into();
    }
    if dice.chance(80) {
        record["size"] = dice.below(1 << 40).into();
    }
    record
}

#[derive(Clone)]
pub struct Clients {
    store: Store,
    runs: Collection<Value>,
    notes: Collection<Value>,
}

impl Clients {
    pub async fn new(store: &Store) -> Self {
        Clients {
            store: store.clone(),
            runs: store.documents("run").await.unwrap(),
            notes: store.documents("note").await.unwrap(),
        }
    }

    /// Does one random thing. What others did first is part of life.
    pub async fn act(&self, dice: &mut Dice, ids: u64) {
        let outcome = match dice.below(12) {
            0 | 1 => self.runs.insert(&run(dice, ids)).await.map(drop),
            2 | 3 => self.runs.upsert(&run(dice, ids)).await.map(drop),
            4 => self.runs.replace(&run(dice, ids)).await.map(drop),
            5 => self.runs.delete(run_key(dice, ids)).await.map(drop),
            6 => {
                let patch = json!({ "status": *dice.pick(&STATUSES), "seconds": dice.below(50) });
                self.runs.update_with_retry(run_key(dice, ids), &patch).await.map(drop)
            }
            7 => {
                let (from, to) = (run_key(dice, ids), run_key(dice, ids));
                let change = |run: &mut Value| {
                    run["flow"] = to.0.clone().into();
                    run["id"] = to.1.clone().into();
                    Ok(())
                };
                self.runs.rename(from, change).await.map(drop)
            }
            8 | 9 => self.notes.upsert(&note(dice, ids)).await.map(drop),
            10 => self.notes.delete(format!("n{}", dice.below(ids))).await.map(drop),
            _ => self.transact(dice, ids).await,
        };
        if let Err(error) = outcome {
            let known = [
                ErrorKind::AlreadyExists,
                ErrorKind::NotFound,
                ErrorKind::Contention,
                ErrorKind::VersionConflict,
            ];
            assert!(known.contains(&error.kind()), "{error:?}");
        }
    }

    /// Several records of both collections: written, written again, deleted, come and gone.
    async fn transact(&self, dice: &mut Dice, ids: u64) -> keyloom::Result<()> {
        let (first, second) = (run(dice, ids), run(dice, ids));
        let (gone, again) = (run_key(dice, ids), note(dice, ids));
        self.store
            .transaction(|transaction| {
                let (first, second, gone, again) =
                    (first.clone(), second.clone(), gone.clone(), again.clone());
                async move {
                    let runs = transaction.documents("run")?;
                    let notes = transaction.documents("note")?;
                    runs.upsert(&first).await?;
                    runs.upsert(&second).await?;
                    runs.upsert(&first).await?;
                    runs.delete(gone).await?;
                    notes.upsert(&again).await?;
                    Ok::<(), keyloom::Error>(())
                }
            })
            .await
    }

    pub async fn act_often(&self, seed: u64, times: u64, ids: u64) {
        let mut dice = Dice::new(seed);
        for _ in 0..times {
            self.act(&mut dice, ids).await;
        }
    }
}

/// Groups by their values as JSON: the number of records and the sum.
pub type Tally = BTreeMap<String, (i64, i64)>;

/// What the records of a collection give to an aggregate.
pub async fn expected(store: &Store, collection: &str, aggregate: &str) -> Tally {
    let records = all(store, collection).await;
    let mut tally = Tally::new();
    for record in records {
        let text = |name: &str| record[name].as_str().map(Value::from);
        let (group, sum) = match aggregate {
            "by_status" => (text("status").map(|status| vec![status]), 0),
            "all" => (Some(vec![]), 0),
            "urgent" => {
                let is_urgent = record["priority"].as_i64().is_some_and(|priority| priority >= 5);
                (is_urgent.then(|| vec![record["flow"].clone()]), 0)
            }
            "seconds_by_flow" => {
                let group = text("status").map(|status| vec![record["flow"].clone(), status]);
                (group, record["seconds"].as_i64().unwrap_or(0))
            }
            _ => {
                let group = text("tag").map(|tag| vec![record["done"].clone(), tag]);
                let size = record["size"].as_i64();
                (group.filter(|_| size.is_some()), size.unwrap_or(0))
            }
        };
        if let Some(group) = group {
            let total = tally.entry(Value::from(group).to_string()).or_default();
            *total = (total.0 + 1, total.1 + sum);
        }
    }
    tally
}

pub async fn all(store: &Store, collection: &str) -> Vec<Value> {
    let documents = store.documents(collection).await.unwrap();
    let page = documents.page(&Query::new().scan().take(10_000)).await.unwrap();
    assert!(page.next.is_none() && page.problems.is_empty());
    page.records.into_iter().map(|stored| stored.value).collect()
}

/// What an aggregate says, read page by page.
pub async fn found(store: &Store, collection: &str, aggregate: &str) -> Tally {
    let documents = store.documents(collection).await.unwrap();
    let mut tally = Tally::new();
    let mut query = GroupQuery::new(aggregate).take(3);
    loop {
        let page = documents.groups(&query).await.unwrap();
        for group in page.groups {
            let values = Value::from(group.values).to_string();
            let before = tally.insert(values, (group.count, group.sum.unwrap_or(0)));
            assert_eq!(before, None, "a group is given once");
        }
        match page.next {
            Some(next) => query = query.from_cursor(next),
            None => return tally,
        }
    }
}

/// Every aggregate says what the records give, by every way of asking.
pub async fn assert_exact(store: &Store) {
    for (collection, aggregate) in NAMES {
        let expected = expected(store, collection, aggregate).await;
        let engine = store.engine().capabilities().engine;
        assert_eq!(found(store, collection, aggregate).await, expected, "{aggregate} on {engine}");
        let documents = store.documents(collection).await.unwrap();
        for (group, (count, sum)) in expected {
            let values: Vec<Value> = serde_json::from_str(&group).unwrap();
            assert_eq!(documents.counted(aggregate, values.clone()).await.unwrap(), count);
            if ["seconds_by_flow", "size"].contains(&aggregate) {
                assert_eq!(documents.summed(aggregate, values).await.unwrap(), sum);
            }
        }
    }
}

pub async fn assert_clean(store: &Store) {
    let verification = store.verify().await.unwrap();
    assert!(verification.is_clean(), "{:#?}", verification.findings);
}

/// Everything in Keyloom's own area that begins so.
pub async fn own(store: &Store, prefix: &'static str) -> Vec<Row> {
    let range = Range::prefix(Area::own(), prefix);
    store.engine().scan_all(&Space::main(), &range, 100, Direction::Forward).await.unwrap()
}

/// Does something to a key of Keyloom's own area behind its back.
pub async fn plant(store: &Store, key: &str, effect: Effect) {
    let mut batch = Batch::new(Space::main());
    batch.push(Address::new(Area::own(), key.to_owned()), None, Some(effect));
    assert!(matches!(store.engine().commit(batch).await.unwrap(), Outcome::Committed(_)));
}

pub fn adding(name: &str, delta: i64) -> Effect {
    let addition = Addition { name: name.to_owned(), delta, min: None, max: None };
    Effect::Add { stamp: Stamp([9; Stamp::BYTES]), additions: vec![addition] }
}
