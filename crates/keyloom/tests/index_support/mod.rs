//! A schema with every kind of index, records for it, and raw access to what lies in the store.

#![allow(dead_code, reason = "each test file uses its part")]

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use bytes::Bytes;
use keyloom::engine::{
    Address, Area, Batch, Capabilities, Cell, Direction, Effect, Embedded, EmbeddedOptions, Engine,
    EngineExt, Memory, Outcome, Range, Row, Space, Stamp, Stretch, Torn,
};
use keyloom::{Collection, ErrorKind, Result, Schema, Store};
use serde_json::{Value, json};

/// Value, unique, composite, multi-valued over an array and over a map, partial, geo, covering,
/// claims, several areas, and record keys that interleave.
pub const SCHEMA: &str = r#"
[collection.user]
key = "user:{id}"

[collection.user.fields]
id     = "text"
email  = "text"
name   = "text"
score  = "float"
status = { type = "enum", values = ["active", "blocked"] }
place  = { type = "point", lat = "lat", lon = "lng" }
steps  = "map"
"tags.*"     = "text"
"steps.*.at" = "timestamp"

[collection.user.unique.email]
key = "index:email:{email}"

[collection.user.index.score]
key = "index:score:{score desc}:{id}"

[collection.user.index.tag]
key = "index:tag:{tags.*}:{id}"

[collection.user.index.step]
key = "index:step:{steps.*.at}:{id}:{steps.*key}"

[collection.user.index.active]
key = "index:active:{name sorted}{id}"
where = { status = "active" }

[collection.user.index.card]
key   = "card:{name}:{id}"
area  = "cards"
holds = "{id, name, status}"

[collection.user.index.full]
key   = "full:{name}:{id}"
area  = "cards"
holds = "record"

[collection.user.geo.place]
key = "index:geo:{place geohash 6}:{id}"

[collection.note]
key = "user:{id}:notes:{n}"

[collection.note.fields]
id    = "text"
n     = { type = "integer", digits = 4 }
title = "text"

[collection.note.index.title]
key    = "shared:title:{title}"
holds  = "{id, n}"
claims = true

[collection.event]
key  = "{arn raw}"
area = "events"

[collection.event.fields]
arn = "text"
day = "text"

[collection.event.index.day]
key  = "day:{day}:{arn raw}"
area = "events-index"
"#;

/// Every area that the schema uses.
pub const AREAS: [&str; 4] = ["", "cards", "events", "events-index"];

pub fn schema() -> Schema {
    Schema::from_toml(SCHEMA).unwrap()
}

/// A store with the schema, and its users.
pub struct Subject {
    pub store: Store,
    pub users: Collection<Value>,
    _folder: tempfile::TempDir,
}

impl Subject {
    /// One on each of memory, a folder, and an engine that shows batches cell by cell.
    pub async fn all() -> Vec<Subject> {
        let mut all = Vec::new();
        for engine in ["memory", "embedded", "torn"] {
            let folder = tempfile::tempdir().unwrap();
            let engine: Arc<dyn Engine> = match engine {
                "memory" => Arc::new(Memory::new()),
                "torn" => Arc::new(Torn::new(Arc::new(Memory::new()), 3)),
                _ => Arc::new(Embedded::open(folder.path(), EmbeddedOptions::default()).unwrap()),
            };
            let store = Store::on(engine);
            store.apply(&schema()).await.unwrap();
            let users = store.documents("user").await.unwrap();
            all.push(Subject { store, users, _folder: folder });
        }
        all
    }
}

