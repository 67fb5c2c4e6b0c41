//! Work over a whole store is done once: it goes on after whatever ended it, from where it was, and
//! leaves nothing of itself behind.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests fail by panicking"
)]

mod index_support;
mod task_support;

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use index_support::Meddled;
use keyloom::engine::{CommitFault, Engine, EngineExt, Memory, Metered, Row, Space, Unreliable};
use keyloom::{Built, IndexState, RepairOptions, Schema, Store};
use serde_json::json;
use task_support::{
    BY_SECONDS, BY_STATUS, RUNS, RUNS_ALONE, SECONDS, Shared, assert_same, before_indexes, dump,
    ended_at_every_commit, engines, kept, poll, schema, tasks,
};

/// However often a build ends, it goes on, and comes to what one comes to that never ended.
#[tokio::test]
async fn a_build_that_ends_at_every_commit_comes_to_the_same() {
    for name in ["by_status", "seconds"] {
        let mut all_wanted = Vec::new();
        for (whole, _folder) in engines() {
            before_indexes(whole.clone()).await.build("run", name).await.unwrap();
            all_wanted.push(dump(&whole).await);
        }
        for fault in [CommitFault::Refused, CommitFault::RequestLost, CommitFault::AnswerLost] {
            for ((engine, _folder), wanted) in engines().into_iter().zip(&all_wanted) {
                drop(before_indexes(engine.clone()).await);
                let build = |store: Store| async move { store.build("run", name).await.map(drop) };
                let ends = ended_at_every_commit(&engine, fault, build).await;
                assert!(ends > 3, "{name}: {ends}");
                assert_same(&dump(&engine).await, wanted, &format!("{name} {fault:?}"));
                let store = Store::on(engine);
                assert_eq!(store.index_state("run", name).await.unwrap(), IndexState::Ready);
            }
        }
    }
}

#[tokio::test]
async fn a_recount_that_ends_at_every_commit_comes_to_the_same() {
    let whole: Arc<dyn Engine> = Arc::new(Memory::new());
    let store = before_indexes(whole.clone()).await;
    store.build("run", "seconds").await.unwrap();
    store.recount("run", "seconds").await.unwrap();
    let wanted = totals(&store).await;
    for fault in [CommitFault::RequestLost, CommitFault::AnswerLost] {
        let engine: Arc<dyn Engine> = Arc::new(Memory::new());
        let store = before_indexes(engine.clone()).await;
        store.build("run", "seconds").await.unwrap();
        let recount = |store: Store| async move { store.recount("run", "seconds").await.map(drop) };
        // Who recounts again after the numbers are in place begins another count.
        for _ in 0..20 {
            let unreliable = Arc::new(Unreliable::new(engine.clone(), 1, 0.0));
            unreliable.script([CommitFault::None, CommitFault::None, fault]);
            let _ = recount(Store::on(unreliable)).await;
        }
        recount(store.clone()).await.unwrap();
        assert_eq!(totals(&store).await, wanted, "{fault:?}");
        assert!(tasks(&engine).await.is_empty());
        assert!(store.verify().await.unwrap().findings.is_empty());
    }
}

async fn totals(store: &Store) -> Vec<(i64, Option<i64>)> {
    let runs = store.documents("run").await.unwrap();
    let groups = runs.groups(&keyloom::GroupQuery::new("seconds")).await.unwrap().groups;
    groups.into_iter().map(|group| (group.count, group.sum)).collect()
}

/// A repair may end anywhere; the next one mends what is left.
#[tokio::test]
async fn a_repair_that_ends_at_every_commit_comes_to_the_same() {
    let whole: Arc<dyn Engine> = Arc::new(Memory::new());
    let store = before_indexes(whole.clone()).await;
    store.build("run", "by_status").await.unwrap();
    store.build("run", "seconds").await.unwrap();
    let wanted = dump(&whole).await;
    let damaged: Arc<dyn Engine> = whole;
    for n in (0..RUNS).step_by(2) {
        let status = ["queued", "running", "done"][n % 3];
        let key = format!("status:{status}:{n:04}");
        index_support::plant_on(&damaged, "", key, None).await;
    }
    assert_ne!(dump(&damaged).await, wanted);
    let repair =
        |store: Store| async move { store.repair(&RepairOptions::default()).await.map(drop) };
    let ends = ended_at_every_commit(&damaged, CommitFault::AnswerLost, repair).await;
    assert!(ends > 1, "{ends}");
    assert_same(&dump(&damaged).await, &wanted, "repaired");
}

