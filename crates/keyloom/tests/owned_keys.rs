//! Every key that a record owns: told in full, as it lies, and to nobody who may not read it.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests fail by panicking"
)]

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use keyloom::engine::{
    Address, Area, Batch, Direction, Effect, EngineExt, Memory, Range, Space, Stamp,
};
use keyloom::{Due, OwnedKey, OwnedKind, Query, Schema, Store};
use serde_json::json;

const SCHEMA: &str = r#"
[collection.note]
key     = "user:{userId}:notes:{noteId}"
access  = "owned"
owner   = "userId"
history = { versions = 200 }
expires_at = "until"
counters.hits = {}
count.by_tag = { group = ["tag"] }
[collection.note.fields]
userId = "text"
noteId = "text"
slug   = "text"
tag    = "text"
due    = "timestamp"
until  = "timestamp"
"tags.*" = "text"
[collection.note.index.own]
key = "own:{userId}:{tags.*}:{noteId}"
[collection.note.index.everyone]
key = "tag:{tag}:{userId}:{noteId}"
holds = "record"
[collection.note.index.due]
key = "due:{due}:{userId}:{noteId}"
[collection.note.unique.slug]
key = "slug:{slug}"
"#;

async fn store() -> Store {
    let store = Store::on(Arc::new(Memory::new()));
    store.apply(&Schema::from_toml(SCHEMA).unwrap()).await.unwrap();
    store
}

/// Every key of the store but those that belong to no record: the catalog and the counts.
async fn all_keys(store: &Store) -> BTreeSet<(String, String)> {
    let mut keys = BTreeSet::new();
    for area in [Area::default_area(), Area::own()] {
        let range = Range::all(area.clone());
        let rows = store.engine().scan_all(&Space::main(), &range, 100, Direction::Forward).await;
        for row in rows.unwrap() {
            let key = String::from_utf8(row.key.to_vec()).unwrap();
            let is_shared = matches!(&*key, "catalog" | "epoch") || key.starts_with("aggregate:");
            if !is_shared {
                keys.insert((area.name().to_owned(), key));
            }
        }
    }
    keys
}

fn named(owned: &[OwnedKey]) -> BTreeSet<(String, String)> {
    owned.iter().map(|owned| (owned.area.clone(), owned.key.clone())).collect()
}

async fn with_note(store: &Store) -> keyloom::Collection<serde_json::Value> {
    let notes = store.documents("note").await.unwrap();
    let note = json!({
        "userId": "ana", "noteId": "n1", "slug": "s", "tag": "t", "due": 1, "tags": ["a", "b"],
        "until": 9_999_999_999_999_u64,
    });
    notes.insert(&note).await.unwrap();
    notes
}

#[tokio::test]
async fn a_record_owns_every_key_that_came_with_it_and_no_other() {
    let store = store().await;
    let notes = with_note(&store).await;
    notes.increment(("ana", "n1"), [("hits", 3)]).await.unwrap();
    notes.update_with_retry(("ana", "n1"), &json!({ "text": "more" })).await.unwrap();
    let due = Due::new("due");
    let leased = notes.lease(&due, "worker", Duration::from_secs(60)).await.unwrap();
    assert_eq!(leased.items.len(), 1);
    let owned = notes.owned_keys(("ana", "n1")).await.unwrap().unwrap();
    assert_eq!(named(&owned), all_keys(&store).await);
    assert!(owned.iter().all(|owned| owned.is_present), "{owned:#?}");
    let of = |kind: OwnedKind| -> Vec<&OwnedKey> {
        owned.iter().filter(|owned| owned.kind == kind).collect()
    };
    let entries = |index: &str| of(OwnedKind::Entry { index: index.to_owned() });
    assert_eq!(of(OwnedKind::Record)[0].key, "user:ana:notes:n1");
    assert_eq!(entries("own").len(), 2);
    assert_eq!(entries("everyone")[0].value, of(OwnedKind::Record)[0].value);
    assert_eq!(of(OwnedKind::Counters)[0].value, r#"{"hits":3}"#);
    assert_eq!(of(OwnedKind::History).len(), 2);
    assert_eq!(of(OwnedKind::Lease { index: "due".into() }).len(), 1);
    // One more record adds none of its keys.
    let other = json!({ "userId": "ben", "noteId": "n1", "tag": "t", "tags": ["a"] });
    notes.insert(&other).await.unwrap();
    assert_eq!(notes.owned_keys(("ana", "n1")).await.unwrap().unwrap(), owned);
}

#[tokio::test]
async fn the_newest_100_versions_are_given() {
    let store = store().await;
    let notes = with_note(&store).await;
    for n in 0..120 {
        notes.update_with_retry(("ana", "n1"), &json!({ "n": n })).await.unwrap();
    }
    let owned = notes.owned_keys(("ana", "n1")).await.unwrap().unwrap();
    let history: Vec<_> = owned.iter().filter(|it| it.kind == OwnedKind::History).collect();
    assert_eq!(history.len(), 100);
    assert!(history[0].key.ends_with(&format!("{:020}", 121)), "{}", history[0].key);
}

#[tokio::test]
async fn what_is_missing_or_wrong_is_told() {
    let store = store().await;
    let notes = with_note(&store).await;
    let engine = store.engine();
    let mut batch = Batch::new(Space::main());
    let slug = Address::new(Area::default_area(), "slug:s");
    batch.push(slug, None, Some(Effect::Delete));
    let wrong = Effect::Put { stamp: Stamp([1; Stamp::BYTES]), bytes: "\u{1}".into() };
    batch.push(Address::new(Area::default_area(), "own:ana:a:n1"), None, Some(wrong));
    engine.commit(batch).await.unwrap();
    let owned = notes.owned_keys(("ana", "n1")).await.unwrap().unwrap();
    let absent: Vec<_> = owned.iter().filter(|it| !it.is_present).map(|it| &*it.key).collect();
    assert_eq!(absent, ["own:ana:a:n1", "slug:s"]);
    let slug = owned.iter().find(|it| it.key == "slug:s").unwrap();
    assert_eq!(slug.value, r#""user:ana:notes:n1""#, "what should lie there");
}

#[tokio::test]
async fn a_user_sees_what_they_may_read_along() {
    let store = store().await;
    let notes = with_note(&store).await;
    let ana = notes.acting_as("ana").unwrap();
    let owned = ana.owned_keys("n1").await.unwrap().unwrap();
    let keys: Vec<_> = owned.iter().map(|owned| &*owned.key).collect();
    assert_eq!(keys, ["user:ana:notes:n1", "own:ana:a:n1", "own:ana:b:n1"]);
    let ben = notes.acting_as("ben").unwrap();
    assert_eq!(ben.owned_keys(("ana", "n1")).await.unwrap(), None);
    assert_eq!(notes.owned_keys(("ana", "n2")).await.unwrap(), None);
}

#[tokio::test]
async fn a_disabled_index_owns_nothing_and_an_expired_record_is_not_there() {
    let store = store().await;
    let notes = with_note(&store).await;
    store.disable("note", "everyone").await.unwrap();
    let owned = notes.owned_keys(("ana", "n1")).await.unwrap().unwrap();
    assert!(owned.iter().all(|owned| owned.is_present && !owned.key.starts_with("tag:")));
    assert!(notes.page(&Query::new().scan()).await.unwrap().records.len() == 1);
    notes.update_with_retry(("ana", "n1"), &json!({ "until": 1 })).await.unwrap();
    assert_eq!(notes.owned_keys(("ana", "n1")).await.unwrap(), None);
}
