//! Many records at once: each as if it were inserted by itself, together in few batches.

#![cfg(feature = "embedded")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests fail by panicking"
)]

mod long;
mod time_support;

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;

use keyloom::engine::{
    Capabilities, CommitFault, Embedded, EmbeddedOptions, Engine, Memory, Metered, SyncGate,
    Unreliable,
};
use keyloom::{Collection, ErrorKind, Fate, Load, Query, Record, Schema, Store};
use proptest::prelude::*;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use time_support::{Small, Subject};

const SCHEMA: &str = r#"
[collection.user]
key = "user:{id}"
[collection.user.fields]
id    = "integer"
email = "text"
"tags.*" = "text"
[collection.user.unique.email]
key = "email:{email}"
[collection.user.index.tag]
key = "tag:{tags.*}:{id}"
max = 40

[collection.ticket]
key = "ticket:{id}"
[collection.ticket.unique.code]
key = "code:{code}"
[collection.ticket.fields]
id   = { type = "id", generate = true }
code = { type = "code", pattern = "*", generate = true }

[collection.visit]
key = "visit:{id}"
[collection.visit.fields]
id   = "integer"
page = "text"
ms   = "integer"
[collection.visit.count.pages]
group = ["page"]
[collection.visit.sum.times]
field = "ms"
group = ["page"]

[collection.note]
key = "note:{owner}:{id}"
access = "owned"
owner = "owner"
[collection.note.fields]
owner = "text"
id    = "integer"
"#;

async fn store_on(engine: Arc<dyn Engine>) -> Store {
    let store = Store::on(engine);
    store.apply(&Schema::from_toml(SCHEMA).unwrap()).await.unwrap();
    store
}

fn user(id: u64) -> Value {
    json!({ "id": id, "email": format!("{id}@x") })
}

async fn count(collection: &Collection<Value>) -> usize {
    collection.count(&Query::new().scan()).await.unwrap()
}

fn places(load: &Load) -> Vec<u64> {
    load.refused.iter().map(|one| one.place).collect()
}

#[tokio::test]
async fn every_record_comes_with_its_entries_on_every_engine() {
    for subject in Subject::all(SCHEMA).await {
        let users = subject.store.documents("user").await.unwrap();
        let load = users.load((0..2_500).map(user)).await.unwrap();
        assert_eq!((load.inserted, load.refused_count), (2_500, 0), "{}", subject.name);
        assert_eq!(count(&users).await, 2_500);
        let found = users.get_by("email", "2499@x").await.unwrap().unwrap();
        assert_eq!(found.value["id"], 2_499);
        subject.assert_sound().await;
    }
}

#[tokio::test]
async fn records_share_batches_and_nothing_is_read() {
    let metered = Arc::new(Metered::new(Arc::new(Memory::new())));
    let store = store_on(metered.clone()).await;
    let users = store.documents("user").await.unwrap();
    metered.take();
    let records: Vec<Value> = (0..10_200).map(user).collect();
    assert_eq!(users.load(&records).await.unwrap().inserted, 10_200);
    let usage = metered.take();
    // Two of 100 while nobody knows how large they are, and ten of 1,000.
    assert_eq!((usage.commits, usage.reads()), (12, 0));
    assert_eq!(users.load(Vec::<Value>::new()).await.unwrap().inserted, 0);
    assert_eq!(metered.take().commits, 0);
}

#[tokio::test]
async fn every_record_is_counted() {
    for subject in Subject::all(SCHEMA).await {
        let visits = subject.store.documents("visit").await.unwrap();
        // Pages in another order than their first visits, each with a count of its own.
        let page = |id: u64| (id * id % 97) % 40;
        let record = |id: u64| json!({ "id": id, "page": page(id).to_string(), "ms": id });
        assert_eq!(visits.load((0..1_500).map(record)).await.unwrap().inserted, 1_500);
        for number in 0..40 {
            let of_page: Vec<u64> = (0..1_500).filter(|id| page(*id) == number).collect();
            let number = number.to_string();
            let counted = visits.counted("pages", &*number).await.unwrap();
            assert_eq!(counted, of_page.len() as i64, "{}, page {number}", subject.name);
            let summed = visits.summed("times", &*number).await.unwrap();
            assert_eq!(summed as u64, of_page.iter().sum::<u64>());
        }
        subject.assert_sound().await;
    }
}