/// What was gone over is not gone over again.
#[tokio::test]
async fn a_build_goes_on_from_where_it_was() {
    for name in ["by_status", "seconds"] {
        let whole = entries_of_a_build(name).await;
        let memory: Arc<dyn Engine> = Arc::new(Memory::new());
        let store = before_indexes(memory.clone()).await;
        let unreliable = Arc::new(Unreliable::new(memory.clone(), 1, 0.0));
        // The commit of the owner, and those of one chunk at least.
        unreliable.script(std::iter::repeat_n(CommitFault::None, 11).chain([CommitFault::Refused]));
        let first = Store::on(unreliable.clone()).build("run", name).await;
        first.expect_err("it ended early");
        let metered = Arc::new(Metered::new(memory.clone()));
        let second = Store::on(metered.clone());
        second.index_state("run", name).await.unwrap();
        metered.take();
        let built = second.build("run", name).await.unwrap();
        assert_eq!(built.records, 600, "{name}: together they went over all");
        let written = metered.usage().entries_written;
        assert!(written + 256 <= whole, "{name}: {written} of {whole} entries for the rest");
        assert!(store.verify().await.unwrap().findings.is_empty());
    }
}

/// What a build writes that nothing interrupts.
async fn entries_of_a_build(name: &str) -> u64 {
    let metered = Arc::new(Metered::new(Arc::new(Memory::new())));
    let store = before_indexes(metered.clone()).await;
    metered.take();
    store.build("run", name).await.unwrap();
    metered.usage().entries_written
}

/// Two handles build one index at the same time: together they commit what one would.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_handles_do_the_work_once() {
    for name in ["by_status", "seconds"] {
        let once = entries_of_a_build(name).await;
        let metered = Arc::new(Metered::new(Arc::new(Memory::new())));
        drop(before_indexes(metered.clone()).await);
        metered.take();
        let builds: Vec<_> = (0..3)
            .map(|_| {
                let store = Store::on(metered.clone());
                tokio::spawn(async move { store.build("run", name).await })
            })
            .collect();
        for build in builds {
            build.await.unwrap().unwrap();
        }
        assert_eq!(metered.usage().entries_written, once, "{name}");
        let store = Store::on(metered);
        assert!(store.verify().await.unwrap().findings.is_empty());
    }
}

/// An owner that is silent beyond its deadline is replaced, and commits nothing more when it wakes
/// up: the stamp of the cell keeps it from it, whatever the clocks say.
#[tokio::test(start_paused = true)]
async fn an_owner_that_was_replaced_commits_nothing_more() {
    for name in ["by_status", "seconds"] {
        let engine: Arc<dyn Engine> = Arc::new(Shared::new());
        let store = before_indexes(engine.clone()).await;
        let metered = Arc::new(Metered::new(engine.clone()));
        let frozen = Store::on(metered.clone());
        let mut build = pin!(frozen.build("run", name));
        // It runs until its cell shows that it has done some of the work, and then no more.
        while !tasks(&engine).await.iter().any(has_done_some) {
            assert!(poll(build.as_mut()).is_pending());
        }
        let owner = owner_of(&engine).await;
        let mut other = pin!(store.build("run", name));
        // Time passes only while everybody waits, so that the other one soon loses its patience.
        while owner_of(&engine).await == owner {
            assert!(poll(other.as_mut()).is_pending());
            tokio::time::advance(Duration::from_millis(100)).await;
        }
        assert_eq!(store.index_state("run", name).await.unwrap(), IndexState::Building);
        metered.take();
        let (first, second) = tokio::join!(build, other);
        first.unwrap();
        assert_eq!(second.unwrap().records, 600, "{name}");
        assert_eq!(metered.usage().entries_written, 0, "{name}");
        assert_eq!(store.index_state("run", name).await.unwrap(), IndexState::Ready);
        assert!(store.verify().await.unwrap().findings.is_empty());
    }
}

fn has_done_some(row: &Row) -> bool {
    kept(row)["progress"]["put"].as_u64().unwrap() > 0
}

