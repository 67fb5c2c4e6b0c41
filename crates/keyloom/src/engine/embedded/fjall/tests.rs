//! Each assumption about fjall, broken: the short cut goes off, and everything stays right.

#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

use std::path::Path;
use std::time::Duration;

use bytes::Bytes;

use super::super::{Durability, Embedded, Options};
use super::internals::{Broken, Internals};
use super::journal::{journal_path, last_journal};
use crate::engine::{
    Address, Area, Batch, Condition, Direction, Effect, Engine, EngineExt, Outcome, Range, Space,
    Stamp,
};
use crate::error::ErrorKind;

const MEMTABLE_BYTES: u64 = 64 << 10;
const CELL_BYTES: usize = 1_000;

/// More than twenty memtables hold, so that keys leave memory while we look.
const KEYS: usize = 2_000;

/// More than the journal has room for ahead when it is opened, twice.
const JOURNAL_KEYS: usize = 800;

/// Without syncs, which are of no matter here.
fn open(folder: &Path, broken: Option<Broken>) -> Embedded {
    let sync_every = Duration::from_secs(3_600);
    open_with(Durability::Relaxed { sync_every }, folder, broken)
}

fn open_with(durability: Durability, folder: &Path, broken: Option<Broken>) -> Embedded {
    let mut options = Options::default().memtable_bytes(MEMTABLE_BYTES).durability(durability);
    options = options.record_cache_bytes(0).list_cache_bytes(0);
    options.internals = Internals { broken };
    Embedded::open(folder, options).unwrap()
}

/// Takes a unique value, as an insert does, and says whether it was given.
async fn claim(store: &Embedded, number: usize) -> bool {
    let mut batch = Batch::new(Space::main());
    let bytes = Bytes::from(vec![b'c'; CELL_BYTES]);
    let put = Effect::Put { stamp: Stamp([1; Stamp::BYTES]), bytes };
    let address = Address::new(Area::default_area(), format!("claim:{number:06}"));
    batch.push(address, Some(Condition::Absent), Some(put));
    matches!(store.commit(batch).await.unwrap(), Outcome::Committed(_))
}

/// Takes values that are free, and with each one that is taken since some time.
async fn claim_each_once(store: &Embedded, numbers: std::ops::Range<usize>) {
    for number in numbers.clone() {
        assert!(claim(store, number).await, "{number} is free");
        let earlier = numbers.start + (number - numbers.start) / 2;
        assert!(!claim(store, earlier).await, "{earlier} was given twice");
        assert!(!claim(store, number).await, "{number} was given twice");
    }
}

async fn none_is_free(store: &Embedded, numbers: std::ops::Range<usize>) {
    for number in numbers {
        assert!(!claim(store, number).await, "{number} was given twice");
    }
}

fn disabled(store: &Embedded) -> u64 {
    let figures = store.figures();
    figures.iter().find(|figure| figure.name == "disabled short cuts").unwrap().value
}

async fn keys_of(store: &Embedded) -> usize {
    let all = Range::all(Area::default_area());
    store.scan_one(&Space::main(), &all, 10_000, Direction::Forward).await.unwrap().rows.len()
}

/// A store that was closed, so that all it has is in tables.
async fn with_tables(keys: usize) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path(), None);
    claim_each_once(&store, 0..keys).await;
    assert_eq!(disabled(&store), 0, "nothing is wrong with fjall as it is");
    store.close().await.unwrap();
    folder
}

#[tokio::test]
async fn fjall_works_as_assumed() {
    let folder = with_tables(KEYS).await;
    for _ in 0..2 {
        let store = open(folder.path(), None);
        assert_eq!(disabled(&store), 0);
        assert_eq!(keys_of(&store).await, KEYS);
        none_is_free(&store, 0..KEYS).await;
        assert_eq!(disabled(&store), 0);
        store.close().await.unwrap();
    }
}

