//! A verification, a repair or a build that is a job goes on after whatever ended it, is done by
//! one of those who work on it, and leaves nothing of itself behind.

#![cfg(feature = "embedded")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests fail by panicking"
)]

mod index_support;
mod task_support;

use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use keyloom::engine::{
    Address, Area, Batch, CommitFault, Effect, Engine, EngineExt, Memory, Metered, Space, Stamp,
    Unreliable,
};
use keyloom::{
    Job, JobOptions, JobProgress, JobResult, Pace, RepairOptions, Result, Schema, Started, Store,
    Verification, VerifyOptions, Work,
};
use serde_json::json;
use task_support::{
    BY_STATUS, RUNS, RUNS_ALONE, SECONDS, Shared, assert_same, before_indexes, dump,
    ended_at_every_commit, engines, kept, poll, schema, tasks,
};

const STATES: [&str; 3] = ["queued", "running", "done"];

fn verify() -> Work {
    Work::Verify(VerifyOptions::default())
}

fn repair() -> Work {
    Work::Repair(RepairOptions::default())
}

fn build(index: &str) -> Work {
    Work::Build { collection: "run".to_owned(), index: index.to_owned() }
}

/// A store whose index and sum are ready.
async fn whole(engine: Arc<dyn Engine>) -> Store {
    let store = before_indexes(engine).await;
    store.build("run", "by_status").await.unwrap();
    store.build("run", "seconds").await.unwrap();
    store
}

/// How many entries are removed.
const MISSING: u64 = 60;

/// Removes the index entry of every tenth run: faults in every chunk of records.
async fn damage(engine: &Arc<dyn Engine>) {
    for n in (0..RUNS).step_by(10) {
        let key = format!("status:{}:{n:04}", STATES[n % 3]);
        index_support::plant_on(engine, "", key, None).await;
    }
}

async fn started(store: &Store, work: Work) -> Job {
    match store.start_job(work, JobOptions::default()).await.unwrap() {
        Started::Job(job) => job,
        Started::Rival(rival) => panic!("{rival:?} is under way"),
    }
}

/// Goes on with the job that is under way, or starts it.
async fn go_on(store: Store, work: Work) -> Result<JobResult> {
    let job = match store.jobs().await?.pop() {
        Some(job) => job,
        None => match store.start_job(work, JobOptions::default()).await? {
            Started::Job(job) | Started::Rival(job) => job,
        },
    };
    Ok(job.run(|_| {}).await?.expect("nobody else ends it"))
}

fn verified(result: JobResult) -> Verification {
    let JobResult::Verified(verified) = result else { panic!("it is a verification") };
    verified
}

const FAULTS: [CommitFault; 3] =
    [CommitFault::Refused, CommitFault::RequestLost, CommitFault::AnswerLost];

/// However often a verification ends, its report is that of one which never did.
#[tokio::test]
async fn a_verification_that_ends_at_every_commit_reports_the_same() {
    for fault in FAULTS {
        for (engine, _folder) in engines() {
            let store = whole(engine.clone()).await;
            damage(&engine).await;
            let before = dump(&engine).await;
            let wanted = store.verify().await.unwrap();
            assert_eq!(wanted.counts.missing, MISSING);
            let report = Mutex::new(None);
            let verify = |store: Store| {
                let report = &report;
                async move {
                    let result = go_on(store, verify()).await?;
                    *report.lock().unwrap() = Some(verified(result));
                    Ok(())
                }
            };
            let ends = ended_at_every_commit(&engine, fault, verify).await;
            assert!(ends > 1, "{fault:?}: {ends}");
            assert_eq!(report.into_inner().unwrap().unwrap(), wanted, "{fault:?}");
            assert_same(&dump(&engine).await, &before, &format!("{fault:?}"));
        }
    }
}

#[tokio::test]
async fn a_repair_that_ends_at_every_commit_comes_to_the_same() {
    for fault in FAULTS {
        for (engine, _folder) in engines() {
            let store = whole(engine.clone()).await;
            let wanted = dump(&engine).await;
            damage(&engine).await;
            let repair = |store: Store| async move { go_on(store, repair()).await.map(drop) };
            let ends = ended_at_every_commit(&engine, fault, repair).await;
            assert!(ends > 1, "{fault:?}: {ends}");
            assert_same(&dump(&engine).await, &wanted, &format!("{fault:?}"));
            assert!(store.verify().await.unwrap().is_clean());
        }
    }
}

