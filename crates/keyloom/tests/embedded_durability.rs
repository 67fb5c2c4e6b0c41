//! Nobody sees what is not durable, and what the folder of an embedded store promises.

#![cfg(feature = "embedded")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests fail by panicking"
)]

mod embedded_support;

use std::collections::BTreeMap;
use std::fs::Metadata;
use std::future::poll_fn;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use embedded_support::{Child, address, batch, folder_of_child, put, put_effect, say, stamp};
use keyloom::engine::{
    Addition, Area, Batch, Cause, Committed, Condition, Cut, Direction, Durability, Effect,
    Embedded, EmbeddedOptions, Engine, EngineExt, LogBounds, LogEntry, Outcome, Part, Position,
    Range, Recipe, Space, SyncGate, Trail,
};
use keyloom::{ErrorKind, Fate, Result};

/// A commit that is under way.
type Commit<'s> = Pin<Box<dyn Future<Output = Result<Outcome>> + Send + 's>>;

fn options() -> EmbeddedOptions {
    EmbeddedOptions::default().block_cache_bytes(1 << 20).record_cache_bytes(1 << 20)
}

async fn text_at(store: &Embedded, key: &str) -> Option<Bytes> {
    let cells = store.get(&Space::main(), &[address(key)]).await.unwrap();
    cells[0].as_ref().map(|cell| cell.bytes().unwrap().clone())
}

async fn keys_of(store: &Embedded) -> Vec<String> {
    let range = Range::all(Area::default_area());
    let found = store.scan(&Space::main(), &[range], 10_000, Direction::Forward).await.unwrap();
    found[0].rows.iter().map(|row| String::from_utf8(row.key.to_vec()).unwrap()).collect()
}

fn add_one(key: &str) -> Batch {
    let additions = vec![Addition { name: "n".into(), delta: 1, min: None, max: None }];
    batch([(key, None, Some(Effect::Add { stamp: stamp(1), additions }))])
}

/// Whether the future is over after one more look at it. The first look sends the request.
async fn is_answered<F: Future + ?Sized>(mut future: Pin<&mut F>) -> bool {
    poll_fn(|context| Poll::Ready(future.as_mut().poll(context).is_ready())).await
}

/// A store, and what holds its syncs back.
fn open_gated(folder: &Path) -> (Embedded, SyncGate) {
    let gate = SyncGate::default();
    (Embedded::open(folder, options().sync_gate(gate.clone())).unwrap(), gate)
}

/// Commits a batch, and holds its sync back.
async fn hold<'s>(store: &'s Embedded, gate: &SyncGate, batch: Batch) -> Commit<'s> {
    gate.shut();
    let mut held = store.commit(batch);
    assert!(!is_answered(held.as_mut()).await);
    gate.wait_until_reached();
    held
}

#[tokio::test]
async fn while_the_sync_is_held_back_nobody_sees_the_batch() {
    let folder = tempfile::tempdir().unwrap();
    let (store, gate) = open_gated(folder.path());
    store.commit(put("seen", "1")).await.unwrap();
    let mut commit = hold(&store, &gate, put("held", "seen")).await;

    assert_eq!(text_at(&store, "held").await, None);
    assert_eq!(keys_of(&store).await, ["seen"]);
    let recipe =
        Recipe { area: Area::default_area(), cuts: vec![Cut::Rest], parts: vec![Part::Field(0)] };
    let trails = [Trail { range: Range::all(Area::default_area()), recipe: &recipe }];
    let links = store.follow(&Space::main(), &trails, 9, Direction::Backward).await;
    assert_eq!(links.unwrap()[0].rows.len(), 1);
    assert!(!is_answered(commit.as_mut()).await);

    gate.open();
    assert_eq!(commit.await.unwrap(), Outcome::Committed(Committed::default()));
    assert_eq!(text_at(&store, "held").await.unwrap(), "seen");
    assert_eq!(keys_of(&store).await, ["held", "seen"]);
}