#[tokio::test]
async fn large_records_make_small_batches() {
    let metered = Arc::new(Metered::new(Arc::new(Memory::new())));
    let store = store_on(metered.clone()).await;
    let users = store.documents("user").await.unwrap();
    metered.take();
    let large = |id: u64| json!({ "id": id, "text": "x".repeat(300_000) });
    assert_eq!(users.load((0..260).map(large)).await.unwrap().inserted, 260);
    // 16 MiB are the most that a batch takes, so that those of 100 were divided; then 3 make 1 MiB.
    let commits = metered.take().commits;
    assert!((20 + 2..=20 + 2 * 8).contains(&commits), "{commits} commits");
    assert_eq!(count(&users).await, 260);
}

#[tokio::test]
async fn what_cannot_be_inserted_is_told_and_the_rest_is_there() {
    for subject in Subject::all(SCHEMA).await {
        let users = subject.store.documents("user").await.unwrap();
        users.insert(&user(40)).await.unwrap();
        users.insert(&json!({ "id": 9_999, "email": "taken@x" })).await.unwrap();
        let mut records: Vec<Value> = (0..300).map(user).collect();
        records[7] = json!({ "id": "seven" });
        records[150]["email"] = json!("taken@x");
        records[151]["email"] = json!("149@x");
        records[220]["id"] = json!(219);
        records[299] = json!({ "id": 299, "tags": vec!["x"; 3] });
        records[298]["tags"] = (0..41).map(|n| n.to_string()).collect();
        let load = users.load(&records).await.unwrap();
        let refused: Vec<_> =
            load.refused.iter().map(|one| (one.place, one.error.kind())).collect();
        let expected = [
            (7, ErrorKind::InvalidRecord),
            (40, ErrorKind::AlreadyExists),
            (150, ErrorKind::UniqueConflict),
            (151, ErrorKind::UniqueConflict),
            (220, ErrorKind::AlreadyExists),
            (298, ErrorKind::LimitExceeded),
        ];
        assert_eq!(refused, expected, "{}", subject.name);
        assert_eq!((load.inserted, load.refused_count), (294, 6));
        assert_eq!(load.refused[2].error.holder(), Some("user:0000000000000009999"));
        assert_eq!(count(&users).await, 294 + 2);
        subject.assert_sound().await;
        // Loaded again, everything is there already, and nothing changes.
        let again = users.load(&records).await.unwrap();
        assert_eq!((again.inserted, again.refused_count), (0, 300));
        assert_eq!(count(&users).await, 294 + 2);
    }
}

#[tokio::test]
async fn a_thousand_refusals_are_told_and_all_are_counted() {
    let store = store_on(Arc::new(Memory::new())).await;
    let users = store.documents("user").await.unwrap();
    let load = users.load((0..3_000).map(|_| json!({ "id": "x" }))).await.unwrap();
    assert_eq!((load.inserted, load.refused_count), (0, 3_000));
    assert_eq!(places(&load), (0..1_000).collect::<Vec<_>>());
}

/// While a batch waits for its sync, the next one is made ready.
#[tokio::test]
async fn the_next_batch_is_ready_while_the_last_is_written() {
    let (folder, gate) = (tempfile::tempdir().unwrap(), SyncGate::default());
    let options = EmbeddedOptions::default().sync_gate(gate.clone());
    let engine = Arc::new(Embedded::open(folder.path(), options).unwrap());
    let users = store_on(engine).await.documents("user").await.unwrap();
    gate.shut();
    let taken = AtomicUsize::new(0);
    let records = (0..1_000).map(|id| {
        taken.fetch_add(1, Ordering::Relaxed);
        user(id)
    });
    let mut load = pin!(users.load(records));
    let is_over = poll_fn(|context| Poll::Ready(load.as_mut().poll(context).is_ready())).await;
    assert!(!is_over);
    assert_eq!(taken.load(Ordering::Relaxed), 200, "two batches are under way, and no more");
    gate.wait_until_reached();
    assert_eq!(count(&users).await, 0, "nobody sees what is not durable");
    gate.open();
    assert_eq!(load.await.unwrap().inserted, 1_000);
    assert_eq!(count(&users).await, 1_000);
}

