//! What the tests of moments and of backups share: stores that hold every kind of cell.

#![allow(dead_code, reason = "each test uses a part of it")]

use std::sync::Arc;
use std::time::Duration;

use keyloom::engine::{
    Area, Direction, Durability, Embedded, EmbeddedOptions, Engine, EngineExt, LogSlice, Memory,
    Range, Row, Space,
};
use keyloom::{Clock, Schema, Store};
use serde_json::{Value, json};

/// Everything that a schema can make a store keep.
pub const SCHEMA: &str = r#"
[log]

[collection.account]
key = "account:{id}"
history = { versions = 20 }
expires_at = "ends"
[collection.account.fields]
id    = "text"
owner = "text"
code  = "text"
ends  = "timestamp"
balance = "integer"
"tags.*" = "text"
[collection.account.counters]
"stats.*" = {}
[collection.account.index.owner]
key = "by-owner:{owner}:{id}"
[collection.account.index.tag]
key = "by-tag:{tags.*}:{id}"
[collection.account.index.card]
key = "card:{owner}:{id}"
holds = "record"
area = "cards"
[collection.account.unique.code]
key = "code:{code}"
[collection.account.count.by_owner]
group = ["owner"]
[collection.account.sum.money]
group = ["owner"]
field = "balance"

[collection.run]
key  = "{id raw}"
area = "runs"
[collection.run.fields]
id  = "text"
due = "timestamp"
[collection.run.index.due]
key = "due:{due}:{id}"
area = "due"
"#;

/// When the tests take place.
pub const NOW: u64 = 1_700_000_000_000;

pub fn schema() -> Schema {
    Schema::from_toml(SCHEMA).unwrap()
}

pub fn account(number: usize, balance: i64) -> Value {
    json!({
        "id": format!("a{number:03}"), "owner": format!("o{}", number % 5),
        "code": format!("c{number}"), "tags": ["all", format!("t{}", number % 3)],
        "ends": NOW + 1_000 + number as u64, "balance": balance,
    })
}

/// A store, with the folder that it may live in.
pub struct Subject {
    pub name: &'static str,
    pub store: Store,
    pub folder: Option<tempfile::TempDir>,
}

impl Subject {
    pub fn memory() -> Self {
        let store = Store::on(Arc::new(Memory::new())).with_clock(Clock::new(|| NOW));
        Subject { name: "memory", store, folder: None }
    }

    /// Relaxed, since what is copied does not depend on when it is synced; with a little memory, so
    /// that much of it is in tables.
    pub fn embedded() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let sync_every = Duration::from_millis(50);
        let options = EmbeddedOptions::default()
            .durability(Durability::Relaxed { sync_every })
            .memtable_bytes(64 << 10);
        let engine: Arc<dyn Engine> = Arc::new(Embedded::open(folder.path(), options).unwrap());
        let store = Store::on(engine).with_clock(Clock::new(|| NOW));
        Subject { name: "embedded", store, folder: Some(folder) }
    }

    /// One of each kind, empty.
    pub fn every() -> Vec<Self> {
        vec![Subject::memory(), Subject::embedded()]
    }

    /// One of each kind, with every kind of cell in it.
    pub async fn every_filled() -> Vec<Self> {
        let subjects = Subject::every();
        for subject in &subjects {
            fill(&subject.store).await;
        }
        subjects
    }
}

/// Puts every kind of cell into a space.
pub async fn fill(store: &Store) {
    store.apply(&schema()).await.unwrap();
    let accounts = store.documents("account").await.unwrap();
    for number in 0..30 {
        accounts.insert(&account(number, 100)).await.unwrap();
    }
    for number in 0..10 {
        let key = format!("a{number:03}");
        accounts
            .increment(&key, [("stats.moves", number as i64 - 4), ("stats.reads", 1)])
            .await
            .unwrap();
        accounts.update_with_retry(&key, &json!({ "balance": number })).await.unwrap();
    }
    let by_ana = store.acting_as("ana").unwrap().documents("account").await.unwrap();
    by_ana.update_with_retry("a011", &json!({ "owner": "ana" })).await.unwrap();
    accounts.delete("a012").await.unwrap();
    accounts.with_idempotency_key("once").unwrap().insert(&account(40, 7)).await.unwrap();
    let runs = store.documents("run").await.unwrap();
    for id in ["arn:one", "arn:two", "z\u{e9}"] {
        runs.insert(&json!({ "id": id, "due": NOW - 5 })).await.unwrap();
    }
    let plain = store.plain();
    plain.put("settings", r#"{"colour":"red"}"#).await.unwrap();
    plain.in_area("elsewhere").unwrap().put([0, 255, 7], vec![0u8, 1, 2, 255]).await.unwrap();
    plain.in_area("elsewhere").unwrap().put("empty", "").await.unwrap();
}

/// Everything that a space holds: each cell with its stamp, by area, and the whole log.
pub async fn everything(store: &Store) -> (Vec<(Area, Vec<Row>)>, LogSlice) {
    let space = Space::new(store.space_name()).unwrap();
    let mut cells = Vec::new();
    for area in store.engine().areas(&space).await.unwrap() {
        let range = Range::all(area.clone());
        let rows = store.engine().scan_all(&space, &range, 1000, Direction::Forward).await;
        cells.push((area, rows.unwrap()));
    }
    let oldest = store.engine().log_bounds(&space).await.unwrap().oldest;
    let log = store.engine().read_log(&space, oldest, usize::MAX, usize::MAX).await.unwrap();
    (cells, log)
}
