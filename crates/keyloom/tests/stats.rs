//! How much there is: counted right, within its budget, and said so where the budget ended.

#![cfg(feature = "embedded")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests fail by panicking"
)]

mod long;

use std::collections::BTreeMap;
use std::sync::Arc;

use keyloom::engine::{Embedded, EmbeddedOptions, Engine, Memory, Metered, Unit};
use keyloom::{ErrorKind, IndexState, Query, Schema, StatsOptions, Store};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde_json::{Value, json};

/// Users and their notes lie among each other.
const SCHEMA: &str = r#"
[collection.user]
key = "user:{id}"
fields = { id = "text" }

[collection.note]
key = "user:{id}:notes:{n}"
[collection.note.fields]
id     = "text"
n      = "integer"
status = "text"
"tags.*" = "text"
[collection.note.index.status]
key = "status:{status}:{id}:{n}"
[collection.note.index.tag]
key = "tag:{tags.*}:{id}:{n}"
"#;

async fn store_on(engine: Arc<dyn Engine>) -> Store {
    let store = Store::on(engine);
    store.apply(&Schema::from_toml(SCHEMA).unwrap()).await.unwrap();
    store
}

async fn fill(store: &Store, notes: &[(u8, u8)]) {
    let users = store.documents("user").await.unwrap();
    let of = store.documents("note").await.unwrap();
    for (n, (user, status)) in notes.iter().enumerate() {
        users.upsert(&json!({ "id": format!("u{user}") })).await.unwrap();
        let note = json!({
            "id": format!("u{user}"), "n": n, "status": format!("s{status}"), "tags": ["a", "b"],
        });
        of.insert(&note).await.unwrap();
    }
}

#[tokio::test]
async fn records_and_entries_are_counted() {
    let store = store_on(Arc::new(Memory::new())).await;
    fill(&store, &[(1, 1), (1, 2), (2, 1)]).await;
    store.disable("note", "tag").await.unwrap();
    let stats = store.stats(&StatsOptions::default()).await.unwrap();
    assert_eq!((stats.engine, stats.is_persistent), ("memory", false));
    let [note, user] = &stats.collections[..] else { panic!("{stats:?}") };
    assert_eq!((&*note.name, note.records.keys, note.records.is_exact), ("note", 3, true));
    assert_eq!((&*user.name, user.records.keys), ("user", 2));
    let one = json!({ "id": "u1" }).to_string();
    assert_eq!(user.records.bytes, 2 * ("user:u1".len() + one.len()) as u64);
    let index = |name: &str| note.indexes.iter().find(|index| index.name == name).unwrap();
    assert_eq!((index("status").entries.keys, &index("status").state), (3, &IndexState::Ready));
    assert_eq!((index("tag").entries.keys, &index("tag").state), (6, &IndexState::Disabled));
}

#[tokio::test]
async fn a_budget_ends_the_count_and_is_told() {
    let metered = Metered::new(Arc::new(Memory::new()));
    let store = store_on(Arc::new(metered.clone())).await;
    fill(&store, &[(1, 1); 40]).await;
    metered.take();
    for (keys_max, keys, is_exact) in [(0, 0, false), (39, 39, false), (40, 40, true)] {
        let collection = Some("note".to_owned());
        let options = StatsOptions { keys_max, collection };
        let stats = store.stats(&options).await.unwrap();
        assert_eq!(stats.collections.len(), 1);
        let records = stats.collections[0].records;
        assert_eq!((records.keys, records.is_exact), (keys, is_exact), "{keys_max}");
        if keys_max == 0 {
            assert!(metered.usage().cells_read < 10, "{:?}", metered.usage());
        }
    }
    let collection = Some("nope".to_owned());
    let unknown = StatsOptions { collection, ..StatsOptions::default() };
    let error = store.stats(&unknown).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
}

