//! What partial changes promise, on both engines.

#![cfg(feature = "embedded")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests fail by panicking"
)]

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use keyloom::engine::{
    Area, Direction, Embedded, EmbeddedOptions, Engine, EngineExt, Memory, Range, Space,
};
use keyloom::{Collection, Effect, Error, ErrorKind, Fate, Record, Schema, Store, Written};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

const SCHEMA: &str = r#"
[collection.run]
key = "flow:run:{flow}:{run_id}"
[collection.run.fields]
flow          = "text"
run_id        = "text"
email         = "text"
awaitingSteps = "map"
emittedEvents = "map"
"awaitingSteps.*.timeoutAt" = "timestamp"
"tags.*"      = "text"
status        = { type = "enum", values = ["running", "done", "failed"], transitions = { running = ["done", "failed"] } }
[collection.run.index.by_status]
key = "flow:index:status:{status}:{flow}:{run_id}"
[collection.run.index.failed]
key   = "flow:index:failed:{flow}:{run_id}"
where = { status = "failed" }
[collection.run.index.due]
key = "flow:index:due:{awaitingSteps.*.timeoutAt}:{flow}:{run_id}:{awaitingSteps.*key}"
[collection.run.index.tag]
key = "flow:index:tag:{tags.*}:{flow}:{run_id}"
[collection.run.unique.email]
key = "flow:email:{email}"
"#;

struct Subject {
    store: Store,
    runs: Collection<Value>,
    _folder: tempfile::TempDir,
}

impl Subject {
    async fn all() -> Vec<Subject> {
        let mut all = Vec::new();
        for is_embedded in [false, true] {
            let folder = tempfile::tempdir().unwrap();
            let engine: Arc<dyn Engine> = match is_embedded {
                true => {
                    Arc::new(Embedded::open(folder.path(), EmbeddedOptions::default()).unwrap())
                }
                false => Arc::new(Memory::new()),
            };
            let store = Store::on(engine);
            store.apply(&Schema::from_toml(SCHEMA).unwrap()).await.unwrap();
            let runs = store.documents("run").await.unwrap();
            all.push(Subject { store, runs, _folder: folder });
        }
        all
    }

    async fn started(&self) -> Written<Value> {
        let run = json!({
            "flow": "f", "run_id": "r", "status": "running", "email": "a@x", "tags": ["x", "y"],
            "stats": { "steps": { "ok": 1, "bad": 0 } },
            "awaitingSteps": { "a": { "timeoutAt": 5, "position": 1 } },
        });
        self.runs.insert(&run).await.unwrap()
    }

    async fn keys(&self) -> Vec<String> {
        let all = Range::all(Area::default_area());
        let engine = self.store.engine();
        let rows = engine.scan_all(&Space::main(), &all, 1_000, Direction::Forward).await.unwrap();
        rows.iter().map(|row| String::from_utf8(row.key.to_vec()).unwrap()).collect()
    }

    async fn run(&self) -> Value {
        self.runs.get(("f", "r")).await.unwrap().unwrap().value
    }
}

#[tokio::test]
async fn a_patch_rekeys_every_index_whose_fields_it_changes() {
    for it in Subject::all().await {
        it.started().await;
        let patch = json!({
            "status": "failed", "email": "b@x", "tags": ["y", "z"],
            "awaitingSteps": { "a": null, "b.c": { "timeoutAt": 9 } },
        });
        let written = it.runs.update_with_retry(("f", "r"), &patch).await.unwrap();
        assert_eq!((written.effect, written.version.revision()), (Effect::Replaced, 2));
        assert_eq!(
            it.keys().await,
            [
                "flow:email:b@x",
                "flow:index:due:0000000000009:f:r:b.c",
                "flow:index:failed:f:r",
                "flow:index:status:failed:f:r",
                "flow:index:tag:y:f:r",
                "flow:index:tag:z:f:r",
                "flow:run:f:r",
            ]
        );
        assert!(it.store.verify().await.unwrap().is_clean());
    }
}

#[tokio::test]
async fn siblings_stay_at_every_depth() {
    for it in Subject::all().await {
        it.started().await;
        let patch =
            json!({ "stats": { "steps": { "bad": 2 } }, "emittedEvents": { "order.created": 7 } });
        it.runs.update_with_retry(("f", "r"), &patch).await.unwrap();
        let run = it.run().await;
        assert_eq!(run["stats"], json!({ "steps": { "ok": 1, "bad": 2 } }));
        assert_eq!(run["emittedEvents"], json!({ "order.created": 7 }));
        assert_eq!(run["awaitingSteps"]["a"]["position"], 1);
        it.runs.update_with_retry(("f", "r"), &json!({ "stats": null })).await.unwrap();
        assert_eq!(it.run().await.get("stats"), None);
    }
}

