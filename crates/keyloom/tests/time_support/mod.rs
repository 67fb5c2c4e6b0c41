//! Stores whose clock the test holds, on every kind of engine.

#![allow(dead_code, reason = "each test file uses its part")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use bytes::Bytes;
use keyloom::engine::{
    Address, Area, Batch, Capabilities, Cell, Direction, Effect, Embedded, EmbeddedOptions, Engine,
    EngineExt, Memory, Outcome, Range, Row, Space, Stamp, Stretch, Torn,
};
use keyloom::{Clock, Result, Schema, Store};

/// When the tests begin.
pub const START: u64 = 1_700_000_000_000;

/// A clock that stands still until it is set.
#[derive(Clone)]
pub struct TestClock(Arc<AtomicU64>);

impl TestClock {
    pub fn new() -> Self {
        TestClock(Arc::new(AtomicU64::new(START)))
    }

    pub fn now(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }

    pub fn pass(&self, millis: u64) {
        self.0.fetch_add(millis, Ordering::SeqCst);
    }

    pub fn clock(&self) -> Clock {
        let shared = self.0.clone();
        Clock::new(move || shared.load(Ordering::SeqCst))
    }
}

pub struct Subject {
    pub store: Store,
    pub clock: TestClock,
    pub name: &'static str,
    _folder: tempfile::TempDir,
}

impl Subject {
    pub async fn on(name: &'static str, engine: Arc<dyn Engine>, schema: &str) -> Subject {
        let clock = TestClock::new();
        let store = Store::on(engine).with_clock(clock.clock());
        store.apply(&Schema::from_toml(schema).unwrap()).await.unwrap();
        Subject { store, clock, name, _folder: tempfile::tempdir().unwrap() }
    }

    /// On memory, on embedded, and where batches show cell by cell.
    pub async fn all(schema: &str) -> Vec<Subject> {
        let memory = Subject::on("memory", Arc::new(Memory::new()), schema).await;
        let torn: Arc<dyn Engine> = Arc::new(Torn::new(Arc::new(Memory::new()), 7));
        let torn = Subject::on("torn", torn, schema).await;
        vec![memory, Subject::embedded(schema).await, torn]
    }

    async fn embedded(schema: &str) -> Subject {
        let folder = tempfile::tempdir().unwrap();
        let engine = Embedded::open(folder.path(), EmbeddedOptions::default()).unwrap();
        let subject = Subject::on("embedded", Arc::new(engine), schema).await;
        Subject { _folder: folder, ..subject }
    }

    pub async fn assert_sound(&self) {
        let verification = self.store.verify().await.unwrap();
        assert!(verification.is_clean(), "{}: {:?}", self.name, verification.findings);
    }

    /// Every key of an area, Keyloom's own included.
    pub async fn keys_of(&self, area: Area) -> Vec<String> {
        keys_of(self.store.engine(), area).await
    }

    /// Every key of the default area and of Keyloom's own, but the catalog and its epoch.
    pub async fn keys(&self) -> Vec<String> {
        let mut keys = self.keys_of(Area::default_area()).await;
        keys.extend(self.keys_of(Area::own()).await);
        keys.retain(|key| key != "catalog" && key != "epoch");
        keys
    }
}

pub async fn keys_of(engine: &Arc<dyn Engine>, area: Area) -> Vec<String> {
    let range = Range::all(area);
    let rows = engine.scan_all(&Space::main(), &range, 100, Direction::Forward).await.unwrap();
    rows.into_iter().map(|row| text(&row.key)).collect()
}

fn text(bytes: &Bytes) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Puts a key behind the back of every collection.
pub async fn plant(engine: &Arc<dyn Engine>, area: Area, key: &str, value: &str) {
    let stamp = Stamp([7; Stamp::BYTES]);
    let put = Effect::Put { stamp, bytes: Bytes::copy_from_slice(value.as_bytes()) };
    let mut batch = Batch::new(Space::main());
    batch.push(Address::new(area, key.to_owned()), None, Some(put));
    assert!(matches!(engine.commit(batch).await.unwrap(), Outcome::Committed(_)));
}

/// A memory whose batches are small.
pub struct Small(pub Memory, pub Capabilities);

#[async_trait]
impl Engine for Small {
    fn capabilities(&self) -> &Capabilities {
        &self.1
    }

    async fn get(&self, space: &Space, addresses: &[Address]) -> Result<Vec<Option<Cell>>> {
        self.0.get(space, addresses).await
    }

    async fn scan(
        &self,
        space: &Space,
        ranges: &[Range],
        limit: usize,
        direction: Direction,
    ) -> Result<Vec<Stretch<Row>>> {
        self.0.scan(space, ranges, limit, direction).await
    }

    async fn commit(&self, batch: Batch) -> Result<Outcome> {
        batch.check(&self.1)?;
        self.0.commit(batch).await
    }

    async fn close(&self) -> Result<()> {
        self.0.close().await
    }
}
