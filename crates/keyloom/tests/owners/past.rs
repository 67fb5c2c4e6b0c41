//! What was, and what has been said once: histories, ends, and answers to keys, of one user and of
//! another.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use keyloom::engine::{Embedded, EmbeddedOptions, Engine, Memory, Torn};
use keyloom::{Clock, Collection, ErrorKind, HistoryKind, Schema, Store, Transaction};
use serde_json::{Value, json};

use crate::memory_store;

async fn notes_of(store: &Store, user: &str) -> Collection<Value> {
    store.acting_as(user).unwrap().documents("note").await.unwrap()
}

#[tokio::test]
async fn the_past_of_another_is_as_if_it_had_not_been() {
    let store = memory_store().await;
    let ana = notes_of(&store, "ana").await;
    let note = ana.insert(&json!({ "noteId": "n1", "slug": "first" })).await.unwrap();
    ana.update_with_retry("n1", &json!({ "slug": "second" })).await.unwrap();
    let ben = notes_of(&store, "ben").await;
    for is_gone in [false, true] {
        if is_gone {
            ana.delete("n1").await.unwrap();
        }
        let page = ana.history("n1", 9, None).await.unwrap();
        assert_eq!(page.records.len(), if is_gone { 3 } else { 2 });
        assert_eq!(ana.get_version("n1", note.version).await.unwrap().unwrap()["slug"], "first");
        let cursor = ana.history("n1", 1, None).await.unwrap().next.unwrap().to_string();
        for cursor in [None, Some(&*cursor)] {
            let page = ben.history(("ana", "n1"), 9, cursor).await.unwrap();
            assert!(page.records.is_empty() && page.next.is_none() && page.read == 0, "{page:?}");
        }
        let error = ben.history("n1", 9, Some(&cursor)).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidCursor);
        for key in [vec!["n1"], vec!["ana", "n1"]] {
            let key: Vec<Value> = key.into_iter().map(Value::from).collect();
            assert_eq!(ben.get_version(key.clone(), note.version).await.unwrap(), None);
            assert_eq!(ben.get_as_of(key, u64::MAX).await.unwrap(), None);
        }
    }
}

/// The program may give a record to another. Its owners see of it what it was in their time.
#[tokio::test]
async fn a_record_that_changes_hands_takes_no_past_along() {
    let store = memory_store().await;
    let all = store.documents("note").await.unwrap();
    let (ana, ben) = (notes_of(&store, "ana").await, notes_of(&store, "ben").await);
    let give = |to: &'static str| {
        move |note: &mut Value| {
            note["userId"] = json!(to);
            Ok(())
        }
    };
    let mut versions = Vec::new();
    versions.push(ana.insert(&json!({ "noteId": "n1", "slug": "ana-1" })).await.unwrap().version);
    versions.push(all.rename(("ana", "n1"), give("ben")).await.unwrap().version);
    let patch = json!({ "slug": "ben-1" });
    versions.push(ben.update_with_retry("n1", &patch).await.unwrap().version);
    let told = |page: keyloom::Page<keyloom::HistoryEntry<Value>>| {
        format!("{:?} {:?}", page.records, page.problems)
    };
    for take in [1, 9] {
        let page = ana.history("n1", take, None).await.unwrap();
        assert!(!told(page).contains("ben"));
        let page = ben.history("n1", take, None).await.unwrap();
        assert!(!told(page.clone()).contains("ana:"), "{page:?}");
    }
    let of_ben = ben.history("n1", 9, None).await.unwrap().records;
    assert_eq!(of_ben.len(), 2);
    assert_eq!(of_ben[1].kind, HistoryKind::Renamed);
    assert!(of_ben[1].changes.is_empty() && of_ben[1].renamed_from.is_none());
    assert_eq!(all.history(("ben", "n1"), 9, None).await.unwrap().records.len(), 3);
    versions.push(all.rename(("ben", "n1"), give("ana")).await.unwrap().version);
    // Back with the first: what the second did stays the second's.
    for take in [1, 9] {
        let (mut all, mut cursor) = (Vec::new(), None);
        loop {
            let page = ana.history("n1", take, cursor.as_deref()).await.unwrap();
            assert!(!format!("{:?}", page.records).contains("user:ben"), "{page:?}");
            all.extend(page.records.into_iter().map(|entry| entry.version.revision()));
            match page.next {
                Some(next) => cursor = Some(next.to_string()),
                None => break,
            }
        }
        assert_eq!(all, [4, 2, 1]);
    }
    for (of, seen) in [(&ana, [true, false, false, true]), (&ben, [false, true, true, false])] {
        for (version, is_seen) in versions.iter().zip(seen) {
            let found = of.get_version("n1", *version).await.unwrap();
            assert_eq!(found.is_some(), is_seen, "{version}: {found:?}");
        }
    }
}

