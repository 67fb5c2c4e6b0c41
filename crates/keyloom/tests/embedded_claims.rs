//! Claims on an embedded store while its memory becomes tables: a key that is to be absent is looked
//! for in whichever of the two may have it.

#![cfg(feature = "embedded")]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests fail by panicking")]

mod embedded_support;

use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use embedded_support::{Child, Random, batch, folder_of_child, say, stamp};
use keyloom::engine::{
    Batch, Condition, Durability, Effect, Embedded, EmbeddedOptions, Engine, Outcome,
};

const WRITERS: u64 = 8;
const ROUNDS: usize = 2_500;
const KEYS: u64 = 3_000;

/// How many keys a writer keeps.
const HELD: usize = 150;

/// Which keys have an owner, told apart from the store.
type Owned = Arc<[AtomicBool]>;

/// A store whose memory becomes a table after some hundred cells, and that waits for no disk.
fn open(folder: &Path) -> Arc<Embedded> {
    let options = EmbeddedOptions::default()
        .memtable_bytes(64 << 10)
        .durability(Durability::Relaxed { sync_every: Duration::from_secs(60) });
    Arc::new(Embedded::open(folder, options).unwrap())
}

fn key(number: u64) -> String {
    format!("lock:{number:05}")
}

/// Takes a key that nobody has.
fn claim(number: u64, writer: u64) -> Batch {
    let taken = Effect::Put { stamp: stamp(writer), bytes: vec![b'x'; 100].into() };
    batch([(&*key(number), Some(Condition::Absent), Some(taken))])
}

/// Gives a key back.
fn release(number: u64, writer: u64) -> Batch {
    let is_mine = Condition::Unchanged(stamp(writer));
    batch([(&*key(number), Some(is_mine), Some(Effect::Delete))])
}

async fn is_committed(store: &Embedded, batch: Batch) -> bool {
    match store.commit(batch).await.unwrap() {
        Outcome::Committed(_) => true,
        Outcome::Rejected(_) => false,
    }
}

/// Claims many keys, gives back all but the last, and says which these are.
async fn take_turns(store: Arc<Embedded>, writer: u64, owned: Owned) -> VecDeque<u64> {
    let mut random = Random::new(writer);
    let mut held = VecDeque::new();
    for _ in 0..ROUNDS {
        let number = random.below(KEYS);
        if is_committed(&store, claim(number, writer)).await {
            let had_owner = owned[number as usize].swap(true, Ordering::SeqCst);
            assert!(!had_owner, "{} has two owners", key(number));
            held.push_back(number);
        }
        if held.len() > HELD {
            let oldest = held.pop_front().unwrap();
            owned[oldest as usize].store(false, Ordering::SeqCst);
            assert!(is_committed(&store, release(oldest, writer)).await, "{} is lost", key(oldest));
        }
    }
    held
}

/// Who claims all keys gets just those that have no owner. The last come first: memory has them.
async fn assert_owned(store: &Embedded, owned: &[AtomicBool]) {
    for (number, is_owned) in (0..KEYS).rev().zip(owned.iter().rev()) {
        let is_free = is_committed(store, claim(number, WRITERS)).await;
        assert_eq!(is_free, !is_owned.swap(true, Ordering::SeqCst), "{}", key(number));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_key_has_one_owner_while_memory_becomes_tables() {
    let folder = tempfile::tempdir().unwrap();
    let owned: Owned = (0..KEYS).map(|_| AtomicBool::new(false)).collect();
    let store = open(folder.path());
    for round in 0..2 {
        let writers = (0..WRITERS).map(|writer| {
            tokio::spawn(take_turns(Arc::clone(&store), round * 100 + writer, Arc::clone(&owned)))
        });
        for writer in writers.collect::<Vec<_>>() {
            assert_eq!(writer.await.unwrap().len(), HELD);
        }
    }
    assert_owned(&store, &owned).await;
    store.close().await.unwrap();
    drop(store);
    let store = open(folder.path());
    assert_owned(&store, &owned).await;
}

/// After a kill, memory has what the journal had, which nobody has marked.
#[tokio::test]
async fn a_key_has_its_owner_after_a_kill() {
    let folder = tempfile::tempdir().unwrap();
    let mut child = Child::start("owner_process", folder.path());
    assert_eq!(child.line().as_deref(), Some("owned"));
    child.kill();
    let store = open(folder.path());
    let owned: Owned = (0..KEYS).map(|number| AtomicBool::new(number % 2 == 0)).collect();
    assert_owned(&store, &owned).await;
}

/// Not a test of its own: the process that the test above kills.
#[tokio::test]
async fn owner_process() {
    let Some(folder) = folder_of_child() else { return };
    let store = open(&folder);
    for number in (0..KEYS).step_by(2) {
        assert!(is_committed(&store, claim(number, 0)).await);
    }
    say("owned");
    std::future::pending().await
}
