//! A new aggregate counts every record that is there already exactly once: while writers go on,
//! whatever happens to who counts, and however often it is begun again.

#![cfg(feature = "embedded")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests fail by panicking"
)]

mod aggregate_support;
mod index_support;
mod long;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use aggregate_support::{
    Clients, NAMES, all, assert_clean, assert_exact, bare, engines, own, schema,
};
use async_trait::async_trait;
use index_support::Meddled;
use keyloom::engine::{
    Address, Batch, Capabilities, Cell, CommitFault, Direction, Engine, Memory, Outcome, Range,
    Row, Space, Stretch, Torn, Unreliable,
};
use keyloom::{ErrorKind, IndexState, PurgeOptions, Result, Schema, Store};
use serde_json::{Value, json};

/// A store with records from before, and every aggregate building.
async fn before_aggregates(engine: Arc<dyn Engine>, acts: u64) -> Store {
    let store = Store::on(engine);
    store.apply(&bare()).await.unwrap();
    Clients::new(&store).await.act_often(99, acts, 12).await;
    let applied = store.apply(&schema()).await.unwrap();
    let with_records = NAMES.len() - usize::from(all(&store, "note").await.is_empty());
    assert_eq!(applied.to_build.len(), with_records);
    store
}

async fn build_all(store: &Store) -> Result<()> {
    for (collection, aggregate) in NAMES {
        store.build(collection, aggregate).await?;
    }
    Ok(())
}

async fn recount_all(store: &Store) -> Result<()> {
    for (collection, aggregate) in NAMES {
        store.recount(collection, aggregate).await?;
    }
    Ok(())
}

/// What is left when all is done: exact numbers, and nothing that only counting needed.
async fn assert_settled(store: &Store) {
    assert_exact(store).await;
    assert_clean(store).await;
    assert_eq!(own(store, "aggregate-mark:").await, []);
    for (collection, aggregate) in NAMES {
        let state = store.index_state(collection, aggregate).await.unwrap();
        assert_eq!(state, IndexState::Ready, "{aggregate}");
    }
}

#[tokio::test]
async fn an_aggregate_is_read_once_it_is_built() {
    for (engine, _folder) in engines() {
        let store = before_aggregates(engine, 120).await;
        let runs = store.documents("run").await.unwrap();
        let error = runs.counted("all", ()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::IndexNotReady);
        let built = store.build("run", "all").await.unwrap();
        let records = all(&store, "run").await.len() as u64;
        assert_eq!((built.records, built.put, built.removed), (records, records, records));
        assert_eq!(runs.counted("all", ()).await.unwrap() as u64, records);
        let again = store.build("run", "all").await.unwrap();
        assert_eq!((again.records, again.put, again.removed), (0, 0, 0));
        build_all(&store).await.unwrap();
        assert_settled(&store).await;
    }
}

#[tokio::test]
async fn an_aggregate_of_no_records_is_ready_at_once() {
    let store = Store::on(Arc::new(Memory::new()));
    assert_eq!(store.apply(&schema()).await.unwrap().to_build, []);
    assert_settled(&store).await;
}

/// Every kind of write meets records that are counted, and records that are not yet.
#[tokio::test]
async fn writers_keep_a_building_aggregate_right() {
    for (engine, _folder) in engines() {
        let store = before_aggregates(engine, 150).await;
        let clients = Clients::new(&store).await;
        clients.act_often(5, 150, 12).await;
        build_all(&store).await.unwrap();
        assert_settled(&store).await;
        clients.act_often(6, 50, 12).await;
        assert_settled(&store).await;
    }
}

