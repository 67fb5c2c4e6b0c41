//! A store as it was at one moment: every way to read it, while writers go on.

#![cfg(feature = "embedded")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests fail by panicking"
)]

mod backup_support;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use backup_support::{NOW, Subject, account, everything, fill};
use keyloom::engine::{Memory, Torn};
use keyloom::{
    Clock, ErrorKind, GroupQuery, MaintainOptions, Position, Query, RawList, Result, Schema,
    StatsOptions, Store, WatchOptions,
};
use serde_json::{Value, json};

/// What each way to read gives, in words.
async fn answers(store: &Store) -> Vec<String> {
    let accounts = store.documents("account").await.unwrap();
    let mut told = Vec::new();
    let mut query = Query::new().equal("owner", "o1").take(2);
    loop {
        let page = accounts.page(&query).await.unwrap();
        told.push(format!("{:?} {:?}", page.records, page.stopped));
        let Some(next) = page.next else { break };
        query = query.from_cursor(next);
    }
    for query in [
        Query::new().equal("tags.*", "t1"),
        Query::new().equal("owner", "ana").index("card"),
        Query::new().scan(),
    ] {
        told.push(format!("{:?}", accounts.page(&query).await.unwrap().records));
    }
    for number in [0, 3, 12, 29, 40, 50] {
        told.push(format!("{:?}", accounts.get(format!("a{number:03}")).await.unwrap()));
        told.push(format!("{:?}", accounts.get_by("code", format!("c{number}")).await.unwrap()));
        let history = accounts.history(format!("a{number:03}"), 50, None).await;
        told.push(format!("{:?}", history.map(|page| page.records).map_err(|error| error.kind())));
    }
    told.push(format!("{:?}", accounts.groups(&GroupQuery::new("by_owner")).await.unwrap().groups));
    told.push(format!("{:?}", accounts.summed("money", "o1").await.unwrap()));
    told.push(format!("{:?}", accounts.count(&Query::new().equal("owner", "o2")).await.unwrap()));
    told.push(format!("{:?}", store.plain().get("settings").await.unwrap()));
    let raw = store.raw_keys().unwrap().list(&RawList::new().take(1000).values()).await.unwrap();
    told.push(format!("{:?}", raw.keys));
    told.push(format!("{:?}", store.stats(&StatsOptions::default()).await.unwrap().collections));
    told.push(format!("{:?}", store.changes(Position::FIRST, 1000).await.unwrap()));
    told.push(format!("{:?}", store.stored_schema().await.unwrap().states));
    told.push(format!("{:?}", store.verify().await.unwrap()));
    told
}

async fn change_everything(store: &Store) {
    let accounts = store.documents("account").await.unwrap();
    for number in 0..30 {
        let key = format!("a{number:03}");
        match number % 3 {
            0 => drop(accounts.delete(&key).await.unwrap()),
            1 => drop(accounts.upsert(&account(number, -1)).await.unwrap()),
            _ => drop(accounts.increment(&key, [("stats.moves", 1)]).await),
        }
    }
    accounts.insert(&account(50, 50)).await.unwrap();
    store.plain().put("settings", "{}").await.unwrap();
    store.disable("account", "owner").await.unwrap();
    store.build("account", "owner").await.unwrap();
    let later = "[collection.later]\nkey = \"later:{id}\"\nfields = { id = \"text\" }";
    store.apply(&Schema::from_toml(later).unwrap()).await.unwrap();
}

#[tokio::test]
async fn every_answer_stays_as_it_was() {
    for Subject { name, store, .. } in Subject::every_filled().await {
        let before = answers(&store).await;
        let pinned = store.pinned().await.unwrap();
        let other = store.space("other").unwrap();
        fill(&other).await;
        change_everything(&store).await;
        for (before, now) in before.iter().zip(answers(&pinned).await) {
            assert_eq!(*before, now, "{name}");
        }
        assert!(pinned.documents("later").await.is_err(), "{name}: a collection of later");
        assert_eq!(pinned.space_name(), "main");
        let other = pinned.space("other").unwrap();
        assert_eq!(everything(&other).await.0, [], "{name}: another space, at the same moment");
        assert_ne!(answers(&store).await, before);
        assert!(store.verify().await.unwrap().is_clean());
    }
}

