//! The same questions in a store with another user's records, and in one without them: the
//! answers are the same, and afterwards the other's cells are, bit for bit, what they were.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;

use bytes::Bytes;
use keyloom::engine::{
    Area, Cell, Direction, Embedded, EmbeddedOptions, Engine, EngineExt, Memory, Range, Space, Torn,
};
use keyloom::{ErrorKind, Store};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde_json::json;

use crate::hostile::{self, Act};
use crate::{areas, long, store_on};

/// What only the other user's owned records hold. Nobody ever sends it.
const SECRET: &str = "s3cr3t";

/// Puts in what everybody sees, and, if asked, what the victim owns.
async fn populate(store: &Store, victim: &str, with_owned: bool) {
    let of = |name: &'static str| async move { store.documents(name).await.unwrap() };
    let posts = of("post").await;
    for (post, timestamp) in [("p1", 5), ("p2", 7)] {
        let post = json!({ "userId": victim, "postId": post, "timestamp": timestamp });
        posts.insert(&post).await.unwrap();
    }
    of("user").await.insert(&json!({ "userId": victim, "email": "v@example.org" })).await.unwrap();
    of("template").await.insert(&json!({ "name": "t1" })).await.unwrap();
    of("config").await.insert(&json!({ "name": "c1" })).await.unwrap();
    if !with_owned {
        return;
    }
    // With keys that somebody else may use too.
    let notes = of("note").await.acting_as(victim).unwrap();
    for (place, id) in ["n1", "n2", SECRET, "n3"].into_iter().enumerate() {
        let note = json!({
            "userId": victim, "noteId": id, "rank": place, "slug": format!("{SECRET}{place}"),
            "tags": ["red", SECRET], "place": { "lat": 1.0, "lng": 2.0 }, "text": SECRET,
        });
        notes.with_idempotency_key(id).unwrap().insert(&note).await.unwrap();
        let patch = json!({ "text": format!("{SECRET} again") });
        notes.update_with_retry(id, &patch).await.unwrap();
    }
    notes.delete("n3").await.unwrap();
    of("preferences").await.insert(&json!({ "userId": victim, "text": SECRET })).await.unwrap();
}

/// Every cell of a store.
async fn cells(store: &Store) -> BTreeMap<(Area, Bytes), Cell> {
    let (engine, space) = (store.engine(), Space::new(store.space_name()).unwrap());
    let mut all = BTreeMap::new();
    for area in areas() {
        let mut left = Range::all(area.clone());
        loop {
            let scanned = engine.scan_one(&space, &left, 1_000, Direction::Forward).await;
            let stretch = scanned.unwrap();
            for row in stretch.rows {
                left = left.after(&row.key, Direction::Forward);
                all.insert((area.clone(), row.key), row.cell);
            }
            if !stretch.more {
                break;
            }
        }
    }
    all
}

/// Does the same in both worlds. Templates are everybody's to change, and all else that is there
/// is not the attacker's.
async fn check<E, Fut>(victim: &str, attacker: &str, acts: &[Act], engine: E)
where
    E: Fn() -> Fut,
    Fut: Future<Output = Arc<dyn Engine>>,
{
    let mut transcripts = Vec::new();
    for with_owned in [true, false] {
        let store = store_on(engine().await).await;
        populate(&store, victim, with_owned).await;
        let before = cells(&store).await;
        let guarded: Vec<_> =
            before.iter().filter(|((_, key), _)| !key.starts_with(b"shared:templates:")).collect();
        let acting = store.acting_as(attacker).unwrap();
        let mut transcript = Vec::new();
        for act in acts {
            let answer = hostile::perform(&acting, act, victim, attacker).await;
            assert!(!answer.contains(SECRET), "{act:?}: {answer}");
            // The last line of defence holds, and nothing gets as far as there.
            assert!(!answer.contains("Internal "), "{act:?}: {answer}");
            transcript.push((format!("{act:?}"), answer));
        }
        let after = cells(&store).await;
        for (address, cell) in guarded {
            assert_eq!(after.get(address), Some(cell), "{address:?} after {acts:?}");
        }
        let verification = store.verify().await.unwrap();
        assert!(verification.is_clean(), "{:#?}", verification.findings);
        transcripts.push(transcript);
    }
    assert_eq!(transcripts[0], transcripts[1]);
}

fn run<E, Fut>(cases: u32, acts: usize, engine: E)
where
    E: Fn() -> Fut,
    Fut: Future<Output = Arc<dyn Engine>>,
{
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let config =
        Config { cases: long::times(cases), failure_persistence: None, ..Config::default() };
    let strategy =
        (hostile::user(), hostile::user(), prop::collection::vec(hostile::act(), 1..acts));
    TestRunner::new(config)
        .run(&strategy, |(victim, attacker, acts)| {
            prop_assume!(victim != attacker);
            runtime.block_on(check(&victim, &attacker, &acts, &engine));
            Ok(())
        })
        .unwrap();
}

#[test]
fn users_are_apart_in_memory() {
    run(60, 60, || async { Arc::new(Memory::new()) as Arc<dyn Engine> });
}

#[test]
fn users_are_apart_in_a_folder() {
    let parent = tempfile::tempdir().unwrap();
    run(4, 40, || async {
        let folder = tempfile::tempdir_in(parent.path()).unwrap().keep();
        Arc::new(Embedded::open(folder, EmbeddedOptions::default()).unwrap()) as Arc<dyn Engine>
    });
}

#[test]
fn users_are_apart_where_batches_show_cell_by_cell() {
    run(6, 40, || async { Arc::new(Torn::new(Arc::new(Memory::new()), 7)) as Arc<dyn Engine> });
}

/// The property above would hold for a store that refuses everything.
#[tokio::test]
async fn a_user_reaches_what_is_theirs() {
    let store = crate::memory_store().await;
    populate(&store, "ana", true).await;
    for user in hostile::USERS.iter().filter(|user| **user != "ana") {
        let acting = store.acting_as(user).unwrap();
        let notes = acting.documents("note").await.unwrap();
        notes.insert(&json!({ "noteId": "n1", "rank": 1, "slug": user })).await.unwrap();
        assert_eq!(notes.get("n1").await.unwrap().unwrap().value["userId"], **user);
        let found = notes.get_by("slug", *user).await.unwrap().unwrap();
        assert_eq!(found.value["noteId"], "n1");
        let all = notes.page(&keyloom::Query::new()).await.unwrap();
        assert_eq!(all.records.len(), 1, "{user:?}");
        let listed = acting.plain().list("user:", 100, None).await.unwrap().entries;
        assert!(listed.iter().any(|entry| *entry.key == *found.key.as_bytes()), "{user:?}");
        let error = notes.get_by("nowhere", "x").await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    }
    assert!(store.verify().await.unwrap().is_clean());
}
