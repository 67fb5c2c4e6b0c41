//! A store that is made from the log of another is the same, cell by cell.

#![cfg(feature = "embedded")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests fail by panicking"
)]

mod log_support;
mod long;
#[path = "replay/tasks.rs"]
mod tasks;
mod time_support;

use keyloom::engine::{Address, Area, Batch, Effect, Space, Stamp};
use keyloom::{
    Error, ErrorKind, Position, RepairOptions, Schema, Store, VerifyOptions, WatchOptions,
};
use log_support::{SCHEMA, Subject, everything, keeping, note, position, schema};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde_json::{Value, json};
use time_support::TestClock;

/// Something that changes a store, by numbers.
type Operation = (u8, usize, u64);

fn operations() -> impl Strategy<Value = Vec<Operation>> {
    proptest::collection::vec((0u8..200, 0usize..6, 0u64..4), 1..60)
}

const LATER: &str = r#"
[collection.note.index.later]
key = "later:{stars}:{id}:{owner}"
"#;

/// Whether it succeeds is of no interest here: what is refused changes nothing, and then there is
/// nothing to tell.
async fn operate(store: &Store, clock: &TestClock, (what, id, value): Operation) {
    if what >= 100 {
        return tasks::operate(store, clock, (what - 100, id, value)).await;
    }
    let store = match value {
        0 => store.acting_as("ana").unwrap(),
        _ => store.clone(),
    };
    let notes = store.documents("note").await.unwrap();
    let name = format!("n{id}");
    let key = ("ana", name.as_str());
    let mut record = note("ana", id, value);
    record["tags"] = json!((0..value).map(|tag| format!("t{tag}")).collect::<Vec<_>>());
    if value > 1 {
        record["code"] = json!(format!("c{value}"));
    }
    match what {
        0..20 => drop(notes.insert(&record).await),
        20..40 => drop(notes.upsert(&record).await),
        40..50 => drop(notes.delete(key).await),
        50..60 => {
            drop(notes.update_with_retry(key, &json!({ "stars": value, "more": what })).await)
        }
        60..66 => {
            let rename = |note: &mut Value| {
                note["id"] = json!(format!("n{}", value + 3));
                Ok(())
            };
            drop(notes.rename(key, rename).await);
        }
        66..76 => {
            let record = &record;
            let both = async |transaction: keyloom::Transaction| {
                let run = json!({ "id": format!("r{id}"), "status": format!("s{value}") });
                transaction.documents("run")?.upsert(&run).await?;
                let notes = transaction.documents("note")?;
                match value {
                    1 => drop(notes.delete(key).await?),
                    _ => drop(notes.upsert(record).await?),
                }
                Ok::<_, Error>(())
            };
            drop(store.transaction(both).await);
        }
        76..82 => drop(store.plain().put(format!("free{id}"), vec![what, 0xff, 0]).await),
        82..85 => drop(store.plain().delete(format!("free{id}")).await),
        85..88 => drop(store.plain().in_area("other").unwrap().put("x", vec![what]).await),
        88..91 => drop(store.disable("note", "stars").await),
        91..94 => drop(store.build("note", "stars").await),
        94..96 => {
            let later = format!("{SCHEMA}{}{LATER}", tasks::SCHEMA);
            drop(store.apply(&Schema::from_toml(&later).unwrap()).await);
        }
        96..98 => drop(store.build("note", "later").await),
        _ => drop(store.repair(&RepairOptions::default()).await),
    }
}

async fn assert_same(store: &Store, copy: &Store) {
    let (cells, log) = everything(store).await;
    let (cells_copied, log_copied) = everything(copy).await;
    for (area, area_copied) in cells.iter().zip(&cells_copied) {
        assert_eq!(area, area_copied);
    }
    assert_eq!(cells.len(), cells_copied.len());
    assert_eq!(log, log_copied);
    let elsewhere = async |store: &Store| store.plain().in_area("other").unwrap().get("x").await;
    assert_eq!(elsewhere(store).await.unwrap(), elsewhere(copy).await.unwrap());
}

