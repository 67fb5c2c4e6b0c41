//! A repair mends many faults by few commits, and each only as it was judged.

#![cfg(feature = "embedded")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests fail by panicking"
)]

mod index_support;

use std::sync::{Arc, Mutex};

use index_support::{Dump, Meddled, dump, plant, schema};
use keyloom::engine::{Embedded, EmbeddedOptions, Engine, Memory, Metered, Torn};
use keyloom::{Collection, RepairOptions, RepairProgress, Store, VerifyOptions};
use serde_json::{Value, json};

const USERS: usize = 120;

fn user(n: usize) -> Value {
    json!({ "id": format!("u{n:03}"), "email": format!("{n}@x"), "name": "n", "tags": ["a", "b"] })
}

async fn filled(engine: Arc<dyn Engine>) -> (Store, Collection<Value>) {
    let store = Store::on(engine);
    store.apply(&schema()).await.unwrap();
    let users = store.documents("user").await.unwrap();
    for n in 0..USERS {
        users.insert(&user(n)).await.unwrap();
    }
    (store, users)
}

/// For each user one entry that is missing, one that leads nowhere and one with another value.
async fn break_it(store: &Store) {
    for n in 0..USERS {
        let id = format!("u{n:03}");
        plant(store, "", format!("index:email:{n}@x"), None).await;
        plant(store, "", format!("index:email:gone{n}@x"), Some(&format!("\"gone{n}\""))).await;
        plant(store, "cards", format!("card:n:{id}"), Some("{\"id\":\"wrong\"}")).await;
    }
}

async fn repaired(engine: Arc<dyn Engine>) {
    let metered = Metered::new(engine);
    let (store, _) = filled(Arc::new(metered.clone())).await;
    let sound: Dump = dump(&store).await;
    break_it(&store).await;
    let broken = dump(&store).await;
    metered.take();
    let dry = RepairOptions { dry_run: true, ..RepairOptions::default() };
    assert_eq!(store.repair(&dry).await.unwrap().mended_counts.total(), 3 * USERS as u64);
    assert!(dump(&store).await == broken, "a dry run writes nothing");
    let verified = {
        metered.take();
        store.verify().await.unwrap();
        metered.take().commits
    };
    let repair = store.repair(&RepairOptions::default()).await.unwrap();
    assert_eq!(repair.mended_counts.total(), 3 * USERS as u64, "{:#?}", repair.left);
    assert_eq!(repair.left_counts.total(), 0);
    let commits = metered.take().commits - verified;
    assert!(commits < USERS as u64 / 4, "{commits} commits for {} faults", 3 * USERS);
    assert!(dump(&store).await == sound);
}

#[tokio::test]
async fn many_faults_are_mended_by_few_commits() {
    repaired(Arc::new(Memory::new())).await;
    repaired(Arc::new(Torn::new(Arc::new(Memory::new()), 5))).await;
    let folder = tempfile::tempdir().unwrap();
    let options = EmbeddedOptions::default();
    repaired(Arc::new(Embedded::open(folder.path(), options).unwrap())).await;
}

/// A writer changes one record right before a batch that mends many: that batch changes nothing,
/// and every fault is judged anew.
#[tokio::test]
async fn one_record_that_moves_spoils_nothing() {
    let meddled = Arc::new(Meddled::new(Arc::new(Memory::new())));
    let (store, users) = filled(meddled.clone()).await;
    break_it(&store).await;
    let moved = json!({ "id": "u007", "email": "new@x", "name": "other", "tags": [] });
    let writer = users.clone();
    let changed = moved.clone();
    meddled.before_next_commit(async move {
        writer.replace(&changed).await.unwrap();
    });
    store.repair(&RepairOptions::default()).await.unwrap();
    assert!(meddled.has_meddled());
    let verification = store.verify().await.unwrap();
    assert!(verification.is_clean(), "{:#?}", verification.findings);
    assert_eq!(users.get("u007").await.unwrap().unwrap().value, moved);
    assert_eq!(users.get_by("email", "new@x").await.unwrap().unwrap().value["id"], "u007");
    assert!(users.get_by("email", "7@x").await.unwrap().is_none());
}

/// What an index held before it was disabled goes in few commits too.
#[tokio::test]
async fn a_build_removes_many_entries_by_few_commits() {
    let metered = Metered::new(Arc::new(Memory::new()));
    let (store, users) = filled(Arc::new(metered.clone())).await;
    store.disable("user", "tag").await.unwrap();
    for n in 0..USERS {
        users.delete(format!("u{n:03}")).await.unwrap();
    }
    metered.take();
    let built = store.build("user", "tag").await.unwrap();
    assert_eq!((built.removed, built.put), (2 * USERS as u64, 0));
    let commits = metered.take().commits;
    assert!(commits < 12, "{commits}");
    assert!(dump(&store).await.is_empty());
}

#[tokio::test]
async fn a_repair_tells_how_far_it_is() {
    let (store, _) = filled(Arc::new(Memory::new())).await;
    break_it(&store).await;
    // What nobody can mend counts apart.
    plant(&store, "", "index:email:unreadable", Some("no JSON")).await;
    let verify = VerifyOptions { chunk_keys: 50, ..VerifyOptions::default() };
    let options = RepairOptions { verify, ..RepairOptions::default() };
    let heard = Mutex::new(Vec::new());
    let hear = |so_far| heard.lock().unwrap().push(so_far);
    let repair = store.repair_with_progress(&options, hear).await.unwrap();
    let heard: Vec<RepairProgress> = heard.into_inner().unwrap();
    let keys = |told: &RepairProgress| told.records + told.entries;
    let mut before = RepairProgress::default();
    for told in &heard {
        assert!(keys(told) <= keys(&before) + 50, "{before:?} {told:?}");
        assert!(told.records >= before.records && told.mended >= before.mended, "{told:?}");
        before = *told;
    }
    let (mended, left) = (repair.mended_counts.total(), repair.left_counts.total());
    let all = RepairProgress { records: repair.records, entries: repair.entries, mended, left };
    assert_eq!((before, left), (all, 1));
    assert!(heard.iter().any(|told| told.mended > 0 && told.mended < mended), "{heard:?}");
}
