//! Records that end, in collections that keep a history: by their time, or to begin anew within
//! one transaction.

#![cfg(feature = "embedded")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests fail by panicking"
)]

mod time_support;

use std::sync::Arc;

use keyloom::engine::{Capabilities, Engine, Memory};
use keyloom::{
    Collection, ErrorKind, HistoryEntry, HistoryKind, Schema, SweepOptions, Transaction,
};
use serde_json::{Value, json};
use time_support::{START, Small, Subject};

use HistoryKind::{Created, Deleted, Expired, Updated};

const SCHEMA: &str = r#"
[collection.token]
key        = "token:{id}"
expires_at = "ends"
history    = { versions = 10 }
[collection.token.fields]
id   = "text"
mail = "text"
ends = "timestamp"
[collection.token.unique.mail]
key = "mail:{mail}"
"#;

fn token(id: &str, mail: &str, ends: u64) -> Value {
    json!({ "id": id, "mail": mail, "ends": START + ends })
}

async fn tokens(subject: &Subject) -> Collection<Value> {
    subject.store.documents("token").await.unwrap()
}

/// The history of a token, the same in pages of one as in one page.
async fn history(tokens: &Collection<Value>, id: &str) -> Vec<HistoryEntry<Value>> {
    let all = tokens.history(id, 100, None).await.unwrap();
    assert!(all.next.is_none() && all.problems.is_empty(), "{all:?}");
    let (mut one_by_one, mut cursor) = (Vec::new(), None);
    loop {
        let page = tokens.history(id, 1, cursor.as_deref()).await.unwrap();
        one_by_one.extend(page.records);
        match page.next {
            Some(next) => cursor = Some(next.to_string()),
            None => break,
        }
    }
    assert_eq!(all.records, one_by_one);
    all.records
}

/// How and when, after the start, each version came about, and by whom.
fn told(history: &[HistoryEntry<Value>]) -> Vec<(HistoryKind, u64, u64, Option<&str>)> {
    let told = |entry: &HistoryEntry<Value>| (entry.version.revision(), entry.at_ms - START);
    history
        .iter()
        .map(|entry| (entry.kind, told(entry).0, told(entry).1, entry.by.as_deref()))
        .collect()
}

/// The mail at each of these moments after the start.
async fn mails(tokens: &Collection<Value>, id: &str, moments: &[u64]) -> Vec<Option<String>> {
    let mut mails = Vec::new();
    for moment in moments {
        let found = tokens.get_as_of(id, START + moment).await.unwrap();
        mails.push(found.map(|found| found["mail"].as_str().unwrap().to_owned()));
    }
    mails
}

#[tokio::test]
async fn a_record_that_is_swept_ends_with_its_time() {
    for subject in Subject::all(SCHEMA).await {
        let tokens = tokens(&subject).await;
        tokens.insert(&token("a", "a@x", 10)).await.unwrap();
        subject.clock.pass(5);
        let changed = tokens.update_with_retry("a", &json!({ "mail": "b@x" })).await.unwrap();
        subject.clock.pass(10);
        let moments = [0, 4, 5, 9, 10, 14, 15, 16];
        let expected = ["a@x", "a@x", "b@x", "b@x"].map(|mail| Some(mail.to_owned()));
        let expected: Vec<_> = expected.into_iter().chain([None, None, None, None]).collect();
        // Also before anybody sweeps, nobody finds it after its end.
        assert_eq!(mails(&tokens, "a", &moments).await, expected, "{}", subject.name);
        assert_eq!(
            told(&history(&tokens, "a").await),
            [(Updated, 2, 5, None), (Created, 1, 0, None)]
        );
        let swept = subject.store.sweep(&SweepOptions::default()).await.unwrap();
        assert_eq!(swept.records, 1);
        assert_eq!(mails(&tokens, "a", &moments).await, expected, "{}", subject.name);
        let history = history(&tokens, "a").await;
        assert_eq!(
            told(&history),
            [(Expired, 3, 15, None), (Updated, 2, 5, None), (Created, 1, 0, None)]
        );
        assert!(history[0].record.is_none());
        let last = tokens.get_version("a", changed.version).await.unwrap().unwrap();
        assert_eq!(last["mail"], "b@x");
        assert!(tokens.get_version("a", history[0].version).await.unwrap().is_none());
        subject.assert_sound().await;
    }
}