/// Forty writers share a sync: each hears what became of its own batch, before the store is closed.
#[tokio::test]
async fn all_of_a_large_group_are_answered() {
    let folder = tempfile::tempdir().unwrap();
    let (store, gate) = open_gated(folder.path());
    let first = hold(&store, &gate, put("first", "")).await;
    let claim = |key: &str| batch([(key, Some(Condition::Absent), Some(put_effect("")))]);
    let mut group: Vec<_> =
        (0..40).map(|writer| store.commit(claim(&format!("key {}", writer / 2)))).collect();
    for commit in &mut group {
        assert!(!is_answered(commit.as_mut()).await);
    }
    let mut closing = store.close();
    assert!(!is_answered(closing.as_mut()).await);
    gate.open();
    closing.await.unwrap();

    assert!(matches!(first.await.unwrap(), Outcome::Committed(_)));
    for (writer, mut commit) in group.into_iter().enumerate() {
        let answer = poll_fn(|context| Poll::Ready(commit.as_mut().poll(context))).await;
        match (writer % 2, answer) {
            (0, Poll::Ready(Ok(Outcome::Committed(_)))) => {}
            (1, Poll::Ready(Ok(Outcome::Rejected(_)))) => {}
            (_, answer) => panic!("writer {writer} was told {answer:?}"),
        }
    }
}

#[tokio::test]
async fn no_answer_that_rests_on_a_held_batch_is_given() {
    let folder = tempfile::tempdir().unwrap();
    let (store, gate) = open_gated(folder.path());
    let first = hold(&store, &gate, put("first", "")).await;

    // These wait in the queue, and become one group.
    let claim = |value| batch([("key", Some(Condition::Absent), Some(put_effect(value)))]);
    let mut winner = store.commit(claim("winner"));
    let mut loser = store.commit(claim("loser"));
    let mut witness = store.commit(batch([("key", Some(Condition::Present), None)]));
    let mut adder = store.commit(add_one("sum"));
    let mut second_adder = store.commit(add_one("sum"));
    assert!(!is_answered(winner.as_mut()).await);
    assert!(!is_answered(loser.as_mut()).await);
    assert!(!is_answered(witness.as_mut()).await);
    assert!(!is_answered(adder.as_mut()).await);
    assert!(!is_answered(second_adder.as_mut()).await);
    gate.let_one_through();
    first.await.unwrap();
    gate.wait_until_reached();

    assert!(!is_answered(loser.as_mut()).await, "a rejection revealed the winner");
    assert!(!is_answered(witness.as_mut()).await, "a condition revealed the winner");
    assert_eq!(text_at(&store, "key").await, None);

    gate.open();
    assert_eq!(winner.await.unwrap(), Outcome::Committed(Committed::default()));
    let Outcome::Rejected(rejection) = loser.await.unwrap() else { panic!("two winners") };
    assert_eq!(rejection.cause, Cause::Condition { entry: 0 });
    assert_eq!(rejection.found.unwrap().bytes().unwrap(), "winner");
    assert_eq!(witness.await.unwrap(), Outcome::Committed(Committed::default()));
    let sum = |n| {
        let integers = vec![BTreeMap::from([("n".to_owned(), n)])];
        Outcome::Committed(Committed { integers, position: None })
    };
    assert_eq!(adder.await.unwrap(), sum(1));
    assert_eq!(second_adder.await.unwrap(), sum(2));
    assert_eq!(text_at(&store, "key").await.unwrap(), "winner");
}

#[tokio::test]
async fn a_key_that_several_batches_of_a_group_change_keeps_the_last() {
    let folder = tempfile::tempdir().unwrap();
    let (store, gate) = open_gated(folder.path());
    let first = hold(&store, &gate, put("first", "")).await;
    let deletion = batch([("gone", None, Some(Effect::Delete))]);
    let mut commits = [put("key", "1"), put("gone", "1"), put("key", "2"), deletion]
        .map(|batch| store.commit(batch));
    for commit in &mut commits {
        assert!(!is_answered(commit.as_mut()).await);
    }
    gate.open();
    first.await.unwrap();
    for commit in commits {
        assert_eq!(commit.await.unwrap(), Outcome::Committed(Committed::default()));
    }
    assert_eq!(text_at(&store, "key").await.unwrap(), "2");
    assert_eq!(text_at(&store, "gone").await, None);
    drop(store);
    let store = Embedded::open(folder.path(), options()).unwrap();
    assert_eq!(keys_of(&store).await, ["first", "key"]);
}

