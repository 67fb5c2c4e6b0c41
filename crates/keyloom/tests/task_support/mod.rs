//! A store with work to be done over all of it, and what ends such work early.
#![allow(dead_code, reason = "each test file uses its part")]

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use async_trait::async_trait;
use futures_util::future::join_all;
use keyloom::engine::{
    Address, Area, Batch, Capabilities, Cell, CommitFault, Direction, Embedded, EmbeddedOptions,
    Engine, EngineExt, Memory, Outcome, Range, Row, Space, Stretch, Torn, Unreliable,
};
use keyloom::{Result, Schema, Store};
use serde_json::{Value, json};

use crate::index_support::Dump;

/// More than two chunks.
pub const RUNS: usize = 600;

pub const RUNS_ALONE: &str = r#"
[collection.run]
key = "run:{id}"
fields = { id = "text", status = "text", seconds = "integer" }
"#;

pub const BY_STATUS: &str = "[collection.run.index.by_status]\nkey = \"status:{status}:{id}\"\n";
pub const SECONDS: &str =
    "[collection.run.sum.seconds]\ngroup = [\"status\"]\nfield = \"seconds\"\n";
pub const BY_SECONDS: &str = "[collection.run.index.by_seconds]\nkey = \"sec:{seconds}:{id}\"\n";

pub fn schema(more: &[&str]) -> Schema {
    Schema::from_toml(&format!("{RUNS_ALONE}\n{}", more.join("\n"))).unwrap()
}

/// A store with runs from before an index and a sum, both of which are building.
pub async fn before_indexes(engine: Arc<dyn Engine>) -> Store {
    let store = Store::on(engine);
    store.apply(&schema(&[])).await.unwrap();
    let runs = store.documents("run").await.unwrap();
    // Together, so that they share syncs.
    let inserts = (0..RUNS).map(|n| {
        let status = ["queued", "running", "done"][n % 3];
        let run = json!({ "id": format!("{n:04}"), "status": status, "seconds": n % 50 });
        let runs = &runs;
        async move { runs.insert(&run).await.unwrap() }
    });
    join_all(inserts).await;
    let applied = store.apply(&schema(&[BY_STATUS, SECONDS])).await.unwrap();
    assert_eq!(applied.to_build.len(), 2);
    store
}

/// Everything that lies in a store, without stamps, catalog and epoch.
pub async fn dump(engine: &Arc<dyn Engine>) -> Dump {
    let mut all = Dump::new();
    for area in [Area::default_area(), Area::own()] {
        let range = Range::all(area.clone());
        let rows = engine.scan_all(&Space::main(), &range, 100, Direction::Forward).await.unwrap();
        for row in rows {
            if area == Area::own() && [&b"catalog"[..], b"epoch"].contains(&&row.key[..]) {
                continue;
            }
            let held = match row.cell.bytes() {
                Some(bytes) => bytes.clone(),
                None => format!("{:?}", row.cell.content).into(),
            };
            all.insert((area.name().to_owned(), row.key), held);
        }
    }
    all
}

pub fn assert_same(found: &Dump, wanted: &Dump, what: &str) {
    let differs = |of: &Dump, other: &Dump| {
        let keys = of.iter().filter(|(key, held)| other.get(*key) != Some(*held));
        keys.map(|found| format!("{found:?}")).collect::<Vec<_>>()
    };
    assert_eq!(differs(found, wanted), differs(wanted, found), "{what}");
}

pub async fn tasks(engine: &Arc<dyn Engine>) -> Vec<Row> {
    let range = Range::prefix(Area::own(), "task:");
    engine.scan_all(&Space::main(), &range, 100, Direction::Forward).await.unwrap()
}

pub fn engines() -> Vec<(Arc<dyn Engine>, Option<tempfile::TempDir>)> {
    let folder = tempfile::tempdir().unwrap();
    let embedded = Embedded::open(folder.path(), EmbeddedOptions::default()).unwrap();
    vec![
        (Arc::new(Memory::new()), None),
        (Arc::new(embedded), Some(folder)),
        (Arc::new(Torn::new(Arc::new(Memory::new()), 3)), None),
    ]
}

/// Work that ends at every commit in turn, and is begun again each time, until it is done: at its
/// third commit, then twice at its fourth, and so on. Gives how often it ended.
pub async fn ended_at_every_commit<Fut>(
    engine: &Arc<dyn Engine>,
    fault: CommitFault,
    work: impl Fn(Store) -> Fut,
) -> usize
where
    Fut: Future<Output = Result<()>>,
{
    for ends in 0.. {
        let unreliable = Arc::new(Unreliable::new(engine.clone(), 1, 0.0));
        unreliable.script(std::iter::repeat_n(CommitFault::None, 2 + ends / 2).chain([fault]));
        // Whatever the process does after that is in vain.
        unreliable.script(std::iter::repeat_n(CommitFault::Refused, 10_000));
        if work(Store::on(unreliable)).await.is_ok() {
            return ends;
        }
        assert!(ends < 1_000, "it comes no further");
    }
    unreachable!("the loop ends by returning")
}

/// Memory that other processes are said to share.
pub struct Shared {
    inner: Memory,
    capabilities: Capabilities,
}

impl Shared {
    pub fn new() -> Self {
        let inner = Memory::new();
        let capabilities = Capabilities { is_shared: true, ..inner.capabilities().clone() };
        Shared { inner, capabilities }
    }
}

#[async_trait]
impl Engine for Shared {
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
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
        // Two builders take turns.
        tokio::task::yield_now().await;
        self.inner.commit(batch).await
    }

    async fn close(&self) -> Result<()> {
        self.inner.close().await
    }
}

pub fn poll<F: Future>(future: Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

pub fn kept(row: &Row) -> Value {
    serde_json::from_slice(row.cell.bytes().unwrap()).unwrap()
}
