//! What becomes of jobs, and what they tell meanwhile.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]
use std::future::pending;

use keyloom::engine::{Address, Area, Batch, CommitFault, Effect, Memory, Space, Unreliable};
use keyloom::{RepairOptions, Schema, VerifyOptions};
use serde_json::json;

use super::*;
use crate::config::Config;

async fn app() -> App {
    App::new(Store::open("memory:").await.unwrap(), Config::default())
}

fn verify() -> Work {
    Work::Verify(VerifyOptions::default())
}

fn repair(dry_run: bool) -> Work {
    Work::Repair(RepairOptions { dry_run, ..RepairOptions::default() })
}

/// A job that ends with this process, with this in the place of its work.
fn admit(
    app: &App,
    store: &Store,
    work: Work,
    working: impl Future<Output = job::Outcome> + Send + 'static,
) -> Admitted {
    let job = store.job_of_this_process(work, JobOptions::default()).unwrap();
    app.jobs().admit_with(app, Arc::new(Job::new(job)), working)
}

async fn over(job: &Job) -> Value {
    let mut changes = job.stopping.subscribe();
    while job.is_running() && changes.changed().await.is_ok() {}
    job.to_json()
}

#[tokio::test]
async fn a_job_that_panics_has_failed() {
    let app = app().await;
    let job = admit(&app, app.store(), verify(), async { panic!("on purpose") }).ok().unwrap();
    let job = over(&job).await;
    assert_eq!(job["state"], "failed");
    assert_eq!(job["problem"]["type"], "/problems/internal");
}

#[tokio::test]
async fn one_of_a_kind_runs_in_a_space_and_ends_with_the_server() {
    let app = app().await;
    let start = |store: &Store, work| admit(&app, store, work, pending());
    let job = start(app.store(), verify()).ok().unwrap();
    assert_eq!(start(app.store(), verify()).err().unwrap().id(), job.id());
    let elsewhere = start(&app.store().space("b").unwrap(), verify()).ok().unwrap();
    let repair = start(app.store(), repair(false)).ok().unwrap();
    job.stop().await;
    assert_eq!(job.to_json()["state"], "stopped");
    let again = start(app.store(), verify()).ok().unwrap();
    app.stop();
    for job in [again, elsewhere, repair] {
        assert_eq!(over(&job).await["state"], "stopped");
    }
}

#[tokio::test]
async fn a_job_that_is_asked_for_again_with_its_key_is_the_same_job() {
    let app = app().await;
    let start = async |dry_run: bool, key: &str| {
        let asked = Asked {
            work: repair(dry_run),
            request: json!({ "dry_run": dry_run }),
            key: Some(key.to_owned()),
            pace: Pace::Full,
        };
        app.jobs().start(&app, app.store(), asked).await.unwrap().ok().unwrap()
    };
    let job = start(true, "k").await;
    over(&job).await;
    assert_eq!(start(true, "k").await.id(), job.id());
    for (dry_run, key) in [(false, "k"), (true, "l")] {
        let other = start(dry_run, key).await;
        assert_ne!(other.id(), job.id());
        over(&other).await;
    }
}

#[tokio::test]
async fn only_so_many_jobs_are_kept_and_none_that_runs_is_lost() {
    let app = app().await;
    let running = admit(&app, app.store(), repair(false), pending()).ok().unwrap();
    for _ in 0..KEPT_MAX + 20 {
        over(&admit(&app, app.store(), verify(), async { Ok(None) }).ok().unwrap()).await;
    }
    let kept = app.jobs().list().len();
    assert!(kept <= KEPT_MAX + 2, "{kept}");
    assert!(app.jobs().list().iter().any(|job| job.id() == running.id()));
}

const RECORDS: u64 = 600;
const USERS: &str =
    "[collection.user]\nkey = \"user:{id}\"\nfields = { id = \"text\", name = \"text\" }\n";
const BY_NAME: &str = "[collection.user.unique.name]\nkey = \"name:{name}\"\n";
const COUNTED: &str = "[collection.user.count.all]\ngroup = []\n";

/// A store with users, on an engine whose commits fail on request.
async fn users(schema: &str) -> (Arc<Unreliable>, Store) {
    let engine = Arc::new(Unreliable::new(Arc::new(Memory::new()), 1, 0.0));
    let store = Store::on(engine.clone());
    store.apply(&Schema::from_toml(schema).unwrap()).await.unwrap();
    let users = store.documents("user").await.unwrap();
    for n in 0..RECORDS {
        users
            .insert(&json!({ "id": format!("{n:04}"), "name": format!("n{n:04}") }))
            .await
            .unwrap();
    }
    (engine, store)
}

fn job(store: &Store, work: Work) -> Job {
    Job::new(store.job_of_this_process(work, JobOptions::default()).unwrap())
}

/// Lets so many commits pass, and refuses the next.
fn refuse_after(engine: &Unreliable, commits: usize) {
    engine.script(std::iter::repeat_n(CommitFault::None, commits).chain([CommitFault::Refused]));
}

#[tokio::test]
async fn a_build_tells_its_numbers_before_it_is_over() {
    for (more, name) in [(BY_NAME, "name"), (COUNTED, "all")] {
        let (engine, store) = users(USERS).await;
        store.apply(&Schema::from_toml(&format!("{USERS}{more}")).unwrap()).await.unwrap();
        // Enough for the first chunk of 256 records, not enough for all 600.
        refuse_after(&engine, 8);
        let work = Work::Build { collection: "user".to_owned(), index: name.to_owned() };
        let job = job(&store, work);
        job.work().await.unwrap_err();
        let told = job.to_json()["progress"]["records"].as_u64().unwrap();
        assert!(told > 0 && told < RECORDS, "{name}: {told} records when it was interrupted");
        job.work().await.unwrap();
        assert_eq!(job.to_json()["progress"]["records"], RECORDS, "{name}");
    }
}

#[tokio::test]
async fn a_repair_tells_its_numbers_before_it_is_over() {
    let (engine, store) = users(&format!("{USERS}{BY_NAME}")).await;
    // Two faults, planted past the log, and far enough from each other not to be mended together.
    let mut batch = Batch::new(Space::main());
    for name in ["name:n0000", "name:n0599"] {
        let address = Address::new(Area::default_area(), name.to_owned());
        batch.push(address, None, Some(Effect::Delete));
    }
    store.engine().commit(batch).await.unwrap();
    refuse_after(&engine, 1);
    let job = job(&store, repair(false));
    job.work().await.unwrap_err();
    let told = job.to_json()["progress"].clone();
    assert_eq!(told["findings"], 1, "{told}");
    let records = told["records"].as_u64().unwrap();
    assert!(records > 0 && records < RECORDS, "{told}");
    job.work().await.unwrap();
    let told = job.to_json()["progress"].clone();
    // One entry was missing when the entries were looked at.
    assert_eq!(told, json!({"records": RECORDS, "entries": RECORDS - 1, "findings": 1}));
}
