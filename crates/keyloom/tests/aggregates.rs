//! Counts and sums are what the records give, whatever is done to the records.

#![cfg(feature = "embedded")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests fail by panicking"
)]

mod aggregate_support;
mod long;

use std::sync::Arc;

use aggregate_support::{
    Clients, Dice, TEXTS, adding, assert_clean, assert_exact, engines, own, plant, schema,
};
use keyloom::engine::{Effect, Engine, Memory, Metered, Reading, Space, Stamp};
use keyloom::{ErrorKind, GroupQuery, IndexState, Order, PurgeOptions, Query, Store};
use serde_json::{Value, json};

async fn store() -> Store {
    let store = Store::on(Arc::new(Memory::new()));
    store.apply(&schema()).await.unwrap();
    store
}

fn run(flow: &str, id: &str, status: &str, seconds: i64) -> Value {
    json!({ "flow": flow, "id": id, "status": status, "seconds": seconds })
}

#[tokio::test]
async fn random_work_leaves_every_aggregate_exact() {
    for (engine, _folder) in engines() {
        let store = Store::on(engine);
        store.apply(&schema()).await.unwrap();
        let clients = Clients::new(&store).await;
        let mut dice = Dice::new(1);
        for _ in 0..long::times(12) {
            for _ in 0..25 {
                clients.act(&mut dice, 6).await;
            }
            assert_exact(&store).await;
        }
        assert_clean(&store).await;
        assert_eq!(own(&store, "aggregate-mark:").await, [], "nothing was built");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sixteen_writers_leave_every_aggregate_exact() {
    for (engine, _folder) in engines() {
        let store = Store::on(engine);
        store.apply(&schema()).await.unwrap();
        let times = u64::from(long::times(25));
        let writers: Vec<_> = (0..16)
            .map(|seed| {
                let store = store.clone();
                tokio::spawn(async move {
                    Clients::new(&store).await.act_often(seed, times, 20).await;
                })
            })
            .collect();
        for writer in writers {
            writer.await.unwrap();
        }
        assert_exact(&store).await;
        assert_clean(&store).await;
    }
}

#[tokio::test]
async fn one_group_costs_one_round_trip() {
    for (engine, _folder) in engines() {
        // Where answers mix moments, the schema is looked at once more after the cells: those of a
        // generation that was replaced meanwhile may be gone.
        let trips = match engine.capabilities().reading {
            Reading::Snapshot => 1,
            Reading::Validated => 2,
        };
        let metered = Arc::new(Metered::new(engine));
        let store = Store::on(metered.clone());
        store.apply(&schema()).await.unwrap();
        let runs = store.documents("run").await.unwrap();
        for n in 0..20 {
            runs.insert(&run("nightly", &n.to_string(), "done", n)).await.unwrap();
        }
        metered.take();
        assert_eq!(runs.counted("by_status", "done").await.unwrap(), 20);
        assert_eq!(metered.take().round_trips(), trips);
        metered.take();
        assert_eq!(runs.summed("seconds_by_flow", ("nightly", "done")).await.unwrap(), 190);
        assert_eq!(metered.take().round_trips(), trips);
    }
}

#[tokio::test]
async fn a_change_writes_only_what_it_moves() {
    let metered = Arc::new(Metered::new(Arc::new(Memory::new())));
    let store = Store::on(metered.clone());
    store.apply(&schema()).await.unwrap();
    let runs = store.documents("run").await.unwrap();
    let written = async |record: &Value| {
        metered.take();
        runs.upsert(record).await.unwrap();
        metered.take().entries_written
    };
    let mut record = run("f", "1", "queued", 5);
    // The record, its entry in `seconds`, and one cell of each aggregate that it is in.
    assert_eq!(written(&record).await, 2 + 3);
    record["comment"] = "in no group".into();
    assert_eq!(written(&record).await, 1);
    record["seconds"] = 7.into();
    assert_eq!(written(&record).await, 1 + 2 + 1, "only the sum's cell");
    record["status"] = "running".into();
    assert_eq!(written(&record).await, 1 + 2 + 2, "both sides of both groups");
}

#[tokio::test]
async fn groups_come_in_order_in_pages_and_by_their_first_fields() {
    let store = store().await;
    let runs = store.documents("run").await.unwrap();
    for (n, flow) in TEXTS.iter().enumerate() {
        for status in ["queued", "done-late", "done"] {
            let id = format!("{n}{status}");
            runs.insert(&run(flow, &id, status, n as i64)).await.unwrap();
        }
    }
    let all = runs.groups(&GroupQuery::new("seconds_by_flow")).await.unwrap();
    let mut ordered: Vec<(&str, &str)> = TEXTS
        .iter()
        .flat_map(|flow| ["done", "done-late", "queued"].map(|status| (*flow, status)))
        .collect();
    ordered.sort_unstable();
    let values: Vec<(&str, &str)> = all
        .groups
        .iter()
        .map(|group| (group.values[0].as_str().unwrap(), group.values[1].as_str().unwrap()))
        .collect();
    assert_eq!(values, ordered);
    assert!(all.next.is_none());
    for flow in TEXTS {
        let query = GroupQuery::new("seconds_by_flow").within(flow);
        let within = runs.groups(&query.clone().take(2)).await.unwrap();
        assert_eq!(within.groups.len(), 2);
        assert!(within.groups.iter().all(|group| group.values[0] == flow));
        let rest = runs.groups(&query.from_cursor(within.next.unwrap())).await.unwrap();
        assert_eq!((rest.groups.len(), rest.next.is_none()), (1, true));
        assert_eq!(rest.groups[0].values[1], "queued");
    }
    let one = GroupQuery::new("seconds_by_flow").within(("night", "done"));
    assert_eq!(runs.groups(&one).await.unwrap().groups.len(), 1);
    let page = runs.groups(&GroupQuery::new("by_status").take(1)).await.unwrap();
    let elsewhere = GroupQuery::new("all").from_cursor(page.next.unwrap());
    let error = runs.groups(&elsewhere).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidCursor);
}

#[tokio::test]
async fn the_largest_groups_are_told_within_a_budget() {
    let store = store().await;
    let runs = store.documents("run").await.unwrap();
    for n in 0..30 {
        let flow = format!("f{}", n % 6);
        let status = if n % 3 == 0 { "done" } else { "queued" };
        runs.insert(&run(&flow, &n.to_string(), status, -n)).await.unwrap();
    }
    let by_sum = runs.top_groups(&GroupQuery::new("seconds_by_flow"), 2).await.unwrap().groups;
    let shown: Vec<(&Value, Option<i64>)> =
        by_sum.iter().map(|group| (&group.values[0], group.sum)).collect();
    assert_eq!(shown, [(&json!("f0"), Some(-60)), (&json!("f1"), Some(-65))]);
    let by_count = runs.top_groups(&GroupQuery::new("by_status"), 5).await.unwrap().groups;
    let counts: Vec<i64> = by_count.iter().map(|group| group.count).collect();
    assert_eq!(counts, [20, 10]);
    assert_eq!(runs.top_groups(&GroupQuery::new("by_status"), 0).await.unwrap().groups, []);
    let tight = GroupQuery::new("seconds_by_flow").limit(5);
    let error = runs.top_groups(&tight, 1).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::LimitExceeded);
    assert_eq!(runs.top_groups(&tight.clone().limit(6), 1).await.unwrap().groups.len(), 1);
    assert_eq!(runs.top_groups(&tight.within("f3"), 9).await.unwrap().groups.len(), 1);
}

