//! Due work: in order, to one worker at a time, and never lost with a worker.

#![cfg(feature = "embedded")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests fail by panicking"
)]

mod index_support;
mod time_support;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use index_support::Meddled;
use keyloom::engine::{Area, Engine, Memory};
use keyloom::{
    Collection, Due, DueItem, Error, ErrorKind, FindingKind, Leased, RepairOptions, Result, Schema,
    Store, Stored, SweepOptions,
};
use serde_json::{Value, json};
use time_support::{START, Subject, keys_of, plant};

const SCHEMA: &str = r#"
[collection.run]
key = "flow:run:{flow}:{run_id}"
[collection.run.fields]
flow          = "text"
run_id        = "text"
awaitingSteps = "map"
"awaitingSteps.*.timeoutAt" = "timestamp"
[collection.run.index.due]
key = "flow:index:due:{awaitingSteps.*.timeoutAt}:{flow}:{run_id}:{awaitingSteps.*key}"

[collection.job]
key        = "job:{id}"
expires_at = "ends"
[collection.job.fields]
id    = "text"
queue = "text"
state = { type = "enum", values = ["open", "done"] }
at    = "datetime"
ends  = "timestamp"
[collection.job.index.due]
key   = "job-due:{queue}:{at}:{id}"
where = { state = "open" }
[collection.job.index.late]
key   = "job-late:{at desc}:{id}"
where = { state = "open" }
[collection.job.index.by_queue]
key = "job-queue:{queue}:{id}"
"#;

const MINUTE: Duration = Duration::from_secs(60);
const MINUTE_MS: u64 = 60_000;

fn run(id: &str, steps: &[(&str, u64)]) -> Value {
    let steps: serde_json::Map<String, Value> = steps
        .iter()
        .map(|(name, after)| ((*name).to_owned(), json!({ "timeoutAt": START + after })))
        .collect();
    json!({ "flow": "f", "run_id": id, "awaitingSteps": steps })
}

/// `r1/payment` for each item.
fn names(leased: &Leased<Stored<Value>>) -> Vec<String> {
    assert!(leased.problems.is_empty(), "{:?}", leased.problems);
    leased.items.iter().map(name).collect()
}

fn name(item: &DueItem<Stored<Value>>) -> String {
    let step = item.values["awaitingSteps.*key"].as_str().unwrap();
    format!("{}/{step}", item.record["run_id"].as_str().unwrap())
}

async fn runs(store: &Store) -> Collection<Value> {
    store.documents("run").await.unwrap()
}

/// What a worker does with a timeout: takes the step out of the run, under its lease.
async fn finish(store: &Store, item: &DueItem<Stored<Value>>) -> Result<()> {
    let step = item.values["awaitingSteps.*key"].as_str().unwrap();
    let run_id = item.record["run_id"].as_str().unwrap();
    store
        .transaction(async |transaction| {
            let runs = transaction.documents("run")?;
            let mut run = runs.get(("f", run_id)).await?.expect("it is there").into_value();
            run["awaitingSteps"].as_object_mut().unwrap().remove(step);
            runs.replace(&run).await?;
            transaction.complete(&item.lease)?;
            Ok::<_, Error>(())
        })
        .await
}