#[tokio::test]
async fn a_build_that_ends_at_every_commit_comes_to_the_same() {
    for name in ["by_status", "seconds"] {
        for fault in FAULTS {
            let done: Arc<dyn Engine> = Arc::new(Memory::new());
            before_indexes(done.clone()).await.build("run", name).await.unwrap();
            let engine: Arc<dyn Engine> = Arc::new(Memory::new());
            drop(before_indexes(engine.clone()).await);
            let build = |store: Store| async move { go_on(store, build(name)).await.map(drop) };
            ended_at_every_commit(&engine, fault, build).await;
            assert_same(&dump(&engine).await, &dump(&done).await, &format!("{name} {fault:?}"));
        }
    }
}

/// What was looked at is not looked at again, and is told nevertheless.
#[tokio::test]
async fn a_verification_goes_on_from_where_it_was() {
    let engine: Arc<dyn Engine> = Arc::new(Memory::new());
    let store = whole(engine.clone()).await;
    damage(&engine).await;
    let metered = Arc::new(Metered::new(engine.clone()));
    let wanted = Store::on(metered.clone()).verify().await.unwrap();
    let all = metered.take().cells_read;
    let unreliable = Arc::new(Unreliable::new(engine.clone(), 1, 0.0));
    // It is left, taken, and moved over one chunk.
    unreliable.script([CommitFault::None; 3]);
    unreliable.script([CommitFault::Refused; 9]);
    let first = Store::on(unreliable);
    started(&first, verify()).await.run(|_| {}).await.expect_err("it ended early");
    let [found] = &store.jobs().await.unwrap()[..] else { panic!("one job is under way") };
    assert_eq!((found.work(), found.progress().records), (&verify(), 256));
    let second = Store::on(metered.clone());
    let progress = Mutex::new(Vec::new());
    let [job] = &second.jobs().await.unwrap()[..] else { panic!("one job is under way") };
    metered.take();
    let hear = |so_far: JobProgress| progress.lock().unwrap().push(so_far);
    let report = verified(job.run(hear).await.unwrap().unwrap());
    assert_eq!(report, wanted);
    let read = metered.take().cells_read;
    // To say about how much there is, it counts 600 records and 540 entries. The rest is less by 256
    // records and their entries.
    assert!(read < all + 1_140 - 256, "{read} of {all} cells for the rest");
    let heard = progress.into_inner().unwrap();
    assert!(heard[0].records > 256, "{heard:?}");
    assert_eq!((heard[0].about, heard.last().unwrap().records), (Some(1_140), 600));
    assert!(store.jobs().await.unwrap().is_empty());
}

/// Three handles run one job: one of them does it, all of it, and the others are told nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn several_handles_do_the_work_once() {
    for work in [verify(), repair(), build("by_status")] {
        let engine: Arc<dyn Engine> = Arc::new(Memory::new());
        let store = match work {
            Work::Build { .. } => before_indexes(engine.clone()).await,
            _ => whole(engine.clone()).await,
        };
        if !matches!(work, Work::Build { .. }) {
            damage(&engine).await;
        }
        let first = started(&store, work.clone()).await;
        let Started::Rival(rival) =
            Store::on(engine.clone()).start_job(work, JobOptions::default()).await.unwrap()
        else {
            panic!("a space has one job of a kind")
        };
        assert_eq!(rival.id(), first.id());
        let [third] = &Store::on(engine.clone()).jobs().await.unwrap()[..] else {
            panic!("one job is under way")
        };
        let runs = [first, rival, third.clone()]
            .map(|job| tokio::spawn(async move { job.run(|_| {}).await.unwrap() }));
        let mut results = Vec::new();
        for run in runs {
            results.extend(run.await.unwrap());
        }
        let did = match &results[..] {
            [JobResult::Verified(verified)] => verified.counts.missing,
            [JobResult::Repaired(repaired)] => repaired.mended_counts.missing,
            [JobResult::Built(built)] => built.put / 10,
            other => panic!("one has done it: {other:?}"),
        };
        assert_eq!(did, MISSING);
        assert!(tasks(&engine).await.is_empty());
    }
}

