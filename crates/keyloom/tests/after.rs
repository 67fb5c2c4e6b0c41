//! Answers that begin after a key, and cost what they return.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

use std::sync::Arc;

use keyloom::engine::{Memory, Metered, Usage};
use keyloom::{Collection, ErrorKind, Order, Query, Schema, Store};
use serde_json::{Value, json};

const SCHEMA: &str = r#"
[collection.user]
key = "user:{user}"
fields = { user = "text" }

[collection.note]
key = "user:{user}:notes:{number}"
access = "owned"
owner = "user"
fields = { user = "text", number = "integer", kind = "text" }
[collection.note.index.kind]
key = "kind:{kind}:{user}:{number}"
[collection.note.count.all]
group = []
"#;

const USERS: [&str; 3] = ["ana", "ben", "cat"];
const NOTES: i64 = 200;

/// Users whose notes lie between them, 200 each.
async fn filled() -> (Metered, Store) {
    let metered = Metered::new(Arc::new(Memory::new()));
    let store = Store::on(Arc::new(metered.clone()));
    store.apply(&Schema::from_toml(SCHEMA).unwrap()).await.unwrap();
    let users = store.documents("user").await.unwrap();
    let notes = store.documents("note").await.unwrap();
    for user in USERS {
        users.insert(&json!({ "user": user })).await.unwrap();
        for number in 0..NOTES {
            let note = json!({ "user": user, "number": number, "kind": "a" });
            notes.insert(&note).await.unwrap();
        }
    }
    metered.take();
    (metered, store)
}

/// The keys of all pages, and what they cost.
async fn walked(
    metered: &Metered,
    collection: &Collection<Value>,
    query: &Query,
) -> (Vec<String>, Usage) {
    metered.take();
    let (mut keys, mut query) = (Vec::new(), query.clone());
    loop {
        let page = collection.documents(&query).await.unwrap();
        assert_eq!(page.problems, []);
        keys.extend(page.records.iter().map(|record| record.key.to_string()));
        let Some(next) = page.next else { return (keys, metered.take()) };
        query = query.from_cursor(next);
    }
}

#[tokio::test]
async fn a_scan_goes_on_behind_a_key_and_reads_what_it_returns() {
    let (metered, store) = filled().await;
    let notes = store.documents("note").await.unwrap();
    let scan = Query::new().scan().take(64);
    let (all, whole) = walked(&metered, &notes, &scan).await;
    assert_eq!(all.len(), 3 * NOTES as usize);
    assert!(whole.cells_read >= 600, "{whole:?}");
    for (user, number, left) in
        [("cat", 196, 3), ("cat", 199, 0), ("ben", 190, 209), ("ana", 0, 599), ("aaa", 5, 600)]
    {
        let query = scan.clone().after([json!(user), json!(number)]);
        let (rest, usage) = walked(&metered, &notes, &query).await;
        assert_eq!(rest, all[all.len() - left..], "{user} {number}");
        // One row ahead and the epoch for each page, and the users in between.
        let most = left as u64 + 2 * (left as u64 / 64 + 1) + 6;
        assert!(usage.cells_read <= most, "{user} {number}: {usage:?}");
    }
    // There need not be a record at the key.
    let query = scan.clone().after([json!("cat"), json!(1_000_000)]);
    assert_eq!(walked(&metered, &notes, &query).await.0, <[String; 0]>::default());
    let users = store.documents("user").await.unwrap();
    let query = scan.clone().after(["ana"]);
    assert_eq!(walked(&metered, &users, &query).await.0, ["user:ben", "user:cat"]);
}

#[tokio::test]
async fn what_the_key_itself_serves_begins_after_a_key_in_its_own_order() {
    let (metered, store) = filled().await;
    let notes = store.documents("note").await.unwrap();
    let bens = Query::new().equal("user", "ben").take(3);
    let up = bens.clone().after([json!("ben"), json!(195)]);
    let (keys, _) = walked(&metered, &notes, &up).await;
    assert_eq!(keys.len(), 4);
    assert!(keys[0].starts_with("user:ben:") && keys[3].starts_with("user:ben:"), "{keys:?}");
    let down = bens.order("number", Order::Descending).after([json!("ben"), json!(4)]);
    let (keys, usage) = walked(&metered, &notes, &down).await;
    assert_eq!(keys.len(), 4);
    assert!(keys[0] > keys[3] && usage.cells_read <= 10, "{keys:?} {usage:?}");
    // The page before a page that goes on does not reach beyond the key.
    let first = notes.documents(&up).await.unwrap();
    let second = notes.documents(&up.clone().from_cursor(first.next.unwrap())).await.unwrap();
    let back = notes.documents(&up.clone().from_cursor(second.previous.unwrap())).await.unwrap();
    let keys = |page: &keyloom::Page<keyloom::Document>| -> Vec<String> {
        page.records.iter().map(|record| record.key.to_string()).collect()
    };
    assert_eq!(keys(&back), keys(&notes.documents(&up).await.unwrap()));
    assert!(back.previous.is_none());
}

#[tokio::test]
async fn counts_go_by_it_and_cursors_are_bound_to_it() {
    let (_, store) = filled().await;
    let notes = store.documents("note").await.unwrap();
    let scan = Query::new().scan();
    assert_eq!(notes.count(&scan).await.unwrap(), 600);
    let rest = scan.clone().after([json!("cat"), json!(100)]);
    assert_eq!(notes.count(&rest).await.unwrap(), 99);
    let next = notes.documents(&scan).await.unwrap().next.unwrap();
    let error = notes.documents(&rest.clone().from_cursor(next)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidCursor);
}

#[tokio::test]
async fn what_has_no_order_of_keys_and_what_is_no_key_are_refused() {
    let (_, store) = filled().await;
    let notes = store.documents("note").await.unwrap();
    let indexed = Query::new().equal("kind", "a");
    for query in [
        indexed.clone().after([json!("ana"), json!(1)]),
        indexed.scan().after([json!("ana"), json!(1)]),
        Query::new().scan().after(["ana"]),
        Query::new().scan().after([json!("ana"), json!("one")]),
    ] {
        let error = notes.documents(&query).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidQuery, "{query:?}: {error}");
    }
}

#[tokio::test]
async fn a_key_of_somebody_else_opens_nothing() {
    let (metered, store) = filled().await;
    let mine = store.documents("note").await.unwrap().acting_as("ben").unwrap();
    for (user, left) in [("ana", 200), ("ben", 100), ("cat", 0)] {
        let query = Query::new().scan().take(64).after([json!(user), json!(99)]);
        let (keys, _) = walked(&metered, &mine, &query).await;
        assert_eq!(keys.len(), left, "{user}");
        assert!(keys.iter().all(|key| key.starts_with("user:ben:")), "{user}");
    }
}