pub async fn memory_store() -> Store {
    let store = Store::on(Arc::new(Memory::new()));
    store.apply(&schema()).await.unwrap();
    store
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
const TEXTS: [&str; 9] = ["ana", "ana1", "", "a:b", "%3A", "ñandú", "a\u{0}b", "a%", "user:x"];

/// A user with every indexed field now and then missing.
pub fn user(dice: &mut Dice, ids: u64) -> Value {
    let mut record = json!({ "id": id(dice, ids) });
    if dice.chance(80) {
        record["email"] = format!("{}@example.org", dice.below(4 * ids)).into();
    }
    if dice.chance(80) {
        record["name"] = (*dice.pick(&TEXTS)).into();
    }
    if dice.chance(80) {
        // Many digits, so that a careless parser would read back another number.
        let exact = dice.below(1 << 53) as f64 / 3e9 - 1e6;
        record["score"] = exact.into();
    }
    if dice.chance(80) {
        record["status"] = (*dice.pick(&["active", "blocked"])).into();
    }
    if dice.chance(60) {
        let tags: Vec<&str> = (0..dice.below(5)).map(|_| *dice.pick(&TEXTS)).collect();
        record["tags"] = tags.into();
    }
    if dice.chance(60) {
        let steps = (0..dice.below(4)).map(|n| {
            let step =
                if dice.chance(80) { json!({ "at": dice.below(1 << 40) }) } else { json!({}) };
            (format!("{}{n}", dice.pick(&TEXTS)), step)
        });
        record["steps"] = Value::Object(steps.collect());
    }
    if dice.chance(60) {
        let lat = dice.below(1 << 50) as f64 / (1_u64 << 50) as f64 * 180.0 - 90.0;
        let lng = dice.below(1 << 50) as f64 / (1_u64 << 50) as f64 * 360.0 - 180.0;
        record["place"] = json!({ "lat": lat, "lng": lng });
    }
    record
}

pub fn id(dice: &mut Dice, ids: u64) -> String {
    match dice.below(ids) {
        odd if odd < TEXTS.len() as u64 => TEXTS[odd as usize].to_owned(),
        plain => format!("u{plain}"),
    }
}

pub fn note(dice: &mut Dice, ids: u64) -> Value {
    let (id, n) = (id(dice, ids), dice.below(5) as i64 - 2);
    json!({ "id": id, "n": n, "title": format!("title {}", dice.below(4 * ids)) })
}

pub fn event(dice: &mut Dice, ids: u64) -> Value {
    let arn = format!("arn:aws:{}:{}", dice.pick(&TEXTS), dice.below(ids));
    json!({ "arn": arn, "day": format!("2024-01-{:02}", dice.below(28) + 1) })
}

pub struct Clients {
    pub users: Collection<Value>,
    pub notes: Collection<Value>,
    pub events: Collection<Value>,
}

impl Clients {
    pub async fn new(store: &Store) -> Self {
        Clients {
            users: store.documents("user").await.unwrap(),
            notes: store.documents("note").await.unwrap(),
            events: store.documents("event").await.unwrap(),
        }
    }

    /// Writes or deletes a random record. A unique value that is taken, and a race that is lost
    /// too often, are part of life.
    pub async fn act(&self, dice: &mut Dice, ids: u64) {
        let outcome = match dice.below(10) {
            0..=4 => self.users.upsert(&user(dice, ids)).await.map(drop),
            5 => self.users.delete(id(dice, ids)).await.map(drop),
            6 | 7 => self.notes.upsert(&note(dice, ids)).await.map(drop),
            8 => {
                let note = note(dice, ids);
                let key = (note["id"].clone(), note["n"].clone());
                self.notes.delete(key).await.map(drop)
            }
            _ => self.events.upsert(&event(dice, ids)).await.map(drop),
        };
        if let Err(error) = outcome {
            let known = [ErrorKind::UniqueConflict, ErrorKind::Contention];
            assert!(known.contains(&error.kind()), "{error}");
        }
    }

    pub async fn act_often(&self, seed: u64, times: u64, ids: u64) {
        let mut dice = Dice::new(seed);
        for _ in 0..times {
            self.act(&mut dice, ids).await;
        }
    }
}

/// What lies in the areas of the schema, without its stamps.
pub type Dump = BTreeMap<(String, Bytes), Bytes>;

pub async fn dump(store: &Store) -> Dump {
    let mut all = Dump::new();
    for area in AREAS {
        let range = Range::all(Area::new(area).unwrap());
        let space = Space::new(store.space_name()).unwrap();
        let rows = store.engine().scan_all(&space, &range, 100, Direction::Forward).await.unwrap();
        for row in rows {
            all.insert((area.to_owned(), row.key), row.cell.bytes().unwrap().clone());
        }
    }
    all
}

pub fn is_record(area: &str, key: &[u8]) -> bool {
    area == "events" || area.is_empty() && key.starts_with(b"user:")
}

pub async fn peek(store: &Store, area: &str, key: &str) -> Option<Cell> {
    let address = Address::new(Area::new(area).unwrap(), key.to_owned());
    store.engine().get_one(&Space::main(), &address).await.unwrap()
}

/// Puts or deletes a key behind the back of every collection.
pub async fn plant(store: &Store, area: &str, key: impl Into<Bytes>, value: Option<&str>) {
    plant_on(store.engine(), area, key, value).await;
}

pub async fn plant_on(
    engine: &Arc<dyn Engine>,
    area: &str,
    key: impl Into<Bytes>,
    value: Option<&str>,
) {
    let address = Address::new(Area::new(area).unwrap(), key);
    let effect = match value {
        Some(value) => Effect::Put {
            stamp: Stamp([7; Stamp::BYTES]),
            bytes: Bytes::copy_from_slice(value.as_bytes()),
        },
        None => Effect::Delete,
    };
    let mut batch = Batch::new(Space::main());
    batch.push(address, None, Some(effect));
    assert!(matches!(engine.commit(batch).await.unwrap(), Outcome::Committed(_)));
}

type Meddling = Pin<Box<dyn Future<Output = ()> + Send>>;

/// An engine on which something else happens right before a commit: the worst moment for whoever
/// has read, decided and is about to write.
pub struct Meddled {
    inner: Arc<dyn Engine>,
    before_commit: Mutex<Option<Meddling>>,
}

impl Meddled {
    pub fn new(inner: Arc<dyn Engine>) -> Self {
        Meddled { inner, before_commit: Mutex::default() }
    }

    /// Has this happen before the next commit, once. One that only says who works on a task does
    /// not count.
    pub fn before_next_commit(&self, meddling: impl Future<Output = ()> + Send + 'static) {
        *self.before_commit.lock().unwrap() = Some(Box::pin(meddling));
    }

    pub fn has_meddled(&self) -> bool {
        self.before_commit.lock().unwrap().is_none()
    }
}

/// Whether a batch writes nothing but where a task is.
fn is_of_a_task_alone(batch: &Batch) -> bool {
    batch
        .entries
        .iter()
        .all(|entry| entry.address.area == Area::own() && entry.address.key.starts_with(b"task:"))
}

#[async_trait]
impl Engine for Meddled {
    fn capabilities(&self) -> &Capabilities {
        self.inner.capabilities()
    }

    async fn get(&self, space: &Space, addresses: &[Address]) -> Result<Vec<Option<Cell>>> {
        self.inner.get(space, addresses).await
    }

    async fn scan(
        &self,
        space: &Space,
        ranges: &[Range],
        limit: usize,
        direction: Direction,
    ) -> Result<Vec<Stretch<Row>>> {
        self.inner.scan(space, ranges, limit, direction).await
    }

    async fn commit(&self, batch: Batch) -> Result<Outcome> {
        if !is_of_a_task_alone(&batch) {
            let meddling = self.before_commit.lock().unwrap().take();
            if let Some(meddling) = meddling {
                meddling.await;
            }
        }
        self.inner.commit(batch).await
    }

    async fn close(&self) -> Result<()> {
        self.inner.close().await
    }
}
