//! A disk that fails: EIO and ENOSPC are injected into the journal and into the tables of a
//! store, and what its process says is held against what a reopened store holds.

#![cfg(feature = "embedded")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests fail by panicking"
)]

mod embedded_support;

use std::collections::BTreeSet;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;

use embedded_support::{Child, address, batch, folder_of_child, put, say, strace_works};
use keyloom::engine::{
    Area, Committed, Condition, Direction, Embedded, EmbeddedOptions, Engine, Outcome, Range, Space,
};
use keyloom::{ErrorKind, Fate};

fn options() -> EmbeddedOptions {
    EmbeddedOptions::default()
        .block_cache_bytes(1 << 20)
        .record_cache_bytes(1 << 18)
        .memtable_bytes(64 << 10)
}

fn key(number: usize) -> String {
    format!("key:{number:06}")
}

async fn keys_of(store: &Embedded) -> BTreeSet<String> {
    let range = Range::all(Area::default_area());
    let found = store.scan(&Space::main(), &[range], 1_000_000, Direction::Forward).await.unwrap();
    found[0].rows.iter().map(|row| String::from_utf8(row.key.to_vec()).unwrap()).collect()
}

/// Not a test of its own: the process whose system calls fail. It writes until that happens, and
/// then checks what a store must do after a failure.
#[tokio::test]
async fn failing_process() {
    let Some(folder) = folder_of_child() else { return };
    let store = Embedded::open(folder, options()).unwrap();
    let value = "x".repeat(2000);
    let mut acknowledged = BTreeSet::new();
    for number in 0..5_000 {
        match store.commit(put(&key(number), &value)).await {
            Ok(outcome) => {
                assert_eq!(outcome, Outcome::Committed(Committed::default()));
                acknowledged.insert(key(number));
                say(&format!("acknowledged {}", key(number)));
            }
            Err(error) => {
                say(&format!("failed {} {:?} {:?}", key(number), error.kind(), error.fate()));
                assert!(!error.is_retryable());
                break;
            }
        }
    }
    // Readers keep what was published, and never see the batch that failed.
    assert_eq!(keys_of(&store).await, acknowledged);
    // Later batches are refused, those that would be rejected too, and change nothing.
    let later = [put("later", ""), batch([("later", Some(Condition::Present), None)])];
    for batch in later {
        let error = store.commit(batch).await.unwrap_err();
        assert_eq!((error.kind(), error.fate()), (ErrorKind::ReadOnly, Fate::DidNotHappen));
        assert!(error.context_value("reason").is_some());
    }
    assert_eq!(store.get(&Space::main(), &[address("later")]).await.unwrap(), [None]);
    assert_eq!(keys_of(&store).await, acknowledged);
    store.close().await.unwrap();
    say("closed");
}

/// What a failing process has said.
struct Told {
    acknowledged: BTreeSet<String>,
    failed: String,
    kind: String,
    fate: String,
}

fn run_with_fault(folder: &Path, paths: &[String], inject: &str) -> Told {
    let call = inject.split(':').next().unwrap();
    let (trace, inject) = (format!("trace={call}"), format!("inject={inject}"));
    let mut wrapper = vec!["strace", "-f", "-qq", "-o", "/dev/null", "-e", &trace, "-e", &inject];
    for path in paths {
        wrapper.extend(["-P", path]);
    }
    let mut child = Child::start_under(&wrapper, "failing_process", folder);
    let mut told = Told {
        acknowledged: BTreeSet::new(),
        failed: String::new(),
        kind: String::new(),
        fate: String::new(),
    };
    loop {
        let line = child.line().expect("the process found its store in a wrong state");
        match line.split(' ').collect::<Vec<_>>()[..] {
            ["acknowledged", key] => {
                told.acknowledged.insert(key.to_owned());
            }
            ["failed", key, kind, fate] => {
                told.failed = key.to_owned();
                told.kind = kind.to_owned();
                told.fate = fate.to_owned();
            }
            ["closed"] => break,
            _ => panic!("{line}"),
        }
    }
    assert!(!told.failed.is_empty(), "no fault was met");
    told
}

/// What is there when the store is opened again: everything that was acknowledged, the failed
/// batch only if it may have happened, and nothing else. And it takes writes.
async fn check_reopened(folder: &Path, told: &Told) {
    let store = Embedded::open(folder, options()).unwrap();
    let found = keys_of(&store).await;
    let missing: Vec<_> = told.acknowledged.difference(&found).collect();
    assert!(missing.is_empty(), "acknowledged and missing: {missing:?}");
    let extra: Vec<_> = found.difference(&told.acknowledged).collect();
    let may_be_there = told.fate == "MayHaveHappened" && extra == [&told.failed];
    assert!(extra.is_empty() || may_be_there, "never acknowledged: {extra:?}");
    store.commit(put("after", "")).await.unwrap();
    assert!(keys_of(&store).await.contains("after"));
}

fn journal(folder: &Path) -> String {
    folder.join("cells/0.jnl").display().to_string()
}

#[tokio::test]
async fn a_sync_that_fails_may_have_happened() {
    if !strace_works() {
        return;
    }
    for (error, step) in [("EIO", 1), ("EIO", 7), ("ENOSPC", 3)] {
        let folder = tempfile::tempdir().unwrap();
        let inject = format!("fdatasync:error={error}:when={step}");
        let told = run_with_fault(folder.path(), &[journal(folder.path())], &inject);
        assert_eq!(told.acknowledged.len(), step - 1);
        assert_eq!(told.failed, key(step - 1));
        assert_eq!((&*told.kind, &*told.fate), ("Unavailable", "MayHaveHappened"));
        check_reopened(folder.path(), &told).await;
    }
}