#[tokio::test]
async fn what_is_due_comes_in_order_and_to_one_worker_only() {
    for subject in Subject::all(SCHEMA).await {
        let runs = runs(&subject.store).await;
        runs.insert(&run("r1", &[("payment", 30), ("mail", 10)])).await.unwrap();
        runs.insert(&run("r2", &[("payment", 20), ("later", 1_000)])).await.unwrap();
        let due = Due::new("due").take(2);
        assert_eq!(names(&runs.lease(&due, "w1", MINUTE).await.unwrap()), [""; 0]);
        subject.clock.pass(30);
        let first = runs.lease(&due, "w1", MINUTE).await.unwrap();
        assert_eq!(names(&first), ["r1/mail", "r2/payment"]);
        assert_eq!(first.items[0].due_at, START as i64 + 10);
        assert_eq!(first.items[0].lease.owner(), "w1");
        assert_eq!(first.items[0].lease.until(), START + 30 + MINUTE_MS);
        let second = runs.lease(&due, "w2", MINUTE).await.unwrap();
        assert_eq!(names(&second), ["r1/payment"], "{}", subject.name);
        assert_eq!(names(&runs.lease(&due, "w3", MINUTE).await.unwrap()), [""; 0]);
        // A worker that gives its work back, and one that crashes.
        for item in second.items {
            assert!(item.lease.release().await.unwrap());
        }
        assert_eq!(names(&runs.lease(&due, "w3", MINUTE).await.unwrap()), ["r1/payment"]);
        subject.clock.pass(MINUTE_MS - 1);
        assert_eq!(
            names(&runs.lease(&due.clone().until(START + 30), "w4", MINUTE).await.unwrap()),
            [""; 0]
        );
        subject.clock.pass(1);
        let retaken = runs.lease(&due.clone().take(9), "w4", MINUTE).await.unwrap();
        assert_eq!(names(&retaken), ["r1/mail", "r2/payment", "r1/payment", "r2/later"]);
        for item in &retaken.items {
            finish(&subject.store, item).await.unwrap();
        }
        assert_eq!(names(&runs.lease(&due, "w5", MINUTE).await.unwrap()), [""; 0]);
        assert_eq!(subject.keys().await, ["flow:run:f:r1", "flow:run:f:r2"]);
        subject.assert_sound().await;
    }
}

#[tokio::test]
async fn a_worker_whose_lease_was_taken_cannot_finish() {
    for subject in Subject::all(SCHEMA).await {
        let runs = runs(&subject.store).await;
        runs.insert(&run("r1", &[("payment", 0)])).await.unwrap();
        let due = Due::new("due");
        let mut slow = runs.lease(&due, "slow", MINUTE).await.unwrap().items.remove(0);
        subject.clock.pass(MINUTE_MS - 1);
        slow.lease.extend(MINUTE).await.unwrap();
        subject.clock.pass(MINUTE_MS - 1);
        assert!(runs.lease(&due, "quick", MINUTE).await.unwrap().items.is_empty());
        subject.clock.pass(1);
        let quick = runs.lease(&due, "quick", MINUTE).await.unwrap().items.remove(0);
        let before = runs.get(("f", "r1")).await.unwrap().unwrap().version;
        let error = finish(&subject.store, &slow).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::LeaseLost);
        assert_eq!(error.context_value("worker"), Some("slow"));
        assert_eq!(slow.lease.extend(MINUTE).await.unwrap_err().kind(), ErrorKind::LeaseLost);
        assert_eq!(runs.get(("f", "r1")).await.unwrap().unwrap().version, before);
        assert!(!slow.lease.release().await.unwrap(), "it is another's now");
        finish(&subject.store, &quick).await.unwrap();
        let error = finish(&subject.store, &quick).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::LeaseLost, "it is done already");
    }
}

#[tokio::test]
async fn a_worker_may_go_on_under_its_lease_before_it_completes() {
    let subject = Subject::on("memory", Arc::new(Memory::new()), SCHEMA).await;
    let runs = runs(&subject.store).await;
    runs.insert(&run("r1", &[("payment", 0)])).await.unwrap();
    let item = runs.lease(&Due::new("due"), "w", MINUTE).await.unwrap().items.remove(0);
    for _ in 0..3 {
        let held = subject.store.transaction(async |transaction| {
            let runs = transaction.documents("run")?;
            let mut run = runs.get(("f", "r1")).await?.expect("it is there").into_value();
            run["tries"] = json!(run["tries"].as_u64().unwrap_or(0) + 1);
            runs.replace(&run).await?;
            transaction.hold(&item.lease)?;
            Ok::<_, Error>(())
        });
        held.await.unwrap();
    }
    finish(&subject.store, &item).await.unwrap();
    assert_eq!(runs.get(("f", "r1")).await.unwrap().unwrap()["tries"], 3);
}

