//! System 4, its *changes*, point by point; its wish list is at the end.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use flows::{Flows, SCHEMA};
use keyloom::engine::{Embedded, EmbeddedOptions, Engine, Memory, Metered};
use keyloom::{DueItem, ErrorKind, Increment, Retry, Schema, Store, Stored};
use serde_json::{Value, json};

/// A store with a flow and a run of it, and what passes to its engine.
async fn stores() -> Vec<(Store, Flows, Metered, tempfile::TempDir)> {
    let mut all = Vec::new();
    for is_embedded in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let engine: Arc<dyn Engine> = match is_embedded {
            true => Arc::new(Embedded::open(folder.path(), EmbeddedOptions::default()).unwrap()),
            false => Arc::new(Memory::new()),
        };
        let metered = Metered::new(engine);
        let store = Store::on(Arc::new(metered.clone()));
        let flows = Flows::open(&store).await.unwrap();
        flows.register("mail").await.unwrap();
        flows.start("mail", "r1", 1_700_000_000_000).await.unwrap();
        all.push((store, flows, metered, folder));
    }
    all
}

#[tokio::test]
async fn keys_are_the_documented_ones() {
    for (store, flows, ..) in stores().await {
        flows.await_step("mail", "r1", "approval", 1_700_000_900_000).await.unwrap();
        let listing = store.plain().list("flow:", 10, None).await.unwrap();
        let keys: Vec<&[u8]> = listing.entries.iter().map(|entry| &entry.key[..]).collect();
        assert_eq!(
            keys,
            [
                &b"flow:index:due:1700000900000:mail:r1:approval"[..],
                b"flow:index:started:mail:8299999999999:r1",
                b"flow:run:mail:r1",
                b"flow:stats:mail",
            ]
        );
    }
}

#[tokio::test]
async fn an_increment_is_atomic_of_any_number_at_once_and_never_a_conflict() {
    for (_, flows, metered, _folder) in stores().await {
        let before = flows.flows().get("mail").await.unwrap().unwrap();
        metered.take();
        let deltas = [("stats.running", 2), ("stats.paused", 1), ("stats.awaiting", 5)];
        let after = flows.flows().increment("mail", deltas).await.unwrap();
        let usage = metered.take();
        assert_eq!((usage.round_trips(), usage.entries_written), (1, 1), "no read, one write");
        assert_eq!((after["stats.running"], after["stats.paused"]), (3, 1));
        // A writer that read the flow before is not in the way, and not thrown back.
        let patch = json!({ "note": "x" });
        flows.flows().update("mail", &patch, before.version).await.unwrap();
        assert_eq!(flows.stats("mail").await.unwrap().unwrap()["running"], json!(3));
    }
}

#[tokio::test]
async fn one_status_loses_what_the_other_gains_in_one_step() {
    for (_, flows, ..) in stores().await {
        let move_on = [("stats.running", -1), ("stats.success", 1)];
        flows.flows().increment("mail", move_on).await.unwrap();
        // There is no run left to move: neither half happens.
        let error = flows.flows().increment("mail", move_on).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::OutOfBounds);
        let stats = flows.stats("mail").await.unwrap().unwrap();
        assert_eq!(stats, json!({ "running": 0, "success": 1 }));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn runs_that_end_at_once_are_all_counted() {
    for (store, flows, ..) in stores().await {
        for run in 0..40 {
            flows.start("mail", &format!("n{run}"), 1_700_000_000_001 + run).await.unwrap();
        }
        let tasks: Vec<_> = (0..40)
            .map(|run| {
                let store = store.clone();
                tokio::spawn(async move {
                    let flows = Flows::open(&store).await.unwrap();
                    let status = ["success", "failed"][run % 2];
                    flows.become_status("mail", &format!("n{run}"), status).await.unwrap();
                })
            })
            .collect();
        for task in tasks {
            task.await.unwrap();
        }
        let stats = flows.stats("mail").await.unwrap().unwrap();
        assert_eq!(stats, json!({ "running": 1, "success": 20, "failed": 20 }));
    }
}

#[tokio::test]
async fn an_update_is_one_attempt() {
    for (_, flows, ..) in stores().await {
        let read = flows.run("mail", "r1").await.unwrap().unwrap();
        flows.emit("mail", "r1", "order.created", 1).await.unwrap();
        let late = flows.runs().update(("mail", "r1"), &json!({ "note": 1 }), read.version).await;
        let error = late.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::VersionConflict);
        assert!(error.context_value("current").unwrap().contains("order.created"));
    }
}