async fn replays(store: &Store, targets: Vec<Subject>, operations: Vec<Operation>) {
    let clock = TestClock::new();
    let store = &store.with_clock(clock.clock());
    let schema = format!("{SCHEMA}{}", tasks::SCHEMA);
    store.apply(&Schema::from_toml(&schema).unwrap()).await.unwrap();
    // What the store was after some of the commits.
    let mut moments = Vec::new();
    for (place, operation) in operations.iter().enumerate() {
        operate(store, &clock, *operation).await;
        if place % 20 == 7 {
            let last = store.log_bounds().await.unwrap().next.number() - 1;
            moments.push((position(last), everything(store).await));
        }
    }
    for target in targets {
        let replayed = target.store.replay(store).await.unwrap();
        assert_eq!(replayed.bounds, store.log_bounds().await.unwrap());
        assert_eq!(replayed.commits, replayed.bounds.next.number() - 1);
        assert_same(store, &target.store).await;
        // By the same clock, since leases run out.
        let copy = target.store.with_clock(clock.clock());
        let verification = copy.verify_with(&VerifyOptions::default()).await.unwrap();
        let original = store.verify_with(&VerifyOptions::default()).await.unwrap();
        assert_eq!(verification.is_clean(), original.is_clean());
    }
    for (last, expected) in moments {
        let target = Subject::memory();
        target.store.replay_until(store, last).await.unwrap();
        assert_eq!(everything(&target.store).await, expected, "until {last}");
    }
}

#[test]
fn the_replayed_store_is_the_same_cell_by_cell() {
    let config = Config { cases: long::times(24), ..Config::default() };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let number = std::cell::Cell::new(0);
    TestRunner::new(config)
        .run(&operations(), |operations| {
            number.set(number.get() + 1);
            // Opening a folder takes longer than all the rest.
            let (subject, targets) = match number.get() % 4 {
                0 => (Subject::embedded(), vec![Subject::memory()]),
                1 => (Subject::memory(), Subject::every()),
                _ => (Subject::memory(), vec![Subject::memory()]),
            };
            runtime.block_on(replays(&subject.store, targets, operations));
            Ok(())
        })
        .unwrap();
}

/// Each of them once, for sure.
#[tokio::test]
async fn what_is_written_besides_records_and_entries_is_replayed() {
    for subject in Subject::every() {
        let clock = TestClock::new();
        let store = &subject.store.with_clock(clock.clock());
        store
            .apply(&Schema::from_toml(&format!("[log]\n{}", tasks::SCHEMA)).unwrap())
            .await
            .unwrap();
        let met = tasks::each_once(store, &clock).await;
        for target in Subject::every() {
            let replayed = target.store.replay(store).await.unwrap();
            assert_eq!(replayed.bounds, store.log_bounds().await.unwrap());
            assert_same(store, &target.store).await;
            let target = target.store.with_clock(clock.clock());
            assert!(target.verify().await.unwrap().is_clean());
            tasks::go_on(&target, met).await;
        }
    }
}

/// Entries that a build or a repair puts are no part of any write of a record.
#[tokio::test]
async fn builds_and_repairs_are_replayed() {
    let subject = Subject::memory();
    let store = &subject.store;
    store.apply(&schema()).await.unwrap();
    let notes = store.documents("note").await.unwrap();
    notes.insert(&note("ana", 1, 5)).await.unwrap();
    store.disable("note", "stars").await.unwrap();
    notes.insert(&note("ana", 2, 6)).await.unwrap();
    store.build("note", "stars").await.unwrap();
    let mut damage = Batch::new(Space::main());
    let entry = Address::new(Area::default_area(), "stars:04:ana:n1");
    let put = Effect::Put { stamp: Stamp([1; Stamp::BYTES]), bytes: "\"n1\"".into() };
    damage.push(entry, None, Some(put));
    subject.engine.commit(damage).await.unwrap();
    assert!(!store.verify().await.unwrap().is_clean());
    let before = store.log_bounds().await.unwrap().next;
    store.repair(&RepairOptions::default()).await.unwrap();
    assert!(store.log_bounds().await.unwrap().next > before, "a repair is logged");
    let target = Subject::memory();
    target.store.replay(store).await.unwrap();
    assert_same(store, &target.store).await;
    assert!(target.store.verify().await.unwrap().is_clean());
}

