//! A process that has not heard of a change of the schema refuses no write that the schema allows
//! by now.
//!
//! Two stores on one engine stand for two processes: each has its own idea of the schema.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

use std::sync::Arc;

use keyloom::engine::{Engine, Memory, Metered, Torn};
use keyloom::{
    Collection, Effect, ErrorKind, Increment, Query, Result, Schema, Store, Transaction,
};
use serde_json::{Value, json};

const NARROW: &str = r#"
[collection.task]
key = "task:{lane}:{id}"
[collection.task.fields]
lane  = { type = "enum", values = ["slow"] }
id    = "text"
state = { type = "enum", values = ["new", "old"], transitions = { new = ["old"] } }
level = { type = "enum", values = ["a", "b"], transitions = { a = ["b"] }, illegal = "ignore" }
note  = { type = "text", required = true }
"tags.*" = "text"
[collection.task.counters]
runs = {}
[collection.task.index.tag]
key = "by-tag:{tags.*}:{lane}:{id}"
max = 1
"#;

/// What the other process declares: more of everything.
fn wide() -> String {
    NARROW
        .replace("[\"slow\"]", "[\"slow\", \"fast\"]")
        .replace("{ new = [\"old\"] }", "{ new = [\"old\"], old = [\"new\"] }")
        .replace("{ a = [\"b\"] }", "{ a = [\"b\"], b = [\"a\"] }")
        .replace("required = true", "required = false")
        .replace("runs = {}", "runs = {}\nfails = {}")
        .replace("max = 1", "max = 2")
        + "[collection.task.count.by_state]\ngroup = [\"state\"]\n\
           [collection.extra]\nkey = \"extra:{id}\"\nfields = { id = \"text\" }\n\
           counters = { n = {} }\n"
}

struct Processes {
    engine: Arc<dyn Engine>,
    ours: Store,
    tasks: Collection<Value>,
}

fn task(lane: &str, id: &str) -> Value {
    json!({ "lane": lane, "id": id, "state": "old", "level": "b", "note": "x", "tags": ["t"] })
}

impl Processes {
    async fn on(engine: Arc<dyn Engine>) -> Self {
        let ours = Store::on(engine.clone());
        ours.apply(&Schema::from_toml(NARROW).unwrap()).await.unwrap();
        let tasks = ours.documents("task").await.unwrap();
        tasks.insert(&task("slow", "1")).await.unwrap();
        Processes { engine, ours, tasks }
    }

    /// Another process widens the schema, and leaves a task that only the new one allows.
    async fn widen(&self) {
        let theirs = Store::on(self.engine.clone());
        theirs.apply(&Schema::from_toml(&wide()).unwrap()).await.unwrap();
        theirs.build("task", "by_state").await.unwrap();
        let fast = theirs.documents("task").await.unwrap();
        fast.insert(&task("fast", "2")).await.unwrap();
    }
}

/// Writes that the narrow schema refuses and the wide one allows.
const WAYS: usize = 20;

