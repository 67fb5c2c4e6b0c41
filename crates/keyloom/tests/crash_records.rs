//! A process that writes records is killed at random moments.
//!
//! Each writer of the process owns a set of records with several indexes, and changes them in an
//! order that a formula gives: what change `n` leaves behind can be told from `n` alone. Every
//! other change is a transaction that also notes its number in a record of the writer; those
//! between are inserts, replacements and deletes by themselves. After each kill the next process
//! looks at everything: the changes of each writer must be whole and without a gap, every index
//! must lead to the records and to nothing else, and `verify` must find nothing. Only then it
//! goes on.

#![cfg(feature = "embedded")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests fail by panicking"
)]

mod embedded_support;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use embedded_support::{Child, Random, folder_of_child, say};
use keyloom::engine::{Embedded, EmbeddedOptions};
use keyloom::{Collection, Query, Result, Schema, Store, Transaction};
use serde_json::{Value, json};

const WRITERS: u64 = 4;
/// How many records each writer goes round.
const RECORDS: u64 = 7;
/// How many changes a process makes before it closes the store and opens it again.
const CHANGES_PER_OPEN: u64 = 40;

const SCHEMA: &str = r#"
[collection.task]
key = "task:{writer}:{n}"

[collection.task.fields]
writer   = { type = "integer", digits = 2 }
n        = { type = "integer", digits = 3 }
status   = { type = "enum", values = ["open", "closed"] }
at       = "timestamp"
code     = "text"
"tags.*" = "text"

[collection.task.index.status]
key = "task-index:status:{status}:{at desc}:{writer}:{n}"

[collection.task.index.open]
key   = "task-index:open:{writer}:{at}:{n}"
where = { status = "open" }
holds = "record"

[collection.task.index.tag]
key  = "tag:{tags.*}:{writer}:{n}"
area = "tags"

[collection.task.unique.code]
key = "task-index:code:{code}"

[collection.progress]
key  = "progress:{writer}"
area = "progress"

[collection.progress.fields]
writer = { type = "integer", digits = 2 }
"#;

/// Small memtables, so that kills also meet tables being written and merged.
fn options() -> EmbeddedOptions {
    EmbeddedOptions::default()
        .block_cache_bytes(1 << 20)
        .record_cache_bytes(1 << 18)
        .memtable_bytes(96 << 10)
}

/// What one change does to a record.
enum Change {
    Insert(Value),
    Replace(Value),
    Delete,
}

/// Change number `n` of a writer touches record `n % RECORDS`: one round over all records inserts
/// them, the next replaces them, the third deletes them.
fn change(writer: u64, number: u64) -> Change {
    let (round, n) = (number / RECORDS, number % RECORDS);
    let tags: Vec<String> = (0..number % 4).map(|tag| format!("t{}", (tag + round) % 5)).collect();
    let record = json!({
        "writer": writer,
        "n": n,
        "status": if number.is_multiple_of(2) { "open" } else { "closed" },
        "at": 1_700_000_000_000 + number,
        // A code passes from one record of the writer to the next.
        "code": format!("{writer}:{}", number % (RECORDS + 1)),
        "tags": tags,
        "text": "x".repeat(200),
    });
    match round % 3 {
        0 => Change::Insert(record),
        1 => Change::Replace(record),
        _ => Change::Delete,
    }
}

/// The records of a writer after so many changes.
fn records_after(writer: u64, changes: u64) -> BTreeMap<u64, Value> {
    let mut records = BTreeMap::new();
    // What is older than a round over all records is overwritten.
    for number in changes.saturating_sub(RECORDS)..changes {
        match change(writer, number) {
            Change::Insert(record) | Change::Replace(record) => {
                records.insert(number % RECORDS, record)
            }
            Change::Delete => records.remove(&(number % RECORDS)),
        };
    }
    records
}

/// Whether a change is a transaction that notes its number.
fn is_noted(number: u64) -> bool {
    number.is_multiple_of(2)
}

async fn make(store: &Store, writer: u64, number: u64) -> Result<()> {
    let n = number % RECORDS;
    if !is_noted(number) {
        let tasks = store.documents("task").await?;
        return match change(writer, number) {
            Change::Insert(record) => tasks.insert(&record).await.map(drop),
            Change::Replace(record) => tasks.replace(&record).await.map(drop),
            Change::Delete => tasks.delete((writer, n)).await.map(drop),
        };
    }
    let progress = json!({ "writer": writer, "changes": number + 1 });
    let attempt = async |transaction: Transaction| {
        let tasks = transaction.documents("task")?;
        match change(writer, number) {
            Change::Insert(record) => drop(tasks.insert(&record).await?),
            Change::Replace(record) => drop(tasks.replace(&record).await?),
            Change::Delete => drop(tasks.delete((writer, n)).await?),
        }
        transaction.documents("progress")?.upsert(&progress).await.map(drop)
    };
    store.transaction(attempt).await
}

async fn all(tasks: &Collection<Value>, query: Query) -> Vec<Value> {
    let page = tasks.page(&query.take(10_000)).await.unwrap();
    assert!(page.problems.is_empty() && page.next.is_none(), "{:?}", page.problems);
    page.records.into_iter().map(|record| record.value).collect()
}