#[tokio::test]
async fn a_failure_of_the_store_ends_the_load_and_says_what_is_surely_there() {
    use CommitFault::{AnswerLost, None, Refused, RequestLost};
    for (fault, fate, there) in [
        (Refused, Fate::DidNotHappen, 200),
        (RequestLost, Fate::MayHaveHappened, 200),
        (AnswerLost, Fate::MayHaveHappened, 300),
    ] {
        let unreliable = Arc::new(Unreliable::new(Arc::new(Memory::new()), 1, 0.0));
        let store = store_on(unreliable.clone()).await;
        let users = store.documents("user").await.unwrap();
        // The first and the last of the first three batches of 100 are written.
        unreliable.script([None, fault, None]);
        let taken = AtomicUsize::new(0);
        let large = |id: u64| {
            taken.fetch_add(1, Ordering::Relaxed);
            // So large that batches stay at 100.
            json!({ "id": id, "text": "x".repeat(10_400) })
        };
        let error = users.load((0..1_000).map(large)).await.unwrap_err();
        assert_eq!((error.kind(), error.fate()), (ErrorKind::Unavailable, fate), "{error}");
        assert_eq!(error.context_value("inserted"), Some("200"), "{error}");
        assert_eq!(taken.load(Ordering::Relaxed), 300, "nothing is begun after a failure");
        assert_eq!(count(&users).await, there);
        // Once more tells what was there, and does the rest.
        let again = users.load((0..1_000).map(large)).await.unwrap();
        assert_eq!((again.inserted as usize, again.refused_count as usize), (1_000 - there, there));
    }
}

#[tokio::test]
async fn batches_that_are_too_large_are_divided_and_the_next_are_smaller() {
    let entries_max = 100;
    let small =
        Capabilities { batch_entries_max: entries_max, ..Memory::new().capabilities().clone() };
    let metered = Arc::new(Metered::new(Arc::new(Small(Memory::new(), small))));
    let store = store_on(metered.clone()).await;
    let users = store.documents("user").await.unwrap();
    metered.take();
    // 3 entries were foreseen for each, and each has 22.
    let tags: Vec<String> = (0..20).map(|tag| tag.to_string()).collect();
    let record = |id: u64| json!({ "id": id, "email": format!("{id}@x"), "tags": tags });
    let load = users.load((0..400).map(record)).await.unwrap();
    assert_eq!((load.inserted, load.refused_count), (400, 0));
    let commits = metered.take().commits;
    assert!(commits < 150, "{commits} commits of up to 4 records");
    assert_eq!(count(&users).await, 400);
    assert!(store.verify().await.unwrap().is_clean());
}

#[tokio::test]
async fn a_drawn_code_that_is_taken_is_drawn_again() {
    let store = store_on(Arc::new(Memory::new())).await;
    let tickets = store.documents("ticket").await.unwrap();
    // Of about thirty codes that there are.
    let load = tickets.load((0..12).map(|_| json!({}))).await.unwrap();
    assert_eq!((load.inserted, load.refused_count), (12, 0), "{:?}", load.refused);
    assert_eq!(count(&tickets).await, 12);
}

#[tokio::test]
async fn an_acting_user_loads_what_is_theirs() {
    let store = store_on(Arc::new(Memory::new())).await;
    let anas = store.documents("note").await.unwrap().acting_as("ana").unwrap();
    let records = [json!({ "id": 1 }), json!({ "id": 2, "owner": "ben" }), json!({ "id": 3 })];
    let load = anas.load(&records).await.unwrap();
    assert_eq!(load.inserted, 2);
    assert_eq!(places(&load), [1]);
    assert_eq!(load.refused[0].error.kind(), ErrorKind::Forbidden);
    assert_eq!(anas.get(3).await.unwrap().unwrap().value["owner"], "ana");
}