#[tokio::test]
async fn after_a_kill_nothing_that_was_seen_is_missing() {
    let folder = tempfile::tempdir().unwrap();
    let mut child = Child::start("held_writer_process", folder.path());
    let mut seen = Vec::new();
    loop {
        let line = child.line().expect("the writer ended early");
        if line == "held" {
            break;
        }
        seen.push(line.strip_prefix("seen ").unwrap().to_owned());
    }
    child.kill();
    assert_eq!(seen.len(), 20);
    let store = Embedded::open(folder.path(), options()).unwrap();
    let found = keys_of(&store).await;
    for key in seen {
        assert!(found.contains(&key), "{key} was seen and is missing");
    }
}

/// Not a test of its own: the process that the test above kills.
#[tokio::test]
async fn held_writer_process() {
    let Some(folder) = folder_of_child() else { return };
    let (store, gate) = open_gated(&folder);
    for number in 0..20 {
        let key = format!("key {number}");
        store.commit(put(&key, "")).await.unwrap();
        assert!(text_at(&store, &key).await.is_some());
        say(&format!("seen {key}"));
    }
    let held = hold(&store, &gate, put("held", "")).await;
    assert_eq!(text_at(&store, "held").await, None);
    say("held");
    held.await.unwrap();
}

const LOST_BYTES: usize = 4096;
const LARGE_BYTES: usize = 20_000;

/// A store after a loss of power: of one of its large values a stretch reads as zeros. `at` says how
/// far into the journal that is, in large values.
fn store_without_power(at: usize) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let mut child = Child::start("large_writer_process", folder.path());
    assert_eq!(child.line().unwrap(), "written");
    child.kill();
    let journal = folder.path().join("cells/0.jnl");
    let mut bytes = std::fs::read(&journal).unwrap();
    let place = at * LARGE_BYTES + LARGE_BYTES / 2;
    assert_eq!(&bytes[place..place + LOST_BYTES], "v".repeat(LOST_BYTES).as_bytes());
    bytes[place..place + LOST_BYTES].fill(0);
    std::fs::write(&journal, bytes).unwrap();
    folder
}

/// Not a test of its own: the process whose last batch is not whole.
#[tokio::test]
async fn large_writer_process() {
    let Some(folder) = folder_of_child() else { return };
    let store = Embedded::open(folder, options()).unwrap();
    for number in 0..3 {
        store.commit(put(&format!("key {number}"), &"v".repeat(LARGE_BYTES))).await.unwrap();
    }
    say("written");
    std::future::pending().await
}

#[tokio::test]
async fn a_last_batch_that_lost_a_part_with_the_power_is_as_if_it_was_never_written() {
    let folder = store_without_power(2);
    let store = Embedded::open(folder.path(), options()).unwrap();
    assert_eq!(keys_of(&store).await, ["key 0", "key 1"]);
    assert_eq!(text_at(&store, "key 1").await.unwrap(), "v".repeat(LARGE_BYTES));
    store.commit(put("key 3", "")).await.unwrap();
    drop(store);
    let store = Embedded::open(folder.path(), options()).unwrap();
    assert_eq!(keys_of(&store).await, ["key 0", "key 1", "key 3"]);
}

