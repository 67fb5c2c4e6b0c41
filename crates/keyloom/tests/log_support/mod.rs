//! What the tests of the change log share: a schema that declares one, and stores that keep it.

#![allow(dead_code, reason = "each test uses a part of it")]

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use keyloom::engine::{
    Area, Direction, Durability, Embedded, EmbeddedOptions, Engine, EngineExt, LogEntry, Memory,
    Position, Range, Row, Space,
};
use keyloom::{Schema, Store};
use serde_json::{Value, json};

pub const SCHEMA: &str = r#"
[log]

[collection.note]
key = "note:{owner}:{id}"
[collection.note.fields]
owner = "text"
id    = "text"
code  = "text"
stars = { type = "integer", digits = 2 }
"tags.*" = "text"
[collection.note.index.stars]
key = "stars:{stars desc}:{owner}:{id}"
[collection.note.index.tag]
key   = "tag:{tags.*}:{owner}:{id}"
[collection.note.unique.code]
key = "code:{code}"

[collection.run]
key  = "{id raw}"
area = "runs"
[collection.run.fields]
id     = "text"
status = "text"
[collection.run.index.status]
key  = "status:{status}:{id}"
area = "run-indexes"
holds = "record"
"#;

/// The schema with another part of the log kept.
pub fn keeping(log: &str) -> Schema {
    Schema::from_toml(&SCHEMA.replace("[log]", &format!("[log]\n{log}"))).unwrap()
}

pub fn schema() -> Schema {
    Schema::from_toml(SCHEMA).unwrap()
}

pub fn note(owner: &str, id: usize, stars: u64) -> Value {
    json!({ "owner": owner, "id": format!("n{id}"), "stars": stars })
}

/// A store, with the folder that it may live in.
pub struct Subject {
    pub store: Store,
    pub engine: Arc<dyn Engine>,
    folder: Option<tempfile::TempDir>,
}

impl Subject {
    pub fn memory() -> Self {
        let engine: Arc<dyn Engine> = Arc::new(Memory::new());
        Subject { store: Store::on(engine.clone()), engine, folder: None }
    }

    /// Relaxed, since what a log tells does not depend on when it is synced.
    pub fn embedded() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let sync_every = Duration::from_millis(50);
        let options = EmbeddedOptions::default().durability(Durability::Relaxed { sync_every });
        let engine: Arc<dyn Engine> = Arc::new(Embedded::open(folder.path(), options).unwrap());
        Subject { store: Store::on(engine.clone()), engine, folder: Some(folder) }
    }

    pub fn every() -> Vec<Self> {
        vec![Subject::memory(), Subject::embedded()]
    }

    /// One of each kind, with the schema.
    pub async fn every_with(schema: &Schema) -> Vec<Self> {
        let subjects = Subject::every();
        for subject in &subjects {
            subject.store.apply(schema).await.unwrap();
        }
        subjects
    }
}

pub fn position(number: u64) -> Position {
    Position::from_number(number).unwrap()
}

/// Everything that a space holds: each cell with its stamp, by area, and the whole log.
pub async fn everything(store: &Store) -> (Vec<(Area, Vec<Row>)>, Vec<LogEntry>) {
    let space = Space::new(store.space_name()).unwrap();
    let mut areas = BTreeSet::from([Area::own(), Area::default_area()]);
    for collection in store.schema().await.unwrap().declaration().collections.values() {
        areas.insert(Area::new(&collection.area).unwrap());
        let indexes =
            [&collection.index, &collection.unique, &collection.geo].into_iter().flatten();
        areas.extend(indexes.filter_map(|(_, index)| Area::new(index.area.as_ref()?).ok()));
    }
    let mut cells = Vec::new();
    for area in areas {
        let range = Range::all(area.clone());
        let rows = store.engine().scan_all(&space, &range, 1000, Direction::Forward).await;
        cells.push((area, rows.unwrap()));
    }
    let oldest = store.engine().log_bounds(&space).await.unwrap().oldest;
    let log = store.engine().read_log(&space, oldest, usize::MAX, usize::MAX).await.unwrap();
    (cells, log.entries)
}