/// How many changes of a writer are there. Panics unless its records are exactly so.
async fn changes_found(store: &Store, writer: u64) -> u64 {
    let progress = store.documents("progress").await.unwrap().get(writer).await.unwrap();
    let noted = progress.map_or(0, |record| record.value["changes"].as_u64().unwrap());
    let tasks = store.documents("task").await.unwrap();
    let found = all(&tasks, Query::new().equal("writer", writer)).await;
    let is_after = |changes| records_after(writer, changes).values().eq(&found);
    // The change after the noted one may be there too, if it is one that notes nothing.
    let changes = if !is_noted(noted) && is_after(noted + 1) { noted + 1 } else { noted };
    assert!(is_after(changes), "writer {writer} after {changes} changes: {found:#?}");
    let expected = records_after(writer, changes);
    let open = expected.values().filter(|record| record["status"] == "open");
    let mut open: Vec<Value> = open.cloned().collect();
    open.sort_by_key(|record| record["at"].as_u64());
    assert_eq!(all(&tasks, Query::new().index("open").equal("writer", writer)).await, open);
    for record in expected.values() {
        let code = record["code"].as_str().unwrap();
        assert_eq!(&tasks.get_by("code", code).await.unwrap().unwrap().value, record);
    }
    changes
}

async fn look_at_all(store: &Store) -> Vec<u64> {
    let verification = store.verify().await.unwrap();
    assert!(verification.is_clean(), "{:#?}", verification.findings);
    let mut next = Vec::new();
    for writer in 0..WRITERS {
        next.push(changes_found(store, writer).await);
    }
    let tasks = store.documents("task").await.unwrap();
    let expected: usize = (0..WRITERS).map(|w| records_after(w, next[w as usize]).len()).sum();
    assert_eq!(tasks.count(&Query::new().scan()).await.unwrap(), expected);
    let by_status = tasks.count(&Query::new().index("status")).await.unwrap();
    assert_eq!(by_status, expected, "entries that no record has");
    next
}

async fn open(folder: &Path) -> Store {
    let store = Store::on(Arc::new(Embedded::open(folder, options()).unwrap()));
    store.apply(&Schema::from_toml(SCHEMA).unwrap()).await.unwrap();
    store
}

/// Not a test of its own: the process that is killed. It closes and reopens the store now and
/// then, so that kills meet that too.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn record_writer_process() {
    let Some(folder) = folder_of_child() else { return };
    let mut store = open(&folder).await;
    let mut next = look_at_all(&store).await;
    for (writer, changes) in next.iter().enumerate() {
        say(&format!("found {writer} {changes}"));
    }
    say("ready");
    loop {
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| {
                let (store, first) = (store.clone(), next[writer as usize]);
                tokio::spawn(async move {
                    for number in first..first + CHANGES_PER_OPEN {
                        make(&store, writer, number).await.unwrap();
                        say(&format!("acknowledged {writer} {number}"));
                    }
                })
            })
            .collect();
        for writer in writers {
            writer.await.unwrap();
        }
        next.iter_mut().for_each(|next| *next += CHANGES_PER_OPEN);
        store.close().await.unwrap();
        store = open(&folder).await;
    }
}

/// For each writer, how many changes there must be at least.
#[derive(Default)]
struct Acknowledged(BTreeMap<u64, u64>);

impl Acknowledged {
    /// Takes a line of the process in, and checks what it found against what was acknowledged.
    fn hear(&mut self, line: &str) {
        let words: Vec<&str> = line.split(' ').collect();
        match words[..] {
            ["acknowledged", writer, number] => {
                self.0.insert(writer.parse().unwrap(), number.parse::<u64>().unwrap() + 1);
            }
            ["found", writer, changes] => {
                let must = self.0.get(&writer.parse().unwrap()).copied().unwrap_or(0);
                let changes: u64 = changes.parse().unwrap();
                assert!(changes >= must, "writer {writer}: {must} acknowledged, {changes} found");
                assert!(changes <= must + 1, "writer {writer} has changes that it never made");
                self.0.insert(writer.parse().unwrap(), changes);
            }
            ["ready"] => {}
            _ => panic!("{line}"),
        }
    }
}

/// Lets a process look at the folder and acknowledge so many changes, kills it, and hears what
/// it had said before it died.
fn look_write_and_kill(folder: &Path, acknowledged: &mut Acknowledged, acknowledgements: u64) {
    let mut child = Child::start("record_writer_process", folder);
    loop {
        let line = child.line().expect("the process failed to open the store, or found a fault");
        acknowledged.hear(&line);
        if line == "ready" {
            break;
        }
    }
    for _ in 0..acknowledgements {
        acknowledged.hear(&child.line().expect("the process failed to write"));
    }
    child.kill();
    while let Some(line) = child.line() {
        acknowledged.hear(&line);
    }
}

#[test]
fn killed_at_random_moments_records_and_entries_belong_together() {
    let long: u64 = std::env::var("KEYLOOM_LONG").map_or(1, |times| times.parse().unwrap());
    let mut random = Random::seeded("KEYLOOM_CRASH_SEED");
    for _ in 0..2 * long.max(1) {
        let folder = tempfile::tempdir().unwrap();
        let mut acknowledged = Acknowledged::default();
        for _ in 0..10 {
            look_write_and_kill(folder.path(), &mut acknowledged, random.below(300));
        }
    }
}