#[tokio::test]
async fn damage_that_other_batches_follow_is_told_and_nothing_is_cut_off() {
    let folder = store_without_power(1);
    let journal = folder.path().join("cells/0.jnl");
    let before = std::fs::read(&journal).unwrap();
    let error = Embedded::open(folder.path(), options()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    assert!(error.context_value("path").is_some() && error.context_value("reason").is_some());
    assert!(std::fs::read(&journal).unwrap() == before, "the journal was changed");
}

#[tokio::test]
async fn relaxed_commits_are_acknowledged_before_the_sync_and_survive_the_process() {
    let folder = tempfile::tempdir().unwrap();
    let mut child = Child::start("relaxed_writer_process", folder.path());
    assert_eq!(child.line().unwrap(), "acknowledged");
    child.kill();
    let store = Embedded::open(folder.path(), options()).unwrap();
    assert_eq!(keys_of(&store).await.len(), 50);
}

/// Not a test of its own: the process that the test above kills.
#[tokio::test]
async fn relaxed_writer_process() {
    let Some(folder) = folder_of_child() else { return };
    let relaxed = Durability::Relaxed { sync_every: Duration::from_secs(3600) };
    let store = Embedded::open(folder, options().durability(relaxed)).unwrap();
    for number in 0..50 {
        store.commit(put(&format!("key {number}"), "")).await.unwrap();
    }
    say("acknowledged");
    std::future::pending().await
}

#[tokio::test]
async fn a_relaxed_store_syncs_in_time_and_closes() {
    let folder = tempfile::tempdir().unwrap();
    let relaxed = Durability::Relaxed { sync_every: Duration::from_millis(1) };
    let store = Embedded::open(folder.path(), options().durability(relaxed)).unwrap();
    for number in 0..200 {
        store.commit(put(&format!("key {number}"), "")).await.unwrap();
    }
    store.close().await.unwrap();
    let store = Embedded::open(folder.path(), options()).unwrap();
    assert_eq!(keys_of(&store).await.len(), 200);
}

#[tokio::test]
async fn closing_releases_the_folder_and_ends_every_call() {
    let folder = tempfile::tempdir().unwrap();
    let store = Embedded::open(folder.path(), options()).unwrap();
    store.commit(put("key", "value")).await.unwrap();
    store.close().await.unwrap();
    store.close().await.unwrap();
    let error = store.commit(put("other", "")).await.unwrap_err();
    assert_eq!((error.kind(), error.fate()), (ErrorKind::Closed, Fate::DidNotHappen));
    let error = store.get(&Space::main(), &[address("key")]).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Closed);
    let ranges = [Range::all(Area::default_area())];
    let error = store.scan(&Space::main(), &ranges, 1, Direction::Forward).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Closed);

    let again = Embedded::open(folder.path(), options()).unwrap();
    assert_eq!(text_at(&again, "key").await.unwrap(), "value");
    assert_eq!(keys_of(&again).await, ["key"]);
}

/// The journals in a store.
fn journals(folder: &Path) -> Vec<Metadata> {
    let files = std::fs::read_dir(folder.join("cells")).unwrap().map(Result::unwrap);
    let journals = files.filter(|file| file.path().extension().is_some_and(|end| end == "jnl"));
    journals.map(|journal| journal.metadata().unwrap()).collect()
}

#[tokio::test]
async fn a_clean_close_leaves_nothing_to_recover_and_loses_nothing() {
    let folder = tempfile::tempdir().unwrap();
    for round in 0..4 {
        let store = Embedded::open(folder.path(), options()).unwrap();
        assert_eq!(keys_of(&store).await.len(), round * 50);
        for number in 0..50 {
            let claim = format!("key {round} {number}");
            let batch = batch([(&*claim, Some(Condition::Absent), Some(put_effect("x")))]);
            assert_eq!(
                store.commit(batch).await.unwrap(),
                Outcome::Committed(Committed::default())
            );
        }
        // Closing and dropping come to the same.
        if round % 2 == 0 {
            store.close().await.unwrap();
        }
        drop(store);
        assert_eq!(journals(folder.path()).len(), 0);
    }
}

/// What keeps a sync short: a journal of fjall's has blocks before they are written, also after a
/// clean close.
#[cfg(unix)]
#[tokio::test]
async fn a_journal_has_its_blocks_ahead() {
    use std::os::unix::fs::MetadataExt;

    let folder = tempfile::tempdir().unwrap();
    let blocks = || journals(folder.path()).iter().map(|file| file.blocks() * 512).max();
    for round in 0..3 {
        let store = Embedded::open(folder.path(), options()).unwrap();
        for number in 1..50 {
            store.commit(put(&format!("key {number}"), &"x".repeat(10_000))).await.unwrap();
            assert!(blocks() >= Some((number + 1) * 10_000), "{round} {number}: {:?}", blocks());
        }
        store.close().await.unwrap();
    }
}

