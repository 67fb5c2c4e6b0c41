//! Counts and sums are what the records give, whatever is done to the records.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests fail by panicking"
)]

mod aggregate_support;
mod long;

use std::sync::Arc;

use aggregate_support::{
    Clients, Dice, TEXTS, adding, assert_clean, assert_exact, engines, own, plant, schema,
};
use keyloom::engine::{Effect, Engine, Memory, Metered, Space, Stamp};
use keyloom::{ErrorKind, GroupQuery, IndexState, Order, Query, Store};
use serde_json::{Value, json};

async fn store() -> Store {
    let store = Store::on(Arc::new(Memory::new()));
    store.apply(&schema()).await.unwrap();
    store
}

fn run(flow: &str, id: &str, status: &str, seconds: i64) -> Value {
    json!({ "flow": flow, "id": id, "status": status, "seconds": seconds })
}

#[tokio::test]
async fn random_work_leaves_every_aggregate_exact() {
    for (engine, _folder) in engines() {
        let store = Store::on(engine);
        store.apply(&schema()).await.unwrap();
        let clients = Clients::new(&store).await;
        let mut dice = Dice::new(1);
        for _ in 0..long::times(12) {
            for _ in 0..25 {
                clients.act(&mut dice, 6).await;
            }
            assert_exact(&store).await;
        }
        assert_clean(&store).await;
        assert_eq!(own(&store, "aggregate-mark:").await, [], "nothing was built");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sixteen_writers_leave_every_aggregate_exact() {
    for (engine, _folder) in engines() {
        let store = Store::on(engine);
        store.apply(&schema()).await.unwrap();
        let times = u64::from(long::times(25));
        let writers: Vec<_> = (0..16)
            .map(|seed| {
                let store = store.clone();
                tokio::spawn(async move {
                    Clients::new(&store).await.act_often(seed, times, 20).await;
                })
            })
            .collect();
        for writer in writers {
            writer.await.unwrap();
        }
        assert_exact(&store).await;
        assert_clean(&store).await;
    }
}