#[tokio::test]
async fn a_load_learns_of_an_index_that_another_process_has_declared() {
    let metered = Arc::new(Metered::new(Arc::new(Memory::new())));
    let users = store_on(metered.clone()).await.documents("user").await.unwrap();
    users.insert(&user(5_000)).await.unwrap();
    let other = Store::on(metered.clone());
    let named = format!("{SCHEMA}\n[collection.user.index.name]\nkey = \"name:{{name}}:{{id}}\"\n");
    let named = named.replace("email = \"text\"", "email = \"text\"\nname = \"text\"");
    other.apply(&Schema::from_toml(&named).unwrap()).await.unwrap();
    metered.take();
    let record = |id: u64| json!({ "id": id, "name": format!("n{id}") });
    assert_eq!(users.load((0..1_200).map(record)).await.unwrap().inserted, 1_200);
    // Those of the two batches that met the new schema go by themselves.
    let commits = metered.take().commits;
    assert!(commits <= 2 + 200 + 2, "{commits} commits");
    other.build("user", "name").await.unwrap();
    let query = Query::new().equal("name", "n7");
    assert_eq!(other.documents("user").await.unwrap().count(&query).await.unwrap(), 1);
    assert!(other.verify().await.unwrap().is_clean());
}

#[tokio::test]
async fn what_no_record_is_at_fault_for_is_an_error() {
    let store = store_on(Arc::new(Memory::new())).await;
    let users = store.documents("user").await.unwrap();
    let keyed = users.with_idempotency_key("k").unwrap();
    let error = keyed.load([user(1)]).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    assert_eq!(count(&users).await, 0);
    store.close().await.unwrap();
    let error = users.load([user(1)]).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Closed);
    assert_eq!(error.context_value("inserted"), Some("0"));
}

#[derive(Debug, Serialize, Deserialize, Record)]
#[record(collection = "reading", key = "reading:{id}")]
struct Reading {
    id: u32,
    value: f64,
}

#[tokio::test]
async fn types_are_loaded_by_value_and_by_reference() {
    let store = Store::on(Arc::new(Memory::new()));
    let readings = store.collection::<Reading>().await.unwrap();
    let reading = |id: u32| Reading { id, value: if id == 2 { f64::NAN } else { 0.5 } };
    let load = readings.load((0..4).map(reading)).await.unwrap();
    assert_eq!((load.inserted, places(&load)), (3, vec![2]));
    assert_eq!(load.refused[0].error.context_value("field"), Some("value"));
    let more = [reading(8), reading(9)];
    assert_eq!(readings.load(&more).await.unwrap().inserted, 2);
    assert_eq!(readings.get(9).await.unwrap().unwrap().value.value, 0.5);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(long::times(100)))]

    /// Whatever conflicts with whatever: all but what is refused is there, and what is refused is
    /// refused rightly, since it still is.
    #[test]
    fn what_is_refused_conflicts_with_what_is_there(
        before in prop::collection::vec((0u64..40, 0u64..40), 0..10),
        given in prop::collection::vec((0u64..40, 0u64..40), 0..250),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let store = store_on(Arc::new(Memory::new())).await;
            let users = store.documents("user").await.unwrap();
            let record = |&(id, email): &(u64, u64)| json!({ "id": id, "email": format!("{email}@x") });
            for one in &before {
                let _ = users.insert(&record(one)).await;
            }
            let there = count(&users).await;
            let load = users.load(given.iter().map(record)).await.unwrap();
            assert_eq!((load.inserted + load.refused_count) as usize, given.len());
            assert_eq!(count(&users).await, there + load.inserted as usize);
            for (place, one) in given.iter().enumerate() {
                let is_refused = places(&load).contains(&(place as u64));
                match users.get(one.0).await.unwrap() {
                    Some(found) if found.value == record(one) => {}
                    _ => assert!(is_refused, "{one:?} is missing"),
                }
                assert!(users.insert(&record(one)).await.is_err(), "{one:?} could be inserted");
            }
            assert!(store.verify().await.unwrap().is_clean());
        });
    }
}