#[tokio::test]
async fn a_second_open_is_refused_in_this_process_and_in_another() {
    let folder = tempfile::tempdir().unwrap();
    let store = Embedded::open(folder.path(), options()).unwrap();
    let error = Embedded::open(folder.path(), options()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Locked);
    assert!(error.context_value("path").is_some());
    let mut child = Child::start("second_process", folder.path());
    assert_eq!(child.line().unwrap(), "refused: Locked");
    drop(store);
    let mut child = Child::start("second_process", folder.path());
    assert_eq!(child.line().unwrap(), "opened");
}

/// Not a test of its own: the other process of the test above.
#[tokio::test]
async fn second_process() {
    let Some(folder) = folder_of_child() else { return };
    match Embedded::open(folder, options()) {
        Ok(_) => say("opened"),
        Err(error) => say(&format!("refused: {:?}", error.kind())),
    }
}

/// Every file below a folder with its bytes.
fn picture(path: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut files = BTreeMap::new();
    for entry in std::fs::read_dir(path).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(picture(&path));
            files.insert(path, Vec::new());
        } else {
            let bytes = std::fs::read(&path).unwrap();
            files.insert(path, bytes);
        }
    }
    files
}

#[tokio::test]
async fn a_store_of_a_newer_format_is_refused_and_stays_untouched() {
    let folder = tempfile::tempdir().unwrap();
    let store = Embedded::open(folder.path(), options()).unwrap();
    store.commit(put("key", "value")).await.unwrap();
    drop(store);
    let format = folder.path().join("FORMAT");
    let text = std::fs::read_to_string(&format).unwrap();
    std::fs::write(&format, text.replacen("format 1", "format 2", 1)).unwrap();
    let before = picture(folder.path());
    let error = Embedded::open(folder.path(), options()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::UnknownFormat);
    assert_eq!(error.context_value("found"), Some("\"keyloom embedded format 2\""));
    assert!(picture(folder.path()) == before, "the folder was changed");
    std::fs::write(&format, text).unwrap();
    let store = Embedded::open(folder.path(), options()).unwrap();
    assert_eq!(text_at(&store, "key").await.unwrap(), "value");
}

#[tokio::test]
async fn a_folder_with_something_else_is_refused_and_stays_untouched() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("thesis.txt"), "years of work").unwrap();
    let before = picture(folder.path());
    let error = Embedded::open(folder.path(), options()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::UnknownFormat);
    assert_eq!(picture(folder.path()), before);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_log_goes_on_where_it_was_after_a_reopen() {
    let folder = tempfile::tempdir().unwrap();
    let appending = |text: &str| Batch { append: Some(text.to_owned().into()), ..put(text, "v") };
    let position = |number| Position::from_number(number).unwrap();
    let mut next = 1;
    for kept in [3, 2, 1, 0] {
        for is_closed in [true, false] {
            let store = Embedded::open(folder.path(), options()).unwrap();
            let bounds = store.log_bounds(&Space::main()).await.unwrap();
            assert_eq!(bounds.next.number(), next);
            for _ in 0..3 {
                let outcome = store.commit(appending(&next.to_string())).await.unwrap();
                let Outcome::Committed(committed) = outcome else { panic!("{outcome:?}") };
                assert_eq!(committed.position, Some(position(next)));
                next += 1;
            }
            store.trim_log(&Space::main(), position(next - kept), usize::MAX).await.unwrap();
            if is_closed {
                store.close().await.unwrap();
            }
            drop(store);
            let store = Embedded::open(folder.path(), options()).unwrap();
            let bounds = LogBounds { oldest: position(next - kept), next: position(next) };
            let slice = store.read_log(&Space::main(), bounds.oldest, 9, 999).await.unwrap();
            assert_eq!(slice.bounds, bounds);
            let expected = (next - kept..next).map(|number| (number, number.to_string()));
            let found = slice.entries.into_iter().map(|LogEntry { position, bytes }| {
                (position.number(), String::from_utf8(bytes.to_vec()).unwrap())
            });
            assert!(found.eq(expected));
        }
    }
}