async fn with_writers(engine: Arc<dyn Engine>, acts: u64) {
    let store = before_aggregates(engine, 120).await;
    let stop = Arc::new(AtomicBool::new(false));
    let writers: Vec<_> = (0..4)
        .map(|seed| {
            let (store, stop) = (store.clone(), stop.clone());
            tokio::spawn(async move {
                let clients = Clients::new(&store).await;
                let mut rounds = 0;
                while !stop.load(Ordering::Relaxed) || rounds < acts {
                    clients.act_often(seed * 1_000 + rounds, 1, 12).await;
                    rounds += 1;
                }
            })
        })
        .collect();
    build_all(&store).await.unwrap();
    recount_all(&store).await.unwrap();
    // Under load nothing looks wrong that is not.
    assert_clean(&store).await;
    stop.store(true, Ordering::Relaxed);
    for writer in writers {
        writer.await.unwrap();
    }
    // Where batches show cell by cell, a mark may have shown after all others were removed.
    store.purge_groups(&PurgeOptions::default()).await.unwrap();
    assert_settled(&store).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_build_beside_writers_counts_each_record_once() {
    for (engine, _folder) in engines() {
        with_writers(engine, u64::from(long::times(20))).await;
    }
}

/// An engine on which the caller is never heard of again after so many commits.
struct Mortal {
    inner: Arc<dyn Engine>,
    commits_left: AtomicUsize,
}

impl Mortal {
    fn dies_now(&self) -> bool {
        self.commits_left.load(Ordering::Relaxed) == 0
    }
}

#[async_trait]
impl Engine for Mortal {
    fn capabilities(&self) -> &Capabilities {
        self.inner.capabilities()
    }

    async fn get(&self, space: &Space, addresses: &[Address]) -> Result<Vec<Option<Cell>>> {
        self.inner.get(space, addresses).await
    }

    async fn scan(
        &self,
        space: &Space,
        ranges: &[Range],
        limit: usize,
        direction: Direction,
    ) -> Result<Vec<Stretch<Row>>> {
        self.inner.scan(space, ranges, limit, direction).await
    }

    async fn commit(&self, batch: Batch) -> Result<Outcome> {
        if self.dies_now() {
            std::future::pending::<()>().await;
        }
        self.commits_left.fetch_sub(1, Ordering::Relaxed);
        self.inner.commit(batch).await
    }

    async fn close(&self) -> Result<()> {
        self.inner.close().await
    }
}

/// Runs until it ends, or until the process is dead.
async fn until_death<T>(mortal: &Mortal, work: impl Future<Output = T>) -> Option<T> {
    let mut work = std::pin::pin!(work);
    std::future::poll_fn(|context| match work.as_mut().poll(context) {
        std::task::Poll::Ready(answer) => std::task::Poll::Ready(Some(answer)),
        std::task::Poll::Pending if mortal.dies_now() => std::task::Poll::Ready(None),
        std::task::Poll::Pending => std::task::Poll::Pending,
    })
    .await
}

/// The builder dies before its first commit, before its second, and so on, until it does not.
/// Writers write in between, and another process takes up the work each time.
#[tokio::test]
async fn a_builder_may_die_at_every_step() {
    for recounted in [false, true] {
        for torn in [false, true] {
            let memory: Arc<dyn Engine> = match torn {
                true => Arc::new(Torn::new(Arc::new(Memory::new()), 3)),
                false => Arc::new(Memory::new()),
            };
            let store = before_aggregates(memory.clone(), 150).await;
            if recounted {
                build_all(&store).await.unwrap();
            }
            let clients = Clients::new(&store).await;
            let mut deaths = 0;
            for commits in 0.. {
                let mortal =
                    Arc::new(Mortal { inner: memory.clone(), commits_left: commits.into() });
                let other = Store::on(mortal.clone());
                let work = async {
                    match recounted {
                        true => other.recount("run", "seconds_by_flow").await,
                        false => other.build("run", "seconds_by_flow").await,
                    }
                };
                let ended = until_death(&mortal, work).await;
                clients.act_often(commits as u64, 5, 12).await;
                match ended {
                    Some(built) => {
                        built.unwrap();
                        break;
                    }
                    None => deaths += 1,
                }
            }
            assert!(deaths >= 3, "{deaths}");
            build_all(&store).await.unwrap();
            // Whoever died while sweeping left marks behind.
            store.purge_groups(&PurgeOptions::default()).await.unwrap();
            assert_settled(&store).await;
        }
    }
}

/// Commits that fail, that are lost, and that happen without an answer.
#[tokio::test]
async fn a_builder_may_be_left_in_doubt_at_every_step() {
    use CommitFault::{AnswerLost, None as Well, Refused, RequestLost};
    for fault in [Refused, RequestLost, AnswerLost] {
        let memory: Arc<dyn Engine> = Arc::new(Memory::new());
        let store = before_aggregates(memory.clone(), 150).await;
        let clients = Clients::new(&store).await;
        let mut failures = 0;
        for commits in 0.. {
            let unreliable = Arc::new(Unreliable::new(memory.clone(), 1, 0.0));
            unreliable.script(std::iter::repeat_n(Well, commits).chain([fault]));
            let built = Store::on(unreliable).build("run", "by_status").await;
            clients.act_often(commits as u64, 5, 12).await;
            if built.is_ok() {
                break;
            }
            failures += 1;
        }
        assert!(failures >= 2, "{failures}");
        build_all(&store).await.unwrap();
        store.purge_groups(&PurgeOptions::default()).await.unwrap();
        assert_settled(&store).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn several_builders_at_once_are_one() {
    for (engine, _folder) in engines() {
        let store = before_aggregates(engine.clone(), 200).await;
        for round in 0..2 {
            let builders: Vec<_> = (0..3)
                .map(|_| {
                    let store = Store::on(engine.clone());
                    tokio::spawn(async move {
                        match round {
                            0 => build_all(&store).await,
                            _ => recount_all(&store).await,
                        }
                    })
                })
                .collect();
            for builder in builders {
                builder.await.unwrap().unwrap();
            }
            assert_settled(&store).await;
        }
    }
}

/// A store of three runs with an aggregate that is building, and a second handle that acts right
/// before the next commit of the first.
async fn meddled() -> (Arc<Meddled>, Store, Store) {
    let memory: Arc<dyn Engine> = Arc::new(Memory::new());
    let meddled = Arc::new(Meddled::new(memory.clone()));
    let (first, second) = (Store::on(meddled.clone()), Store::on(memory));
    first.apply(&bare()).await.unwrap();
    let runs = first.documents("run").await.unwrap();
    for id in ["1", "2", "3"] {
        runs.insert(&run(id, "queued", 10)).await.unwrap();
    }
    first.apply(&schema()).await.unwrap();
    (meddled, first, second)
}

fn run(id: &str, status: &str, seconds: i64) -> Value {
    json!({ "flow": "f", "id": id, "status": status, "seconds": seconds })
}

/// The builder has read the records, and is about to count them; then they change.
#[tokio::test]
async fn a_record_that_moves_under_the_builder_is_counted_once() {
    let (meddled, first, second) = meddled().await;
    meddled.before_next_commit(async move {
        let runs = second.documents("run").await.unwrap();
        runs.replace(&run("1", "done", 7)).await.unwrap();
        runs.delete(("f", "2")).await.unwrap();
        runs.insert(&run("9", "dead", 1)).await.unwrap();
        let change = |run: &mut Value| {
            run["id"] = "0".into();
            Ok(())
        };
        runs.rename(("f", "3"), change).await.unwrap();
    });
    first.build("run", "seconds_by_flow").await.unwrap();
    assert!(meddled.has_meddled());
    build_all(&first).await.unwrap();
    assert_settled(&first).await;
}

/// A writer has seen that a record is not counted, and is about to write; then a builder counts it,
/// and dies before anything is ready. A write with one attempt succeeds all the same: the record
/// itself did not change.
#[tokio::test]
async fn a_record_that_is_counted_under_a_writer_is_counted_once() {
    for deletes in [false, true] {
        let (meddled, first, second) = meddled().await;
        let runs = first.documents("run").await.unwrap();
        let version = runs.get(("f", "1")).await.unwrap().unwrap().version;
        let mortal = Mortal { inner: second.engine().clone(), commits_left: 2.into() };
        meddled.before_next_commit(async move {
            let mortal = Arc::new(mortal);
            let builder = Store::on(mortal.clone());
            let built = until_death(&mortal, builder.build("run", "seconds_by_flow")).await;
            assert!(built.is_none(), "it died with the work half done");
            assert_eq!(own(&second, "aggregate-mark:run:seconds_by_flow:").await.len(), 3);
        });
        match deletes {
            false => {
                let patch = json!({ "status": "done", "seconds": 4 });
                runs.update(("f", "1"), &patch, version).await.unwrap();
            }
            true => runs.delete_if(("f", "1"), version).await.unwrap(),
        }
        assert!(meddled.has_meddled());
        build_all(&first).await.unwrap();
        assert_settled(&first).await;
    }
}

#[tokio::test]
async fn whoever_disables_an_aggregate_has_the_last_word() {
    let (meddled, first, second) = meddled().await;
    let other = second.clone();
    meddled.before_next_commit(async move { other.disable("run", "all").await.unwrap() });
    let error = first.build("run", "all").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::IndexNotReady);
    assert_eq!(second.index_state("run", "all").await.unwrap(), IndexState::Disabled);
    // Nobody counts what happens now; a new build counts all of it anew.
    let runs = first.documents("run").await.unwrap();
    runs.delete(("f", "1")).await.unwrap();
    runs.insert(&run("8", "done", 3)).await.unwrap();
    build_all(&first).await.unwrap();
    assert_settled(&first).await;
    first.disable("run", "all").await.unwrap();
    runs.insert(&run("9", "done", 3)).await.unwrap();
    assert_eq!(runs.counted("all", ()).await.unwrap_err().kind(), ErrorKind::IndexNotReady);
    assert_clean(&first).await;
    first.build("run", "all").await.unwrap();
    assert_settled(&first).await;
}

#[tokio::test]
async fn records_that_do_not_fit_are_named_and_leave_the_aggregate_failed() {
    let store = Store::on(Arc::new(Memory::new()));
    let note =
        "[collection.note]\nkey = \"note:{id}\"\narea = \"notes\"\nfields = { id = \"text\" }";
    store.apply(&Schema::from_toml(note).unwrap()).await.unwrap();
    let notes = store.documents("note").await.unwrap();
    for (id, size) in [("a", json!(1)), ("b", json!(1.5)), ("c", json!("x")), ("d", json!(null))] {
        let record = json!({ "id": id, "done": true, "tag": "t", "size": size });
        notes.insert(&record).await.unwrap();
    }
    store.apply(&schema()).await.unwrap();
    let error = store.build("note", "size").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidRecord);
    let problems: Vec<&str> =
        error.context().filter(|(name, _)| *name == "problem").map(|(_, text)| text).collect();
    assert_eq!(problems.len(), 2, "{error:?}");
    assert!(problems[0].starts_with("note:b: ") && problems[1].starts_with("note:c: "));
    let state = store.index_state("note", "size").await.unwrap();
    assert!(matches!(state, IndexState::Failed { reason } if reason.contains("note:b")));
    assert_eq!(own(&store, "aggregate").await, [], "what was counted is removed");
    notes.delete("b").await.unwrap();
    notes.replace(&json!({ "id": "c", "done": true, "tag": "t", "size": 5 })).await.unwrap();
    build_all(&store).await.unwrap();
    assert_settled(&store).await;
    assert_eq!(notes.summed("size", (true, "t")).await.unwrap(), 6);
}

/// A recount that cannot be completed leaves in use what was in use.
#[tokio::test]
async fn a_recount_that_fails_changes_nothing() {
    let (_, first, _) = meddled().await;
    build_all(&first).await.unwrap();
    let address = Address::new(keyloom::engine::Area::default_area(), "flow:run:f:x");
    let mut batch = Batch::new(Space::main());
    let stamp = keyloom::engine::Stamp([1; 24]);
    let put = keyloom::engine::Effect::Put { stamp, bytes: "no JSON".into() };
    batch.push(address, None, Some(put));
    first.engine().commit(batch).await.unwrap();
    let error = first.recount("run", "all").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    let runs = first.documents("run").await.unwrap();
    assert_eq!(runs.counted("all", ()).await.unwrap(), 3);
    runs.insert(&run("7", "done", 3)).await.unwrap();
    assert_eq!(runs.counted("all", ()).await.unwrap(), 4);
    assert_eq!(own(&first, "aggregate-mark:").await, []);
}

/// A batch that was decided before the aggregate was declared, and that shows only while the
/// records are being counted.
#[tokio::test(start_paused = true)]
async fn a_record_that_shows_late_is_counted() {
    let store = Store::on(Arc::new(Torn::new(Arc::new(Memory::new()), 1)));
    store.apply(&bare()).await.unwrap();
    let runs = store.documents("run").await.unwrap();
    runs.insert(&run("1", "done", 1)).await.unwrap();
    let record = run("2", "done", 1);
    let mut late = Box::pin(runs.insert(&record));
    let is_done = std::future::poll_fn(|context| {
        std::task::Poll::Ready(late.as_mut().poll(context).is_ready())
    });
    assert!(!is_done.await, "it is decided, and does not show yet");
    store.apply(&schema()).await.unwrap();
    let shows = async {
        // The clock is paused: this is a moment between the builder's two looks, each time.
        let between = std::time::Duration::from_millis(100);
        let _ = tokio::time::timeout(between, std::future::pending::<()>()).await;
        late.await.unwrap();
    };
    let (built, ()) = tokio::join!(store.build("run", "all"), shows);
    assert_eq!(built.unwrap().put, 2);
    assert_eq!(runs.counted("all", ()).await.unwrap(), 2);
}