#[tokio::test]
async fn the_least_and_the_greatest_come_from_an_ordered_index() {
    let metered = Arc::new(Metered::new(Arc::new(Memory::new())));
    let store = Store::on(metered.clone());
    store.apply(&schema()).await.unwrap();
    let runs = store.documents("run").await.unwrap();
    for (n, seconds) in [30, -5, 12].into_iter().enumerate() {
        let mut record = run("f", &n.to_string(), "done", seconds);
        record["started"] = (1000 + n).into();
        runs.insert(&record).await.unwrap();
    }
    runs.insert(&json!({ "flow": "f", "id": "none" })).await.unwrap();
    let of = |flow: &str| Query::new().equal("flow", flow);
    metered.take();
    assert_eq!(runs.min(&of("f"), "seconds").await.unwrap(), Some(json!(-5)));
    assert_eq!(metered.take().round_trips(), 1);
    assert_eq!(runs.max(&of("f"), "seconds").await.unwrap(), Some(json!(30)));
    assert_eq!(runs.min(&of("f"), "started").await.unwrap(), Some(json!(1000)));
    assert_eq!(runs.max(&of("f"), "started").await.unwrap(), Some(json!(1002)));
    assert_eq!(runs.max(&of("g"), "seconds").await.unwrap(), None);
    let error = runs.min(&of("f"), "priority").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NoIndex);
    let order = of("f").order("priority", Order::Ascending);
    let refused = runs.page(&order).await.unwrap_err();
    assert_eq!(error.to_string(), refused.to_string(), "it says what index would serve");
    let error = runs.min(&of("f"), "tags.*").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidQuery);
}

