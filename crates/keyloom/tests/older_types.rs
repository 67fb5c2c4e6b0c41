//! A program whose types are older than the records: what it does not know, it does not touch.
#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

use std::collections::BTreeSet;

use keyloom::{Collection, Effect, Record, Store, Written};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// An order, as an older program knows it.
#[derive(Serialize, Deserialize, Record)]
#[record(key = "order:{id}")]
struct Order {
    id: String,
    lines: Vec<Line>,
    ratio: f32,
    note: Option<String>,
    #[serde(default)]
    tags: BTreeSet<String>,
    #[serde(alias = "customer", default)]
    buyer: String,
}

#[derive(Clone, Serialize, Deserialize)]
struct Line {
    sku: String,
}

async fn open() -> (Store, Collection<Value>, Collection<Order>) {
    let store = Store::open("memory:").await.unwrap();
    let older = store.collection::<Order>().await.unwrap();
    let newer = store.documents("order").await.unwrap();
    (store, newer, older)
}

fn order() -> Value {
    json!({
        "later": {"deep": [1, null]},
        "lines": [{"price": 9, "sku": "a"}, {"sku": "b", "price": 8, "more": {"x": [1]}}],
        "ratio": 0.1,
        "id": "o1",
        "tags": ["b", "a"],
        "customer": "ana",
    })
}

/// The record as text, in which the order of members counts.
async fn stored(orders: &Collection<Value>, id: &str) -> String {
    orders.get(id).await.unwrap().unwrap().value.to_string()
}

async fn check(
    change: impl AsyncFn(&Collection<Order>) -> keyloom::Result<Written<Order>>,
    wanted: Value,
    effect: Effect,
) {
    let (store, newer, older) = open().await;
    let inserted = newer.insert(&order()).await.unwrap();
    let written = change(&older).await.unwrap();
    assert_eq!(written.effect, effect);
    let id = wanted["id"].as_str().unwrap();
    assert_eq!(stored(&newer, id).await, wanted.to_string());
    if effect == Effect::Unchanged {
        assert_eq!(written.version, inserted.version);
    }
    // The older program still reads it.
    older.get(id).await.unwrap().unwrap();
    store.close().await.unwrap();
}

#[tokio::test]
async fn a_change_of_nothing_writes_nothing() {
    let unchanged = || (order(), Effect::Unchanged);
    let (wanted, effect) = unchanged();
    check(async |orders| orders.modify("o1", |_| Ok(())).await, wanted, effect).await;
    let (wanted, effect) = unchanged();
    check(async |orders| orders.rename("o1", |_| Ok(())).await, wanted, effect).await;
    let (wanted, effect) = unchanged();
    let upsert = async |orders: &Collection<Order>| {
        let other = Order {
            id: "o1".into(),
            lines: Vec::new(),
            ratio: 0.5,
            note: None,
            tags: BTreeSet::new(),
            buyer: String::new(),
        };
        orders.upsert_with(&other, |_| Ok(())).await
    };
    check(upsert, wanted, effect).await;
}

#[tokio::test]
async fn what_a_function_does_not_change_stays_value_for_value() {
    let mut wanted = order();
    wanted["lines"] = json!([
        {"sku": "new"},
        {"price": 9, "sku": "a"},
        {"sku": "c", "price": 8, "more": {"x": [1]}},
    ]);
    let change = |order: &mut Order| {
        order.lines[1].sku = "c".into();
        order.lines.insert(0, Line { sku: "new".into() });
        Ok(())
    };
    // Before "a" one is new; after it one for one, so that it is the same line, changed.
    check(async |orders| orders.modify("o1", change).await, wanted, Effect::Replaced).await;

    let mut wanted = order();
    wanted["id"] = json!("o2");
    let change = |order: &mut Order| {
        order.id = "o2".into();
        Ok(())
    };
    check(async |orders| orders.rename("o1", change).await, wanted, Effect::Replaced).await;
}

#[tokio::test]
async fn a_set_loses_what_is_taken_out_of_it() {
    let mut wanted = order();
    wanted["tags"] = json!(["b"]);
    let change = |order: &mut Order| {
        order.tags.remove("a");
        Ok(())
    };
    check(async |orders| orders.modify("o1", change).await, wanted, Effect::Replaced).await;
}

#[tokio::test]
async fn a_member_under_an_older_name_gives_way_to_the_new_one() {
    let mut wanted = order();
    wanted.as_object_mut().unwrap().shift_remove("customer");
    wanted["buyer"] = json!("bo");
    let change = |order: &mut Order| {
        order.buyer = "bo".into();
        Ok(())
    };
    check(async |orders| orders.modify("o1", change).await, wanted, Effect::Replaced).await;
}