#[tokio::test]
async fn a_replayed_store_is_used_as_any_other() {
    let subject = Subject::embedded();
    let store = &subject.store;
    store.apply(&schema()).await.unwrap();
    let first = store.documents("note").await.unwrap().insert(&note("ana", 1, 1)).await.unwrap();
    let target = Subject::memory();
    target.store.replay(store).await.unwrap();
    let notes = target.store.documents("note").await.unwrap();
    let patch = json!({ "stars": 2 });
    let written = notes.update(("ana", "n1"), &patch, first.version).await.unwrap();
    assert_eq!(written.version.revision(), 2);
    // The watch of one store goes on in the other.
    let next = store.log_bounds().await.unwrap().next;
    let mut watch = target.store.watch(WatchOptions::from_position(next)).await.unwrap();
    assert_eq!(watch.next().await.unwrap().changes[0].before, Some(first.version));
}

fn refusal<T>(result: keyloom::Result<T>, kind: ErrorKind) -> Error {
    let error = result.err().expect("it has to be refused");
    assert_eq!(error.kind(), kind, "{error}");
    error
}

#[tokio::test]
async fn only_an_empty_store_is_filled() {
    let source = Subject::memory();
    source.store.apply(&schema()).await.unwrap();
    let with_schema = Subject::memory();
    with_schema.store.apply(&Schema::default()).await.unwrap();
    let with_log = Subject::memory();
    with_log.store.replay(&source.store).await.unwrap();
    let with_cell = async |area: &str| {
        let subject = Subject::memory();
        let mut batch = Batch::new(Space::main());
        let put = Effect::Put { stamp: Stamp([1; Stamp::BYTES]), bytes: "foreign".into() };
        batch.push(Address::new(Area::new(area).unwrap(), "k"), None, Some(put));
        subject.engine.commit(batch).await.unwrap();
        subject
    };
    let others = [with_cell("").await, with_cell("runs").await, with_cell("run-indexes").await];
    for target in [with_schema, with_log].iter().chain(&others) {
        let before = everything(&target.store).await;
        refusal(target.store.replay(&source.store).await, ErrorKind::InvalidArgument);
        assert_eq!(everything(&target.store).await, before, "it was changed all the same");
    }
    refusal(source.store.replay(&source.store).await, ErrorKind::InvalidArgument);
    let acting = Subject::memory().store.acting_as("ana").unwrap();
    refusal(acting.replay(&source.store).await, ErrorKind::Forbidden);
}

#[tokio::test]
async fn a_log_that_does_not_tell_all_is_refused() {
    let late = Subject::memory();
    let without = Schema::from_toml(&SCHEMA.replace("[log]", "")).unwrap();
    late.store.apply(&without).await.unwrap();
    let target = Subject::memory();
    refusal(target.store.replay(&late.store).await, ErrorKind::Unsupported);
    late.store.apply(&schema()).await.unwrap();
    let error = refusal(target.store.replay(&late.store).await, ErrorKind::InvalidArgument);
    assert!(error.context_value("advice").is_some());

    let trimmed = Subject::memory();
    trimmed.store.apply(&keeping("entries = 1")).await.unwrap();
    let notes = trimmed.store.documents("note").await.unwrap();
    notes.insert(&note("ana", 1, 1)).await.unwrap();
    trimmed.store.trim_log().await.unwrap();
    refusal(target.store.replay(&trimmed.store).await, ErrorKind::LogTrimmed);

    let whole = Subject::memory();
    whole.store.apply(&schema()).await.unwrap();
    let next = whole.store.log_bounds().await.unwrap().next;
    refusal(target.store.replay_until(&whole.store, next).await, ErrorKind::InvalidArgument);
    let last = position(next.number() - 1);
    // Nothing of the refusals is left behind.
    let replayed = target.store.replay_until(&whole.store, last).await.unwrap();
    assert_eq!((replayed.bounds.oldest, replayed.bounds.next), (Position::FIRST, next));
}