#[tokio::test]
async fn questions_that_cannot_be_meant_are_refused() {
    let store = store().await;
    let runs = store.documents("run").await.unwrap();
    let refused = async |aggregate, group: Vec<Value>| {
        runs.counted(aggregate, group).await.unwrap_err().kind()
    };
    assert_eq!(refused("by_stattus", vec![json!("done")]).await, ErrorKind::InvalidArgument);
    assert_eq!(refused("by_status", vec![json!("donne")]).await, ErrorKind::InvalidQuery);
    assert_eq!(refused("by_status", vec![json!(7)]).await, ErrorKind::InvalidQuery);
    assert_eq!(refused("by_status", vec![]).await, ErrorKind::InvalidQuery);
    assert_eq!(
        refused("by_status", vec![json!("done"), json!("done")]).await,
        ErrorKind::InvalidQuery
    );
    assert_eq!(refused("seconds_by_flow", vec![json!("f")]).await, ErrorKind::InvalidQuery);
    let error = runs.summed("by_status", "done").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidQuery);
    assert_eq!(runs.counted("by_status", "done").await.unwrap(), 0);
    assert_eq!(runs.counted("all", ()).await.unwrap(), 0);
    for query in [GroupQuery::new("all").take(0), GroupQuery::new("all").limit(0)] {
        assert_eq!(runs.groups(&query).await.unwrap_err().kind(), ErrorKind::InvalidQuery);
    }
}

/// What does not fit is refused before anything is written: the record, its entries, the counts.
#[tokio::test]
async fn what_cannot_be_counted_is_not_written() {
    for (engine, _folder) in engines() {
        let store = Store::on(engine);
        store.apply(&schema()).await.unwrap();
        let notes = store.documents("note").await.unwrap();
        let note =
            |tag: String, size: Value| json!({ "id": "n", "done": true, "tag": tag, "size": size });
        let longest = 900 - "aggregate:note:size:".len() - 14 - ":t:!:".len();
        let refused = [
            note("x".repeat(longest + 1), json!(1)),
            // Each becomes three bytes.
            note("\u{0}".repeat(300), json!(1)),
            note("t".into(), json!(1.5)),
            note("t".into(), json!(i64::MIN)),
            note("t".into(), json!(u64::MAX)),
            note("t".into(), json!("7")),
        ];
        for record in refused {
            assert!(notes.insert(&record).await.is_err(), "{record}");
        }
        assert_eq!(own(&store, "aggregate:").await, []);
        assert!(notes.get("n").await.unwrap().is_none());
        let fits = note("x".repeat(longest), json!((1_i64 << 62) - 1));
        notes.insert(&fits).await.unwrap();
        let group = (true, "x".repeat(longest));
        assert_eq!(notes.counted("size", group.clone()).await.unwrap(), 1);
        assert_eq!(notes.summed("size", group).await.unwrap(), (1 << 62) - 1);
        assert_clean(&store).await;
    }
}