async fn perform(processes: &Processes, way: usize, key: Option<&str>) -> Result<()> {
    let tasks = match key {
        Some(key) => processes.tasks.with_idempotency_key(key)?,
        None => processes.tasks.clone(),
    };
    let set = |field: &'static str, value: Value| {
        move |task: &mut Value| {
            task[field] = value.clone();
            Ok(())
        }
    };
    match way {
        0 => drop(tasks.insert(&task("fast", "3")).await?),
        1 => drop(tasks.upsert(&task("fast", "3")).await?),
        2 => {
            let mut new = task("slow", "1");
            new["state"] = json!("new");
            tasks.replace(&new).await?;
        }
        3 => drop(tasks.update_with_retry(("slow", "1"), &json!({ "state": "new" })).await?),
        4 => {
            let version = tasks.get(("slow", "1")).await?.unwrap().version;
            tasks.update(("slow", "1"), &json!({ "note": null }), version).await?;
        }
        5 => drop(tasks.modify(("slow", "1"), set("tags", json!(["t", "u"]))).await?),
        6 => drop(tasks.upsert_with(&task("fast", "3"), |_| Ok(())).await?),
        7 => drop(tasks.rename(("slow", "1"), set("lane", json!("fast"))).await?),
        8 => assert!(tasks.delete(("fast", "2")).await?.is_some()),
        9 => drop(tasks.increment(("slow", "1"), [("fails", 1)]).await?),
        10 => drop(tasks.increment_many([(("fast", "2"), [("runs", 1)])]).await?),
        11 => {
            let written = tasks.update_with_retry(("slow", "1"), &json!({ "level": "a" })).await?;
            assert_eq!(written.effect, Effect::Replaced, "not ignored");
        }
        12 => assert!(tasks.get(("fast", "2")).await?.is_some()),
        13 => assert!(tasks.get_many([("fast", "2")]).await?[0].is_some()),
        14 => assert_eq!(tasks.count(&Query::new().equal("state", "old")).await?, 2),
        15 => {
            let plan = tasks.explain(&Query::new().equal("state", "old")).await?;
            assert!(plan.contains("by_state"), "{plan}");
        }
        16 => {
            let text = task("fast", "3").to_string();
            processes.ours.plain().put("task:fast:3", text).await?;
        }
        17 => {
            // A collection that this process has never heard of.
            let extra = processes.ours.documents("extra").await?;
            extra.insert(&json!({ "id": "e" })).await?;
        }
        18 => {
            let missing = Increment::of("extra", "e").add("n", 1);
            let error = processes.ours.increment_many([missing]).await.unwrap_err();
            if error.kind() != ErrorKind::NotFound {
                return Err(error);
            }
        }
        _ => {
            let counting = |transaction: Transaction| async move {
                transaction.documents("task")?.increment(("slow", "1"), [("fails", 1)]).await
            };
            processes.ours.transaction(counting).await?;
        }
    }
    Ok(())
}

#[tokio::test]
async fn no_write_is_refused_by_a_schema_that_has_been_widened() {
    for key in [None, Some("k")] {
        for way in 0..WAYS {
            let torn = Torn::new(Arc::new(Memory::new()), 7);
            let mut engines: Vec<Arc<dyn Engine>> = vec![Arc::new(Memory::new())];
            if key.is_none() {
                engines.push(Arc::new(torn));
            }
            for engine in engines {
                let processes = Processes::on(engine).await;
                processes.widen().await;
                let done = perform(&processes, way, key).await;
                done.unwrap_or_else(|error| panic!("way {way}, key {key:?}: {error}"));
                let found = processes.ours.verify().await.unwrap();
                assert!(found.is_clean(), "{way}: {:?}", found.findings);
            }
        }
    }
}

#[tokio::test]
async fn the_narrow_schema_does_refuse_them() {
    for way in (0..WAYS).filter(|way| ![8, 11, 12, 13].contains(way)) {
        let processes = Processes::on(Arc::new(Memory::new())).await;
        assert!(perform(&processes, way, None).await.is_err(), "way {way}");
    }
}

#[tokio::test]
async fn a_refusal_under_the_schema_of_now_looks_once_and_stands() {
    let metered = Arc::new(Metered::new(Arc::new(Memory::new())));
    let processes = Processes::on(metered.clone()).await;
    metered.take();
    let error = processes.tasks.insert(&task("fast", "3")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidRecord);
    let usage = metered.take();
    assert_eq!((usage.gets, usage.commits), (1, 0));
    let mut runs = 0;
    let own = |_: &mut Value| {
        runs += 1;
        Err(keyloom::Error::new(ErrorKind::InvalidRecord, "of the caller"))
    };
    processes.tasks.modify(("slow", "1"), own).await.unwrap_err();
    assert_eq!(runs, 1);
}