/// In a store that has tables it is seen at once.
#[tokio::test]
async fn tables_that_deny_their_keys_are_found_out_when_a_store_is_opened() {
    for broken in [Broken::FilterHash, Broken::TableLookup] {
        let folder = with_tables(200).await;
        let store = open(folder.path(), Some(broken));
        assert_eq!(disabled(&store), 1, "{broken:?}");
        none_is_free(&store, 0..200).await;
        claim_each_once(&store, 200..400).await;
        store.close().await.unwrap();
        let store = open(folder.path(), Some(broken));
        none_is_free(&store, 0..400).await;
        store.close().await.unwrap();
    }
}

/// In a new store it is seen before anything rests on its first tables.
#[tokio::test]
async fn tables_that_deny_their_keys_are_found_out_before_keys_leave_memory() {
    for broken in [Broken::FilterHash, Broken::TableLookup, Broken::FlushOrder] {
        let folder = tempfile::tempdir().unwrap();
        let store = open(folder.path(), Some(broken));
        assert_eq!(disabled(&store), 0, "{broken:?}");
        claim_each_once(&store, 0..KEYS).await;
        assert_eq!(disabled(&store), 1, "{broken:?}");
        store.close().await.unwrap();
    }
}

#[tokio::test]
async fn a_store_whose_numbers_cannot_be_set_is_opened_by_fjall_alone() {
    let folder = with_tables(200).await;
    for round in 1..3 {
        let store = open(folder.path(), Some(Broken::Numbering));
        // Once there is a journal, and it stays, fjall needs no help.
        assert_eq!(disabled(&store), u64::from(round == 1));
        assert_eq!(keys_of(&store).await, 200 * round);
        none_is_free(&store, 0..200 * round).await;
        claim_each_once(&store, 200 * round..200 * (round + 1)).await;
        store.close().await.unwrap();
    }
}

#[tokio::test]
async fn a_journal_that_is_longer_than_reckoned_loses_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let store = open_with(Durability::Durable, folder.path(), Some(Broken::JournalLength));
    claim_each_once(&store, 0..JOURNAL_KEYS).await;
    assert_eq!(disabled(&store), 1);
    // What the journal has is all that counts after an unclean end.
    let copy = tempfile::tempdir().unwrap();
    copy_below(folder.path(), copy.path());
    let again = open(copy.path(), None);
    assert_eq!(keys_of(&again).await, JOURNAL_KEYS);
    again.close().await.unwrap();
    store.close().await.unwrap();
}

/// Nothing is flushed at the end, and nothing is said to be left in memory. The journal is all that
/// has it then, and what was replayed from it is in memory again.
#[tokio::test]
async fn a_close_that_leaves_something_in_memory_loses_nothing() {
    let folder = tempfile::tempdir().unwrap();
    for round in 0..3 {
        let store = open(folder.path(), Some(Broken::Unflushed));
        assert_eq!(keys_of(&store).await, 40 * round);
        none_is_free(&store, 0..40 * round).await;
        claim_each_once(&store, 40 * round..40 * (round + 1)).await;
        store.close().await.unwrap();
    }
}

/// fjall would take what it does not know for the end, and cut it off.
#[tokio::test]
async fn a_journal_of_an_unknown_format_is_refused_and_stays_untouched() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path(), None);
    claim_each_once(&store, 0..10).await;
    let copy = tempfile::tempdir().unwrap();
    copy_below(folder.path(), copy.path());
    store.close().await.unwrap();
    let cells = copy.path().join("cells");
    let journal = journal_path(&cells, last_journal(&cells).unwrap());
    let known = std::fs::read(&journal).unwrap();
    let mut unknown = known.clone();
    unknown[0] = 9;
    std::fs::write(&journal, &unknown).unwrap();
    let error = Embedded::open(copy.path(), Options::default()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::UnknownFormat, "{error}");
    assert!(std::fs::read(&journal).unwrap() == unknown, "the journal was changed");
    std::fs::write(&journal, &known).unwrap();
    let store = open(copy.path(), None);
    assert_eq!(keys_of(&store).await, 10);
    store.close().await.unwrap();
}

fn copy_below(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let target = to.join(path.file_name().unwrap());
        if path.is_dir() { copy_below(&path, &target) } else { drop(std::fs::copy(&path, target)) }
    }
}