#[tokio::test]
async fn a_sum_that_would_overflow_changes_nothing() {
    let store = store().await;
    let notes = store.documents("note").await.unwrap();
    let most = (1_i64 << 62) - 1;
    let note = |id: &str, size: i64| json!({ "id": id, "done": false, "tag": "t", "size": size });
    notes.insert(&note("a", most)).await.unwrap();
    notes.insert(&note("b", most)).await.unwrap();
    let error = notes.insert(&note("c", most)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::LimitExceeded);
    assert_eq!(error.context_value("aggregate"), Some("size"));
    assert!(notes.get("c").await.unwrap().is_none());
    assert_eq!(notes.summed("size", (false, "t")).await.unwrap(), 2 * most);
    // What was added can always be turned round and taken away.
    notes.replace(&note("a", -most)).await.unwrap();
    notes.insert(&note("c", -most)).await.unwrap();
    for id in ["a", "b", "c"] {
        notes.delete(id).await.unwrap();
    }
    assert_eq!(notes.counted("size", (false, "t")).await.unwrap(), 0);
    assert_clean(&store).await;
}

#[tokio::test]
async fn empty_groups_are_not_shown_and_are_swept() {
    for (engine, _folder) in engines() {
        let store = Store::on(engine);
        store.apply(&schema()).await.unwrap();
        let runs = store.documents("run").await.unwrap();
        for n in 0..10 {
            runs.insert(&run("f", &n.to_string(), "queued", 0)).await.unwrap();
        }
        for n in 0..10 {
            runs.replace(&run("f", &n.to_string(), "done", 0)).await.unwrap();
        }
        let statuses = runs.groups(&GroupQuery::new("by_status")).await.unwrap().groups;
        assert_eq!(statuses.len(), 1, "ten with a sum of zero are not nothing");
        let full = own(&store, "aggregate:").await.len();
        let purged = store.purge_groups(&PurgeOptions::default()).await.unwrap();
        assert!(purged.removed >= 2);
        assert_eq!(own(&store, "aggregate:").await.len() as u64, full as u64 - purged.removed);
        assert_eq!(store.purge_groups(&PurgeOptions::default()).await.unwrap().removed, 0);
        assert_exact(&store).await;
        assert_clean(&store).await;
    }
}

/// Groups that keep falling to zero, swept all the time: no addition is lost to a sweep.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sweeping_beside_writers_loses_nothing() {
    for (engine, _folder) in engines() {
        let store = Store::on(engine);
        store.apply(&schema()).await.unwrap();
        let writers: Vec<_> = (0..4)
            .map(|writer| {
                let store = store.clone();
                tokio::spawn(async move {
                    let runs = store.documents("run").await.unwrap();
                    for n in 0..long::times(20) {
                        let id = writer.to_string();
                        runs.upsert(&run("f", &id, "queued", 1)).await.unwrap();
                        if n % 3 != 2 {
                            runs.delete(("f", id.as_str())).await.unwrap();
                        }
                    }
                })
            })
            .collect();
        while writers.iter().any(|writer| !writer.is_finished()) {
            store.purge_groups(&PurgeOptions::default()).await.unwrap();
            tokio::task::yield_now().await;
        }
        for writer in writers {
            writer.await.unwrap();
        }
        assert_exact(&store).await;
        assert_clean(&store).await;
    }
}