#[tokio::test]
async fn an_update_is_one_attempt_and_its_conflict_carries_the_current_record() {
    for it in Subject::all().await {
        let first = it.started().await.version;
        let second = it.runs.update(("f", "r"), &json!({ "n": 1 }), first).await.unwrap().version;
        let late = it.runs.update(("f", "r"), &json!({ "n": 2 }), first).await.unwrap_err();
        assert_eq!((late.kind(), late.fate()), (ErrorKind::VersionConflict, Fate::DidNotHappen));
        assert_eq!(late.context_value("version"), Some(second.to_string().as_str()));
        let current: Value = serde_json::from_str(late.context_value("current").unwrap()).unwrap();
        assert_eq!(current, it.run().await);
        let nobody = it.runs.update(("f", "gone"), &json!({ "n": 2 }), first).await.unwrap_err();
        assert_eq!(nobody.kind(), ErrorKind::NotFound);
    }
}

#[tokio::test]
async fn what_cannot_be_patched_is_refused_with_the_right_way() {
    for it in Subject::all().await {
        it.started().await;
        let before = it.run().await;
        let deep = (0..120).fold(json!(1), |inner, _| json!({ "x": inner }));
        for (patch, kind, name, value) in [
            (
                json!({ "stats.running": 5 }),
                ErrorKind::InvalidRecord,
                "instead",
                r#"{"stats":{"running":5}}"#,
            ),
            (
                json!({ "stats": { "a.b": 5 } }),
                ErrorKind::InvalidRecord,
                "instead",
                r#"{"stats":{"a":{"b":5}}}"#,
            ),
            (
                json!({ "awaitingSteps": { "a": { "b.c": 5 } } }),
                ErrorKind::InvalidRecord,
                "name",
                "b.c",
            ),
            // The names of a declared map are data.
            (
                json!({ "emittedEvents.order.created": 1, "n": 1 }),
                ErrorKind::InvalidRecord,
                "instead",
                r#"{"emittedEvents":{"order.created":1}}"#,
            ),
            (
                json!({ "a.b": { "c.d": null, "c": { "e.f": 1 } } }),
                ErrorKind::InvalidRecord,
                "instead",
                r#"{"a":{"b":{"c":{"d":null,"e":{"f":1}}}}}"#,
            ),
            (json!({ ".".repeat(9_000): 1 }), ErrorKind::InvalidRecord, "collection", "run"),
            (
                json!({ "run_id": "other" }),
                ErrorKind::InvalidRecord,
                "would be",
                "flow:run:f:other",
            ),
            (json!({ "run_id": null }), ErrorKind::InvalidRecord, "field", "run_id"),
            (json!({ "status": 7 }), ErrorKind::InvalidRecord, "field", "status"),
            (json!({ "status": null }), ErrorKind::IllegalTransition, "to", "nothing"),
            (json!([1]), ErrorKind::InvalidRecord, "collection", "run"),
            (deep, ErrorKind::InvalidRecord, "collection", "run"),
            (json!({ "text": "x".repeat(400_000) }), ErrorKind::LimitExceeded, "collection", "run"),
        ] {
            let error = it.runs.update_with_retry(("f", "r"), &patch).await.unwrap_err();
            assert_eq!((error.kind(), error.fate()), (kind, Fate::DidNotHappen), "{error}");
            assert_eq!(error.context_value(name), Some(value), "{error}");
        }
        assert_eq!(it.run().await, before);
    }
}

