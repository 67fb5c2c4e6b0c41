//! Counters and everything around them: verify and repair, schemas that change, Rust types,
//! programs without a runtime, and warnings of numbers that look like counters.

#![cfg(feature = "embedded")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests fail by panicking"
)]

mod counter_support;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use counter_support::{Subject, flow_record, shown};
use keyloom::engine::{Addition, Address, Area, Batch, Condition, Effect, Outcome, Space, Stamp};
use keyloom::{
    Choice, ErrorKind, FindingCounts, Increment, Record, RepairOptions, Schema, Store, Warning,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// Does something to a cell of Keyloom's own area, behind its back.
async fn plant(store: &Store, key: &str, effect: Effect) {
    let mut batch = Batch::new(Space::main());
    batch.push(Address::new(Area::own(), key.to_owned()), None, Some(effect));
    let outcome = store.engine().commit(batch).await.unwrap();
    assert!(matches!(outcome, Outcome::Committed(_)));
}

fn add(additions: &[(&str, i64)]) -> Effect {
    let addition = |(name, delta): &(&str, i64)| Addition {
        name: (*name).to_owned(),
        delta: *delta,
        min: None,
        max: None,
    };
    Effect::Add { stamp: Stamp([9; 24]), additions: additions.iter().map(addition).collect() }
}

#[tokio::test]
async fn verify_finds_counters_that_belong_to_nobody_and_repair_mends_them() {
    for subject in Subject::all().await {
        let f = subject.counted("f").await;
        subject.flows.insert(&flow_record("g")).await.unwrap();
        subject.flows.insert(&flow_record("h")).await.unwrap();
        let tenants = subject.store.documents("tenant").await.unwrap();
        tenants.insert(&json!({ "id": "a:b" })).await.unwrap();
        tenants.increment("a:b", [("used", 1)]).await.unwrap();
        let store = &subject.store;
        let clean = store.verify().await.unwrap();
        assert!(clean.is_clean(), "{:?}", clean.findings);
        let bytes = Effect::Put { stamp: Stamp([9; 24]), bytes: "x".into() };
        for (key, effect) in [
            ("counter::flow:stats:gone", add(&[("total", 4)])),
            ("counter:nowhere:k", add(&[("total", 4)])),
            ("counter:", add(&[("total", 4)])),
            ("counter::plain:p", add(&[("n", 4)])),
            ("counter::flow:stats:f", add(&[("unheard", 4), ("unheard.b", i64::MIN), ("zero", 0)])),
            ("counter::flow:stats:g", add(&[("unheard", 4)])),
            ("counter::flow:stats:h", bytes),
        ] {
            plant(store, key, effect).await;
        }
        let found = store.verify().await.unwrap();
        let wanted = FindingCounts { dangling: 4, wrong: 3, ..FindingCounts::default() };
        assert_eq!(found.counts, wanted, "{:?}", found.findings);
        for finding in &found.findings {
            assert_eq!(finding.area, "~", "{finding}");
        }
        let dry = RepairOptions { dry_run: true, ..RepairOptions::default() };
        assert_eq!(store.repair(&dry).await.unwrap().mended_counts, wanted);
        assert_eq!(store.verify().await.unwrap().counts, wanted, "nothing was mended yet");
        assert_eq!(store.repair(&RepairOptions::default()).await.unwrap().mended_counts, wanted);
        // The lowest number of all takes two steps to zero.
        assert_eq!(store.verify().await.unwrap().counts.wrong, 1);
        store.repair(&RepairOptions::default()).await.unwrap();
        let clean = store.verify().await.unwrap();
        assert!(clean.is_clean(), "{:?}", clean.findings);
        assert_eq!(subject.flows.get("f").await.unwrap().unwrap().value, f);
        assert_eq!(tenants.get("a:b").await.unwrap().unwrap().value["used"], json!(1));
        for flow in ["g", "h"] {
            let after = subject.flows.increment(flow, [("total", 1)]).await.unwrap();
            assert_eq!(after["total"], 1);
        }
    }
}

#[tokio::test]
async fn counters_that_are_no_counters_are_told_and_not_guessed_at() {
    for subject in Subject::all().await {
        let f = subject.counted("f").await;
        plant(&subject.store, "counter::flow:stats:f", add(&[("unheard", 4)])).await;
        assert_eq!(subject.flows.get("f").await.unwrap().unwrap().value, f);
        let bytes = Effect::Put { stamp: Stamp([9; 24]), bytes: "x".into() };
        plant(&subject.store, "counter::flow:stats:f", bytes).await;
        let error = subject.flows.increment("f", [("total", 1)]).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt);
        assert!(subject.flows.get("f").await.unwrap().is_some());
        // Counters at the key that a record is moved to are nobody's, and not mixed with its own.
        subject.counted("g").await;
        plant(&subject.store, "counter::flow:stats:h", add(&[("total", 4)])).await;
        let to_h = |flow: &mut Value| {
            flow["flow"] = json!("h");
            Ok(())
        };
        let error = subject.flows.rename("g", to_h).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt);
        subject.store.repair(&RepairOptions::default()).await.unwrap();
        subject.flows.rename("g", to_h).await.unwrap();
        assert_eq!(subject.flows.get("h").await.unwrap().unwrap().value["total"], json!(-7));
    }
}

