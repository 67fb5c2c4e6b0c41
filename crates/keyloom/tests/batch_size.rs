//! A schema that an engine accepts never asks for a larger batch than the engine takes: no single
//! write of any kind, in any state of indexes and aggregates, whatever has expired.

#![cfg(feature = "embedded")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests fail by panicking"
)]

mod long;
mod time_support;

use std::sync::Arc;

use keyloom::engine::{Capabilities, CommitFault, Engine, Memory, Metered, Unreliable};
use keyloom::{Collection, ErrorKind, Result, Schema, Store};
use proptest::prelude::*;
use serde_json::{Value, json};
use time_support::{Small, TestClock};

const BASE: &str = r#"
[collection.task]
key = "task:{lane}:{id}"
EXPIRES
HISTORY
[collection.task.fields]
lane  = "text"
id    = "text"
email = "text"
level = "integer"
kind  = { type = "enum", values = ["a", "b", "c"] }
ends  = "timestamp"
place = "point"
steps = "map"
"tags.*"     = "text"
"steps.*.at" = "timestamp"
"#;

/// What a schema may have besides, each by itself.
const PARTS: [&str; 9] = [
    "[collection.task.unique.email]\nkey = \"email:{email}\"\n",
    "[collection.task.index.level]\nkey = \"level:{level}:{lane}:{id}\"\n",
    "[collection.task.index.tag]\nkey = \"tag:{tags.*}:{lane}:{id}\"\nmax = 4\n",
    "[collection.task.index.step]\nkey = \"step:{steps.*.at}:{lane}:{id}:{steps.*key}\"\nmax = 3\n",
    "[collection.task.index.whole]\nkey = \"whole:{kind}:{lane}:{id}\"\nholds = \"record\"\n",
    "[collection.task.geo.place]\nkey = \"place:{place geohash 5}:{lane}:{id}\"\n",
    "[collection.task.counters]\n\"stats.*\" = {}\n",
    "[collection.task.count.kinds]\ngroup = [\"kind\"]\n",
    "[collection.task.sum.levels]\nfield = \"level\"\ngroup = [\"lane\", \"kind\"]\n",
];

#[derive(Clone, Debug)]
struct Case {
    parts: Vec<bool>,
    expires: bool,
    history: usize,
    /// Whether indexes and aggregates are declared on data and not built.
    building: bool,
    /// How many commits a recount gets to make before it is cut off.
    recounted: Option<usize>,
    acts: Vec<Act>,
}

#[derive(Clone, Debug)]
struct Act {
    way: usize,
    keyed: bool,
    at: usize,
    to: usize,
    record: usize,
    pass: u64,
}

fn act() -> impl Strategy<Value = Act> {
    (0..10_usize, any::<bool>(), 0..4_usize, 0..4_usize, any::<usize>(), 0..3_u64)
        .prop_map(|(way, keyed, at, to, record, pass)| Act { way, keyed, at, to, record, pass })
}

fn case() -> impl Strategy<Value = Case> {
    let parts = prop::collection::vec(any::<bool>(), PARTS.len());
    let recounted = prop::option::of(1..4_usize);
    let acts = prop::collection::vec(act(), 1..40);
    (parts, any::<bool>(), 0..3_usize, any::<bool>(), recounted, acts).prop_map(
        |(parts, expires, history, building, recounted, acts)| Case {
            parts,
            expires,
            history,
            building,
            recounted,
            acts,
        },
    )
}

impl Case {
    fn schema(&self, with_parts: bool) -> Schema {
        let expires = if self.expires { "expires_at = \"ends\"" } else { "" };
        let history = ["", "history = { days = 9 }", "history = { versions = 2 }"][self.history];
        let mut text = BASE.replace("EXPIRES", expires).replace("HISTORY", history);
        for (part, is_in) in PARTS.iter().zip(&self.parts) {
            if *is_in && with_parts {
                text += part;
            }
        }
        Schema::from_toml(&text).unwrap_or_else(|error| panic!("{error}\n{text}"))
    }
}

/// The smallest batches with which an engine accepts the schema.
fn smallest(schema: &Schema) -> Capabilities {
    let mut capabilities = Memory::new().capabilities().clone();
    let sizes = 1..1_000;
    for batch_entries_max in sizes {
        capabilities.batch_entries_max = batch_entries_max;
        if schema.check_against(&capabilities).is_ok() {
            return capabilities;
        }
    }
    panic!("no batch is large enough");
}

/// One of many records with this key: every field may differ from one to the next.
fn task(place: usize, number: usize, clock: &TestClock) -> Value {
    let of = |modulus: usize| number % modulus;
    let tags: Vec<String> = (0..of(5)).map(|n| format!("t{}", n + of(7))).collect();
    let steps: serde_json::Map<String, Value> =
        (0..of(4)).map(|n| (format!("s{n}"), json!({ "at": 1_000 + of(11) + n }))).collect();
    let kind = ["a", "b", "c"][of(3)];
    json!({
        "lane": format!("l{}", place % 2), "id": format!("i{}", place / 2),
        "email": format!("{}@x", of(3)), "level": of(13), "kind": kind,
        "ends": clock.now() + of(4) as u64, "place": { "lat": of(17), "lon": of(19) },
        "tags": tags, "steps": steps, "free": number,
    })
}

fn key(place: usize) -> (String, String) {
    (format!("l{}", place % 2), format!("i{}", place / 2))
}