/// An owner that is silent beyond its deadline is replaced, and changes nothing of the job when it
/// wakes up.
#[tokio::test(start_paused = true)]
async fn an_owner_that_was_replaced_ends_nothing() {
    for work in [verify(), repair()] {
        let engine: Arc<dyn Engine> = Arc::new(Shared::new());
        let store = whole(engine.clone()).await;
        damage(&engine).await;
        let job = started(&store, work).await;
        let mut first = pin!(job.run(|_| {}));
        let progress = async || {
            let rows = tasks(&engine).await;
            let own = rows.iter().find(|row| row.key.ends_with(job.work().kind().as_bytes()));
            own.map(kept)
        };
        while progress().await.unwrap()["progress"]["records"] == 0 {
            assert!(poll(first.as_mut()).is_pending());
        }
        let owner = progress().await.unwrap()["owner"].clone();
        let elsewhere = Store::on(engine.clone());
        let [again] = &elsewhere.jobs().await.unwrap()[..] else { panic!("one is under way") };
        let mut second = pin!(again.run(|_| {}));
        while progress().await.is_some_and(|kept| kept["owner"] == owner) {
            assert!(poll(second.as_mut()).is_pending());
            tokio::time::advance(Duration::from_millis(100)).await;
        }
        let (first, second) = tokio::join!(first, second);
        let results = [first.unwrap(), second.unwrap()];
        assert!(results[0].is_none(), "{results:?}");
        let found = match results[1].as_ref().unwrap() {
            JobResult::Verified(verified) => verified.counts.missing,
            JobResult::Repaired(repaired) => repaired.mended_counts.missing,
            _ => panic!("it is no build"),
        };
        assert_eq!(found, MISSING);
    }
}

/// A store full of faults: what is kept of them takes several cells, all of which go in the end.
#[tokio::test]
async fn many_findings_survive() {
    let engine: Arc<dyn Engine> = Arc::new(Memory::new());
    let store = Store::on(engine.clone());
    store.apply(&schema(&[BY_STATUS])).await.unwrap();
    let runs = store.documents("run").await.unwrap();
    let long = "x".repeat(300);
    for n in 0..1_200 {
        let run = json!({ "id": format!("{n:04}-{long}"), "status": "done", "seconds": n });
        runs.insert(&run).await.unwrap();
        let key = format!("status:done:{n:04}-{long}");
        index_support::plant_on(&engine, "", key, None).await;
    }
    let options = VerifyOptions { findings_max: 1_100, ..VerifyOptions::default() };
    let wanted = store.verify_with(&options).await.unwrap();
    assert_eq!((wanted.findings.len(), wanted.counts.missing), (1_100, 1_200));
    let report = Mutex::new(None);
    let pages = AtomicUsize::new(0);
    let verify = |store: Store| {
        let (report, pages, engine) = (&report, &pages, &engine);
        async move {
            let cells = tasks(engine).await.len();
            pages.fetch_max(cells, Ordering::Relaxed);
            let result = go_on(store, Work::Verify(options)).await?;
            *report.lock().unwrap() = Some(verified(result));
            Ok(())
        }
    };
    ended_at_every_commit(&engine, CommitFault::RequestLost, verify).await;
    assert_eq!(report.into_inner().unwrap().unwrap(), wanted);
    assert!(pages.load(Ordering::Relaxed) > 3, "the findings took several cells");
    assert!(tasks(&engine).await.is_empty());
}

/// Whoever stops a job stops it wherever it runs. The clock is that of the test.
#[tokio::test(start_paused = true)]
async fn a_job_is_stopped_from_elsewhere_and_goes_at_its_pace() {
    let engine: Arc<dyn Engine> = Arc::new(Memory::new());
    let store = whole(engine.clone()).await;
    let begun = tokio::time::Instant::now();
    let slow = JobOptions::default().with_pace(Pace::KeysPerSecond(100)).with_note(json!("n"));
    let Started::Job(job) = store.start_job(verify(), slow).await.unwrap() else {
        panic!("nothing else is under way")
    };
    let heard = Mutex::new(Vec::new());
    let hear = |so_far| heard.lock().unwrap().push(so_far);
    job.run(hear).await.unwrap().unwrap();
    assert!(begun.elapsed() >= Duration::from_secs(12), "1,200 keys took {:?}", begun.elapsed());
    let last: JobProgress = *heard.into_inner().unwrap().last().unwrap();
    assert_eq!((last.records, last.entries, last.about), (600, 600, Some(1_200)));
    assert_eq!(last.left, Some(Duration::ZERO));

    let slow = JobOptions::default().with_pace(Pace::KeysPerSecond(1)).with_note(json!("n"));
    let Started::Job(job) = store.start_job(verify(), slow).await.unwrap() else {
        panic!("nothing else is under way")
    };
    let elsewhere = Store::on(engine.clone());
    let stopping = async {
        for _ in 0..30 {
            tokio::time::advance(Duration::from_secs(2)).await;
        }
        let [found] = &elsewhere.jobs().await.unwrap()[..] else { panic!("one is under way") };
        assert_eq!((found.note(), found.progress().records), (&json!("n"), 256));
        assert!(found.stop().await.unwrap());
        assert!(!found.stop().await.unwrap(), "it is over");
    };
    let (ran, ()) = tokio::join!(job.run(|_| {}), stopping);
    assert_eq!(ran.unwrap(), None);
    assert!(tasks(&engine).await.is_empty());
}