#[tokio::test]
async fn a_merge_keeps_siblings_and_is_tried_three_times() {
    assert_eq!(Retry::default().attempts, 3);
    for (_, flows, ..) in stores().await {
        flows.await_step("mail", "r1", "a", 5).await.unwrap();
        flows.await_step("mail", "r1", "b", 6).await.unwrap();
        let patch = json!({ "awaitingSteps": { "a": { "position": 2 } } });
        flows.runs().update_with_retry(("mail", "r1"), &patch).await.unwrap();
        let run = flows.run("mail", "r1").await.unwrap().unwrap().value;
        assert_eq!(
            run["awaitingSteps"],
            json!({
                "a": { "status": "waiting", "timeoutAt": 5, "position": 2 },
                "b": { "status": "waiting", "timeoutAt": 6 },
            })
        );
    }
}

#[tokio::test]
async fn names_with_dots_are_refused_with_the_nested_form_except_in_maps() {
    for (_, flows, ..) in stores().await {
        let patch = json!({ "meta.owner": "ana" });
        let error = flows.runs().update_with_retry(("mail", "r1"), &patch).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidRecord);
        assert_eq!(error.context_value("instead"), Some(r#"{"meta":{"owner":"ana"}}"#));
        flows.emit("mail", "r1", "order.created", 7).await.unwrap();
        let run = flows.run("mail", "r1").await.unwrap().unwrap().value;
        assert_eq!(run["emittedEvents"], json!({ "order.created": 7 }));
    }
}

#[tokio::test]
async fn a_counter_in_a_payload_is_refused_and_increment_is_named() {
    for (_, flows, ..) in stores().await {
        for patch in [json!({ "stats": { "running": 5 } }), json!({ "stats.running": 5 })] {
            let error = flows.flows().update_with_retry("mail", &patch).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidRecord);
            assert!(error.to_string().contains("increment"), "{error}");
        }
        assert_eq!(flows.stats("mail").await.unwrap().unwrap(), json!({ "running": 1 }));
    }
}

#[tokio::test]
async fn numbers_that_look_like_counters_get_a_warning() {
    let schema =
        SCHEMA.replace("emittedEvents = \"map\"", "emittedEvents = \"map\"\ncount = \"integer\"");
    let warnings = Schema::from_toml(&schema).unwrap().warnings();
    let told: Vec<(&str, &str)> =
        warnings.iter().map(|it| (it.collection.as_str(), it.field.as_str())).collect();
    assert_eq!(told, [("run", "count")]);
    assert!(Schema::from_toml(SCHEMA).unwrap().warnings().is_empty());
    for (store, ..) in stores().await {
        let heard: Arc<Mutex<Vec<String>>> = Arc::default();
        let hears = heard.clone();
        let store =
            store.with_warnings(move |warning| hears.lock().unwrap().push(warning.field.clone()));
        let flows = Flows::open(&store).await.unwrap();
        let patch = json!({ "total": 3, "stats": { "steps": 1 } });
        for _ in 0..2 {
            flows.runs().update_with_retry(("mail", "r1"), &patch).await.unwrap();
        }
        assert_eq!(*heard.lock().unwrap(), ["total", "stats.steps"], "each once");
    }
}

#[tokio::test]
async fn several_flows_are_counted_in_one_round_trip() {
    for (store, flows, metered, _folder) in stores().await {
        flows.register("other").await.unwrap();
        metered.take();
        let after = store
            .increment_many([
                Increment::of("flow", "mail").add("stats.running", 1),
                Increment::of("flow", "other").add("stats.running", 7),
            ])
            .await
            .unwrap();
        assert_eq!(metered.take().round_trips(), 1);
        let running: Vec<i64> = after.iter().map(|stats| stats["stats.running"]).collect();
        assert_eq!(running, [2, 7]);
    }
}

