//! What the log of a space tells of its commits, and how long it is kept.

#![cfg(feature = "embedded")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests fail by panicking"
)]

mod log_support;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use keyloom::engine::{Engine, Memory, Metered, Torn};
use keyloom::{
    Became, Clock, Error, ErrorKind, Logged, LoggedChange, Position, Query, Schema, Store,
};
use log_support::{SCHEMA, Subject, keeping, note, position, schema};
use serde_json::{Value, json};

/// The commits that changed records.
async fn commits(store: &Store) -> Vec<Logged> {
    let changes = store.changes(Position::FIRST, 10_000).await.unwrap();
    assert!(changes.is_end());
    let numbers = changes.commits.iter().map(|commit| commit.position.number());
    assert!(numbers.eq(1..changes.next.number()), "the log has a gap");
    changes.commits.into_iter().filter(|commit| !commit.changes.is_empty()).collect()
}

fn text_of(change: &LoggedChange) -> Value {
    change.document().unwrap().json().unwrap()
}

#[tokio::test]
async fn every_way_to_write_is_told() {
    for subject in Subject::every_with(&schema()).await {
        let store = subject.store.with_clock(Clock::new(|| 1_700_000_000_123));
        let notes = store.documents("note").await.unwrap();
        let first = notes.insert(&note("ana", 1, 1)).await.unwrap();
        let by_bea = store.acting_as("bea").unwrap().documents("note").await.unwrap();
        let second = by_bea.upsert(&note("ana", 1, 2)).await.unwrap().version;
        notes.upsert(&note("ana", 1, 2)).await.unwrap();
        let patch = json!({ "tags": ["x"] });
        notes.update_with_retry(("ana", "n1"), &patch).await.unwrap();
        let bump = |note: &mut Value| {
            note["stars"] = json!(9);
            Ok(())
        };
        notes.modify(("ana", "n1"), bump).await.unwrap();
        let rename = |note: &mut Value| {
            note["id"] = json!("moved");
            Ok(())
        };
        notes.rename(("ana", "n1"), rename).await.unwrap();
        let (runs, text) = (store.plain().in_area("runs").unwrap(), r#"{"id":"r","status":"on"}"#);
        runs.put("r", text).await.unwrap();
        store
            .transaction(async |transaction| {
                let notes = transaction.documents("note")?;
                notes.delete(("ana", "moved")).await?;
                notes.insert(&note("cem", 7, 3)).await?;
                notes.delete(("cem", "n7")).await?;
                let runs = transaction.documents("run")?;
                runs.upsert(&json!({ "id": "r", "status": "off" })).await?;
                Ok::<_, Error>(())
            })
            .await
            .unwrap();
        assert!(notes.insert(&json!({ "owner": "x" })).await.is_err());
        let read_only = async |transaction: keyloom::Transaction| {
            transaction.documents("note")?.get(("ana", "n1")).await
        };
        store.transaction(read_only).await.unwrap();

        let commits = commits(&store).await;
        let told: Vec<Vec<(&str, &str, bool, bool)>> = commits
            .iter()
            .map(|commit| {
                let change = |change: &LoggedChange| -> (&str, &str, bool, bool) {
                    let (collection, key) = (change.collection.clone(), change.key.clone());
                    let is_there = change.document().is_some();
                    (collection.leak(), key.leak(), change.before.is_some(), is_there)
                };
                commit.changes.iter().map(change).collect()
            })
            .collect();
        let expected = [
            vec![("note", "note:ana:n1", false, true)],
            vec![("note", "note:ana:n1", true, true)],
            vec![("note", "note:ana:n1", true, true)],
            vec![("note", "note:ana:n1", true, true)],
            vec![("note", "note:ana:moved", false, true), ("note", "note:ana:n1", true, false)],
            vec![("run", "r", false, true)],
            vec![("note", "note:ana:moved", true, false), ("run", "r", true, true)],
        ];
        for (told, expected) in told.iter().zip(&expected) {
            let sorted = |changes: &Vec<_>| {
                let mut changes = changes.clone();
                changes.sort_unstable();
                changes
            };
            assert_eq!(sorted(told), sorted(expected));
        }
        assert_eq!(told.len(), expected.len());

        assert_eq!(commits[0].changes[0].after(), Some(first.version));
        assert_eq!(commits[1].changes[0].before, Some(first.version));
        assert_eq!(commits[1].changes[0].after(), Some(second));
        assert_eq!(commits[1].by.as_deref(), Some("bea"));
        assert_eq!(commits[0].by, None);
        assert!(commits.iter().all(|commit| commit.at == 1_700_000_000_123));
        assert_eq!(text_of(&commits[1].changes[0]), note("ana", 1, 2));
        assert_eq!(text_of(&commits[5].changes[0]), json!({ "id": "r", "status": "on" }));
        let gone = commits[6].changes.iter().find(|change| change.collection == "note").unwrap();
        assert_eq!(gone.became, Became::Deleted);
        assert!(commits.iter().flat_map(|c| &c.changes).all(|c| c.increments.is_empty()));
    }
}

#[tokio::test]
async fn changes_of_the_schema_are_told() {
    for subject in Subject::every_with(&schema()).await {
        let store = &subject.store;
        let before = store.log_bounds().await.unwrap().next;
        store.disable("note", "stars").await.unwrap();
        store.build("note", "stars").await.unwrap();
        let changes = store.changes(before, 100).await.unwrap();
        assert!(changes.commits.len() >= 3, "disabled, building, ready");
        assert!(changes.commits.iter().all(|commit| commit.is_schema_change));
        let unchanged = store.log_bounds().await.unwrap().next;
        store.apply(&schema()).await.unwrap();
        assert_eq!(store.log_bounds().await.unwrap().next, unchanged, "nothing changed");
    }
}

#[tokio::test]
async fn the_log_is_read_in_parts() {
    for subject in Subject::every_with(&schema()).await {
        let store = &subject.store;
        let notes = store.documents("note").await.unwrap();
        for number in 0..20 {
            notes.insert(&note("ana", number, 1)).await.unwrap();
        }
        let all = store.changes(Position::FIRST, 100).await.unwrap();
        for limit in [1, 3, 7] {
            let (mut next, mut parts) = (Position::FIRST, Vec::new());
            loop {
                let part = store.changes(next, limit).await.unwrap();
                assert!(part.commits.len() <= limit);
                parts.extend(part.commits.iter().cloned());
                next = part.next;
                if part.is_end() {
                    break;
                }
            }
            assert_eq!(parts, all.commits);
        }
        let end = store.changes(all.next, 5).await.unwrap();
        assert!(end.commits.is_empty() && end.is_end() && end.next == all.next);
        let error = store.changes(all.next.next(), 5).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        assert_eq!(error.context_value("next position"), Some(&*all.next.to_string()));
        for limit in [0, 10_001] {
            let error = store.changes(Position::FIRST, limit).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        }
        let error = store.acting_as("bea").unwrap().changes(Position::FIRST, 1).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Forbidden, "it tells of the records of all");
    }
}