#[tokio::test]
async fn planted_drift_is_told_with_both_numbers_and_mended() {
    for (engine, _folder) in engines() {
        let store = Store::on(engine);
        store.apply(&schema()).await.unwrap();
        let runs = store.documents("run").await.unwrap();
        for n in 0..8 {
            runs.insert(&run("f", &n.to_string(), "done", n)).await.unwrap();
        }
        runs.insert(&run("g", "lone", "queued", 1)).await.unwrap();
        assert_clean(&store).await;
        plant(&store, "aggregate:run:by_status:1:done!:0", adding("n", 3)).await;
        plant(&store, "aggregate:run:by_status:1:dead!:0", adding("n", 1)).await;
        for row in own(&store, "aggregate:run:seconds_by_flow:1:g!:queued!:").await {
            let key = String::from_utf8(row.key.to_vec()).unwrap();
            plant(&store, &key, Effect::Delete).await;
        }
        let bytes = Effect::Put { stamp: Stamp([1; Stamp::BYTES]), bytes: "7".into() };
        plant(&store, "aggregate:run:all:1:7", bytes).await;
        let verification = store.verify().await.unwrap();
        let told: Vec<String> =
            verification.findings.iter().map(|finding| finding.to_string()).collect();
        assert_eq!(
            told,
            [
                "unreadable aggregate:run:all:1:7 in area ~ (index all of run): \
                 it is no number of the aggregate",
                "drifted aggregate:run:by_status:1:dead!: in area ~ (index by_status of run): \
                 for the group [\"dead\"] expected 0 records, found 1 records",
                "drifted aggregate:run:by_status:1:done!: in area ~ (index by_status of run): \
                 for the group [\"done\"] expected 8 records, found 11 records",
                "drifted aggregate:run:seconds_by_flow:1:g!:queued!: in area ~ \
                 (index seconds_by_flow of run): for the group [\"g\",\"queued\"] \
                 expected 1 in 1 records, found 0 in 0 records",
            ]
        );
        assert_eq!((verification.counts.drifted, verification.unsettled), (3, 0));
        let dry = keyloom::RepairOptions { dry_run: true, ..Default::default() };
        assert_eq!(store.repair(&dry).await.unwrap().mended_counts.total(), 4);
        assert_eq!(store.verify().await.unwrap().counts.total(), 4, "nothing was written");
        let repair = store.repair(&Default::default()).await.unwrap();
        assert_eq!((repair.mended_counts.total(), repair.left_counts.total()), (4, 0));
        assert_exact(&store).await;
        assert_clean(&store).await;
        assert_eq!(own(&store, "aggregate-mark:").await, []);
        assert_eq!(own(&store, "aggregate:run:by_status:1:").await, [], "it was replaced");
        assert_eq!(store.index_state("run", "all").await.unwrap(), IndexState::Ready);
        let again = store.repair(&Default::default()).await.unwrap();
        assert_eq!(again.mended_counts.total(), 0);
    }
}

/// Keys that no aggregate has, and generations that never were.
#[tokio::test]
async fn planted_litter_is_found_and_removed() {
    let store = store().await;
    store.documents("run").await.unwrap().insert(&run("f", "1", "done", 1)).await.unwrap();
    let litter = [
        "aggregate:",
        "aggregate:nope",
        "aggregate:run:by_status:01:done!:0",
        "aggregate:run:by_status:2:done!:0",
        "aggregate:run:gone:1:done!:0",
        "aggregate:runs:by_status:1:done!:0",
        "aggregate-mark:run:by_status:7:00",
        "aggregate-mark:\u{0}",
    ];
    for key in litter {
        plant(&store, key, adding("n", 1)).await;
    }
    let found = store.verify().await.unwrap();
    assert_eq!(found.counts.dangling, litter.len() as u64, "{:#?}", found.findings);
    assert_eq!(found.counts.total(), litter.len() as u64);
    let repair = store.repair(&Default::default()).await.unwrap();
    assert_eq!(repair.mended_counts.dangling, litter.len() as u64);
    assert_clean(&store).await;
    assert_exact(&store).await;
}