#[tokio::test]
async fn nothing_can_be_written_to_a_moment() {
    for Subject { name, store, .. } in Subject::every_filled().await {
        let pinned = store.pinned().await.unwrap();
        let before = everything(&store).await;
        let accounts = pinned.documents("account").await.unwrap();
        let refused = |what: &str, done: Result<()>| {
            let error = done.expect_err(what);
            assert_eq!(error.kind(), ErrorKind::ReadOnly, "{name}: {what}: {error}");
        };
        refused("insert", accounts.insert(&account(60, 1)).await.map(drop));
        refused("upsert", accounts.upsert(&account(1, 9)).await.map(drop));
        refused("update", accounts.update_with_retry("a001", &json!({ "x": 1 })).await.map(drop));
        refused("delete", accounts.delete("a001").await.map(drop));
        refused("increment", accounts.increment("a001", [("stats.moves", 1)]).await.map(drop));
        refused("plain", pinned.plain().put("k", "v").await.map(drop));
        refused("disable", pinned.disable("account", "tag").await);
        let later = "[collection.later]\nkey = \"later:{id}\"\nfields = { id = \"text\" }";
        refused("apply", pinned.apply(&Schema::from_toml(later).unwrap()).await.map(drop));
        let moved = pinned.transaction(async |transaction| {
            transaction.documents("account")?.delete("a002").await.map(drop)
        });
        refused("transaction", moved.await);
        let mut watch = pinned.watch(WatchOptions::from_now()).await.unwrap();
        refused("watch", watch.next().await.map(drop));
        let swept = pinned.with_clock(Clock::new(|| NOW + 1_000_000));
        refused("maintain", swept.maintain(&MaintainOptions::default()).await.map(drop));
        assert_eq!(everything(&store).await, before, "{name}");
        assert_eq!(everything(&pinned).await, before, "{name}");
    }
}

/// What has expired is judged by the clock of the moment, and acting users see what is theirs.
#[tokio::test]
async fn a_moment_has_its_own_time_and_the_same_user() {
    for Subject { name, store, .. } in Subject::every_filled().await {
        let time = Arc::new(std::sync::atomic::AtomicU64::new(NOW));
        let hand = time.clone();
        let store = store.with_clock(Clock::new(move || hand.load(Ordering::SeqCst)));
        let pinned = store.acting_as("ana").unwrap().pinned().await.unwrap();
        time.store(NOW + 60_000, Ordering::SeqCst);
        let accounts = store.documents("account").await.unwrap();
        assert!(accounts.get("a001").await.unwrap().is_none(), "{name}: it has ended");
        let accounts = pinned.documents("account").await.unwrap();
        assert!(accounts.get("a001").await.unwrap().is_some(), "{name}: it had not");
        assert_eq!(pinned.log_bounds().await.unwrap_err().kind(), ErrorKind::Forbidden, "{name}");
    }
}