#[tokio::test]
async fn spaces_have_logs_of_their_own() {
    let subject = Subject::memory();
    let (one, two) = (subject.store.space("one").unwrap(), subject.store.space("two").unwrap());
    one.apply(&schema()).await.unwrap();
    two.apply(&Schema::from_toml(&SCHEMA.replace("[log]", "")).unwrap()).await.unwrap();
    for store in [&one, &two] {
        store.documents("note").await.unwrap().insert(&note("ana", 1, 1)).await.unwrap();
    }
    assert_eq!(commits(&one).await.len(), 1);
    let error = two.changes(Position::FIRST, 1).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert_eq!(error.context_value("space"), Some("two"));
    assert_eq!(
        two.watch(keyloom::WatchOptions::from_now()).await.err().unwrap().kind(),
        error.kind()
    );
}

#[tokio::test]
async fn an_engine_without_a_log_refuses_the_schema() {
    let store = Store::on(Arc::new(Torn::new(Arc::new(Memory::new()), 1)));
    let error = store.apply(&schema()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert_eq!(error.context_value("engine"), Some("torn"));
    store.apply(&Schema::from_toml(&SCHEMA.replace("[log]", "")).unwrap()).await.unwrap();
}

/// Without `[log]` a commit writes no byte more than before.
#[tokio::test]
async fn what_declares_no_log_pays_for_none() {
    let metered = Metered::new(Arc::new(Memory::new()));
    let store = Store::on(Arc::new(metered.clone()) as Arc<dyn Engine>);
    store.apply(&Schema::from_toml(&SCHEMA.replace("[log]", "")).unwrap()).await.unwrap();
    let notes = store.documents("note").await.unwrap();
    metered.take();
    notes.insert(&note("ana", 1, 1)).await.unwrap();
    let usage = metered.take();
    assert_eq!((usage.log_entries_written, usage.log_calls, usage.round_trips()), (0, 0, 1));
    store.apply(&schema()).await.unwrap();
    metered.take();
    notes.insert(&note("ana", 2, 1)).await.unwrap();
    let usage = metered.take();
    // The first attempt is stopped by the fence, and the catalog is read again.
    assert_eq!((usage.log_entries_written, usage.log_calls), (1, 0));
}

#[tokio::test]
async fn a_log_that_was_declared_is_kept_by_those_who_do_not_know_it() {
    let subject = Subject::memory();
    let store = &subject.store;
    store.apply(&keeping("days = 30")).await.unwrap();
    let without = Schema::from_toml(&SCHEMA.replace("[log]", "")).unwrap();
    let applied = store.apply(&without).await.unwrap();
    assert!(
        applied
            .changes
            .iter()
            .any(|change| change.to_string() == "log: is in the store only; it stays")
    );
    let other = Store::on(subject.engine.clone());
    other.apply(&without).await.unwrap();
    let notes = other.documents("note").await.unwrap();
    notes.insert(&note("ana", 1, 1)).await.unwrap();
    assert_eq!(commits(store).await.len(), 1);
    let applied = store.apply(&keeping("entries = 5")).await.unwrap();
    assert!(
        applied
            .changes
            .iter()
            .any(|change| change.to_string() == "log: keeps another part of the changes")
    );
    let declaration = store.schema().await.unwrap().declaration();
    assert_eq!(declaration.log.map(|log| (log.days, log.entries)), Some((None, Some(5))));
}

async fn insert_many(store: &Store, from: usize, count: usize) {
    let notes = store.documents("note").await.unwrap();
    for number in from..from + count {
        notes.insert(&note("ana", number, 1)).await.unwrap();
    }
}

#[tokio::test]
async fn a_count_of_entries_is_kept() {
    for subject in Subject::every_with(&keeping("entries = 10")).await {
        let store = &subject.store;
        insert_many(store, 0, 40).await;
        let next = store.log_bounds().await.unwrap().next;
        let trimmed = store.trim_log().await.unwrap();
        assert_eq!(trimmed.removed, next.number() - 1 - 10);
        assert_eq!(trimmed.bounds.oldest, position(next.number() - 10));
        assert_eq!(trimmed.bounds.next, next);
        let error = store.changes(Position::FIRST, 1).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::LogTrimmed);
        assert_eq!(error.context_value("oldest kept"), Some(&*trimmed.bounds.oldest.to_string()));
        assert!(error.context_value("advice").is_some());
        let kept = store.changes(trimmed.bounds.oldest, 100).await.unwrap();
        assert_eq!(kept.commits.len(), 10);
        assert_eq!(store.trim_log().await.unwrap().removed, 0);
        let notes = store.documents("note").await.unwrap();
        assert_eq!(
            notes.page(&Query::new().equal("owner", "ana").take(100)).await.unwrap().records.len(),
            40
        );
    }
}