/// A process that has not heard of a recount never reads what the recount replaced.
#[tokio::test]
async fn a_reader_with_an_old_schema_reads_the_new_numbers() {
    let engine: Arc<dyn Engine> = Arc::new(Memory::new());
    let (first, second) = (Store::on(engine.clone()), Store::on(engine));
    first.apply(&schema()).await.unwrap();
    let runs = first.documents("run").await.unwrap();
    runs.insert(&run("f", "1", "done", 4)).await.unwrap();
    let others = second.documents("run").await.unwrap();
    assert_eq!(others.counted("by_status", "done").await.unwrap(), 1);
    first.recount("run", "by_status").await.unwrap();
    first.recount("run", "seconds_by_flow").await.unwrap();
    assert_eq!(others.counted("by_status", "done").await.unwrap(), 1);
    first.recount("run", "by_status").await.unwrap();
    assert_eq!(others.groups(&GroupQuery::new("by_status")).await.unwrap().groups.len(), 1);
    first.recount("run", "by_status").await.unwrap();
    assert_eq!(others.top_groups(&GroupQuery::new("by_status"), 3).await.unwrap().groups.len(), 1);
    let catalog = keyloom::engine::Address::new(keyloom::engine::Area::own(), "catalog");
    let cell = first.engine().get(&Space::main(), &[catalog]).await.unwrap().remove(0).unwrap();
    let catalog: Value = serde_json::from_slice(cell.bytes().unwrap()).unwrap();
    let expected = json!({ "current": { "number": 4, "cells": 1 }, "last": 4 });
    assert_eq!(catalog["generations"]["run"]["by_status"], expected);
}

mod typed {
    #![allow(clippy::duplicated_attributes, reason = "two sums are grouped alike")]

    use keyloom::{Choice, Record};
    use serde::{Deserialize, Serialize};

    #[derive(Record, Serialize, Deserialize)]
    #[record(key = "job:{id}", collection = "job")]
    #[count(by_state = ["state"])]
    #[count(everything = [])]
    #[sum(cost = ["owner.team", "state"], field = "cents", where(state = ["open", "shut"], cents = { gt = 0 }))]
    #[field(path = "owner.team", type = "text")]
    pub struct Job {
        pub id: String,
        pub owner: Owner,
        pub state: State,
        pub cents: i64,
    }

    #[derive(Serialize, Deserialize)]
    pub struct Owner {
        pub team: String,
    }

    #[derive(Choice, Clone, Copy, Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    pub enum State {
        Open,
        Shut,
        Lost,
    }
}

#[tokio::test]
async fn a_struct_declares_what_a_file_would() {
    use typed::{Job, Owner, State};
    let declared = <Job as keyloom::Record>::schema().unwrap();
    let written = r#"
        [collection.job]
        key = "job:{id}"
        fields.id = "text"
        fields.cents = "integer"
        fields.state = { type = "enum", values = ["open", "shut", "lost"] }
        fields."owner.team" = "text"
        count.by_state = { group = ["state"] }
        count.everything = { group = [] }

        [collection.job.sum.cost]
        field = "cents"
        group = ["owner.team", "state"]
        where = { state = ["open", "shut"], cents = { gt = 0 } }
    "#;
    assert_eq!(declared, keyloom::Schema::from_toml(written).unwrap());
    let store = Store::on(Arc::new(Memory::new()));
    let jobs = store.collection::<Job>().await.unwrap();
    for (n, state) in [State::Open, State::Shut, State::Lost, State::Open].into_iter().enumerate() {
        let owner = Owner { team: "a".into() };
        jobs.insert(&Job { id: n.to_string(), owner, state, cents: n as i64 }).await.unwrap();
    }
    assert_eq!(jobs.counted("by_state", "open").await.unwrap(), 2);
    assert_eq!(jobs.counted("everything", ()).await.unwrap(), 4);
    assert_eq!(jobs.summed("cost", ("a", "open")).await.unwrap(), 3);
    assert_eq!(jobs.counted("cost", ("a", "open")).await.unwrap(), 1);
    assert_eq!(jobs.counted("cost", ("a", "lost")).await.unwrap(), 0);
}

