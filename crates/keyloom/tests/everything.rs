//! Questions without conditions: all records, in the order of their keys.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

use std::sync::Arc;

use keyloom::engine::{Memory, Metered};
use keyloom::{Clock, Collection, ErrorKind, Query, Schema, Stopped, Store, Test};
use serde_json::{Value, json};

const SCHEMA: &str = r#"
[collection.user]
key = "user:{user}"
fields = { user = "text", kind = "text" }

[collection.note]
key = "user:{user}:notes:{number}"
access = "owned"
owner = "user"
fields = { user = "text", number = "integer", kind = "text" }

[collection.post]
key = "post:{user}:{number}"
access = "hybrid"
owner = "user"
fields = { user = "text", number = "integer" }
[collection.post.count.all]
group = []

[collection.code]
key = "code:{number}"
expires_at = "ends"
fields = { number = "integer", ends = "timestamp" }
"#;

const USERS: [&str; 4] = ["ana", "ben", "cat", "dan"];
const NOTES: i64 = 300;

/// Users whose notes lie between them, 300 each; two posts each; codes of which every other one
/// has expired.
async fn filled() -> (Metered, Store) {
    let metered = Metered::new(Arc::new(Memory::new()));
    let store = Store::on(Arc::new(metered.clone())).with_clock(Clock::new(|| 1_000));
    store.apply(&Schema::from_toml(SCHEMA).unwrap()).await.unwrap();
    let [users, notes, posts, codes] = [
        store.documents("user").await.unwrap(),
        store.documents("note").await.unwrap(),
        store.documents("post").await.unwrap(),
        store.documents("code").await.unwrap(),
    ];
    for user in USERS {
        users.insert(&json!({ "user": user, "kind": "a" })).await.unwrap();
        for number in 0..NOTES {
            notes.insert(&json!({ "user": user, "number": number, "kind": "a" })).await.unwrap();
        }
        for number in 0..2 {
            posts.insert(&json!({ "user": user, "number": number })).await.unwrap();
        }
    }
    for number in 0..20 {
        let ends = if number % 2 == 0 { 500 } else { 2_000 };
        codes.insert(&json!({ "number": number, "ends": ends })).await.unwrap();
    }
    metered.take();
    (metered, store)
}

async fn keys(collection: &Collection<Value>, query: &Query) -> Vec<String> {
    let mut pages = collection.document_pages(query).records();
    let mut keys = Vec::new();
    while let Some(document) = pages.next().await {
        keys.push(document.unwrap().key.to_string());
    }
    keys
}

#[tokio::test]
async fn a_page_of_everything_is_in_the_order_of_the_keys_and_costs_what_it_returns() {
    let (metered, store) = filled().await;
    let users = store.documents("user").await.unwrap();
    metered.take();
    let page = users.documents(&Query::new().take(2)).await.unwrap();
    let usage = metered.take();
    let found: Vec<&str> = page.records.iter().map(|found| found.key.as_str()).collect();
    assert_eq!(found, ["user:ana", "user:ben"]);
    assert_eq!((page.read, page.stopped), (2, Stopped::Take));
    // The notes between two users are jumped over, however many there are.
    assert!(usage.cells_read < 20, "{usage:?}");
    let all = USERS.map(|user| format!("user:{user}"));
    assert_eq!(keys(&users, &Query::new().take(1)).await, all);
    let second = users.documents(&Query::new().take(2).from_cursor(page.next)).await.unwrap();
    let first = Query::new().take(2).from_cursor(second.previous);
    assert_eq!(users.documents(&first).await.unwrap().records, page.records);
    assert_eq!(users.keys(&Query::new()).await.unwrap().records, all);
    assert_eq!(keys(&users, &Query::new().after(["ben"])).await, all[2..]);
}

#[tokio::test]
async fn the_plan_says_that_the_records_themselves_are_read() {
    let (_, store) = filled().await;
    let users = store.documents("user").await.unwrap();
    assert_eq!(
        users.explain(&Query::new()).await.unwrap(),
        "records of user: user:{user}\n  range: user: .. user;\n  read: scan, 1 round trip\n\
         direction: forward"
    );
}

#[tokio::test]
async fn an_acting_user_lists_what_they_may_read_at_the_cost_of_that() {
    let (metered, store) = filled().await;
    for (user, beginning) in [("cat", "user:cat:notes:"), ("nobody", "-")] {
        let notes = store.documents("note").await.unwrap().acting_as(user).unwrap();
        metered.take();
        let page = notes.documents(&Query::new().take(3)).await.unwrap();
        let usage = metered.take();
        assert_eq!(page.records.len(), if user == "cat" { 3 } else { 0 });
        assert!(page.records.iter().all(|it| it.key.starts_with(beginning)), "{user}");
        assert!(usage.cells_read < 10, "{user}: {usage:?}");
        // The count of what is theirs is bounded by what is theirs.
        let count = notes.count(&Query::new()).await.unwrap();
        assert_eq!(count, if user == "cat" { NOTES as usize } else { 0 });
        // The posts of all may be read by all.
        let posts = store.documents("post").await.unwrap().acting_as(user).unwrap();
        assert_eq!(keys(&posts, &Query::new()).await.len(), 2 * USERS.len());
    }
}

#[tokio::test]
async fn what_has_expired_is_not_listed() {
    let (_, store) = filled().await;
    let codes = store.documents("code").await.unwrap();
    assert_eq!(keys(&codes, &Query::new().take(3)).await.len(), 10);
    assert_eq!(codes.count(&Query::new().limit(20)).await.unwrap(), 10);
}

#[tokio::test]
async fn to_count_or_to_filter_everything_has_to_be_said() {
    let (metered, store) = filled().await;
    let users = store.documents("user").await.unwrap();
    for counted in [
        users.count(&Query::new()).await.unwrap_err(),
        users.count_entries(&Query::new()).await.unwrap_err(),
    ] {
        assert_eq!(counted.kind(), ErrorKind::NoIndex);
        let declared = "[collection.user.count.all] group = []";
        assert_eq!(counted.context_value("would serve"), Some(declared), "{counted}");
        assert!(counted.context_value("or").is_some(), "{counted}");
    }
    assert_eq!(users.count(&Query::new().limit(4)).await.unwrap(), 4);
    assert_eq!(users.count(&Query::new().scan()).await.unwrap(), 4);
    assert_eq!(users.count_entries(&Query::new().limit(9)).await.unwrap().records, 4);
    let more = users.count(&Query::new().limit(3)).await.unwrap_err();
    assert_eq!(more.kind(), ErrorKind::LimitExceeded);
    assert_eq!(more.context_value("at least"), Some("3"), "{more}");
    // A declared count needs neither.
    let posts = store.documents("post").await.unwrap();
    metered.take();
    assert_eq!(posts.count(&Query::new()).await.unwrap(), 8);
    assert!(metered.take().cells_read < 20);
    // A page of what passes a filter might read everything.
    let filtered = Query::new().filter("kind", Test::Equals(json!("b")));
    let error = users.documents(&filtered).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NoIndex);
    assert_eq!(error.context_value("or"), Some("ask for a scan of the whole collection"));
    assert!(keys(&users, &filtered.scan()).await.is_empty());
}
