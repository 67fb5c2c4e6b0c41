//! What removes things that are over may end anywhere: the next one goes on, and both together
//! leave what one leaves that never ended.

#![cfg(feature = "embedded")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests fail by panicking"
)]

mod index_support;
mod task_support;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use keyloom::engine::{CommitFault, Engine, Metered};
use keyloom::{Clock, Due, MaintainOptions, PurgeOptions, Result, Schema, Store, SweepOptions};
use serde_json::json;
use task_support::{dump, ended_at_every_commit, engines};

const SCHEMA: &str = r#"
[idempotency]
keep = "1 hours"

[collection.job]
key        = "job:{id}"
expires_at = "ends"
history    = { days = 1 }
fields     = { id = "text", kind = "text", at = "timestamp", ends = "timestamp" }
index.due  = { key = "job-due:{at}:{id}" }
count.kinds = { group = ["kind"] }
"#;

const START: u64 = 1_700_000_000_000;
const DAY: u64 = 24 * 60 * 60 * 1_000;

/// More than two chunks of 64.
const JOBS: usize = 150;

/// Every one of them ends at once, and one job stays.
async fn untidy(engine: &Arc<dyn Engine>) {
    let store = at(engine, START);
    store.apply(&Schema::from_toml(SCHEMA).unwrap()).await.unwrap();
    let jobs = store.documents("job").await.unwrap();
    // Together, so that they share syncs.
    let inserts = (0..=JOBS).map(|n| {
        let ends = if n == JOBS { START + 99 * DAY } else { START + 9 };
        let job = json!({ "id": n.to_string(), "kind": n.to_string(), "at": START, "ends": ends });
        let keyed = jobs.with_idempotency_key(&n.to_string()).unwrap();
        async move { keyed.insert(&job).await.unwrap() }
    });
    join_all(inserts).await;
    let leased = jobs.lease(&Due::new("due").take(70), "w", Duration::from_secs(1)).await.unwrap();
    assert_eq!(leased.items.len(), 70);
}

fn at(engine: &Arc<dyn Engine>, now: u64) -> Store {
    Store::on(engine.clone()).with_clock(Clock::new(move || now))
}

/// What removes one kind of thing that is over.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Purge {
    Sweep,
    Groups,
    IdempotencyKeys,
    /// With what only it removes: leases.
    Maintain,
    History,
}

impl Purge {
    async fn run(self, store: Store) -> Result<()> {
        let options = PurgeOptions::default();
        match self {
            Purge::Sweep => store.sweep(&SweepOptions::default()).await.map(drop),
            Purge::Groups => store.purge_groups(&options).await.map(drop),
            Purge::IdempotencyKeys => store.purge_idempotency_keys(&options).await.map(drop),
            Purge::Maintain => store.maintain(&MaintainOptions::default()).await.map(drop),
            Purge::History => store.purge_history(&options).await.map(drop),
        }
    }

    /// What has to be done before there is something for it.
    async fn prepare(self, engine: &Arc<dyn Engine>) {
        untidy(engine).await;
        if matches!(self, Purge::Groups | Purge::History) {
            Purge::Sweep.run(at(engine, START + 2 * DAY)).await.unwrap();
        }
    }
}

/// How many keys there are of each kind, by the first word of the key.
async fn kinds(engine: &Arc<dyn Engine>) -> BTreeMap<String, usize> {
    let mut kinds = BTreeMap::new();
    for (area, key) in dump(engine).await.into_keys() {
        let word = key.split(|&byte| byte == b':').next().unwrap_or_default();
        *kinds.entry(format!("{area} {}", String::from_utf8_lossy(word))).or_default() += 1;
    }
    kinds
}

#[tokio::test]
async fn a_purge_that_ends_at_every_commit_comes_to_the_same() {
    use Purge::{Groups, History, IdempotencyKeys, Maintain, Sweep};
    let late = START + 4 * DAY;
    for purge in [Sweep, Groups, IdempotencyKeys, History, Maintain] {
        let mut all_wanted = Vec::new();
        for (whole, _folder) in engines() {
            purge.prepare(&whole).await;
            let untidy = kinds(&whole).await;
            purge.run(at(&whole, late)).await.unwrap();
            let wanted = kinds(&whole).await;
            assert!(wanted.values().sum::<usize>() + 60 < untidy.values().sum(), "{purge:?}");
            all_wanted.push(wanted);
        }
        for fault in [CommitFault::Refused, CommitFault::RequestLost, CommitFault::AnswerLost] {
            for ((engine, _folder), wanted) in engines().into_iter().zip(&all_wanted) {
                purge.prepare(&engine).await;
                let work = |store: Store| purge.run(store.with_clock(Clock::new(move || late)));
                let ends = ended_at_every_commit(&engine, fault, work).await;
                assert!(ends > 0, "{purge:?}: {ends}");
                assert_eq!(&kinds(&engine).await, wanted, "{purge:?} {fault:?}");
                let left = at(&engine, late).verify().await.unwrap();
                assert!(left.is_clean(), "{purge:?} {fault:?}: {:?}", left.findings);
                let jobs = at(&engine, late).documents("job").await.unwrap();
                assert!(jobs.get(JOBS.to_string()).await.unwrap().is_some(), "it is not over");
            }
        }
    }
}

/// Nothing is left to do for the next one: it writes nothing.
#[tokio::test]
async fn a_purge_that_is_done_is_done() {
    for (engine, _folder) in engines() {
        untidy(&engine).await;
        let late = START + 4 * DAY;
        for _ in 0..2 {
            Purge::Maintain.run(at(&engine, late)).await.unwrap();
        }
        let metered: Arc<Metered> = Arc::new(Metered::new(engine));
        let again: Arc<dyn Engine> = metered.clone();
        Purge::Maintain.run(at(&again, late)).await.unwrap();
        assert_eq!(metered.usage().entries_written, 0);
    }
}