/// A query whose records are exactly a group is counted by the group, and any other by reading.
#[tokio::test]
async fn counting_a_query_uses_the_group_that_is_its_answer() {
    const TASKS: &str = r#"
        [collection.task]
        key = "task:{id}"
        fields = { id = "text", team = "text", open = "boolean", rank = "integer" }
        index.team = { key = "team:{team}:{rank}:{id}" }
        count.all = { group = [] }
        count.open = { group = ["team"], where = { open = true } }
        count.high = { group = ["rank"], where = { rank = { gte = 3 } } }
    "#;
    let metered = Arc::new(Metered::new(Arc::new(Memory::new())));
    let store = Store::on(metered.clone());
    store.apply(&keyloom::Schema::from_toml(TASKS).unwrap()).await.unwrap();
    let tasks = store.documents("task").await.unwrap();
    for n in 0..30 {
        let record = json!({
            "id": n.to_string(), "team": if n % 3 == 0 { "a" } else { "b" },
            "open": n % 2 == 0, "rank": n % 5,
        });
        tasks.insert(&record).await.unwrap();
    }
    let counted = async |query: &Query| {
        metered.take();
        let count = tasks.count(query).await.unwrap();
        (count, metered.take().cells_read)
    };
    // The number and the catalog: two cells, however many records.
    assert_eq!(counted(&Query::new()).await, (30, 2));
    let open = Query::new().equal("team", "a").equal("open", true);
    assert_eq!(counted(&open).await, (5, 2));
    assert_eq!(counted(&Query::new().equal("rank", 4)).await, (6, 2));
    // It reads no entry, so that a limit on what is read does not matter to it.
    assert_eq!(counted(&Query::new().equal("rank", 4).limit(1)).await, (6, 2));
    let explained = tasks.explain(&open).await.unwrap_or_default();
    assert!(explained.ends_with("count: the aggregate open, one round trip"), "{explained}");

    // Not a group, or not only a group: these read.
    let team = Query::new().equal("team", "a");
    assert!(!tasks.explain(&team).await.unwrap().contains("aggregate"));
    // Ten entries, and the epoch of the schema.
    assert_eq!(counted(&team).await, (10, 11));
    for (query, count) in [
        (Query::new().equal("team", "a").equal("open", false).scan(), 5),
        (Query::new().equal("rank", 2).scan(), 6),
        (Query::new().equal("rank", 4).equal("team", "a").scan(), 2),
        (Query::new().equal("team", "a").range("rank", 4..), 2),
        (open.clone().filter("rank", keyloom::Test::Equals(json!(4))).scan(), 1),
    ] {
        assert_eq!(counted(&query).await.0, count, "{query:?}");
        assert!(!tasks.explain(&query).await.unwrap().contains("aggregate"), "{query:?}");
    }
    store.disable("task", "open").await.unwrap();
    assert!(counted(&open.scan()).await.1 > 2, "a disabled count answers nothing");
}

/// Something else lies where a number should be: writers of the group are told, and others are not
/// stopped; counting anew mends it.
#[tokio::test]
async fn a_number_that_is_none_is_told_and_mended() {
    let store = store().await;
    let runs = store.documents("run").await.unwrap();
    runs.insert(&run("f", "1", "done", 1)).await.unwrap();
    let bytes = Effect::Put { stamp: Stamp([1; Stamp::BYTES]), bytes: "1".into() };
    plant(&store, "aggregate:run:by_status:1:done!:0", bytes).await;
    let error = runs.insert(&run("f", "2", "done", 1)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    assert_eq!(error.context_value("aggregate"), Some("by_status"));
    assert_eq!(runs.counted("by_status", "done").await.unwrap_err().kind(), ErrorKind::Corrupt);
    runs.insert(&run("f", "3", "queued", 1)).await.unwrap();
    let repair = store.repair(&Default::default()).await.unwrap();
    assert_eq!((repair.left_counts.total(), repair.mended_counts.unreadable), (0, 1));
    runs.insert(&run("f", "2", "done", 1)).await.unwrap();
    assert_exact(&store).await;
    assert_clean(&store).await;
}