#[tokio::test]
async fn a_log_that_was_made_from_a_copy_survives() {
    let folder = tempfile::tempdir().unwrap();
    let appending = |text: &str| Batch { append: Some(text.to_owned().into()), ..put(text, "v") };
    let position = |number| Position::from_number(number).unwrap();
    let mut next = 40;
    for is_closed in [true, false, true] {
        let store = Embedded::open(folder.path(), options()).unwrap();
        let entries = [next.to_string().into(), (next + 1).to_string().into()];
        store.extend_log(&Space::main(), position(next), &entries).await.unwrap();
        let outcome = store.commit(appending(&(next + 2).to_string())).await.unwrap();
        let Outcome::Committed(committed) = outcome else { panic!("{outcome:?}") };
        assert_eq!(committed.position, Some(position(next + 2)));
        next += 3;
        if is_closed {
            store.close().await.unwrap();
        }
    }
    let store = Embedded::open(folder.path(), options()).unwrap();
    let slice = store.read_log(&Space::main(), position(40), 99, 9999).await.unwrap();
    assert_eq!(slice.bounds, LogBounds { oldest: position(40), next: position(49) });
    for (number, entry) in (40..49).zip(&slice.entries) {
        assert_eq!(
            (entry.position, &entry.bytes[..]),
            (position(number), number.to_string().as_bytes())
        );
    }
}

#[tokio::test]
async fn a_moment_holds_nothing_that_is_not_durable() {
    let folder = tempfile::tempdir().unwrap();
    let (store, gate) = open_gated(folder.path());
    store.commit(put("k", "durable")).await.unwrap();
    let commit = hold(&store, &gate, put("k", "decided")).await;
    let pinned = store.pin().await.unwrap();
    gate.open();
    commit.await.unwrap();
    let found = pinned.get_one(&Space::main(), &address("k")).await.unwrap().unwrap();
    assert_eq!(found.bytes().unwrap(), "durable");
}

/// Neither an entry nor the end of waiting for it shows before the sync.
#[tokio::test]
async fn nobody_reads_an_entry_that_is_not_durable() {
    let folder = tempfile::tempdir().unwrap();
    let (store, gate) = open_gated(folder.path());
    let main = Space::main();
    gate.shut();
    let mut commit = store.commit(Batch { append: Some("entry".into()), ..put("k", "v") });
    let mut waiter = store.wait_log(&main, Position::FIRST);
    assert!(!is_answered(commit.as_mut()).await);
    assert!(!is_answered(waiter.as_mut()).await);
    gate.wait_until_reached();
    assert_eq!(store.log_bounds(&main).await.unwrap().next, Position::FIRST);
    assert!(!is_answered(waiter.as_mut()).await);
    gate.open();
    assert_eq!(waiter.await.unwrap(), Position::FIRST.next());
    let position = Some(Position::FIRST);
    let committed = Committed { position, ..Committed::default() };
    assert_eq!(commit.await.unwrap(), Outcome::Committed(committed));
}

#[tokio::test]
async fn a_store_stays_compressed_if_it_was_created_so() {
    let table_bytes = async |folder: &Path, first: EmbeddedOptions| {
        let written = "the same words again and again, ".repeat(100);
        for (options, keys) in [(first, 0..200), (options(), 200..400)] {
            let store = Embedded::open(folder, options).unwrap();
            for number in keys {
                store.commit(put(&format!("{number:03}"), &written)).await.unwrap();
            }
            store.close().await.unwrap();
        }
        let store = Embedded::open(folder, options()).unwrap();
        for number in 0..400 {
            let found = text_at(&store, &format!("{number:03}")).await.unwrap();
            assert_eq!(found, written.as_bytes());
        }
        store.close().await.unwrap();
        bytes_below(&folder.join("cells/keyspaces"))
    };
    let (plain, compressed) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let plain = table_bytes(plain.path(), options()).await;
    let compressed = table_bytes(compressed.path(), options().compressed(true)).await;
    assert!(plain > 400 * 3_200, "{plain} bytes");
    assert!(compressed < plain / 4, "{compressed} bytes, {plain} without");
}

fn bytes_below(folder: &Path) -> u64 {
    let entries = std::fs::read_dir(folder).unwrap().map(Result::unwrap);
    let bytes = entries.map(|entry| match entry.file_type().unwrap().is_dir() {
        true => bytes_below(&entry.path()),
        false => entry.metadata().unwrap().len(),
    });
    bytes.sum()
}