#[tokio::test]
async fn the_embedded_engine_tells_of_its_work() {
    let folder = tempfile::tempdir().unwrap();
    let engine = Embedded::open(folder.path(), EmbeddedOptions::default()).unwrap();
    let metered = Metered::new(Arc::new(engine));
    let store = store_on(Arc::new(metered.clone())).await;
    let of = |stats: &keyloom::StoreStats, name: &str| {
        let found = stats.figures.iter().find(|figure| figure.name == name);
        found.map(|figure| (figure.value, figure.unit)).unwrap_or_else(|| panic!("{stats:?}"))
    };
    let before = store.stats(&StatsOptions::default()).await.unwrap();
    fill(&store, &[(1, 1), (1, 2)]).await;
    store.documents("user").await.unwrap().get("u1").await.unwrap();
    let after = store.stats(&StatsOptions::default()).await.unwrap();
    assert_eq!((after.engine, after.is_persistent), ("embedded", true));
    // A user and a note, then only a note: the user is there already.
    assert_eq!(of(&after, "batches").0 - of(&before, "batches").0, 3);
    assert_eq!(of(&after, "syncs").0 - of(&before, "syncs").0, 3);
    assert!(of(&after, "batch groups").0 <= of(&after, "batches").0);
    assert!(of(&after, "largest batch group").0 >= 1);
    assert_eq!(of(&after, "disk").1, Unit::Bytes);
    assert!(of(&after, "disk").0 > 0);
    assert!(of(&after, "record cache").0 > 0);
    assert_eq!(of(&after, "list cache").1, Unit::Bytes);
    let users = store.documents("user").await.unwrap();
    let told = |name: &str| {
        let figures = metered.figures();
        figures.iter().find(|figure| figure.name == name).map(|figure| figure.value).unwrap()
    };
    // A cell is kept at its second read, and the same cells are asked for each time.
    users.get("u1").await.unwrap();
    users.get("u1").await.unwrap();
    let before = ["record cache hits", "record cache misses"].map(told);
    metered.take();
    users.get("u1").await.unwrap();
    let cells = metered.take().cells_read;
    let after = ["record cache hits", "record cache misses"].map(told);
    assert!(cells >= 1 && after[0] - before[0] == cells && after[1] == before[1], "{after:?}");
    assert!(users.get("nobody").await.unwrap().is_none());
    assert_eq!(told("record cache misses"), before[1] + 1);
    let list = Query::new().scan();
    users.page(&list).await.unwrap();
    let before = told("list cache misses") + told("list cache hits");
    users.page(&list).await.unwrap();
    assert!(told("list cache misses") + told("list cache hits") > before);
    store.close().await.unwrap();
    assert!(metered.figures().iter().any(|figure| figure.name == "disk" && figure.value > 0));
}

#[test]
fn a_distribution_is_what_a_count_of_all_gives() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let config = Config { cases: long::times(60), failure_persistence: None, ..Config::default() };
    let notes = prop::collection::vec((0..4_u8, 0..5_u8), 0..40);
    TestRunner::new(config)
        .run(&(notes, 1..3_usize, 1..60_usize), |(notes, segments, budget)| {
            runtime.block_on(check(&notes, segments, budget));
            Ok(())
        })
        .unwrap();
}

async fn check(notes: &[(u8, u8)], segments: usize, budget: usize) {
    let store = store_on(Arc::new(Memory::new())).await;
    fill(&store, notes).await;
    let mut expected: BTreeMap<Vec<String>, u64> = BTreeMap::new();
    for (user, status) in notes {
        let values = [format!("s{status}"), format!("u{user}")];
        *expected.entry(values[..segments].to_vec()).or_default() += 1;
    }
    let all = store.distribution("note", "status", segments, 100_000).await.unwrap();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let of = |values: &[Value]| values.iter().map(text).collect::<Vec<_>>();
    let found: BTreeMap<Vec<String>, u64> =
        all.shares.iter().map(|share| (of(&share.values), share.entries.keys)).collect();
    assert_eq!(found, expected);
    assert!(all.is_exact && all.shares.iter().all(|share| share.entries.is_exact));
    assert!(all.shares.is_sorted_by_key(|share| std::cmp::Reverse(share.entries.keys)));
    // With a smaller budget nothing is overstated, and what is not all is told.
    let part = store.distribution("note", "status", segments, budget).await.unwrap();
    let counted: u64 = part.shares.iter().map(|share| share.entries.keys).sum();
    assert!(counted <= budget as u64);
    for share in &part.shares {
        let whole = expected[&of(&share.values)];
        assert!(
            share.entries.keys <= whole && share.entries.is_exact == (share.entries.keys == whole)
        );
    }
    assert_eq!(part.is_exact, counted == notes.len() as u64);
    assert_eq!(part.has_all_values, part.shares.len() == expected.len());
    // Nor is the budget left unspent while a value has more.
    let open = part.shares.iter().filter(|share| !share.entries.is_exact).count();
    assert!(open == 0 || counted + open as u64 > budget as u64, "{counted} of {budget}: {part:?}");
}

/// A share that is as large as its part of the budget is no count of the value.
#[tokio::test]
async fn values_that_were_not_counted_to_their_end_say_so() {
    let store = store_on(Arc::new(Memory::new())).await;
    let notes: Vec<(u8, u8)> = (0..4).flat_map(|status| vec![(1, status); 40]).collect();
    fill(&store, &notes).await;
    let spread = store.distribution("note", "status", 1, 80).await.unwrap();
    assert!(spread.has_all_values && !spread.is_exact);
    for share in &spread.shares {
        assert_eq!((share.entries.keys, share.entries.is_exact), (20, false));
    }
    let spread = store.distribution("note", "status", 1, 160).await.unwrap();
    assert!(spread.is_exact);
    assert!(spread.shares.iter().all(|share| share.entries.keys == 40 && share.entries.is_exact));
}

#[tokio::test]
async fn what_has_no_distribution_is_refused() {
    let store = store_on(Arc::new(Memory::new())).await;
    for (collection, index, segments) in
        [("nope", "status", 1), ("note", "nope", 1), ("note", "status", 0), ("note", "status", 4)]
    {
        let error = store.distribution(collection, index, segments, 10).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
    }
    let empty = store.distribution("note", "status", 3, 10).await.unwrap();
    assert!(empty.shares.is_empty() && empty.is_exact);
}
