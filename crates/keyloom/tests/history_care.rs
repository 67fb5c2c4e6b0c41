//! Verify, repair and maintenance beside writers: no false alarm, and nothing of a history, a lease
//! or an idempotency key is taken that is in use.

#![cfg(feature = "embedded")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

mod long;
mod time_support;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use keyloom::{Due, ErrorKind, MaintainOptions, RepairOptions, Result, Store};
use serde_json::{Value, json};
use time_support::{START, Subject};

const SCHEMA: &str = r#"
[collection.note]
key        = "note:{id}"
history    = { versions = 4, days = 30 }
expires_at = "ends"
[collection.note.fields]
id   = "text"
kind = "text"
at   = "timestamp"
ends = "timestamp"
[collection.note.counters]
hits = {}
[collection.note.unique.kind]
key = "kind:{kind}"
[collection.note.index.due]
key = "due:{at}:{id}"
[collection.note.count.kinds]
group = ["kind"]
"#;

/// What may happen to one of several writers of the same few records.
fn allow(answer: Result<()>) {
    let fine = [
        ErrorKind::NotFound,
        ErrorKind::AlreadyExists,
        ErrorKind::UniqueConflict,
        ErrorKind::Contention,
        ErrorKind::LeaseLost,
    ];
    if let Err(error) = answer {
        assert!(fine.contains(&error.kind()), "{error}");
    }
}

async fn act(store: &Store, writer: u32, round: u32) -> Result<()> {
    let notes = store.documents("note").await?;
    let keyed = notes.with_idempotency_key(&format!("{writer} {round}"))?;
    let id = format!("n{}", (writer + round) % 5);
    let to = format!("n{}", round % 7);
    let note = json!({
        "id": id, "kind": format!("k{}", round % 6), "at": START - u64::from(round % 3),
        "ends": START + u64::from(round % 4) * 1_000,
    });
    match (writer + round * 7) % 8 {
        0 | 1 => drop(keyed.insert(&note).await?),
        2 => drop(keyed.upsert(&note).await?),
        3 => drop(notes.update_with_retry(&id, &json!({ "free": round })).await?),
        4 => {
            let moved = |note: &mut Value| {
                note["id"] = json!(to);
                Ok(())
            };
            drop(keyed.rename(&id, moved).await?);
        }
        5 => drop(notes.delete(&id).await?),
        6 => drop(notes.increment(&id, [("hits", 1)]).await?),
        _ => {
            let due = Due::new("due").take(1);
            for item in notes.lease(&due, "w", Duration::from_millis(1)).await?.items {
                if round.is_multiple_of(2) {
                    item.lease.release().await?;
                }
            }
        }
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn writers_cause_no_false_alarm_and_lose_nothing_to_a_repair() {
    for subject in Subject::all(SCHEMA).await {
        let done = Arc::new(AtomicBool::new(false));
        let writers: Vec<_> = (0..4)
            .map(|writer| {
                let store = subject.store.clone();
                tokio::spawn(async move {
                    for round in 0..long::times(40) {
                        allow(act(&store, writer, round).await);
                    }
                })
            })
            .collect();
        let keeper = {
            let (store, done, clock) = (subject.store.clone(), done.clone(), subject.clock.clone());
            tokio::spawn(async move {
                while !done.load(Ordering::SeqCst) {
                    clock.pass(250);
                    store.maintain(&MaintainOptions::bounded(64)).await.unwrap();
                    tokio::task::yield_now().await;
                }
            })
        };
        while writers.iter().any(|writer| !writer.is_finished()) {
            let repair = subject.store.repair(&RepairOptions::default()).await.unwrap();
            // A lease that ran out, and whose entry is gone, is for whoever comes first.
            let other = |finding: &&keyloom::Finding| !finding.key.starts_with("lease:");
            let mended: Vec<_> = repair.mended.iter().filter(other).collect();
            assert!(mended.is_empty() && repair.left.is_empty(), "{}: {repair:?}", subject.name);
        }
        for writer in writers {
            writer.await.unwrap();
        }
        done.store(true, Ordering::SeqCst);
        keeper.await.unwrap();
        subject.clock.pass(60_000);
        subject.store.maintain(&MaintainOptions::default()).await.unwrap();
        subject.assert_sound().await;
        let notes = subject.store.documents("note").await.unwrap();
        for id in 0..7 {
            let page = notes.history(format!("n{id}"), 100, None).await.unwrap();
            assert!(page.problems.is_empty(), "{}: {:?}", subject.name, page.problems);
        }
    }
}
