//! A store of flows with counters, on every engine in this process.
#![allow(dead_code, reason = "not every test file uses all of it")]

use std::sync::Arc;

use keyloom::engine::{Address, Space};
use keyloom::engine::{Area, Embedded, EmbeddedOptions, Engine, EngineExt, Memory, Metered, Torn};
use keyloom::{Collection, Schema, Store};
use serde_json::{Value, json};

pub const SCHEMA: &str = r#"
[collection.flow]
key = "flow:stats:{flow}"
[collection.flow.fields]
flow  = "text"
owner = "text"
email = "text"
at    = "timestamp"
spot  = "point"
[collection.flow.counters]
"stats.running" = { min = 0 }
"stats.success" = {}
"stats.steps.done" = { min = -5, max = 5 }
"hits.*" = { min = 0 }
"hits.free" = {}
total = {}
[collection.flow.index.owner]
key = "flow:index:owner:{owner}:{at desc}:{flow}"
[collection.flow.index.whole]
key = "flow:index:whole:{owner}:{flow}"
holds = "record"
[collection.flow.index.second]
key = "flow:index:second:{email}:{at desc}:{flow}"
[collection.flow.unique.email]
key = "flow:email:{email}"
[collection.flow.geo.spot]
key = "flow:geo:{spot geohash 6}:{flow}"

[collection.plain]
key = "plain:{id}"
[collection.plain.fields]
id = "text"

[collection.tenant]
key = "{id raw}"
area = "tenants"
[collection.tenant.fields]
id = "text"
[collection.tenant.counters]
used = { max = 10 }
"#;

pub struct Subject {
    pub store: Store,
    pub flows: Collection<Value>,
    pub metered: Metered,
    _folder: tempfile::TempDir,
}

impl Subject {
    /// On memory, on embedded, and on an engine that shows batches cell by cell.
    pub async fn all() -> Vec<Subject> {
        let mut all = Vec::new();
        for kind in ["memory", "embedded", "torn"] {
            let folder = tempfile::tempdir().unwrap();
            let engine: Arc<dyn Engine> = match kind {
                "embedded" => {
                    Arc::new(Embedded::open(folder.path(), EmbeddedOptions::default()).unwrap())
                }
                "torn" => Arc::new(Torn::new(Arc::new(Memory::new()), 7)),
                _ => Arc::new(Memory::new()),
            };
            all.push(Subject::on(engine, folder).await);
        }
        all
    }

    pub async fn memory() -> Subject {
        Subject::on(Arc::new(Memory::new()), tempfile::tempdir().unwrap()).await
    }

    pub async fn on(engine: Arc<dyn Engine>, folder: tempfile::TempDir) -> Subject {
        let metered = Metered::new(engine);
        let store = Store::on(Arc::new(metered.clone()));
        store.apply(&Schema::from_toml(SCHEMA).unwrap()).await.unwrap();
        let flows = store.documents("flow").await.unwrap();
        Subject { store, flows, metered, _folder: folder }
    }

    /// A flow, and a few numbers counted for it.
    pub async fn counted(&self, flow: &str) -> Value {
        let record = flow_record(flow);
        self.flows.insert(&record).await.unwrap();
        let deltas = [("stats.running", 3), ("hits.a", 2), ("total", -7)];
        self.flows.increment(flow, deltas).await.unwrap();
        shown(flow, json!({ "running": 3 }), json!({ "a": 2, "free": 0 }), -7)
    }

    /// What lies at a record's own key: never a counter.
    pub async fn text(&self, key: &str) -> Option<String> {
        let found = self.store.plain().get(key).await.unwrap();
        found.map(|text| String::from_utf8(text.to_vec()).unwrap())
    }

    /// What is counted beside a record of the default area.
    pub async fn beside(&self, key: &str) -> Option<Vec<(String, i64)>> {
        let address = Address::new(Area::own(), format!("counter::{key}"));
        let cell = self.store.engine().get_one(&Space::main(), &address).await.unwrap()?;
        Some(cell.integers().unwrap().clone().into_iter().collect())
    }
}

pub fn flow_record(flow: &str) -> Value {
    json!({
        "flow": flow, "owner": "ana", "email": format!("{flow}@x"), "at": 5,
        "spot": { "lat": 1.0, "lon": 2.0 }, "stats": { "label": "kept" },
    })
}

/// A flow as it is read: `stats` and `hits` over what every flow has.
pub fn shown(flow: &str, stats: Value, hits: Value, total: i64) -> Value {
    let mut record = flow_record(flow);
    record["stats"]["running"] = json!(0);
    record["stats"]["success"] = json!(0);
    record["stats"]["steps"] = json!({ "done": 0 });
    for (name, value) in stats.as_object().unwrap() {
        record["stats"][name] = value.clone();
    }
    record["hits"] = hits;
    record["total"] = json!(total);
    record
}