/// Who needs the place of an expired record does not end it: its time did.
#[tokio::test]
async fn a_record_that_makes_way_ends_with_its_time() {
    for subject in Subject::all(SCHEMA).await {
        let tokens = tokens(&subject).await;
        tokens.insert(&token("a", "a@x", 10)).await.unwrap();
        tokens.insert(&token("b", "b@x", 10)).await.unwrap();
        subject.clock.pass(12);
        // It takes the key of the one and the mail of the other.
        let as_eve = tokens.acting_as("eve").unwrap();
        as_eve.insert(&token("a", "b@x", 99)).await.unwrap();
        assert_eq!(
            told(&history(&tokens, "a").await),
            [(Created, 1, 12, Some("eve")), (Expired, 2, 12, None), (Created, 1, 0, None)]
        );
        assert_eq!(
            told(&history(&tokens, "b").await),
            [(Expired, 2, 12, None), (Created, 1, 0, None)]
        );
        let of_a = ["a@x", "a@x"].map(|mail| Some(mail.to_owned()));
        let of_a: Vec<_> = of_a.into_iter().chain([None, None, Some("b@x".to_owned())]).collect();
        assert_eq!(mails(&tokens, "a", &[0, 9, 10, 11, 12]).await, of_a);
        assert_eq!(mails(&tokens, "b", &[0, 10, 12]).await, [Some("b@x".to_owned()), None, None]);
        subject.assert_sound().await;
    }
}

#[tokio::test]
async fn a_record_that_ends_and_begins_in_one_transaction_is_two() {
    for subject in Subject::all(SCHEMA).await {
        let tokens = tokens(&subject).await;
        let first = tokens.insert(&token("a", "a@x", 99)).await.unwrap();
        subject.clock.pass(5);
        let anew = subject.store.transaction(async |transaction: Transaction| {
            let tokens = transaction.documents("token")?;
            tokens.delete("a").await?;
            tokens.insert(&token("a", "b@x", 99)).await
        });
        let second = anew.await.unwrap();
        // In the same millisecond it goes for good.
        tokens.delete("a").await.unwrap();
        let history = history(&tokens, "a").await;
        assert_eq!(
            told(&history),
            [
                (Deleted, 2, 5, None),
                (Created, 1, 5, None),
                (Deleted, 2, 5, None),
                (Created, 1, 0, None)
            ]
        );
        assert_eq!((history[1].version, history[3].version), (second.version, first.version));
        assert_eq!(mails(&tokens, "a", &[0, 4, 5]).await[..2], vec![Some("a@x".to_owned()); 2]);
        assert_eq!(mails(&tokens, "a", &[5, 6]).await, [None, None]);
        for document in [first, second] {
            let found = tokens.get_version("a", document.version).await.unwrap().unwrap();
            assert_eq!(found.value, document.value().unwrap());
        }
        subject.assert_sound().await;
    }
}

/// What makes way for a write is no part of its answer.
#[tokio::test]
async fn a_write_with_a_key_is_answered_alike_also_when_records_made_way() {
    for subject in Subject::all(SCHEMA).await {
        writes_over_expired(&subject).await;
    }
    // The batch for the worst write, which has no room for another record.
    let memory = Memory::new();
    let batches_of =
        |batch_entries_max| Capabilities { batch_entries_max, ..memory.capabilities().clone() };
    assert!(Schema::from_toml(SCHEMA).unwrap().check_against(&batches_of(10)).is_err());
    let capabilities = batches_of(11);
    let small = Arc::new(Small(memory, capabilities));
    writes_over_expired(&Subject::on("small", small, SCHEMA).await).await;
}

async fn writes_over_expired(subject: &Subject) {
    let tokens = tokens(subject).await;
    for id in ["a", "b", "c"] {
        tokens.insert(&token(id, &format!("{id}@x"), 10)).await.unwrap();
    }
    subject.clock.pass(12);
    let with = |key: &str| tokens.with_idempotency_key(key).unwrap();
    let inserted = with("one").insert(&token("a", "b@x", 99)).await.unwrap();
    assert_eq!(with("one").insert(&token("a", "b@x", 99)).await.unwrap(), inserted);
    let moved = with("two").update_with_retry("a", &json!({ "mail": "c@x" })).await.unwrap();
    let again = with("two").update_with_retry("a", &json!({ "mail": "c@x" })).await.unwrap();
    assert_eq!(again, moved, "{}", subject.name);
    let other = with("two").insert(&token("d", "d@x", 99)).await.unwrap_err();
    assert_eq!(other.kind(), ErrorKind::IdempotencyConflict);
    assert_eq!(tokens.get("a").await.unwrap().unwrap()["mail"], "c@x");
    for id in ["b", "c"] {
        assert_eq!(told(&history(&tokens, id).await)[0].0, Expired, "{}", subject.name);
    }
    subject.assert_sound().await;
}