#[tokio::test]
async fn a_run_and_its_flow_change_together_or_not_at_all() {
    for (_, flows, ..) in stores().await {
        let error = flows.start("unknown-flow", "r1", 1).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound);
        assert_eq!(flows.run("unknown-flow", "r1").await.unwrap(), None, "no run without its flow");
        let error = flows.start("mail", "r1", 1).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::AlreadyExists);
        flows.become_status("mail", "r1", "success").await.unwrap();
        flows.become_status("mail", "r1", "success").await.unwrap();
        let stats: Value = flows.stats("mail").await.unwrap().unwrap();
        assert_eq!(stats, json!({ "running": 0, "success": 1 }));
    }
}

#[tokio::test]
async fn statistics_cannot_drift_from_the_runs() {
    for (store, flows, ..) in stores().await {
        assert_eq!(flows.counted("mail", "running").await.unwrap(), 1);
        flows.become_status("mail", "r1", "success").await.unwrap();
        // Whoever writes a run, and however: the number follows.
        let runs = store.documents("run").await.unwrap();
        let run = json!({ "flow": "mail", "run_id": "r2", "status": "failed" });
        runs.upsert(&run).await.unwrap();
        runs.update_with_retry(("mail", "r2"), &json!({ "status": "success" })).await.unwrap();
        assert_eq!(flows.counted("mail", "running").await.unwrap(), 0);
        assert_eq!(flows.counted("mail", "failed").await.unwrap(), 0);
        assert_eq!(flows.counted("mail", "success").await.unwrap(), 2);
        runs.delete(("mail", "r2")).await.unwrap();
        assert_eq!(flows.counted("mail", "success").await.unwrap(), 1);
        assert!(store.verify().await.unwrap().is_clean());
    }
}

#[tokio::test]
async fn due_awaits_are_found_by_their_time_and_go_to_one_worker() {
    const MINUTE: Duration = Duration::from_secs(60);
    for (_, flows, ..) in stores().await {
        for (step, timeout_at) in [("late", 30), ("first", 10), ("second", 20)] {
            flows.await_step("mail", "r1", step, timeout_at).await.unwrap();
        }
        let steps = |items: &[DueItem<Stored<Value>>]| -> Vec<String> {
            let step =
                |item: &DueItem<_>| item.values["awaitingSteps.*key"].as_str().map(str::to_owned);
            items.iter().filter_map(step).collect()
        };
        let ours = flows.take_due("a", 25, 10, MINUTE).await.unwrap();
        assert_eq!(steps(&ours), ["first", "second"]);
        assert_eq!(steps(&flows.take_due("b", 25, 10, MINUTE).await.unwrap()), [""; 0]);
        flows.time_out(&ours[0]).await.unwrap();
        let run = flows.run("mail", "r1").await.unwrap().unwrap();
        assert_eq!(run.value["awaitingSteps"]["first"], json!({ "status": "timed out" }));
        assert_eq!(run.value["awaitingSteps"]["late"]["timeoutAt"], json!(30));
        // What was completed is due no more, and cannot be completed twice.
        assert_eq!(flows.time_out(&ours[0]).await.unwrap_err().kind(), ErrorKind::LeaseLost);
        assert_eq!(steps(&flows.take_due("b", 35, 10, MINUTE).await.unwrap()), ["late"]);
    }
}

#[tokio::test]
async fn the_log_has_every_change_and_builds_the_store_again() {
    for (store, flows, ..) in stores().await {
        let from = store.log_bounds().await.unwrap().next;
        flows.become_status("mail", "r1", "success").await.unwrap();
        let commits = store.changes(from, 10).await.unwrap().commits;
        let changed: Vec<&str> = commits[0].changes.iter().map(|it| it.key.as_str()).collect();
        assert_eq!((commits.len(), changed), (1, vec!["flow:run:mail:r1", "flow:stats:mail"]));
        let deltas = [("stats.running".to_owned(), -1), ("stats.success".to_owned(), 1)];
        assert_eq!(commits[0].changes[1].increments, deltas.into());
        let copy = Store::open("memory:").await.unwrap();
        copy.replay(&store).await.unwrap();
        let copied = Flows::open(&copy).await.unwrap();
        assert_eq!(copied.stats("mail").await.unwrap(), flows.stats("mail").await.unwrap());
        assert_eq!(copied.run("mail", "r1").await.unwrap(), flows.run("mail", "r1").await.unwrap());
        assert_eq!(copied.counted("mail", "success").await.unwrap(), 1);
    }
}
