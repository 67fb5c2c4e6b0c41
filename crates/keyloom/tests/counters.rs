//! What counters promise, on every engine in this process.

#![cfg(feature = "embedded")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests fail by panicking"
)]

mod counter_support;
mod long;

use std::collections::BTreeMap;
use std::sync::Arc;

use counter_support::{Subject, flow_record, shown};
use keyloom::engine::{Durability, Embedded, EmbeddedOptions, Engine, Memory, Reading};
use keyloom::{Error, ErrorKind, Fate, Increment, Near, Query, Schema, Store, Stored};
use serde_json::{Value, json};

fn refused(error: &Error, kind: ErrorKind) {
    assert_eq!((error.kind(), error.fate()), (kind, Fate::DidNotHappen), "{error:?}");
}

#[tokio::test]
async fn an_increment_is_one_batch_without_a_read() {
    for subject in Subject::all().await {
        let document = subject.flows.insert(&flow_record("f")).await.unwrap();
        subject.metered.take();
        let deltas = [("stats.running", 2), ("hits.b", 1), ("stats.success", 0), ("hits.b", 4)];
        let after = subject.flows.increment("f", deltas).await.unwrap();
        let usage = subject.metered.take();
        assert_eq!((usage.round_trips(), usage.commits, usage.entries_written), (1, 1, 1));
        let wanted: BTreeMap<String, i64> = [
            ("hits.b", 5),
            ("hits.free", 0),
            ("stats.running", 2),
            ("stats.steps.done", 0),
            ("stats.success", 0),
            ("total", 0),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .into();
        assert_eq!((&*after.key, after.values), ("flow:stats:f", wanted));
        let after = subject.flows.increment("f", [("stats.running", -1)]).await.unwrap();
        assert_eq!((after["stats.running"], after["hits.b"]), (1, 5));
        let stored = subject.flows.get("f").await.unwrap().unwrap();
        assert_eq!(stored.version, document.version, "counters do not bump the version");
        assert_eq!(
            subject.beside("flow:stats:f").await.unwrap(),
            [("hits.b", 5), ("stats.running", 1), ("stats.success", 0)]
                .map(|(name, value)| (name.to_owned(), value))
        );
    }
}

#[tokio::test]
async fn several_records_of_several_collections_are_one_step() {
    for subject in Subject::all().await {
        for flow in ["f", "g"] {
            subject.flows.insert(&flow_record(flow)).await.unwrap();
        }
        let tenants = subject.store.documents("tenant").await.unwrap();
        tenants.insert(&json!({ "id": "a:b" })).await.unwrap();
        subject.metered.take();
        let answers = subject
            .store
            .increment_many([
                Increment::of("flow", "f").add("total", 1),
                Increment::of("tenant", "a:b").add("used", 9),
                Increment::of("flow", "g").add("total", 2),
                Increment::of("flow", "f").add("total", 10),
            ])
            .await
            .unwrap();
        assert_eq!(subject.metered.take().round_trips(), 1);
        let totals: Vec<Option<&i64>> = answers.iter().map(|it| it.get("total")).collect();
        assert_eq!(totals, [Some(&11), None, Some(&2), Some(&11)]);
        assert_eq!(answers[1]["used"], 9);
        // One bound that breaks stops all of them.
        let error = subject
            .store
            .increment_many([
                Increment::of("flow", "f").add("total", 1),
                Increment::of("tenant", "a:b").add("used", 2),
            ])
            .await
            .unwrap_err();
        refused(&error, ErrorKind::OutOfBounds);
        let many = subject.flows.increment_many([("f", [("total", 0)]), ("g", [("total", 0)])]);
        let totals: Vec<i64> = many.await.unwrap().iter().map(|it| it["total"]).collect();
        assert_eq!(totals, [11, 2]);
        assert_eq!(subject.store.increment_many([]).await.unwrap(), []);
    }
}

#[tokio::test]
async fn what_cannot_be_added_changes_nothing_and_says_why() {
    for subject in Subject::all().await {
        let wanted = subject.counted("f").await;
        let fails = async |deltas: &[(&str, i64)]| {
            let deltas = deltas.iter().map(|(name, delta)| (*name, *delta));
            let error = subject.flows.increment("f", deltas).await.unwrap_err();
            let stored = subject.flows.get("f").await.unwrap().unwrap();
            assert_eq!(stored.value, wanted, "{error}");
            error
        };
        let error = fails(&[("total", 1), ("stats.running", -4)]).await;
        refused(&error, ErrorKind::OutOfBounds);
        for (name, value) in [
            ("collection", "flow"),
            ("key", "flow:stats:f"),
            ("counter", "stats.running"),
            ("delta", "-4"),
            ("value", "3"),
            ("min", "0"),
        ] {
            assert_eq!(error.context_value(name), Some(value), "{name} of {error}");
        }
        let error = fails(&[("stats.steps.done", 6)]).await;
        assert_eq!((error.kind(), error.context_value("max")), (ErrorKind::OutOfBounds, Some("5")));
        let error = fails(&[("total", i64::MIN)]).await;
        refused(&error, ErrorKind::OutOfBounds);
        assert_eq!(error.message(), "a counter does not fit into 64 bits");
        let error = fails(&[("stats.success", i64::MAX), ("stats.success", 1)]).await;
        refused(&error, ErrorKind::OutOfBounds);
        assert_eq!(error.context_value("counter"), Some("stats.success"));
        let error = fails(&[("stats.runing", 1)]).await;
        refused(&error, ErrorKind::InvalidArgument);
        let known = error.context_value("known").unwrap();
        assert!(known.contains("stats.running") && known.contains("hits.*"), "{known}");
        for name in ["hits", "hits.a\tb", "hits.*", "owner", "", "stats"] {
            refused(&fails(&[(name, 1)]).await, ErrorKind::InvalidArgument);
        }
        refused(&fails(&[]).await, ErrorKind::InvalidArgument);
        let error = subject.flows.increment("gone", [("total", 1)]).await.unwrap_err();
        refused(&error, ErrorKind::NotFound);
        assert_eq!(error.context_value("key"), Some("flow:stats:gone"));
        assert_eq!(subject.beside("flow:stats:gone").await, None);
        let plain = subject.store.documents("plain").await.unwrap();
        plain.insert(&json!({ "id": "p" })).await.unwrap();
        let error = plain.increment("p", [("n", 1)]).await.unwrap_err();
        refused(&error, ErrorKind::InvalidArgument);
        assert_eq!(error.message(), "the collection declares no counters");
    }
}

#[tokio::test]
async fn every_read_shows_the_counters_in_place() {
    for subject in Subject::all().await {
        let f = subject.counted("f").await;
        subject.flows.insert(&flow_record("g")).await.unwrap();
        let g = shown("g", json!({}), json!({ "free": 0 }), 0);
        let flows = &subject.flows;
        subject.metered.take();
        let value = |stored: Option<Stored<Value>>| stored.unwrap().value;
        assert_eq!(value(flows.get("f").await.unwrap()), f);
        assert_eq!(subject.metered.take().round_trips(), 1, "record and counters in one get");
        let many = flows.get_many(["f", "gone", "g"]).await.unwrap();
        assert_eq!(subject.metered.take().round_trips(), 1);
        assert_eq!(many[0].as_ref().unwrap().value, f);
        assert!(many[1].is_none());
        assert_eq!(many[2].as_ref().unwrap().value, g);
        assert_eq!(value(flows.get_by("email", "f@x").await.unwrap()), f);
        // Where reads mix moments, the epoch of the schema is read after.
        let is_snapshot = subject.store.engine().capabilities().reading == Reading::Snapshot;
        let round_trips = if is_snapshot { 2 } else { 3 };
        assert_eq!(subject.metered.take().round_trips(), round_trips);
        for query in [
            Query::new().equal("owner", "ana"),
            Query::new().equal("owner", "ana").index("whole"),
            Query::new().scan(),
            Query::new().any("owner", "ana").any("email", "f@x"),
        ] {
            let page = flows.page(&query).await.unwrap();
            let records: Vec<&Value> = page.records.iter().map(|stored| &stored.value).collect();
            assert_eq!(records, [&f, &g], "{query:?}");
        }
        let near = flows.near(&Near::new(1.0, 2.0).within(10.0)).await.unwrap();
        let records: Vec<&Value> = near.records.iter().map(|it| &it.record.value).collect();
        assert_eq!(records, [&f, &g]);
        assert_eq!(flows.get_document("f").await.unwrap().unwrap().json().unwrap(), f);
        let seen = subject
            .store
            .transaction(async |tx| {
                let flows = tx.documents("flow")?;
                let by = flows.get_by("email", "f@x").await?.unwrap().value;
                Ok::<_, Error>((flows.get("f").await?.unwrap().value, by))
            })
            .await
            .unwrap();
        assert_eq!(seen, (f.clone(), f));
        let text = subject.text("flow:stats:f").await.unwrap();
        assert_eq!(text, flow_record("f").to_string(), "the record's text has no counters");
    }
}

#[tokio::test]
async fn a_page_costs_one_round_trip_more_whatever_its_size() {
    let subject = Subject::memory().await;
    for number in 0..50 {
        subject.flows.insert(&flow_record(&format!("f{number}"))).await.unwrap();
    }
    let query = Query::new().equal("owner", "ana").take(50);
    subject.metered.take();
    assert_eq!(subject.flows.page(&query).await.unwrap().records.len(), 50);
    let usage = subject.metered.take();
    assert_eq!((usage.gets, usage.round_trips()), (1, 2), "{usage:?}");
    subject.flows.keys(&query).await.unwrap();
    subject.flows.count(&query).await.unwrap();
    assert_eq!(subject.metered.take().gets, 0, "keys and numbers need no counters");
}

#[tokio::test]
async fn a_collection_without_counters_pays_nothing() {
    let subject = Subject::memory().await;
    let plain = subject.store.documents("plain").await.unwrap();
    subject.metered.take();
    let document = plain.insert(&json!({ "id": "p" })).await.unwrap();
    let usage = subject.metered.take();
    assert_eq!((usage.round_trips(), usage.entries_written), (1, 1));
    plain.get("p").await.unwrap();
    plain.page(&Query::new().scan()).await.unwrap();
    let usage = subject.metered.take();
    // Two records, and the epoch of the schema with the page.
    assert_eq!((usage.gets, usage.scans, usage.cells_read), (1, 1, 3));
    assert_eq!(document.text(), br#"{"id":"p"}"#);
    plain.delete("p").await.unwrap();
    assert_eq!(subject.metered.take().entries_written, 1);
}

#[tokio::test]
async fn counters_end_with_their_record() {
    for subject in Subject::all().await {
        subject.counted("f").await;
        subject.metered.take();
        subject.flows.delete("f").await.unwrap();
        assert_eq!(subject.metered.take().commits, 1);
        assert_eq!(subject.beside("flow:stats:f").await, None);
        refused(
            &subject.flows.increment("f", [("total", 1)]).await.unwrap_err(),
            ErrorKind::NotFound,
        );
        let again = subject.flows.insert(&flow_record("f")).await.unwrap();
        let anew = shown("f", json!({}), json!({ "free": 0 }), 0);
        assert_eq!(again.value().unwrap(), anew);
        assert_eq!(subject.flows.get("f").await.unwrap().unwrap().value, anew);
        let after = subject.flows.increment("f", [("total", 1)]).await.unwrap();
        assert_eq!(after["total"], 1);
        // The plain interface goes through the collection.
        assert!(subject.store.plain().delete("flow:stats:f").await.unwrap().is_some());
        assert_eq!(subject.beside("flow:stats:f").await, None);
        assert!(subject.store.verify().await.unwrap().is_clean());
    }
}

#[tokio::test]
async fn counters_move_with_their_record() {
    for subject in Subject::all().await {
        let mut wanted = subject.counted("f").await;
        let moved = subject
            .flows
            .rename("f", |flow| {
                flow["flow"] = json!("g");
                Ok(())
            })
            .await
            .unwrap();
        wanted["flow"] = json!("g");
        assert_eq!(moved.value().unwrap(), wanted);
        assert_eq!(subject.flows.get("g").await.unwrap().unwrap().value, wanted);
        assert_eq!(subject.flows.get("f").await.unwrap(), None);
        assert_eq!(subject.beside("flow:stats:f").await, None);
        // A record without counts moves without a cell.
        subject.flows.insert(&flow_record("h")).await.unwrap();
        let to_i = |flow: &mut Value| {
            flow["flow"] = json!("i");
            Ok(())
        };
        subject.flows.rename("h", to_i).await.unwrap();
        assert_eq!(subject.beside("flow:stats:i").await, None);
        assert!(subject.store.verify().await.unwrap().is_clean());
    }
}

#[tokio::test]
async fn a_rename_loses_no_increment_that_comes_between() {
    for subject in Subject::all().await {
        subject.flows.insert(&flow_record("0")).await.unwrap();
        let (flows, renames) = (subject.flows.clone(), 30);
        let counting = tokio::spawn(async move {
            let (mut place, mut counted) = (0, 0);
            while place < renames {
                match flows.increment(place.to_string(), [("total", 1)]).await {
                    Ok(_) => counted += 1,
                    Err(error) => {
                        refused(&error, ErrorKind::NotFound);
                        place += 1;
                    }
                }
                tokio::task::yield_now().await;
            }
            counted
        });
        for place in 0..renames {
            let next = (place + 1).to_string();
            let change = |flow: &mut Value| {
                flow["flow"] = json!(next);
                Ok(())
            };
            subject.flows.rename(place.to_string(), change).await.unwrap();
            tokio::task::yield_now().await;
        }
        let counted: i64 = counting.await.unwrap();
        let last = subject.flows.get(renames.to_string()).await.unwrap().unwrap();
        assert_eq!(last.value["total"], json!(counted));
    }
}

#[tokio::test]
async fn writes_of_the_record_leave_counters_alone() {
    for subject in Subject::all().await {
        let mut wanted = subject.counted("f").await;
        let flows = &subject.flows;
        let mut record = flow_record("f");
        record["owner"] = json!("bo");
        wanted["owner"] = json!("bo");
        assert_eq!(flows.replace(&record).await.unwrap().value().unwrap(), wanted);
        record["owner"] = json!("cy");
        wanted["owner"] = json!("cy");
        assert_eq!(flows.upsert(&record).await.unwrap().value().unwrap(), wanted);
        let patch = json!({ "owner": "di", "stats": { "label": "new" } });
        wanted["owner"] = json!("di");
        wanted["stats"]["label"] = json!("new");
        let written = flows.update_with_retry("f", &patch).await.unwrap();
        assert_eq!(written.value().unwrap(), wanted);
        let modified = flows
            .modify("f", |flow| {
                assert_eq!(flow["stats"]["running"], json!(3), "the closure sees the counters");
                flow["owner"] = json!("ed");
                Ok(())
            })
            .await
            .unwrap();
        wanted["owner"] = json!("ed");
        assert_eq!(modified.value().unwrap(), wanted);
        let kept = flows.modify("f", |_| Ok(())).await.unwrap();
        assert_eq!(kept.effect, keyloom::Effect::Unchanged);
        let error = flows.update("f", &patch, written.version).await.unwrap_err();
        refused(&error, ErrorKind::VersionConflict);
        let current: Value = serde_json::from_str(error.context_value("current").unwrap()).unwrap();
        assert_eq!(current, wanted, "the conflict shows the counters");
        assert!(!subject.text("flow:stats:f").await.unwrap().contains("running"));
    }
}

#[tokio::test]
async fn a_payload_cannot_change_a_counter() {
    for subject in Subject::all().await {
        let wanted = subject.counted("f").await;
        let flows = &subject.flows;
        let check = async |answer: keyloom::Result<()>| {
            let error = answer.unwrap_err();
            refused(&error, ErrorKind::InvalidRecord);
            assert!(error.to_string().contains("increment"), "{error}");
            assert_eq!(flows.get("f").await.unwrap().unwrap().value, wanted);
        };
        for patch in [
            json!({ "stats": { "running": 5 } }),
            json!({ "stats": { "running": 3 } }),
            json!({ "stats": { "running": null } }),
            json!({ "stats": { "steps": { "done": 1 } } }),
            json!({ "stats": null }),
            json!({ "stats": { "steps": 4 } }),
            json!({ "hits": { "new": 1 } }),
            json!({ "hits": [] }),
            json!({ "total": 0 }),
            json!({ "stats.running": 5 }),
            json!({ "hits.new": 1 }),
        ] {
            check(flows.update_with_retry("f", &patch).await.map(drop)).await;
        }
        for (place, value) in [
            ("/stats/running", json!(4)),
            ("/stats/running", json!(0)),
            ("/stats/running", json!("3")),
            ("/stats/running", json!(3.5)),
            ("/hits/a", json!(1)),
            ("/total", json!(-6)),
        ] {
            let change = |flow: &mut Value| {
                *flow.pointer_mut(place).unwrap() = value.clone();
                Ok(())
            };
            check(flows.modify("f", change).await.map(drop)).await;
            check(flows.rename("f", change).await.map(drop)).await;
            check(flows.upsert_with(&flow_record("f"), change).await.map(drop)).await;
            let mut record = wanted.clone();
            change(&mut record).unwrap();
            check(flows.replace(&record).await.map(drop)).await;
            check(flows.upsert(&record).await.map(drop)).await;
            let in_transaction = subject
                .store
                .transaction(async |tx| tx.documents("flow")?.replace(&record).await.map(drop));
            check(in_transaction.await).await;
            let put = subject.store.plain().put("flow:stats:f", record.to_string()).await;
            check(put.map(drop)).await;
        }
        // A new record has counted nothing.
        let mut record = shown("g", json!({ "running": 1 }), json!({}), 0);
        check(flows.insert(&record).await.map(drop)).await;
        check(flows.upsert(&record).await.map(drop)).await;
        check(flows.upsert_with(&record, |_| Ok(())).await.map(drop)).await;
        let inserted =
            async |tx: keyloom::Transaction| tx.documents("flow")?.insert(&record).await.map(drop);
        let inserted = subject.store.transaction(inserted);
        check(inserted.await).await;
        record["stats"]["running"] = json!(0);
        record["hits"] = Value::Null;
        flows.insert(&record).await.unwrap();
        assert_eq!(subject.text("flow:stats:g").await.unwrap(), flow_record("g").to_string());
        // What was read is written back.
        let read = flows.get("f").await.unwrap().unwrap();
        let written = flows.replace_if(&read.value, read.version).await.unwrap();
        assert_eq!(written.effect, keyloom::Effect::Unchanged);
        for (field, value) in [("stats", json!(5)), ("hits", json!({ "a b": 1 }))] {
            let mut record = flow_record("f");
            record[field] = value;
            refused(&flows.replace(&record).await.unwrap_err(), ErrorKind::InvalidRecord);
        }
    }
}

#[tokio::test]
async fn questions_about_counters_are_refused() {
    let subject = Subject::memory().await;
    for field in ["stats.running", "hits.a", "hits.*", "total"] {
        for query in [
            Query::new().scan().filter(field, keyloom::Test::AtLeast(json!(1))),
            Query::new().scan().equal(field, 1),
            Query::new().scan().range(field, 1..),
            Query::new().order(field, keyloom::Order::Ascending),
        ] {
            let error = subject.flows.page(&query).await.unwrap_err();
            refused(&error, ErrorKind::InvalidQuery);
            assert_eq!(error.context_value("field"), Some(field));
        }
    }
}

#[tokio::test]
async fn transactions_count_at_their_commit() {
    for subject in Subject::all().await {
        subject.counted("f").await;
        let store = &subject.store;
        store
            .transaction(async |tx| {
                let flows = tx.documents("flow")?;
                flows.increment("f", [("stats.running", -1), ("stats.success", 1)]).await?;
                let seen = flows.get("f").await?.unwrap();
                assert_eq!(seen.value["stats"]["running"], json!(2), "it sees its own");
                flows.insert(&flow_record("g")).await?;
                flows.increment("g", [("total", 2)]).await?;
                tx.increment_many([Increment::of("flow", "g").add("total", 3)]).await?;
                assert_eq!(flows.get("g").await?.unwrap().value["total"], json!(5));
                // Somebody else adds meanwhile, and that is no conflict.
                subject.flows.increment("f", [("stats.running", 10)]).await?;
                let seen = flows.get("f").await?.unwrap();
                assert_eq!(seen.value["stats"]["running"], json!(2));
                Ok::<_, Error>(())
            })
            .await
            .unwrap();
        let f = subject.flows.get("f").await.unwrap().unwrap();
        assert_eq!((&f.value["stats"]["running"], f.version.revision()), (&json!(12), 1));
        assert_eq!(subject.flows.get("g").await.unwrap().unwrap().value["total"], json!(5));
        for (name, kind) in [("gone", ErrorKind::NotFound), ("f", ErrorKind::OutOfBounds)] {
            let failed = store.transaction(async |tx| {
                let flows = tx.documents("flow")?;
                flows.increment("g", [("total", 1)]).await?;
                flows.increment(name, [("stats.running", -100)]).await?;
                Ok::<_, Error>(())
            });
            refused(&failed.await.unwrap_err(), kind);
        }
        let looked = store.transaction(async |tx| {
            let flows = tx.documents("flow")?;
            flows.increment("gone", [("total", 1)]).await?;
            assert!(flows.get("gone").await?.is_none());
            Ok::<_, Error>(())
        });
        refused(&looked.await.unwrap_err(), ErrorKind::NotFound);
        assert_eq!(subject.flows.get("g").await.unwrap().unwrap().value["total"], json!(5));
        assert_eq!(subject.beside("flow:stats:gone").await, None);
    }
}

#[tokio::test]
async fn a_record_that_is_created_anew_in_a_transaction_counts_from_zero() {
    for subject in Subject::all().await {
        for adds in [None, Some(4)] {
            subject.flows.delete("f").await.unwrap();
            subject.counted("f").await;
            subject
                .store
                .transaction(async |tx| {
                    let flows = tx.documents("flow")?;
                    flows.increment("f", [("total", 100)]).await?;
                    flows.delete("f").await?;
                    let gone = flows.increment("f", [("total", 1)]).await.unwrap_err();
                    refused(&gone, ErrorKind::NotFound);
                    flows.insert(&flow_record("f")).await?;
                    if let Some(delta) = adds {
                        flows.increment("f", [("total", delta)]).await?;
                    }
                    let seen = flows.get("f").await?.unwrap();
                    assert_eq!(seen.value["total"], json!(adds.unwrap_or(0)));
                    assert_eq!(seen.value["stats"]["running"], json!(0));
                    Ok::<_, Error>(())
                })
                .await
                .unwrap();
            let read = subject.flows.get("f").await.unwrap().unwrap().value;
            assert_eq!(read["total"], json!(adds.unwrap_or(0)));
            assert_eq!(read["stats"]["running"], json!(0));
        }
        // What comes and goes in one transaction leaves nothing.
        let passing = subject.store.transaction(async |tx| {
            let flows = tx.documents("flow")?;
            flows.insert(&flow_record("h")).await?;
            flows.increment("h", [("total", 1)]).await?;
            flows.delete("h").await?;
            Ok::<_, Error>(())
        });
        passing.await.unwrap();
        assert_eq!(subject.beside("flow:stats:h").await, None);
        assert!(subject.store.verify().await.unwrap().is_clean());
    }
}

#[tokio::test]
async fn a_key_that_leaves_no_room_is_refused_before_anything_is_written() {
    let subject = Subject::memory().await;
    let tenants = subject.store.documents("tenant").await.unwrap();
    let longest = 900 - "counter:tenants:".len();
    tenants.insert(&json!({ "id": "n".repeat(longest) })).await.unwrap();
    tenants.increment("n".repeat(longest), [("used", 1)]).await.unwrap();
    let long = "n".repeat(longest + 1);
    let error = tenants.insert(&json!({ "id": long })).await.unwrap_err();
    refused(&error, ErrorKind::LimitExceeded);
    assert_eq!(error.context_value("bytes at most"), Some(&*longest.to_string()));
    assert_eq!(tenants.get(&long).await.unwrap(), None, "and reading it is no error");
}

async fn count_together(engine: Arc<dyn Engine>, tasks: i64, each: i64) {
    let subject = Subject::on(engine, tempfile::tempdir().unwrap()).await;
    subject.flows.insert(&flow_record("f")).await.unwrap();
    let counting = (0..tasks).map(|task| {
        let flows = subject.flows.clone();
        tokio::spawn(async move {
            let own = format!("hits.t{}", task % 4);
            for _ in 0..each {
                flows.increment("f", [("total", 1), (&*own, 2)]).await.unwrap();
            }
        })
    });
    let counting: Vec<_> = counting.collect();
    // Updates of the record neither lose to increments nor make them wait.
    let mut updates = 0;
    while !counting.iter().all(|task| task.is_finished()) {
        let patch = json!({ "stats": { "label": updates } });
        subject.flows.update_with_retry("f", &patch).await.unwrap();
        updates += 1;
        tokio::task::yield_now().await;
    }
    for task in counting {
        task.await.unwrap();
    }
    let read = subject.flows.get("f").await.unwrap().unwrap();
    assert_eq!(read.value["total"], json!(tasks * each));
    for family in 0..4 {
        assert_eq!(read.value["hits"][format!("t{family}")], json!(tasks * each / 2));
    }
    assert_eq!(read.version.revision(), 1 + updates);
}

/// As many as the promise says, with as little around them as can be.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrent_increments_lose_none_in_memory() {
    let store = Store::on(Arc::new(Memory::new()));
    let schema = "[collection.c]\nkey = \"c\"\ncounters = { n = {} }";
    store.apply(&Schema::from_toml(schema).unwrap()).await.unwrap();
    let counters = store.documents("c").await.unwrap();
    counters.insert(&json!({})).await.unwrap();
    let each = i64::from(long::times(10_000));
    let tasks: Vec<_> = (0..64)
        .map(|_| {
            let counters = counters.clone();
            tokio::spawn(async move {
                let mut last = 0;
                for _ in 0..each {
                    let now = counters.increment((), [("n", 1)]).await.unwrap()["n"];
                    assert!(now > last, "the answer includes its own add");
                    last = now;
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    assert_eq!(counters.get(()).await.unwrap().unwrap().value["n"], json!(64 * each));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn increments_and_updates_of_one_record_do_not_hinder_each_other_in_memory() {
    count_together(Arc::new(Memory::new()), 16, i64::from(long::times(500))).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn increments_and_updates_of_one_record_do_not_hinder_each_other_on_disk() {
    let folder = tempfile::tempdir().unwrap();
    let options = EmbeddedOptions::default().durability(Durability::Durable);
    let engine = Arc::new(Embedded::open(folder.path(), options).unwrap());
    count_together(engine, 64, i64::from(long::times(50))).await;
}

/// Any name below a family is a counter: it is counted, shown in one place, and may come back with
/// the record that shows it.
#[tokio::test]
async fn names_in_a_family_are_data() {
    for subject in Subject::all().await {
        subject.flows.insert(&flow_record("f")).await.unwrap();
        let names = ["http.500", "no answer", "{x}", "a..b", ".", "5*", "ü:\"", "free.x"];
        for (name, count) in names.iter().zip(1..) {
            let after = subject.flows.increment("f", [(format!("hits.{name}"), count)]).await;
            assert_eq!(after.unwrap()[&format!("hits.{name}")], count, "{name}");
        }
        let shown = subject.flows.get("f").await.unwrap().unwrap().value;
        for (name, count) in names.iter().zip(1..) {
            assert_eq!(shown["hits"][name], count, "{name}: {shown}");
        }
        assert_eq!(shown["hits"].as_object().unwrap().len(), names.len() + 1, "{shown}");
        subject.flows.replace(&shown).await.unwrap();
        assert_eq!(subject.flows.get("f").await.unwrap().unwrap().value, shown);
        for wrong in ["hits.", "hits.*", "hits.*key", "hits.a\nb", "hits"] {
            let error = subject.flows.increment("f", [(wrong, 1)]).await.unwrap_err();
            refused(&error, ErrorKind::InvalidArgument);
        }
    }
}

/// What holds counters is no counter: the advice names those that it holds.
#[tokio::test]
async fn a_patch_of_what_holds_counters_hears_which() {
    for subject in Subject::all().await {
        subject.flows.insert(&flow_record("f")).await.unwrap();
        for value in [json!(null), json!(5)] {
            let patch = json!({ "hits": value });
            let error = subject.flows.update_with_retry("f", &patch).await.unwrap_err();
            refused(&error, ErrorKind::InvalidRecord);
            assert_eq!(error.context_value("field"), Some("hits"), "{error}");
            assert_eq!(error.context_value("counters"), Some("hits.free, hits.*"), "{error}");
            assert_eq!(error.context_value("instead"), None, "{error}");
        }
    }
}