/// Who works on the task that is under way.
async fn owner_of(engine: &Arc<dyn Engine>) -> String {
    let [row] = &tasks(engine).await[..] else { panic!("one task is under way") };
    kept(row)["owner"].to_string()
}

/// A change of the schema that is not about the index costs none of the work that was done.
#[tokio::test]
async fn a_build_goes_on_under_another_schema() {
    for name in ["by_status", "seconds"] {
        let memory: Arc<dyn Engine> = Arc::new(Memory::new());
        let store = before_indexes(memory.clone()).await;
        let metered = Arc::new(Metered::new(memory.clone()));
        let meddled = Arc::new(Meddled::new(metered.clone()));
        let builder = Store::on(meddled.clone());
        builder.index_state("run", name).await.unwrap();
        metered.take();
        let again = std::sync::Mutex::new(Some((meddled.clone(), store.clone())));
        let hear = |so_far: Built| {
            // After the second chunk of records.
            if so_far.put >= 512
                && let Some((meddled, store)) = again.lock().unwrap().take()
            {
                meddled.before_next_commit(async move {
                    let more = schema(&[BY_STATUS, SECONDS, BY_SECONDS]);
                    drop(store.apply(&more).await.unwrap());
                });
            }
        };
        let built = builder.build_with_progress("run", name, hear).await.unwrap();
        assert!(again.lock().unwrap().is_none() && meddled.has_meddled());
        assert_eq!((built.records, built.put), (600, 600), "{name}");
        assert_eq!(store.index_state("run", "by_seconds").await.unwrap(), IndexState::Building);
        assert!(store.verify().await.unwrap().findings.is_empty());
    }
}

/// An index that was switched off meanwhile has been passed by, so that its building begins anew.
#[tokio::test]
async fn a_building_begins_anew_after_the_index_was_switched_off() {
    for name in ["by_status", "seconds"] {
        let memory: Arc<dyn Engine> = Arc::new(Memory::new());
        let store = before_indexes(memory.clone()).await;
        let unreliable = Arc::new(Unreliable::new(memory.clone(), 1, 0.0));
        unreliable.script(std::iter::repeat_n(CommitFault::None, 11).chain([CommitFault::Refused]));
        Store::on(unreliable).build("run", name).await.expect_err("it ended early");
        assert_eq!(tasks(&memory).await.len(), 1);
        store.disable("run", name).await.unwrap();
        // Nobody keeps the index of this run up to date.
        let runs = store.documents("run").await.unwrap();
        runs.insert(&json!({ "id": "", "status": "queued", "seconds": 1 })).await.unwrap();
        runs.delete("0001").await.unwrap();
        store.build("run", name).await.unwrap();
        assert!(store.verify().await.unwrap().findings.is_empty(), "{name}");
        assert!(tasks(&memory).await.is_empty(), "{name}");
    }
}

/// Where a task is concerns this store alone: the log does not tell it, and a backup does not
/// hold it.
#[tokio::test]
async fn a_task_is_neither_logged_nor_backed_up() {
    let memory: Arc<dyn Engine> = Arc::new(Memory::new());
    let store = before_indexes(memory.clone()).await;
    let logged = format!("{}\n[log]\n", [RUNS_ALONE, BY_STATUS, SECONDS].join("\n"));
    store.apply(&Schema::from_toml(&logged).unwrap()).await.unwrap();
    let unreliable = Arc::new(Unreliable::new(memory.clone(), 1, 0.0));
    unreliable.script(std::iter::repeat_n(CommitFault::None, 5).chain([CommitFault::Refused]));
    Store::on(unreliable).build("run", "by_status").await.expect_err("it ended early");
    let [task] = &tasks(&memory).await[..] else { panic!("one task is under way") };
    let bounds = memory.log_bounds(&Space::main()).await.unwrap();
    let slice = memory.read_log(&Space::main(), bounds.oldest, 1_000, usize::MAX).await.unwrap();
    assert!(slice.entries.len() > 2, "the build was logged");
    let holds = |bytes: &[u8]| bytes.windows(task.key.len()).any(|part| part == task.key);
    assert!(!slice.entries.iter().any(|entry| holds(&entry.bytes)));
    let mut backup = Vec::new();
    store.backup_to(&mut backup).await.unwrap();
    assert!(!holds(&backup));
}