#[tokio::test]
async fn a_journal_that_cannot_be_written_may_have_happened() {
    if !strace_works() {
        return;
    }
    for (error, step) in [("ENOSPC", 1), ("ENOSPC", 10), ("EIO", 5)] {
        let folder = tempfile::tempdir().unwrap();
        // The disk stays full: what is tried again later fails too.
        let inject = format!("write:error={error}:when={step}+");
        let told = run_with_fault(folder.path(), &[journal(folder.path())], &inject);
        assert!(told.acknowledged.len() < step);
        assert_eq!((&*told.kind, &*told.fate), ("Unavailable", "MayHaveHappened"));
        check_reopened(folder.path(), &told).await;
    }
}

/// Tables are written by threads of fjall's, while commits go on. The failure is met by some
/// later commit, before anything of it is written.
#[tokio::test]
async fn a_table_that_cannot_be_written_leaves_the_next_batch_undone() {
    if !strace_works() {
        return;
    }
    for error in ["ENOSPC", "EIO"] {
        let folder = tempfile::tempdir().unwrap();
        let tables = folder.path().join("cells/keyspaces/1/tables");
        let paths: Vec<String> =
            (0..50).map(|table| tables.join(table.to_string()).display().to_string()).collect();
        let told = run_with_fault(folder.path(), &paths, &format!("write:error={error}:when=1+"));
        assert!(told.acknowledged.len() > 20, "{}", told.acknowledged.len());
        assert_eq!((&*told.kind, &*told.fate), ("Unavailable", "DidNotHappen"));
        check_reopened(folder.path(), &told).await;
    }
}

/// The true order of things, seen from outside: the process is killed when it enters the sync of
/// its fifth commit. Nobody may have seen that commit, and the four before it are there.
#[tokio::test]
async fn killed_inside_a_sync_nothing_acknowledged_is_lost() {
    if !strace_works() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let journal = journal(folder.path());
    let wrapper = [
        "strace",
        "-f",
        "-qq",
        "-o",
        "/dev/null",
        "-P",
        &journal,
        "-e",
        "trace=fdatasync",
        "-e",
        "inject=fdatasync:signal=SIGKILL:when=5",
    ];
    let mut child = Child::start_under(&wrapper, "failing_process", folder.path());
    let mut said = Vec::new();
    while let Some(line) = child.line() {
        said.push(line);
    }
    let expected: Vec<_> = (0..4).map(|number| format!("acknowledged {}", key(number))).collect();
    assert_eq!(said, expected);
    let store = Embedded::open(folder.path(), options()).unwrap();
    let found = keys_of(&store).await;
    assert!((0..4).all(|number| found.contains(&key(number))));
}

/// Not a test of its own: the process whose first open fails.
#[test]
fn failing_open_process() {
    let Some(folder) = folder_of_child() else { return };
    match Embedded::open(folder, options()) {
        Ok(store) => {
            say("opened");
            drop(store);
        }
        Err(error) => say(&format!("refused {:?} {:?}", error.kind(), error.fate())),
    }
}

/// Fails the first open at its first, second, third … call that writes. Each time the caller
/// gets an error, and the folder is left so that the next open works.
#[tokio::test]
async fn a_first_open_that_fails_can_be_repeated() {
    if !strace_works() {
        return;
    }
    let calls = "mkdir,rename,fsync,ftruncate,flock";
    for step in 1.. {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("store");
        let (trace, inject) =
            (format!("trace={calls}"), format!("inject={calls}:error=ENOSPC:when={step}"));
        let wrapper = ["strace", "-f", "-qq", "-o", "/dev/null", "-e", &trace, "-e", &inject];
        let mut child = Child::start_under(&wrapper, "failing_open_process", &path);
        let said = child.line().unwrap_or_else(|| panic!("died at step {step}"));
        child.wait();
        let store = Embedded::open(&path, options())
            .unwrap_or_else(|error| panic!("step {step}, after {said}: {error:?}"));
        store.commit(put("key", "")).await.unwrap();
        if said == "opened" {
            assert!(step > 10, "the first open was over after {step} calls");
            return;
        }
        assert_eq!(said, "refused Unavailable DidNotHappen", "step {step}");
    }
}

/// A cell that cannot be read fails its readers and the batches that depend on it, and nobody
/// else: nothing was written wrongly, so the store goes on.
#[tokio::test]
async fn a_table_that_is_damaged_fails_only_those_who_need_it() {
    let folder = tempfile::tempdir().unwrap();
    let store = Embedded::open(folder.path(), options().memtable_bytes(1 << 20)).unwrap();
    for number in 0..200 {
        store.commit(put(&key(number), &"x".repeat(2000))).await.unwrap();
    }
    drop(store);
    // The first blocks of a table are data, from the lowest key on.
    let tables = std::fs::read_dir(folder.path().join("cells/keyspaces/1/tables")).unwrap();
    for table in tables {
        let mut file = OpenOptions::new().write(true).open(table.unwrap().path()).unwrap();
        file.write_all(&[0xff; 1000]).unwrap();
    }

    let store = Embedded::open(folder.path(), options()).unwrap();
    let error = store.get(&Space::main(), &[address(&key(0))]).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    let dependent = batch([(&*key(0), Some(Condition::Present), None), ("other", None, None)]);
    let error = store.commit(dependent).await.unwrap_err();
    assert_eq!((error.kind(), error.fate()), (ErrorKind::Corrupt, Fate::DidNotHappen));
    assert_eq!(
        store.commit(put("new", "")).await.unwrap(),
        Outcome::Committed(Committed::default())
    );
    let far = store.get(&Space::main(), &[address(&key(199)), address("new")]).await.unwrap();
    assert!(far.iter().all(Option::is_some));
}