#[tokio::test]
async fn an_older_program_obeys_counters_that_it_does_not_know() {
    const OLD: &str = "[collection.flow]\nkey = \"flow:{id}\"\nfields = { id = \"text\" }\n";
    const NEW: &str = "[collection.flow.counters]\n\"stats.*\" = { min = 0 }\nnew = {}";
    for subject in Subject::all().await {
        let store = subject.store.space("evolving").unwrap();
        store.apply(&Schema::from_toml(OLD).unwrap()).await.unwrap();
        let flows = store.documents("flow").await.unwrap();
        let record =
            json!({ "id": "f", "stats": { "old": 3, "more": { "deep": 1 } }, "new": "text" });
        flows.insert(&record).await.unwrap();
        let other = Store::on(subject.store.engine().clone()).space("evolving").unwrap();
        other.apply(&Schema::from_toml(&format!("{OLD}{NEW}")).unwrap()).await.unwrap();
        // This handle has not heard of them, and is told by the fence.
        let patched = flows.update_with_retry("f", &json!({ "x": 1 })).await.unwrap();
        assert_eq!(patched.value().unwrap(), json!({ "id": "f", "x": 1, "new": 0 }));
        let after = flows.increment("f", [("stats.old", 1)]).await.unwrap();
        assert_eq!(
            after.values,
            BTreeMap::from([("new".to_owned(), 0), ("stats.old".to_owned(), 1)])
        );
        let read = other.documents("flow").await.unwrap().get("f").await.unwrap().unwrap();
        assert_eq!(read.value, json!({ "id": "f", "x": 1, "new": 0, "stats": { "old": 1 } }));
        // Bounds hold from the next increment on.
        let bounded = NEW.replace("min = 0", "min = -9, max = 1");
        other.apply(&Schema::from_toml(&format!("{OLD}{bounded}")).unwrap()).await.unwrap();
        let error = flows.increment("f", [("stats.old", 1)]).await.unwrap_err();
        assert_eq!((error.kind(), error.context_value("max")), (ErrorKind::OutOfBounds, Some("1")));
        flows.increment("f", [("stats.old", -2)]).await.unwrap();
        assert!(store.verify().await.unwrap().is_clean());
    }
}

#[derive(Clone, Debug, PartialEq, Record, Serialize, Deserialize)]
#[record(key = "flow:stats:{flow}", collection = "flow")]
#[index(owner = "flow:index:owner:{owner}:{flow}")]
#[counter("stats.running", min = 0)]
#[counter("stats.*", min = -1_000, max = 1_000)]
#[serde(rename_all = "camelCase")]
struct Flow {
    flow: String,
    owner: String,
    state: State,
    #[serde(default)]
    stats: Stats,
    #[counter]
    #[serde(default)]
    runs_total: i64,
    #[serde(default)]
    #[counter(max = 3)]
    retries: u32,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Stats {
    #[serde(default)]
    running: i64,
    #[serde(flatten)]
    others: BTreeMap<String, i64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Choice, Serialize, Deserialize)]
enum State {
    On,
    Off,
}