#[derive(Serialize, Deserialize, Record)]
#[record(collection = "run", key = "flow:run:{flow}:{run_id}")]
struct Known {
    flow: String,
    run_id: String,
    #[serde(default)]
    count: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    email: Option<String>,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn functions_are_retried_and_none_is_lost() {
    for it in Subject::all().await {
        it.started().await;
        let typed = it.store.collection::<Known>().await.unwrap();
        let workers = (0..4).map(|_| {
            let typed = typed.clone();
            tokio::spawn(async move {
                for _ in 0..10 {
                    let add = |run: &mut Known| {
                        run.count += 1;
                        Ok(())
                    };
                    typed.modify(("f", "r"), add).await.unwrap();
                }
            })
        });
        for worker in workers.collect::<Vec<_>>() {
            worker.await.unwrap();
        }
        let run = it.run().await;
        assert_eq!(run["count"], 40);
        assert_eq!(run["stats"], json!({ "steps": { "ok": 1, "bad": 0 } }), "unknown members stay");
    }
}

#[tokio::test]
async fn a_function_may_give_up_and_take_members_away() {
    for it in Subject::all().await {
        it.started().await;
        let typed = it.store.collection::<Known>().await.unwrap();
        let gave_up = typed
            .modify(("f", "r"), |_| Err(Error::new(ErrorKind::Aborted, "not today")))
            .await
            .unwrap_err();
        assert_eq!(gave_up.kind(), ErrorKind::Aborted);
        let dropped = |run: &mut Known| {
            run.email = None;
            Ok(())
        };
        typed.modify(("f", "r"), dropped).await.unwrap();
        assert!(!it.keys().await.contains(&"flow:email:a@x".to_owned()));
        let missing = typed.modify(("f", "none"), |_| Ok(())).await.unwrap_err();
        assert_eq!(missing.kind(), ErrorKind::NotFound);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn upsert_with_creates_once_and_changes_ever_after() {
    for it in Subject::all().await {
        let typed = it.store.collection::<Known>().await.unwrap();
        let created = Arc::new(AtomicU32::new(0));
        let workers = (0..6).map(|_| {
            let (typed, created) = (typed.clone(), created.clone());
            tokio::spawn(async move {
                let first = Known { flow: "f".into(), run_id: "r".into(), count: 1, email: None };
                let add = |run: &mut Known| {
                    run.count += 1;
                    Ok(())
                };
                let written = typed.upsert_with(&first, add).await.unwrap();
                let is_new = written.effect == Effect::Created;
                created.fetch_add(u32::from(is_new), Ordering::Relaxed);
            })
        });
        for worker in workers.collect::<Vec<_>>() {
            worker.await.unwrap();
        }
        assert_eq!(created.load(Ordering::Relaxed), 1);
        assert_eq!(it.run().await["count"], 6);
    }
}

#[tokio::test]
async fn a_rename_moves_the_record_and_every_entry_in_one_batch() {
    for it in Subject::all().await {
        let before = it.started().await;
        it.runs.insert(&json!({ "flow": "f", "run_id": "taken" })).await.unwrap();
        let to = |id: &'static str| {
            move |run: &mut Value| {
                run["run_id"] = json!(id);
                Ok(())
            }
        };
        let clash = it.runs.rename(("f", "r"), to("taken")).await.unwrap_err();
        assert_eq!(clash.kind(), ErrorKind::AlreadyExists);
        let moved = it.runs.rename(("f", "r"), to("new")).await.unwrap();
        assert_eq!(moved.key, "flow:run:f:new");
        let (old, new) = (before.version.to_string(), moved.version.to_string());
        assert_eq!(old.split_once('-').unwrap().0, new.split_once('-').unwrap().0);
        assert_eq!(moved.version.revision(), 2);
        let owned = it.keys().await;
        assert!(!owned.iter().any(|key| key.ends_with(":r") || key.contains(":r:")), "{owned:?}");
        assert_eq!(it.runs.get_by("email", "a@x").await.unwrap().unwrap().key, "flow:run:f:new");
        assert!(it.store.verify().await.unwrap().is_clean());
        // The same key again is a plain change.
        let same = |run: &mut Value| {
            run["n"] = json!(1);
            Ok(())
        };
        let kept = it.runs.rename(("f", "new"), same).await.unwrap();
        assert_eq!(kept.version.revision(), 3);
    }
}

#[tokio::test]
async fn a_patch_is_one_write_and_the_same_again_is_none() {
    let store = Store::open("memory:").await.unwrap();
    store.apply(&Schema::from_toml(SCHEMA).unwrap()).await.unwrap();
    let runs = store.documents("run").await.unwrap();
    runs.insert(&json!({ "flow": "f", "run_id": "r" })).await.unwrap();
    let written = runs.update_with_retry(("f", "r"), &json!({ "n": 1 })).await.unwrap();
    assert_eq!(written.version.revision(), 2);
    let again = runs.update_with_retry(("f", "r"), &json!({ "n": 1 })).await.unwrap();
    assert_eq!((again.effect, again.version.revision()), (Effect::Unchanged, 2));
}

/// What an update costs: the record alone, or with it the old and the new key of each index whose
/// field changed.
#[tokio::test]
async fn an_update_writes_what_changed_and_no_more() {
    let schema = r#"
        [collection.run]
        key = "run:{id}"
        fields = { id = "text", agent = "text", status = "text", at = "timestamp" }
        index.agent  = { key = "agent:{agent}:{at}:{id}" }
        index.status = { key = "status:{status}:{at}:{id}" }
    "#;
    let metered = keyloom::engine::Metered::new(Arc::new(keyloom::engine::Memory::new()));
    let store = Store::on(Arc::new(metered.clone()));
    store.apply(&Schema::from_toml(schema).unwrap()).await.unwrap();
    let runs = store.documents("run").await.unwrap();
    runs.insert(&json!({ "id": "r", "agent": "a", "status": "RUNNING", "at": 7 })).await.unwrap();
    for (patch, written) in [
        (json!({ "seconds": 3 }), 1),
        (json!({ "status": "SUCCEEDED" }), 3),
        (json!({ "status": "FAILED", "agent": "b" }), 5),
        (json!({ "status": "FAILED" }), 0),
    ] {
        metered.take();
        runs.update_with_retry("r", &patch).await.unwrap();
        let usage = metered.take();
        let commits = u64::from(written > 0);
        assert_eq!((usage.commits, usage.entries_written), (commits, written), "{patch}");
    }
}
