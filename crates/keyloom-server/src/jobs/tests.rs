//! What becomes of jobs, and what they tell meanwhile.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]
use std::future::pending;

use keyloom::Schema;
use keyloom::engine::{Address, Area, Batch, CommitFault, Effect, Memory, Space, Unreliable};

use super::*;
use crate::config::Config;

async fn app() -> App {
    App::new(Store::open("memory:").await.unwrap(), Config::default())
}

fn asked(kind: &'static str) -> Asked {
    Asked { kind, request: Value::Null, key: None }
}

async fn over(job: &Job) -> Value {
    let mut changes = job.stopping.subscribe();
    while job.is_running() && changes.changed().await.is_ok() {}
    job.to_json()
}

#[tokio::test]
async fn a_job_that_panics_has_failed() {
    let app = app().await;
    let work = async |_, _| panic!("on purpose");
    let job = app.jobs().start(&app, app.store(), asked("verify"), work).ok().unwrap();
    let job = over(&job).await;
    assert_eq!(job["state"], "failed");
    assert_eq!(job["problem"]["type"], "/problems/internal");
}

#[tokio::test]
async fn one_of_a_kind_runs_in_a_space_and_ends_with_the_server() {
    let app = app().await;
    let start = |store: &Store, kind| {
        app.jobs().start(&app, store, asked(kind), async |_, _| pending().await)
    };
    let job = start(app.store(), "verify").ok().unwrap();
    assert_eq!(start(app.store(), "verify").err().unwrap().id, job.id);
    let elsewhere = start(&app.store().space("b").unwrap(), "verify").ok().unwrap();
    let repair = start(app.store(), "repair").ok().unwrap();
    job.stop().await;
    assert_eq!(job.to_json()["state"], "stopped");
    let again = start(app.store(), "verify").ok().unwrap();
    app.stop();
    for job in [again, elsewhere, repair] {
        assert_eq!(over(&job).await["state"], "stopped");
    }
}

#[tokio::test]
async fn a_job_that_is_asked_for_again_with_its_key_is_the_same_job() {
    let app = app().await;
    let start = |request: Value, key: &str| {
        let asked = Asked { kind: "repair", request, key: Some(key.to_owned()) };
        app.jobs().start(&app, app.store(), asked, async |_, _| Ok(Value::Null))
    };
    let job = start(json!({ "dry_run": true }), "k").ok().unwrap();
    over(&job).await;
    assert_eq!(start(json!({ "dry_run": true }), "k").ok().unwrap().id, job.id);
    for (request, key) in [(json!({ "dry_run": false }), "k"), (json!({ "dry_run": true }), "l")] {
        let other = start(request, key).ok().unwrap();
        assert_ne!(other.id, job.id);
        over(&other).await;
    }
}

#[tokio::test]
async fn only_so_many_jobs_are_kept_and_none_that_runs_is_lost() {
    let app = app().await;
    let start = |kind, work: bool| {
        app.jobs().start(&app, app.store(), asked(kind), async move |_, _| {
            if work { Ok(Value::Null) } else { pending().await }
        })
    };
    let running = start("repair", false).ok().unwrap();
    for _ in 0..KEPT_MAX + 20 {
        over(&start("verify", true).ok().unwrap()).await;
    }
    let kept = app.jobs().of_space("main");
    assert!(kept.len() <= KEPT_MAX + 2, "{}", kept.len());
    assert!(kept.iter().any(|job| job.id == running.id));
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

fn job(kind: &'static str) -> Arc<Job> {
    Arc::new(Job::new(1, "main", asked(kind)))
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
        let job = job("build");
        build(store.clone(), job.clone(), "user".into(), name.into()).await.unwrap_err();
        let told = job.to_json()["progress"]["records"].as_u64().unwrap();
        assert!(told > 0 && told < RECORDS, "{name}: {told} records when it was interrupted");
        build(store, job.clone(), "user".into(), name.into()).await.unwrap();
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
    let job = job("repair");
    repair(store.clone(), job.clone(), false).await.unwrap_err();
    let told = job.to_json()["progress"].clone();
    assert_eq!(told["findings"], 1, "{told}");
    let records = told["records"].as_u64().unwrap();
    assert!(records > 0 && records < RECORDS, "{told}");
    repair(store, job.clone(), false).await.unwrap();
    let told = job.to_json()["progress"].clone();
    // One entry was missing when the entries were looked at.
    assert_eq!(told, json!({"records": RECORDS, "entries": RECORDS - 1, "findings": 1}));
}