fn flow() -> Flow {
    Flow {
        flow: "mail".into(),
        owner: "ana".into(),
        state: State::On,
        stats: Stats::default(),
        runs_total: 0,
        retries: 0,
    }
}

#[test]
fn a_type_declares_what_a_schema_file_would() {
    let written = r#"
        [collection.flow]
        key = "flow:stats:{flow}"
        index.owner.key = "flow:index:owner:{owner}:{flow}"
        [collection.flow.fields]
        flow = "text"
        owner = "text"
        state = { type = "enum", values = ["On", "Off"] }
        [collection.flow.counters]
        "stats.running" = { min = 0 }
        "stats.*" = { min = -1000, max = 1000 }
        runsTotal = {}
        retries = { max = 3 }
    "#;
    assert_eq!(Flow::schema().unwrap(), Schema::from_toml(written).unwrap());
}

#[tokio::test]
async fn a_type_shows_its_counters_and_never_writes_them() {
    let store = Store::open("memory:").await.unwrap();
    let flows = store.collection::<Flow>().await.unwrap();
    flows.insert(&flow()).await.unwrap();
    let deltas = [("stats.running", 2), ("stats.paused", 5), ("runsTotal", 9), ("retries", 1)];
    flows.increment("mail", deltas).await.unwrap();
    let read = flows.get("mail").await.unwrap().unwrap();
    let mut wanted = flow();
    wanted.stats.running = 2;
    wanted.stats.others = BTreeMap::from([("paused".to_owned(), 5)]);
    (wanted.runs_total, wanted.retries) = (9, 1);
    assert_eq!(read.value, wanted);
    let page = flows.by_owner("ana").page(5).await.unwrap();
    assert_eq!(page.records[0].value, wanted);

    // What was read is written back, also when somebody counted meanwhile.
    flows.increment("mail", [("runsTotal", 1)]).await.unwrap();
    let changed = Flow { state: State::Off, ..read.value.clone() };
    let written = flows.replace_if(&changed, read.version).await.unwrap();
    (wanted.state, wanted.runs_total) = (State::Off, 10);
    assert_eq!(written.value().unwrap(), wanted);
    flows.upsert(&Flow { state: State::On, ..flow() }).await.unwrap();
    wanted.state = State::On;
    assert_eq!(flows.get("mail").await.unwrap().unwrap().value, wanted);
    let in_transaction = store.transaction(async |tx| {
        let flows = tx.collection::<Flow>()?;
        let read = flows.get("mail").await?.unwrap().value;
        flows.increment("mail", [("runsTotal", 1)]).await?;
        flows.replace(&Flow { state: State::Off, ..read }).await
    });
    in_transaction.await.unwrap();
    (wanted.state, wanted.runs_total) = (State::Off, 11);
    assert_eq!(flows.get("mail").await.unwrap().unwrap().value, wanted);
    let text = store.plain().get("flow:stats:mail").await.unwrap().unwrap();
    assert_eq!(text.as_ref(), br#"{"flow":"mail","owner":"ana","state":"Off"}"#);

    // A function that leaves them alone, and one that does not.
    flows
        .modify("mail", |flow: &mut Flow| {
            assert_eq!(flow.runs_total, 11);
            flow.state = State::On;
            Ok(())
        })
        .await
        .unwrap();
    let change = |flow: &mut Flow| {
        flow.runs_total += 1;
        Ok(())
    };
    let error = flows.modify("mail", change).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidRecord);
    assert_eq!(error.context_value("counter"), Some("runsTotal"));
    // A new record has counted nothing.
    let copy = Flow { flow: "copy".into(), ..wanted };
    assert_eq!(flows.insert(&copy).await.unwrap_err().kind(), ErrorKind::InvalidRecord);
    assert_eq!(flows.upsert(&copy).await.unwrap_err().kind(), ErrorKind::InvalidRecord);
}