#[tokio::test]
async fn days_are_kept() {
    const DAY: u64 = 86_400_000;
    for subject in Subject::every() {
        let now = Arc::new(AtomicU64::new(1_700_000_000_000));
        let clock = {
            let now = now.clone();
            Clock::new(move || now.load(Ordering::Relaxed))
        };
        let store = subject.store.with_clock(clock);
        store.apply(&keeping("days = 2")).await.unwrap();
        insert_many(&store, 0, 700).await;
        now.fetch_add(DAY, Ordering::Relaxed);
        let second_day = store.log_bounds().await.unwrap().next;
        insert_many(&store, 700, 5).await;
        assert_eq!(store.trim_log().await.unwrap().removed, 0, "a day old");
        now.fetch_add(DAY, Ordering::Relaxed);
        assert_eq!(store.trim_log().await.unwrap().removed, 0, "exactly two days old");
        now.fetch_add(1, Ordering::Relaxed);
        let trimmed = store.trim_log().await.unwrap();
        assert_eq!(trimmed.bounds.oldest, second_day);
        assert_eq!(trimmed.removed, second_day.number() - 1);
    }
}

/// Nobody calls `trim_log`, and the log keeps about its size.
#[tokio::test]
async fn writers_keep_the_log_short() {
    for subject in Subject::every_with(&keeping("entries = 100")).await {
        insert_many(&subject.store, 0, 2_000).await;
        let bounds = subject.store.log_bounds().await.unwrap();
        let kept = bounds.next.number() - bounds.oldest.number();
        assert!((100..100 + 512).contains(&kept), "{kept} entries are kept");
    }
}
