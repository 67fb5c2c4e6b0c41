//! Counters of records, and counts and sums of the same records, in the same batches: neither
//! disturbs the other.

#![cfg(feature = "embedded")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests fail by panicking"
)]

mod aggregate_support;

use aggregate_support::{adding, assert_clean, engines, own, plant};
use keyloom::{Collection, FindingCounts, RepairOptions, Schema, Store};
use serde_json::{Value, json};

const COUNTED: &str = r#"
[collection.flow]
key = "flow:{id}"
fields = { id = "text", status = "text", seconds = "integer" }
counters = { "stats.running" = { min = 0 }, "hits.*" = {} }
"#;

const AGGREGATES: &str = r#"
[collection.flow.count.by_status]
group = ["status"]
[collection.flow.sum.seconds]
field = "seconds"
group = []
"#;

fn schema(text: &str) -> Schema {
    Schema::from_toml(text).unwrap()
}

fn flow(id: &str, status: &str, seconds: i64) -> Value {
    json!({ "id": id, "status": status, "seconds": seconds })
}

fn to_b(flow: &mut Value) -> keyloom::Result<()> {
    flow["id"] = json!("b");
    flow["status"] = json!("done");
    flow["seconds"] = json!(7);
    Ok(())
}

async fn running(flows: &Collection<Value>, id: &str) -> Option<i64> {
    let flow = flows.get(id).await.unwrap()?;
    flow.value["stats"]["running"].as_i64()
}

async fn counted(flows: &Collection<Value>) -> (i64, i64, i64) {
    let open = flows.counted("by_status", "open").await.unwrap();
    let done = flows.counted("by_status", "done").await.unwrap();
    (open, done, flows.summed("seconds", ()).await.unwrap())
}

/// A store in which nothing was counted yet.
async fn empty(engine: std::sync::Arc<dyn keyloom::engine::Engine>) -> (Store, Collection<Value>) {
    let store = Store::on(engine);
    store.apply(&schema(&format!("{COUNTED}{AGGREGATES}"))).await.unwrap();
    let flows = store.documents("flow").await.unwrap();
    (store, flows)
}

#[tokio::test]
async fn one_batch_changes_records_their_counters_and_their_counts() {
    for (engine, _folder) in engines() {
        let (store, flows) = empty(engine).await;
        flows.insert(&flow("a", "open", 5)).await.unwrap();
        flows.insert(&flow("x", "open", 1)).await.unwrap();
        let after = flows.increment("a", [("stats.running", 2), ("hits.mail", 1)]).await.unwrap();
        assert_eq!((after["stats.running"], after["hits.mail"]), (2, 1));
        assert_eq!(counted(&flows).await, (2, 0, 6));
        store
            .transaction(async |transaction| {
                let flows = transaction.documents("flow")?;
                flows.upsert(&flow("a", "done", 6)).await?;
                flows.insert(&flow("c", "open", 10)).await?;
                flows.increment("a", [("stats.running", 3)]).await?;
                flows.increment("c", [("stats.running", 9)]).await?;
                flows.increment("x", [("hits.mail", 4)]).await
            })
            .await
            .unwrap();
        assert_eq!(counted(&flows).await, (2, 1, 17));
        assert_eq!(running(&flows, "a").await, Some(5));
        assert_eq!(running(&flows, "c").await, Some(9));
        // A bound that is broken keeps the counts as they were, too.
        let refused = store.transaction(async |transaction| {
            let flows = transaction.documents("flow")?;
            flows.upsert(&flow("c", "done", 90)).await?;
            flows.increment("a", [("stats.running", -6)]).await
        });
        assert_eq!(refused.await.unwrap_err().kind(), keyloom::ErrorKind::OutOfBounds);
        assert_eq!(counted(&flows).await, (2, 1, 17));
        flows.rename("c", to_b).await.unwrap();
        assert_eq!(counted(&flows).await, (1, 2, 14));
        assert_eq!((running(&flows, "b").await, running(&flows, "c").await), (Some(9), None));
        flows.delete("a").await.unwrap();
        assert_eq!(counted(&flows).await, (1, 1, 8));
        assert_clean(&store).await;
        let counters = own(&store, "counter:").await;
        assert_eq!(counters.len(), 2, "those of b and x");
    }
}

#[tokio::test]
async fn records_move_with_their_counters_while_they_are_being_counted() {
    for (engine, _folder) in engines() {
        let store = Store::on(engine);
        store.apply(&schema(COUNTED)).await.unwrap();
        let flows = store.documents("flow").await.unwrap();
        for id in ["a", "c"] {
            flows.insert(&flow(id, "open", 5)).await.unwrap();
            flows.increment(id, [("stats.running", 2)]).await.unwrap();
        }
        store.apply(&schema(&format!("{COUNTED}{AGGREGATES}"))).await.unwrap();
        flows.rename("a", to_b).await.unwrap();
        flows.increment("b", [("stats.running", 1)]).await.unwrap();
        for aggregate in ["by_status", "seconds"] {
            store.build("flow", aggregate).await.unwrap();
        }
        assert_eq!(counted(&flows).await, (1, 1, 12));
        assert_eq!(running(&flows, "b").await, Some(3));
        assert_clean(&store).await;
    }
}

#[tokio::test]
async fn what_belongs_to_nobody_is_found_beside_what_is_right() {
    for (engine, _folder) in engines() {
        let (store, flows) = empty(engine).await;
        flows.insert(&flow("a", "open", 5)).await.unwrap();
        flows.increment("a", [("stats.running", 2)]).await.unwrap();
        assert_clean(&store).await;
        plant(&store, "counter::flow:gone", adding("stats.running", 1)).await;
        plant(&store, "counter::flow:a", adding("unheard", 1)).await;
        plant(&store, "aggregate:flow:unheard:1:0", adding("n", 1)).await;
        plant(&store, "aggregate:flow:by_status:1:open!:0", adding("n", 1)).await;
        let found = store.verify().await.unwrap();
        let wanted = FindingCounts { dangling: 2, wrong: 1, drifted: 1, ..Default::default() };
        assert_eq!(found.counts, wanted, "{:#?}", found.findings);
        let repair = store.repair(&RepairOptions::default()).await.unwrap();
        assert_eq!(repair.mended_counts, wanted, "{repair:#?}");
        assert_clean(&store).await;
        assert_eq!(counted(&flows).await, (1, 0, 5));
        assert_eq!(running(&flows, "a").await, Some(2));
    }
}