#[test]
fn programs_without_a_runtime_count_too() {
    let store = keyloom::blocking::Store::open("memory:").unwrap();
    let flows = store.collection::<Flow>().unwrap();
    flows.insert(&flow()).unwrap();
    assert_eq!(flows.increment("mail", [("runsTotal", 2)]).unwrap()["runsTotal"], 2);
    let many = flows.increment_many([("mail", [("runsTotal", 1)])]).unwrap();
    assert_eq!(many[0]["runsTotal"], 3);
    let one = || [Increment::of("flow", "mail").add("runsTotal", 1)];
    store.increment_many(one()).unwrap();
    let seen = store.transaction(|tx| {
        let flows = tx.collection::<Flow>()?;
        flows.increment("mail", [("runsTotal", 1)])?;
        tx.increment_many(one())?;
        Ok::<_, keyloom::Error>(flows.get("mail")?.unwrap().value.runs_total)
    });
    assert_eq!(seen.unwrap(), 6);
    assert_eq!(flows.get("mail").unwrap().unwrap().value.runs_total, 6);
}

#[test]
fn a_schema_warns_of_numbers_that_look_like_counters() {
    let schema = Schema::from_toml(
        r#"
        [collection.flow]
        key = "flow:{id}"
        body = { properties = { stats = { properties = { ok = { type = "integer" }, running = { type = "integer" } } } } }
        [collection.flow.fields]
        id    = "text"
        count = "integer"
        total = "float"
        rank_total = "integer"
        account = "integer"
        "stats.failed" = "integer"
        "stats.label"  = "text"
        [collection.flow.index.rank]
        key = "rank:{rank_total}:{id}"
        [collection.flow.counters]
        "stats.running" = {}
        "#,
    )
    .unwrap();
    let warnings = schema.warnings();
    let fields: Vec<&str> = warnings.iter().map(|warning| warning.field.as_str()).collect();
    assert_eq!(fields, ["count", "stats.failed", "stats.ok", "total"]);
    let shown = warnings[1].to_string();
    assert!(shown.starts_with("collection.flow.\"stats.failed\": looks like a counter"), "{shown}");
    assert!(shown.contains("increment"), "{shown}");
}

#[tokio::test]
async fn a_write_warns_once_of_a_number_that_looks_like_a_counter() {
    let subject = Subject::memory().await;
    let heard: Arc<Mutex<Vec<Warning>>> = Arc::default();
    let hears = heard.clone();
    let store =
        subject.store.with_warnings(move |warning| hears.lock().unwrap().push(warning.clone()));
    let flows = store.documents("flow").await.unwrap();
    let mut record = shown("f", json!({}), json!({ "free": 0 }), 0);
    record["stats"]["paused"] = json!(1);
    record["count"] = json!(1);
    record["notes"] = json!({ "count": "many" });
    flows.insert(&record).await.unwrap();
    flows.update_with_retry("f", &json!({ "count": 2, "stats": { "late": 1.5 } })).await.unwrap();
    store
        .transaction(async |tx| {
            tx.documents("plain")?.upsert(&json!({ "id": "p", "total": 1 })).await
        })
        .await
        .unwrap();
    let heard: Vec<(String, String)> =
        heard.lock().unwrap().iter().map(|it| (it.collection.clone(), it.field.clone())).collect();
    let wanted =
        [("flow", "stats.paused"), ("flow", "count"), ("flow", "stats.late"), ("plain", "total")];
    assert_eq!(heard, wanted.map(|(collection, field)| (collection.to_owned(), field.to_owned())));
    // The others hear nothing, and pay nothing.
    subject.flows.insert(&json!({ "flow": "g", "count": 1 })).await.unwrap();
}

#[tokio::test]
async fn a_write_that_needs_the_counters_unchanged_says_so_to_the_engine() {
    // A move is conditional on the counters that it moves; see the conformance suite for what
    // engines make of that.
    let subject = Subject::memory().await;
    subject.counted("f").await;
    let address = Address::new(Area::own(), "counter::flow:stats:f");
    let cells =
        subject.store.engine().get(&Space::main(), std::slice::from_ref(&address)).await.unwrap();
    let stamp = cells[0].as_ref().unwrap().stamp;
    subject.flows.increment("f", [("total", 0)]).await.unwrap();
    let mut batch = Batch::new(Space::main());
    batch.push(address, Some(Condition::Unchanged(stamp)), None);
    let outcome = subject.store.engine().commit(batch).await.unwrap();
    assert!(matches!(outcome, Outcome::Rejected(_)), "every increment has a stamp of its own");
}