/// Where a job is concerns this store alone: the log does not tell it, and a backup does not hold
/// it. It is found from the main space, and leaves nothing there either.
#[tokio::test]
async fn jobs_of_all_spaces_are_found_and_are_neither_logged_nor_backed_up() {
    let engine: Arc<dyn Engine> = Arc::new(Memory::new());
    let main = Store::on(engine.clone());
    let logged = format!("{}\n[log]\n", [RUNS_ALONE, BY_STATUS, SECONDS].join("\n"));
    main.apply(&Schema::from_toml(&logged).unwrap()).await.unwrap();
    let before = engine.log_bounds(&Space::main()).await.unwrap();
    let other = main.space("other").unwrap();
    let jobs = [started(&other, verify()).await, started(&other, repair()).await];
    let job = started(&main, verify()).await;
    let found = main.jobs_of_all_spaces().await.unwrap();
    let found: Vec<_> = found.iter().map(|job| (job.space_name(), job.id())).collect();
    let all = [("main", job.id()), ("other", jobs[0].id()), ("other", jobs[1].id())];
    assert_eq!(found, all);
    assert_eq!(engine.log_bounds(&Space::main()).await.unwrap(), before);
    let mut backup = Vec::new();
    main.backup_to(&mut backup).await.unwrap();
    assert!(!backup.windows(5).any(|part| part == b"task:"));
    for job in jobs.iter().chain([&job]) {
        job.run(|_| {}).await.unwrap().unwrap();
    }
    assert!(main.jobs_of_all_spaces().await.unwrap().is_empty());
    assert!(tasks(&engine).await.is_empty());
    assert_eq!(engine.log_bounds(&Space::main()).await.unwrap(), before);
}

/// What cannot be read is no job, and in nobody's way.
#[tokio::test]
async fn what_cannot_be_read_is_no_job() {
    let engine: Arc<dyn Engine> = Arc::new(Memory::new());
    let store = whole(engine.clone()).await;
    let job = started(&store, verify()).await;
    let [row] = &tasks(&engine).await[..] else { panic!("one job is under way") };
    let mut strange = kept(row);
    strange["about"]["work"] = json!({ "dance": {} });
    assert!(job.stop().await.unwrap());
    for planted in ["", "{}", &strange.to_string()] {
        let mut batch = Batch::new(Space::main());
        let address = Address::new(Area::own(), "task:job::verify");
        let (stamp, bytes) = (Stamp([7; Stamp::BYTES]), planted.to_owned().into());
        batch.push(address, None, Some(Effect::Put { stamp, bytes }));
        engine.commit(batch).await.unwrap();
        assert!(store.jobs().await.unwrap().is_empty(), "{planted}");
        let job = started(&store, verify()).await;
        assert!(job.run(|_| {}).await.unwrap().is_some(), "{planted}");
        assert!(tasks(&engine).await.is_empty());
    }
}

/// A job that fails is over.
#[tokio::test]
async fn a_job_that_fails_is_over() {
    let store = whole(Arc::new(Memory::new())).await;
    let job = started(&store, build("nobody")).await;
    job.run(|_| {}).await.expect_err("there is no such index");
    assert!(store.jobs().await.unwrap().is_empty());
    let here = store.job_of_this_process(repair(), JobOptions::default()).unwrap();
    assert!(matches!(here.run(|_| {}).await.unwrap(), Some(JobResult::Repaired(_))));
    assert!(!here.stop().await.unwrap());
    let ana = store.acting_as("ana").unwrap();
    ana.start_job(verify(), JobOptions::default()).await.expect_err("only the program may");
    ana.jobs().await.expect_err("only the program may");
}