/// Lets 16 workers take everything, and gives how often each item was taken.
async fn race(subject: &Subject, items: usize, finishes: bool) -> BTreeMap<String, usize> {
    let runs = runs(&subject.store).await;
    for n in 0..items / 2 {
        runs.insert(&run(&format!("r{n}"), &[("a", 1), ("b", 2)])).await.unwrap();
    }
    subject.clock.pass(10);
    let workers = (0..16).map(|worker| {
        let (store, runs, take) = (subject.store.clone(), runs.clone(), 1 + worker % 7);
        tokio::spawn(async move {
            let (worker, due) = (format!("w{worker}"), Due::new("due").take(take));
            let mut taken = Vec::new();
            loop {
                let leased = runs.lease(&due, &worker, MINUTE).await.unwrap();
                if leased.items.is_empty() {
                    return taken;
                }
                taken.extend(names(&leased));
                for item in leased.items.iter().filter(|_| finishes) {
                    finish(&store, item).await.unwrap();
                }
            }
        })
    });
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for worker in workers.collect::<Vec<_>>() {
        for name in worker.await.unwrap() {
            *counts.entry(name).or_default() += 1;
        }
    }
    counts
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn workers_that_race_take_each_item_once() {
    for subject in Subject::all(SCHEMA).await {
        // Where batches show cell by cell, every task waits for the others very often.
        let items = if subject.name == "torn" { 100 } else { 1_000 };
        let counts = race(&subject, items, true).await;
        assert_eq!(counts.len(), items, "{}", subject.name);
        assert!(counts.values().all(|count| *count == 1), "{}: {counts:?}", subject.name);
        let own = subject.keys_of(Area::own()).await;
        assert_eq!(own, ["catalog", "epoch"], "{}: what is done leaves no lease", subject.name);
        subject.assert_sound().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn nobody_gets_what_somebody_has() {
    for subject in Subject::all(SCHEMA).await {
        let counts = race(&subject, 100, false).await;
        assert_eq!(counts.len(), 100, "{}", subject.name);
        assert!(counts.values().all(|count| *count == 1), "{}: {counts:?}", subject.name);
    }
}

#[tokio::test]
async fn leases_of_work_that_is_gone_are_swept() {
    for subject in Subject::all(SCHEMA).await {
        let runs = runs(&subject.store).await;
        for id in ["r1", "r2", "r3"] {
            runs.insert(&run(id, &[("payment", 0)])).await.unwrap();
        }
        let due = Due::new("due").take(3);
        assert_eq!(runs.lease(&due, "w", MINUTE).await.unwrap().items.len(), 3);
        // Done outside of the lease.
        runs.delete(("f", "r1")).await.unwrap();
        runs.update_with_retry(("f", "r2"), &json!({ "awaitingSteps": null })).await.unwrap();
        let sweep = async || subject.store.sweep(&SweepOptions::default()).await.unwrap().leases;
        assert_eq!(sweep().await, 0, "they have not run out");
        subject.clock.pass(MINUTE_MS);
        assert_eq!(sweep().await, 2);
        let own = subject.keys_of(Area::own()).await;
        assert_eq!(own.iter().filter(|key| key.starts_with("lease:run:due:")).count(), 1);
        assert_eq!(names(&runs.lease(&due, "w", MINUTE).await.unwrap()), ["r3/payment"]);
    }
}

fn job(id: &str, queue: &str, at: &str) -> Value {
    json!({ "id": id, "queue": queue, "state": "open", "at": at, "ends": START + 100 })
}

#[tokio::test]
async fn any_ordered_moment_serves_with_what_is_before_it_fixed() {
    for subject in Subject::all(SCHEMA).await {
        let jobs = subject.store.documents("job").await.unwrap();
        for (id, queue, at) in [
            ("a", "q1", "2001-01-01T00:00:00.000Z"),
            ("b", "q2", "2000-01-01T00:00:00.000Z"),
            ("c", "q1", "2000-06-01T00:00:00.000Z"),
            ("d", "q1", "2999-01-01T00:00:00.000Z"),
        ] {
            jobs.insert(&job(id, queue, at)).await.unwrap();
        }
        jobs.insert(
            &json!({ "id": "e", "queue": "q1", "state": "done", "at": "2000-01-01T00:00:00.000Z" }),
        )
        .await
        .unwrap();
        let ids = async |due: Due| -> Vec<String> {
            let leased = jobs.lease(&due.take(9), "w", MINUTE).await.unwrap();
            leased.items.iter().map(|item| item.record["id"].as_str().unwrap().to_owned()).collect()
        };
        assert_eq!(ids(Due::new("due").equal("queue", "q1")).await, ["c", "a"]);
        assert_eq!(ids(Due::new("due").equal("queue", "q2")).await, ["b"]);
        assert_eq!(ids(Due::new("late")).await, ["b", "c", "a"], "each index has its own leases");
        for wrong in [
            Due::new("due"),
            Due::new("by_queue").equal("queue", "q1"),
            Due::new("due").equal("at", "2000-01-01T00:00:00.000Z"),
            Due::new("late").take(0),
            Due::new("late").take(1_001),
        ] {
            let error = jobs.lease(&wrong, "w", MINUTE).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidQuery, "{wrong:?}");
        }
        for (worker, duration) in [("", MINUTE), (&*"w".repeat(256), MINUTE), ("w", Duration::ZERO)]
        {
            let error = jobs.lease(&Due::new("late"), worker, duration).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        }
        assert!(jobs.lease(&Due::new("late"), "w", Duration::MAX).await.is_ok());
        // Work of a record that has expired is no work.
        subject.clock.pass(MINUTE_MS);
        assert_eq!(ids(Due::new("late")).await, [""; 0]);
    }
}

#[tokio::test]
async fn what_lies_in_the_place_of_a_lease_keeps_nobody_from_the_work() {
    let engine: Arc<dyn Engine> = Arc::new(Memory::new());
    let subject = Subject::on("memory", engine.clone(), SCHEMA).await;
    let runs = runs(&subject.store).await;
    runs.insert(&run("r1", &[("payment", 0)])).await.unwrap();
    let due = Due::new("due");
    let first = runs.lease(&due, "w", MINUTE).await.unwrap();
    assert_eq!(first.items.len(), 1);
    let key = keys_of(&engine, Area::own()).await.into_iter().find(|key| key.starts_with("lease:"));
    time_support::plant(&engine, Area::own(), &key.unwrap(), "nonsense").await;
    assert_eq!(names(&runs.lease(&due, "w2", MINUTE).await.unwrap()), ["r1/payment"]);
    time_support::plant(&engine, Area::own(), "lease:nobody", "{}").await;
    assert_eq!(subject.store.sweep(&SweepOptions::default()).await.unwrap().leases, 1);
}

/// The cell of a lease on an entry.
fn cell_of(collection: &str, index: &str, entry: &str, until: u64) -> (String, String) {
    use sha2::{Digest, Sha256};
    let hash: String =
        Sha256::digest(entry.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect();
    let value = json!({ "entry": entry, "owner": "w", "until": until });
    (format!("lease:{collection}:{index}:{hash}"), value.to_string())
}

#[tokio::test]
async fn verify_tells_of_leases_that_are_none_or_belong_to_nothing() {
    for subject in Subject::all(SCHEMA).await {
        let runs = runs(&subject.store).await;
        runs.insert(&run("r1", &[("payment", 0)])).await.unwrap();
        let held = runs.lease(&Due::new("due"), "w", MINUTE).await.unwrap();
        let gone = format!("flow:index:due:{START}:f:r2:mail");
        let there = held.items[0].lease.entry().to_owned();
        let now = subject.clock.now();
        let sound = [
            // It has not run out: its worker may be about to finish.
            cell_of("run", "due", &gone, now + 1),
            // Nor has this one, of another collection.
            cell_of("job", "late", "job-late:x", now + 5),
        ];
        for (key, value) in &sound {
            plant(subject.store.engine(), Area::own(), key, value).await;
        }
        subject.assert_sound().await;
        let (dangling, ran_out) = cell_of("run", "due", &format!("{gone}2"), now);
        let (misplaced, of_another) = (cell_of("run", "due", "other", 0).0, ran_out.clone());
        let (no_index, _) = cell_of("run", "none", &there, now);
        let (no_collection, _) = cell_of("none", "due", &there, now);
        let faults = [
            (dangling, ran_out.clone(), FindingKind::Dangling),
            (misplaced, of_another, FindingKind::Unknown),
            (no_index, ran_out.clone(), FindingKind::Unknown),
            (no_collection, ran_out.clone(), FindingKind::Unknown),
            ("lease:run".to_owned(), ran_out, FindingKind::Unknown),
            (cell_of("run", "due", "rubbish", 0).0, "{".to_owned(), FindingKind::Unreadable),
        ];
        for (key, value, kind) in faults {
            plant(subject.store.engine(), Area::own(), &key, &value).await;
            let found = subject.store.verify().await.unwrap().findings;
            assert_eq!(found.len(), 1, "{}: {found:?}", subject.name);
            assert_eq!((found[0].kind, &found[0].key), (kind, &key));
            let dry = RepairOptions { dry_run: true, ..RepairOptions::default() };
            for options in [dry, RepairOptions::default()] {
                let repair = subject.store.repair(&options).await.unwrap();
                assert_eq!((&repair.mended, &repair.left), (&found, &vec![]), "{key}");
            }
            subject.assert_sound().await;
        }
        let leases = subject.keys_of(Area::own()).await;
        let leases = leases.iter().filter(|key| key.starts_with("lease:")).count();
        assert_eq!(leases, 3, "those that are sound are let be");
        finish(&subject.store, &held.items[0]).await.unwrap();
    }
}

#[tokio::test]
async fn a_repair_leaves_a_lease_that_is_given_out_meanwhile() {
    let memory: Arc<dyn Engine> = Arc::new(Memory::new());
    let meddled = Arc::new(Meddled::new(memory));
    let subject = Subject::on("meddled", meddled.clone(), SCHEMA).await;
    let entry = format!("flow:index:due:{START}:f:r1:mail");
    let (key, ran_out) = cell_of("run", "due", &entry, START);
    plant(subject.store.engine(), Area::own(), &key, &ran_out).await;
    assert_eq!(subject.store.verify().await.unwrap().counts.dangling, 1);
    // The work comes back right before the mend, and a worker has it.
    let other = subject.store.clone();
    meddled.before_next_commit(async move {
        let runs = runs(&other).await;
        runs.insert(&run("r1", &[("mail", 0)])).await.unwrap();
        let leased = runs.lease(&Due::new("due"), "w2", MINUTE).await.unwrap();
        assert_eq!(names(&leased), ["r1/mail"]);
    });
    let repair = subject.store.repair(&RepairOptions::default()).await.unwrap();
    assert_eq!((repair.mended, repair.left), (vec![], vec![]));
    assert!(subject.keys_of(Area::own()).await.contains(&key));
}

/// Counters lie beside their record, and are shown in it whoever reads it.
#[tokio::test]
async fn leased_records_show_their_counters() {
    let schema = r#"
        [collection.job]
        key = "job:{id}"
        fields = { id = "text", at = "timestamp" }
        counters = { tries = {} }
        index.due = { key = "job-due:{at}:{id}" }
    "#;
    let store = Store::on(Arc::new(Memory::new()));
    store.apply(&Schema::from_toml(schema).unwrap()).await.unwrap();
    let jobs = store.documents("job").await.unwrap();
    for id in ["a", "b"] {
        jobs.insert(&json!({ "id": id, "at": 1 })).await.unwrap();
    }
    jobs.increment("b", [("tries", 3)]).await.unwrap();
    let leased = jobs.lease(&Due::new("due").take(2), "w", MINUTE).await.unwrap();
    let tries: Vec<&Value> = leased.items.iter().map(|item| &item.record["tries"]).collect();
    assert_eq!(tries, [&json!(0), &json!(3)]);
}