/// Two records whose sum is always the same, far from each other and read in many pages.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn pages_of_a_moment_keep_a_sum_and_the_log_tells_the_rest() {
    for Subject { name, store, .. } in Subject::every_filled().await {
        let is_over = Arc::new(AtomicBool::new(false));
        let writers: Vec<_> = (0..4)
            .map(|writer| {
                let (store, is_over) = (store.clone(), is_over.clone());
                tokio::spawn(async move {
                    while !is_over.load(Ordering::Acquire) {
                        transfer(&store, writer + 1).await;
                    }
                })
            })
            .collect();
        for _ in 0..8 {
            let pinned = store.pinned().await.unwrap();
            let accounts = pinned.documents("account").await.unwrap();
            let mut query = Query::new().scan().take(3);
            let mut total = 0;
            loop {
                let page = accounts.page(&query).await.unwrap();
                for record in &page.records {
                    total += record.value["balance"].as_i64().unwrap();
                }
                let Some(next) = page.next else { break };
                query = query.from_cursor(next);
                tokio::task::yield_now().await;
            }
            assert_eq!(total, TOTAL, "{name}");
            // What the log tells from there on leads from this moment to the store as it is later.
            let next = pinned.log_bounds().await.unwrap().next;
            let copy = balances(&pinned).await;
            assert_eq!(followed(copy, &store, next).await, Ok(()), "{name}");
        }
        is_over.store(true, Ordering::Release);
        for writer in writers {
            writer.await.unwrap();
        }
        let pinned = store.pinned().await.unwrap();
        assert_eq!(balances(&pinned).await, balances(&store).await);
    }
}

/// What all accounts have together, once they are filled.
const TOTAL: i64 = 19 * 100 + (1 + 2 + 3 + 4 + 5 + 6 + 7 + 8 + 9) + 7;

async fn transfer(store: &Store, amount: i64) {
    let moved = store.transaction(async |transaction| {
        let accounts = transaction.documents("account")?;
        for (key, change) in [("a000", -amount), ("a040", amount)] {
            let mut record = accounts.get(key).await?.unwrap().value;
            record["balance"] = json!(record["balance"].as_i64().unwrap() + change);
            accounts.upsert(&record).await?;
        }
        Ok::<_, keyloom::Error>(())
    });
    // Others may be faster, again and again.
    match moved.await {
        Ok(()) => {}
        Err(error) => assert!(error.is_retryable(), "{error}"),
    }
}

type Balances = std::collections::BTreeMap<String, Value>;

async fn balances(store: &Store) -> Balances {
    let accounts = store.documents("account").await.unwrap();
    let page = accounts.documents(&Query::new().scan().take(1000)).await.unwrap();
    let text = |text: &[u8]| serde_json::from_slice::<Value>(text).unwrap()["balance"].clone();
    page.records.iter().map(|one| (one.key.to_string(), text(one.text()))).collect()
}

/// Applies what the log tells from a position on, up to a later moment, and compares.
async fn followed(mut copy: Balances, store: &Store, from: Position) -> Result<(), String> {
    let later = store.pinned().await.unwrap();
    let end = later.log_bounds().await.unwrap().next;
    let mut next = from;
    while next < end {
        let changes = later.changes(next, 100).await.unwrap();
        for change in changes.commits.iter().flat_map(|commit| &commit.changes) {
            match change.document() {
                Some(document) => {
                    let record: Value = serde_json::from_slice(document.text()).unwrap();
                    copy.insert(change.key.clone(), record["balance"].clone());
                }
                None => drop(copy.remove(&change.key)),
            }
        }
        next = changes.next;
    }
    let now = balances(&later).await;
    if copy == now { Ok(()) } else { Err(format!("{copy:?} is not {now:?}")) }
}

#[tokio::test]
async fn an_engine_that_cannot_hold_a_moment_says_so() {
    let store = Store::on(Arc::new(Torn::new(Arc::new(Memory::new()), 1)));
    let error = store.pinned().await.map(drop).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert_eq!(error.context_value("engine"), Some("torn"));
}

#[tokio::test]
async fn a_moment_is_let_go_of_and_ends_with_its_store() {
    for Subject { name, store, .. } in Subject::every_filled().await {
        let (first, second) = (store.pinned().await.unwrap(), store.pinned().await.unwrap());
        first.close().await.unwrap();
        assert_eq!(first.schema().await.unwrap_err().kind(), ErrorKind::Closed, "{name}");
        second.schema().await.unwrap();
        store.close().await.unwrap();
        let gone = second.plain().get("settings").await.unwrap_err();
        assert_eq!(gone.kind(), ErrorKind::Closed, "{name}");
    }
}