async fn perform(tasks: &Collection<Value>, act: &Act, clock: &TestClock) -> Result<()> {
    let record = task(act.at, act.record, clock);
    let moved = task(act.to, act.record / 3, clock);
    let set = |task: &mut Value| {
        let (lane, id) = (task["lane"].clone(), task["id"].clone());
        *task = record.clone();
        (task["lane"], task["id"]) = (lane, id);
        Ok(())
    };
    match act.way {
        0 | 1 => drop(tasks.insert(&record).await?),
        2 => drop(tasks.upsert(&record).await?),
        3 => drop(tasks.replace(&record).await?),
        4 => {
            drop(tasks.update_with_retry(key(act.at), &json!({ "level": act.record % 99 })).await?)
        }
        5 => drop(tasks.modify(key(act.at), set).await?),
        6 => drop(tasks.upsert_with(&record, set).await?),
        7 | 8 => {
            let to = |task: &mut Value| {
                let stats = task.get("stats").cloned();
                *task = moved.clone();
                if let Some(stats) = stats {
                    task["stats"] = stats;
                }
                Ok(())
            };
            tasks.rename(key(act.at), to).await?;
        }
        _ => drop(tasks.delete(key(act.at)).await?),
    }
    Ok(())
}

/// What a single write may answer: everything but that it is too large.
fn allow(error: &keyloom::Error) {
    let fine = [ErrorKind::NotFound, ErrorKind::AlreadyExists, ErrorKind::UniqueConflict];
    assert!(fine.contains(&error.kind()), "{error}");
}

async fn run(case: &Case) {
    let schema = case.schema(true);
    let memory: Arc<dyn Engine> = Arc::new(Small(Memory::new(), smallest(&schema)));
    let clock = TestClock::new();
    let store = Store::on(memory.clone()).with_clock(clock.clock());
    store.apply(&case.schema(!case.building)).await.unwrap();
    let tasks = store.documents("task").await.unwrap();
    for place in 0..3 {
        let number = place * 5;
        let mut first = task(place, number, &clock);
        first["email"] = json!(format!("first {place}"));
        tasks.insert(&first).await.unwrap();
    }
    store.apply(&schema).await.unwrap();
    if let Some(commits) = case.recounted {
        let unreliable = Unreliable::new(memory, 1, 0.0);
        let faults = std::iter::repeat_n(CommitFault::None, commits);
        unreliable.script(faults.chain([CommitFault::Refused]));
        let cut_off = Store::on(Arc::new(unreliable));
        for aggregate in ["kinds", "levels"] {
            // Whether there is one, and how far it comes, is another matter.
            drop(cut_off.recount("task", aggregate).await);
        }
    }
    for (number, act) in case.acts.iter().enumerate() {
        clock.pass(act.pass);
        let tasks = match act.keyed {
            true => tasks.with_idempotency_key(&format!("k{number}")).unwrap(),
            false => tasks.clone(),
        };
        if let Err(error) = perform(&tasks, act, &clock).await {
            allow(&error);
        }
        if case.parts[6] {
            let counted = tasks.increment(key(act.at), [("stats.a", 1), ("stats.b", -1)]).await;
            if let Err(error) = counted
                && error.kind() != ErrorKind::IdempotencyConflict
            {
                allow(&error);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: long::times(300), ..ProptestConfig::default() })]

    #[test]
    fn no_single_write_is_larger_than_the_schema_says(case in case()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(run(&case));
    }
}

/// A move of a record that changes everything, counted: the bound is no larger than it must be.
#[tokio::test]
async fn a_move_reaches_the_bound() {
    let case = Case {
        parts: vec![true; PARTS.len()],
        expires: true,
        history: 2,
        building: false,
        recounted: None,
        acts: Vec::new(),
    };
    let metered = Arc::new(Metered::new(Arc::new(Memory::new())));
    let clock = TestClock::new();
    let store = Store::on(metered.clone()).with_clock(clock.clock());
    let schema = case.schema(true);
    store.apply(&schema).await.unwrap();
    let tasks = store.documents("task").await.unwrap();
    let full = |lane: &str, sign: &str, number: u64| {
        let name = |n: u64| format!("{sign}{n}");
        let tags: Vec<String> = (0..4).map(name).collect();
        let steps: Vec<(String, Value)> =
            (0..3).map(|n| (name(n), json!({ "at": number + n }))).collect();
        json!({
            "lane": lane, "id": "i", "email": sign, "level": number, "kind": sign,
            "ends": clock.now() + 1_000 + number, "place": { "lat": number, "lon": 2 },
            "tags": tags, "steps": steps.into_iter().collect::<serde_json::Map<_, _>>(),
        })
    };
    tasks.insert(&full("l", "a", 1)).await.unwrap();
    tasks.increment(("l", "i"), [("stats.n", 3)]).await.unwrap();
    let free = |task: &mut Value| {
        task["free"] = json!(1);
        Ok(())
    };
    tasks.modify(("l", "i"), free).await.unwrap();
    metered.take();
    let moved = |task: &mut Value| {
        let stats = task["stats"].clone();
        *task = full("m", "b", 50);
        task["stats"] = stats;
        Ok(())
    };
    let keyed = tasks.with_idempotency_key("k").unwrap();
    keyed.rename(("l", "i"), moved).await.unwrap();
    let usage = metered.take();
    let bound = smallest(&schema).batch_entries_max as u64;
    // Both aggregates are complete, so that neither a second generation nor a mark is written; and
    // nothing has expired, which would add a version to the history.
    let spared = 2 * (2 + 2) + 1;
    assert_eq!((usage.commits, usage.entries_written), (1, bound - spared));
}
