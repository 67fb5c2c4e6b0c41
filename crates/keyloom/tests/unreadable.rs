//! Records that cannot be read: nothing is written over them, and they can be deleted.

#![cfg(feature = "embedded")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests fail by panicking"
)]

mod index_support;

use index_support::{Subject, dump, peek, plant};
use keyloom::{Error, ErrorKind, FindingKind, Transaction, Version};
use serde_json::{Value, json};

/// What nobody can read as the user `u3`.
const UNREADABLE: [&str; 6] = [
    "not JSON",
    "[]",
    "{}",
    r#"{"id":"u4","email":"u4@x","name":"u4","score":4,"tags":["a"]}"#,
    r#"{"id":7}"#,
    "",
];

impl Subject {
    async fn insert(&self, ids: std::ops::Range<u32>) {
        for n in ids {
            self.users.insert(&user(n)).await.unwrap();
        }
    }

    async fn assert_clean(&self) {
        let verification = self.store.verify().await.unwrap();
        assert!(verification.is_clean(), "{:#?}", verification.findings);
    }
}

fn user(n: u32) -> Value {
    let id = format!("u{n}");
    let place = json!({ "lat": 1.5, "lng": n });
    json!({
        "id": id, "email": format!("{id}@x"), "name": id, "score": n, "status": "active",
        "tags": ["a", "b"], "steps": { "s": { "at": n } }, "place": place,
    })
}

#[tokio::test]
async fn a_record_that_cannot_be_read_is_deleted_with_all_its_entries() {
    for it in Subject::all().await {
        it.insert(0..3).await;
        it.insert(4..160).await;
        let without = dump(&it.store).await;
        for unreadable in UNREADABLE {
            it.insert(3..4).await;
            plant(&it.store, "", "user:u3", Some(unreadable)).await;
            let found = it.store.verify().await.unwrap();
            assert_eq!(found.counts.of(FindingKind::Unreadable), 1, "{unreadable}");
            assert!(it.users.delete("u3").await.unwrap().is_some(), "{unreadable}");
            assert!(dump(&it.store).await == without, "{unreadable}: all of it, and nothing else");
            it.assert_clean().await;
            assert_eq!(it.users.delete("u3").await.unwrap(), None);
        }
    }
}

/// Its entries would stay, and those of the record that it pretends to be would go.
#[tokio::test]
async fn nothing_is_written_over_a_record_that_cannot_be_read() {
    for it in Subject::all().await {
        it.insert(3..5).await;
        for unreadable in UNREADABLE {
            plant(&it.store, "", "user:u3", Some(unreadable)).await;
            let before = dump(&it.store).await;
            let again = user(3);
            let in_transaction = it.store.transaction(async |tx: Transaction| {
                tx.documents("user")?.delete("u3").await.map(drop)
            });
            let text = again.to_string();
            let errors: [Error; 5] = [
                it.users.upsert(&again).await.unwrap_err(),
                it.users.replace(&again).await.unwrap_err(),
                it.users.update_with_retry("u3", &json!({ "score": 9 })).await.unwrap_err(),
                it.store.plain().put("user:u3", text).await.unwrap_err(),
                in_transaction.await.unwrap_err(),
            ];
            for error in errors {
                assert_eq!(error.kind(), ErrorKind::Corrupt, "{unreadable}: {error}");
                assert!(error.message().contains("it can only be deleted"), "{error}");
            }
            assert!(dump(&it.store).await == before, "{unreadable}");
        }
        assert!(it.store.plain().delete("user:u3").await.unwrap().is_some());
        it.assert_clean().await;
        it.insert(3..4).await;
    }
}

#[tokio::test]
async fn a_guarded_delete_wants_the_version_that_is_there() {
    for it in Subject::all().await {
        it.insert(3..4).await;
        let old = it.users.get("u3").await.unwrap().unwrap().version;
        plant(&it.store, "", "user:u3", Some("not JSON")).await;
        let error = it.users.delete_if("u3", old).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::VersionConflict);
        let now: Version = error.context_value("version").unwrap().parse().unwrap();
        assert!(peek(&it.store, "", "user:u3").await.is_some());
        it.users.delete_if("u3", now).await.unwrap();
        assert!(dump(&it.store).await.is_empty());
    }
}