#[tokio::test]
async fn equal_keys_of_two_users_never_meet() {
    let store = memory_store().await;
    for (user, slug) in [("ana", "a"), ("ben", "b"), ("ana", "a"), ("ben", "b")] {
        let notes = notes_of(&store, user).await.with_idempotency_key("k").unwrap();
        let note = notes.insert(&json!({ "noteId": "n1", "slug": slug })).await.unwrap();
        assert_eq!(note.key, format!("user:{user}:notes:n1"));
        let plain = store.acting_as(user).unwrap().plain().with_idempotency_key("p").unwrap();
        let text = json!({ "userId": user, "noteId": "n2" }).to_string();
        plain.put(format!("user:{user}:notes:n2"), text).await.unwrap();
        let acting = store.acting_as(user).unwrap();
        let once = acting.transaction_once("t", async |transaction: Transaction| {
            let note = json!({ "noteId": "n3" });
            Ok::<_, keyloom::Error>(
                transaction.documents("note")?.insert(&note).await?.key.to_string(),
            )
        });
        assert_eq!(once.await.unwrap(), format!("user:{user}:notes:n3"));
    }
    for id in ["n1", "n2", "n3"] {
        for user in ["ana", "ben"] {
            let note = notes_of(&store, user).await.get(id).await.unwrap().unwrap();
            assert_eq!((&note["userId"], note.version.revision()), (&json!(user), 1));
        }
    }
    assert!(store.verify().await.unwrap().is_clean());
}

const EXPIRING: &str = r#"
[collection.note]
key        = "user:{userId}:notes:{noteId}"
access     = "owned"
owner      = "userId"
expires_at = "ends"
history    = { days = 9 }
[collection.note.fields]
userId = "text"
noteId = "text"
slug   = "text"
ends   = "timestamp"
[collection.note.unique.slug]
key = "index:slug:{slug}"
"#;

#[tokio::test]
async fn what_has_expired_makes_way_for_another_user() {
    let folder = tempfile::tempdir().unwrap();
    let embedded = Embedded::open(folder.path(), EmbeddedOptions::default()).unwrap();
    let torn = Torn::new(Arc::new(Memory::new()), 7);
    let engines: [Arc<dyn Engine>; 3] =
        [Arc::new(Memory::new()), Arc::new(embedded), Arc::new(torn)];
    for engine in engines {
        let time = Arc::new(AtomicU64::new(1_000));
        let told = time.clone();
        let clock = Clock::new(move || told.load(Ordering::SeqCst));
        let store = Store::on(engine).with_clock(clock);
        store.apply(&Schema::from_toml(EXPIRING).unwrap()).await.unwrap();
        let (ana, ben) = (notes_of(&store, "ana").await, notes_of(&store, "ben").await);
        let note = |slug: &str, ends: u64| json!({ "noteId": "n1", "slug": slug, "ends": ends });
        ana.insert(&note("first", 2_000)).await.unwrap();
        let error = ben.insert(&note("first", 9_000)).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::UniqueConflict);
        time.store(2_000, Ordering::SeqCst);
        ben.insert(&note("first", 9_000)).await.unwrap();
        assert_eq!(ben.get_by("slug", "first").await.unwrap().unwrap()["userId"], "ben");
        assert_eq!(ana.get("n1").await.unwrap(), None);
        let past = ana.history("n1", 9, None).await.unwrap().records;
        assert_eq!(past[0].kind, HistoryKind::Expired);
        // Nobody learns from it who came after.
        assert_eq!(past[0].by, None);
        // A key of another's is theirs, whether what is there has expired or not.
        let foreign = json!({ "userId": "ben", "noteId": "n1", "ends": 20_000 });
        time.store(9_000, Ordering::SeqCst);
        assert_eq!(ana.upsert(&foreign).await.unwrap_err().kind(), ErrorKind::Forbidden);
        let swept = store.sweep(&keyloom::SweepOptions::default()).await.unwrap();
        assert_eq!(swept.records, 1);
        assert!(store.verify().await.unwrap().is_clean());
    }
}
