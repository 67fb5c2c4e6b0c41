//! The plain key-value interface reads everything, and writes nothing that an index would miss.

#![cfg(feature = "embedded")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests fail by panicking"
)]

mod index_support;

use std::collections::BTreeMap;
use std::sync::Arc;

use index_support::{Clients, memory_store, peek, schema};
use keyloom::engine::{Embedded, EmbeddedOptions, Memory};
use keyloom::{Cursor, ErrorKind, Plain, Stopped, Store};
use proptest::prelude::*;
use serde_json::json;

async fn assert_clean(store: &Store) {
    let verification = store.verify().await.unwrap();
    assert!(verification.is_clean(), "{:#?}", verification.findings);
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

#[tokio::test]
async fn keys_of_nobody_hold_any_bytes() {
    for store in [memory_store().await, Store::on(Arc::new(Memory::new()))] {
        let plain = store.plain();
        assert_eq!(plain.get("x").await.unwrap(), None);
        let first = plain.put("x", &b"\x00\xff"[..]).await.unwrap();
        assert_eq!(plain.get("x").await.unwrap().unwrap(), &b"\x00\xff"[..]);
        let second = plain.put("x", "").await.unwrap();
        assert_ne!(first, second);
        assert_eq!(plain.get("x").await.unwrap().unwrap(), "");
        assert!(plain.delete("x").await.unwrap().is_some());
        assert_eq!(plain.delete("x").await.unwrap(), None);
        assert_eq!(plain.get("x").await.unwrap(), None);
    }
}

#[tokio::test]
async fn areas_and_spaces_are_apart() {
    let store = memory_store().await;
    let plain = store.plain();
    let other = plain.in_area("other").unwrap();
    let elsewhere = store.space("elsewhere").unwrap().plain();
    plain.put("x", "1").await.unwrap();
    other.put("x", "2").await.unwrap();
    elsewhere.put("x", "3").await.unwrap();
    assert_eq!(plain.get("x").await.unwrap().unwrap(), "1");
    assert_eq!(other.get("x").await.unwrap().unwrap(), "2");
    assert_eq!(elsewhere.get("x").await.unwrap().unwrap(), "3");
    // Neither Keyloom's own area nor an empty or endless key can be reached.
    assert_eq!(plain.in_area("~").err().unwrap().kind(), ErrorKind::InvalidArgument);
    assert_eq!(plain.put("", "1").await.unwrap_err().kind(), ErrorKind::InvalidKey);
    let endless = "x".repeat(901);
    assert_eq!(plain.put(endless, "1").await.unwrap_err().kind(), ErrorKind::LimitExceeded);
}

/// A key that is too long is told in one way, whichever way it came about.
#[tokio::test]
async fn a_key_that_is_too_long_is_one_kind_of_error() {
    let store = memory_store().await;
    let users = store.documents("user").await.unwrap();
    let long = "x".repeat(900);
    let by_name = keyloom::Query::new().index("card").equal("name", long.as_str());
    let begins = keyloom::Query::new().index("active").starts_with("name", &long);
    let errors = [
        store.plain().put(format!("user:{long}"), "{}").await.unwrap_err(),
        store.plain().get(format!("user:{long}")).await.unwrap_err(),
        users.insert(&json!({ "id": long })).await.unwrap_err(),
        users.insert(&json!({ "id": "1", "name": long })).await.unwrap_err(),
        users.get(long.as_str()).await.unwrap_err(),
        users.delete(long.as_str()).await.unwrap_err(),
        users.get_by("email", long.as_str()).await.unwrap_err(),
        users.page(&by_name).await.unwrap_err(),
        users.page(&begins).await.unwrap_err(),
    ];
    for error in errors {
        assert_eq!(error.kind(), ErrorKind::LimitExceeded, "{error}");
        assert_eq!(error.message(), "a key has at most 900 bytes");
    }
}

/// What is put as text is kept as it is, or not taken at all.
#[tokio::test]
async fn json_that_would_not_be_kept_is_refused() {
    let store = memory_store().await;
    let plain = store.plain();
    for (wrong, column) in [
        (r#"{"id":"u1","n":1,"n":2}"#, "20"),
        (r#"{"id":"u1","n":12345678901234567890123}"#, "16"),
        (r#"{"id":"u1","n":-0}"#, "16"),
        (r#"{"id":"u1","n":0.12345678901234567890}"#, "16"),
        (r#"{"id":"u1","n":"\ud800"}"#, "23"),
    ] {
        let error = plain.put("user:u1", wrong).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidRecord, "{wrong}: {error}");
        assert_eq!(error.context_value("line"), Some("1"), "{wrong}: {error}");
        assert_eq!(error.context_value("column"), Some(column), "{wrong}: {error}");
    }
    let deep = format!(r#"{{"id":"u1","n":{}{}}}"#, "[".repeat(200), "]".repeat(200));
    assert_eq!(plain.put("user:u1", deep).await.unwrap_err().kind(), ErrorKind::InvalidRecord);
    assert!(peek(&store, "", "user:u1").await.is_none());
    plain.put("user:u1", r#"{"id":"u1","n":18446744073709551615}"#).await.unwrap();
    let kept = plain.get("user:u1").await.unwrap().unwrap();
    assert_eq!(kept, r#"{"id":"u1","n":18446744073709551615}"#);
}

#[tokio::test]
async fn a_record_is_put_and_deleted_with_its_entries() {
    let store = memory_store().await;
    let plain = store.plain();
    let ana = r#"{"id":"u1","email":"ana@example.org","name":"ana"}"#;
    let version = plain.put("user:u1", ana).await.unwrap();
    assert_eq!(plain.get("user:u1").await.unwrap().unwrap(), ana);
    assert_eq!(plain.get("index:email:ana@example.org").await.unwrap().unwrap(), r#""u1""#);
    let users = store.documents("user").await.unwrap();
    assert_eq!(users.get("u1").await.unwrap().unwrap().version, version);
    plain.put("user:u1", r#"{"id":"u1","email":"new@example.org"}"#).await.unwrap();
    assert!(plain.get("index:email:ana@example.org").await.unwrap().is_none());
    assert_clean(&store).await;
    assert!(plain.delete("user:u1").await.unwrap().is_some());
    assert!(plain.get("index:email:new@example.org").await.unwrap().is_none());
    assert_eq!(plain.delete("user:u1").await.unwrap(), None);
    assert_eq!(store.verify().await.unwrap().entries, 0);
}

#[tokio::test]
async fn a_record_must_belong_to_its_key() {
    let store = memory_store().await;
    let plain = store.plain();
    for wrong in ["", "not JSON", "7", "[]", "{}", r#"{"id":"u2"}"#, r#"{"id":7}"#] {
        let error = plain.put("user:u1", wrong.to_owned()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidRecord, "{wrong}: {error}");
        assert_eq!(error.context_value("key"), Some("user:u1"));
    }
    assert!(peek(&store, "", "user:u1").await.is_none());
    // The other rules of a collection hold too.
    plain.put("user:u1", r#"{"id":"u1","email":"a"}"#).await.unwrap();
    let error = plain.put("user:u2", r#"{"id":"u2","email":"a"}"#).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::UniqueConflict);
    let error = plain.put("user:u2", r#"{"id":"u2","score":"high"}"#).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidRecord);
}

#[tokio::test]
async fn a_generated_key_is_not_drawn_anew() {
    let store = Store::on(Arc::new(Memory::new()));
    let approvals = "[collection.approval]\nkey = \"approval:{id}\"\n\
                     fields = { id = { type = \"id\", generate = true } }";
    store.apply(&keyloom::Schema::from_toml(approvals).unwrap()).await.unwrap();
    let key = "approval:01hzy3v7q8r9s0t1v2w3x4y5z6";
    let error = store.plain().put(key, "{}").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidRecord);
}

#[tokio::test]
async fn index_entries_are_refused_by_name() {
    let store = memory_store().await;
    let plain = store.plain();
    let users = store.documents("user").await.unwrap();
    users.insert(&json!({ "id": "u1", "email": "a", "name": "ana" })).await.unwrap();
    let cards = plain.in_area("cards").unwrap();
    for (plain, key, index) in [
        (&plain, "index:email:a", "email"),
        (&plain, "index:tag:x:u1", "tag"),
        (&cards, "card:ana:u1", "card"),
    ] {
        for error in
            [plain.put(key, r#""u1""#).await.unwrap_err(), plain.delete(key).await.unwrap_err()]
        {
            assert_eq!(error.kind(), ErrorKind::InvalidKey);
            assert_eq!(error.context_value("index"), Some(index));
            assert_eq!(error.context_value("collection"), Some("user"));
        }
    }
    assert_eq!(plain.get("index:email:a").await.unwrap().unwrap(), r#""u1""#);
    assert_clean(&store).await;
}

#[tokio::test]
async fn a_key_that_begins_like_a_template_is_refused_and_can_be_removed() {
    let store = memory_store().await;
    let plain = store.plain();
    for key in ["user:u1:nodes:1", "index:geo:u33:u1", "user:%4"] {
        let error = plain.put(key, "{}").await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidKey);
        assert!(error.context_value("template").is_some(), "{error}");
        index_support::plant(&store, "", key, Some("{}")).await;
    }
    assert_eq!(store.verify().await.unwrap().counts.unknown, 3);
    for key in ["user:u1:nodes:1", "index:geo:u33:u1", "user:%4"] {
        assert!(plain.delete(key).await.unwrap().is_some());
    }
    assert_clean(&store).await;
}

/// A key that was free when this process loaded its schema may be a record's by now.
#[tokio::test]
async fn a_schema_of_another_process_is_obeyed() {
    let engine = Arc::new(Memory::new());
    let (first, second) = (Store::on(engine.clone()), Store::on(engine));
    let plain = first.plain();
    plain.put("elsewhere", "1").await.unwrap();
    assert!(plain.get("user:u1").await.unwrap().is_none());
    second.apply(&schema()).await.unwrap();
    let error = plain.put("index:email:a", "1").await.unwrap_err();
    assert_eq!(error.context_value("index"), Some("email"));
    plain.put("user:u1", r#"{"id":"u1","email":"a"}"#).await.unwrap();
    assert_clean(&second).await;
    assert_eq!(second.verify().await.unwrap().entries, 1);
}

async fn list_all(plain: &Plain, prefix: &str, limit: usize) -> Vec<String> {
    let mut all = Vec::new();
    let mut cursor: Option<Cursor> = None;
    loop {
        let at = cursor.as_ref().map(Cursor::to_string);
        let listing = plain.list(prefix, limit, at.as_deref()).await.unwrap();
        assert!(listing.entries.len() <= limit && listing.problems.is_empty());
        assert_eq!(listing.next.is_some(), listing.stopped == Stopped::Take);
        all.extend(listing.entries.iter().map(|entry| text(&entry.key).to_owned()));
        match listing.next {
            Some(next) => cursor = Some(next),
            None => return all,
        }
    }
}

#[tokio::test]
async fn a_list_shows_records_entries_and_everything_else() {
    let store = memory_store().await;
    let plain = store.plain();
    plain.put("user:u1", r#"{"id":"u1","email":"a"}"#).await.unwrap();
    plain.put("else:1", "x").await.unwrap();
    plain.put("else:2", "y").await.unwrap();
    assert_eq!(list_all(&plain, "", 10).await, ["else:1", "else:2", "index:email:a", "user:u1"]);
    assert_eq!(list_all(&plain, "", 1).await.len(), 4);
    assert_eq!(list_all(&plain, "else:", 2).await, ["else:1", "else:2"]);
    assert!(list_all(&plain, "f", 10).await.is_empty());
    let listing = plain.list("else:", 10, None).await.unwrap();
    assert_eq!(listing.entries[1].value, "y");
}

#[tokio::test]
async fn a_cursor_fits_its_own_list_only() {
    let store = memory_store().await;
    let plain = store.plain();
    for n in 0..4 {
        plain.put(format!("else:{n}"), "x").await.unwrap();
    }
    let cursor = plain.list("else:", 2, None).await.unwrap().next.unwrap().to_string();
    let rest = plain.list("else:", 7, Some(&cursor)).await.unwrap();
    assert_eq!(rest.entries.len(), 2);
    let area = plain.in_area("other").unwrap();
    let space = store.space("elsewhere").unwrap().plain();
    let mut altered = cursor.clone().into_bytes();
    altered[20] ^= 1;
    let altered = String::from_utf8(altered).unwrap();
    for listing in [
        plain.list("else", 2, Some(&cursor)).await,
        area.list("else:", 2, Some(&cursor)).await,
        space.list("else:", 2, Some(&cursor)).await,
        plain.list("else:", 2, Some(&altered)).await,
    ] {
        assert_eq!(listing.unwrap_err().kind(), ErrorKind::InvalidCursor);
    }
    for limit in [0, 10_001] {
        let error = plain.list("", limit, None).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    }
}

#[tokio::test]
async fn a_cursor_outlives_the_process() {
    let folder = tempfile::tempdir().unwrap();
    let open = || Arc::new(Embedded::open(folder.path(), EmbeddedOptions::default()).unwrap());
    let store = Store::on(open());
    let plain = store.plain();
    plain.put("a", "1").await.unwrap();
    plain.put("b", "2").await.unwrap();
    let cursor = plain.list("", 1, None).await.unwrap().next.unwrap().to_string();
    store.close().await.unwrap();
    drop((store, plain));
    let store = Store::on(open());
    let listing = store.plain().list("", 1, Some(&cursor)).await.unwrap();
    assert_eq!(listing.entries[0].key, "b");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// Against a sorted map: every list of any prefix, in pages of any size.
    #[test]
    fn lists_are_those_of_a_sorted_map(
        keys in prop::collection::btree_map("[ab%:]{1,5}", "[0-9]{0,3}", 0..30),
        prefix in "[ab%:]{0,2}",
        limit in 1_usize..9,
    ) {
        tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
            let store = Store::on(Arc::new(Memory::new()));
            let plain = store.plain();
            for (key, value) in &keys {
                plain.put(key, value.clone()).await.unwrap();
            }
            let expected: Vec<String> =
                keys.keys().filter(|key| key.starts_with(&prefix)).cloned().collect();
            assert_eq!(list_all(&plain, &prefix, limit).await, expected);
            let all = plain.list("", 10_000, None).await.unwrap();
            let held: BTreeMap<String, String> = all
                .entries
                .iter()
                .map(|entry| (text(&entry.key).to_owned(), text(&entry.value).to_owned()))
                .collect();
            assert_eq!(held, keys);
        });
    }

    /// Whatever is put or deleted at whatever key, no index drifts.
    #[test]
    fn no_index_drifts(
        seed: u64,
        puts in prop::collection::vec(("(user:u[0-9]{1,2}|index:email:[0-9]@example.org|[a-z]{1,3})", 0..3_u8, any::<u64>()), 0..40),
    ) {
        tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
            let store = memory_store().await;
            Clients::new(&store).await.act_often(seed, 30, 20).await;
            let plain = store.plain();
            for (key, action, seed) in puts {
                let mut record = index_support::user(&mut index_support::Dice::new(seed), 20);
                if let Some(id) = key.strip_prefix("user:") {
                    record["id"] = id.into();
                }
                let outcome = match action {
                    0 => plain.delete(&key).await.map(drop),
                    _ => plain.put(&key, record.to_string()).await.map(drop),
                };
                if let Err(error) = outcome {
                    let known = [ErrorKind::InvalidKey, ErrorKind::UniqueConflict];
                    assert!(known.contains(&error.kind()), "{key}: {error}");
                }
            }
            assert_clean(&store).await;
        });
    }
}
