//! A writer process is killed at random moments, and at every step of its very first open.
//!
//! Each writer of the process commits batches of several cells in order: batch `n` of writer `w`
//! puts three cells and adds one to the writer's counter, under conditions that hold only if
//! nothing was lost and nothing applied twice. Each appends to the log as well, which is trimmed
//! now and then. After each kill the next process looks at what is
//! there before it goes on, and says how many batches of each writer it found.

#![cfg(feature = "embedded")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests fail by panicking"
)]

mod embedded_support;
mod long;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use embedded_support::{Child, Random, address, batch, folder_of_child, say, stamp, strace_works};
use keyloom::engine::{
    Addition, Area, Batch, Condition, Direction, Effect, Embedded, EmbeddedOptions, Engine,
    EngineExt, Outcome, Position, Range, Space,
};

const WRITERS: usize = 4;
const PARTS: [&str; 3] = ["a", "b", "c"];

/// Small memtables, so that kills also meet tables being written and merged.
fn options() -> EmbeddedOptions {
    EmbeddedOptions::default()
        .block_cache_bytes(1 << 20)
        .record_cache_bytes(1 << 18)
        .memtable_bytes(96 << 10)
}

fn part_key(writer: usize, number: u64, part: &str) -> String {
    format!("writer:{writer}:{number:08}:{part}")
}

fn counter_key(writer: usize) -> String {
    format!("counter:{writer}")
}

/// Bytes that depend on the whole key, long enough for a batch to span several pages.
fn part_bytes(key: &str) -> Bytes {
    key.repeat(40).into()
}

fn numbered_batch(writer: usize, number: u64) -> Batch {
    let keys = PARTS.map(|part| part_key(writer, number, part));
    let puts = keys.iter().map(|key| {
        let effect = Effect::Put { stamp: stamp(number), bytes: part_bytes(key) };
        (key.as_str(), Some(Condition::Absent), Some(effect))
    });
    let counter = counter_key(writer);
    let condition = match number {
        0 => Condition::Absent,
        _ => Condition::Unchanged(stamp(number - 1)),
    };
    let additions = vec![Addition { name: "batches".into(), delta: 1, min: None, max: None }];
    let effect = Effect::Add { stamp: stamp(number), additions };
    let mut batch = batch(puts.chain([(counter.as_str(), Some(condition), Some(effect))]));
    batch.append = Some(log_entry(writer, number).into());
    batch
}

fn log_entry(writer: usize, number: u64) -> String {
    format!("{writer} {number}")
}

/// Panics unless the log has exactly the batches that are there, up to the last of each writer.
async fn check_log(store: &Embedded, batches: &[u64]) {
    let bounds = store.log_bounds(&Space::main()).await.unwrap();
    assert_eq!(bounds.next.number() - 1, batches.iter().sum::<u64>(), "positions and batches");
    let slice = store.read_log(&Space::main(), bounds.oldest, usize::MAX, usize::MAX).await;
    let entries = slice.unwrap().entries;
    let positions = entries.iter().map(|entry| entry.position.number());
    assert!(positions.eq(bounds.oldest.number()..bounds.next.number()), "the log has a gap");
    let mut expected: Vec<u64> = batches.to_vec();
    for entry in entries.iter().rev() {
        let text = String::from_utf8(entry.bytes.to_vec()).unwrap();
        let writer: usize = text.split(' ').next().unwrap().parse().unwrap();
        expected[writer] -= 1;
        assert_eq!(text, log_entry(writer, expected[writer]), "the log has another batch");
    }
}

/// Leaves the newest entries, or none.
async fn trim(store: &Embedded, kept: u64) {
    let next = store.log_bounds(&Space::main()).await.unwrap().next.number();
    let before = Position::from_number(next.saturating_sub(kept)).unwrap_or(Position::FIRST);
    store.trim_log(&Space::main(), before, 150).await.unwrap();
}

/// How many batches of a writer are there. Panics unless they are whole and without a gap.
async fn batches_found(store: &Embedded, writer: usize) -> u64 {
    let prefix = format!("writer:{writer}:").into_bytes();
    let range = Range::prefix(Area::default_area(), prefix);
    let found = store.scan(&Space::main(), &[range], 1_000_000, Direction::Forward).await.unwrap();
    let rows = &found[0].rows;
    let batches = (rows.len() / PARTS.len()) as u64;
    let expected = (0..batches).flat_map(|n| PARTS.map(|part| part_key(writer, n, part)));
    assert_eq!(rows.len() % PARTS.len(), 0, "writer {writer} has half a batch");
    for (row, key) in rows.iter().zip(expected) {
        assert_eq!(row.key, key.as_bytes(), "writer {writer} has a gap");
        assert_eq!(row.cell.bytes().unwrap(), &part_bytes(&key));
    }
    let counter = &store.get(&Space::main(), &[address(&counter_key(writer))]).await.unwrap()[0];
    let counted = counter.as_ref().map_or(0, |cell| cell.integers().unwrap()["batches"]);
    assert_eq!(counted, batches as i64, "writer {writer}: cells and counter differ");
    batches
}

async fn report_all(store: &Embedded) -> Vec<u64> {
    let mut next = Vec::new();
    for writer in 0..WRITERS {
        let batches = batches_found(store, writer).await;
        say(&format!("found {writer} {batches}"));
        next.push(batches);
    }
    check_log(store, &next).await;
    next
}

/// Not a test of its own: the process that is killed. It closes and reopens the store now and
/// then, so that kills meet that too.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn writer_process() {
    let Some(folder) = folder_of_child() else { return };
    let mut store = Arc::new(Embedded::open(&folder, options()).unwrap());
    say("opened");
    let mut next = report_all(&store).await;
    say("ready");
    loop {
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| {
                let (store, first) = (Arc::clone(&store), next[writer]);
                tokio::spawn(async move {
                    for number in first..first + 50 {
                        let outcome = store.commit(numbered_batch(writer, number)).await.unwrap();
                        assert!(matches!(outcome, Outcome::Committed(_)), "{outcome:?}");
                        say(&format!("acknowledged {writer} {number}"));
                    }
                })
            })
            .collect();
        for writer in writers {
            writer.await.unwrap();
        }
        next.iter_mut().for_each(|next| *next += 50);
        trim(&store, next[0] % 100).await;
        store.close().await.unwrap();
        store = Arc::new(Embedded::open(&folder, options()).unwrap());
    }
}

/// What the writer processes of one folder have acknowledged: for each writer, how many batches
/// there must be at least.
#[derive(Default)]
struct Acknowledged(BTreeMap<usize, u64>);

impl Acknowledged {
    /// Takes a line of the process in, and checks what it found against what was acknowledged.
    fn hear(&mut self, line: &str) {
        let words: Vec<&str> = line.split(' ').collect();
        match words[..] {
            ["acknowledged", writer, number] => {
                self.0.insert(writer.parse().unwrap(), number.parse::<u64>().unwrap() + 1);
            }
            ["found", writer, batches] => {
                let must = self.0.get(&writer.parse().unwrap()).copied().unwrap_or(0);
                let batches: u64 = batches.parse().unwrap();
                assert!(batches >= must, "writer {writer}: {must} acknowledged, {batches} found");
                assert!(batches <= must + 1, "writer {writer} has batches that it never sent");
                self.0.insert(writer.parse().unwrap(), batches);
            }
            ["opened"] | ["ready"] => {}
            _ => panic!("{line}"),
        }
    }
}

/// Lets a process verify the folder and acknowledge so many batches, kills it, and hears what it
/// had said before it died.
fn verify_write_and_kill(folder: &Path, acknowledged: &mut Acknowledged, acknowledgements: usize) {
    let mut child = Child::start("writer_process", folder);
    loop {
        let line = child.line().expect("the process failed to open or to verify the store");
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
fn killed_at_random_moments_nothing_acknowledged_is_lost() {
    let mut random = Random::seeded("KEYLOOM_CRASH_SEED");
    for _ in 0..long::times(4) {
        let folder = tempfile::tempdir().unwrap();
        let mut acknowledged = Acknowledged::default();
        for _ in 0..26 {
            let acknowledgements = random.below(300) as usize;
            verify_write_and_kill(folder.path(), &mut acknowledged, acknowledgements);
        }
    }
}

#[test]
fn killed_at_random_moments_of_the_first_open_the_next_one_works() {
    let mut random = Random::seeded("KEYLOOM_CRASH_SEED");
    for _ in 0..long::times(30) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("store");
        let mut child = Child::start("writer_process", &path);
        std::thread::sleep(Duration::from_micros(random.below(20_000)));
        child.kill();
        let mut acknowledged = Acknowledged::default();
        while let Some(line) = child.line() {
            acknowledged.hear(&line);
        }
        verify_write_and_kill(&path, &mut acknowledged, 1);
    }
}

/// Kills the first open at its first, second, third … call that touches a file.
#[test]
fn killed_at_every_step_of_the_first_open_the_next_one_works() {
    if !strace_works() {
        return;
    }
    let calls = "openat,mkdir,rename,write,fsync,fdatasync,ftruncate,unlink,unlinkat,flock";
    let is_over = |step: usize| {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("store");
        let inject = format!("inject={calls}:signal=SIGKILL:when={step}");
        let trace = format!("trace={calls}");
        let wrapper = ["strace", "-f", "-qq", "-o", "/dev/null", "-e", &trace, "-e", &inject];
        let mut child = Child::start_under(&wrapper, "open_process", &path);
        let is_over = child.line().is_some();
        child.wait();
        verify_write_and_kill(&path, &mut Acknowledged::default(), 1);
        is_over
    };
    let steps = (1..).find(|&step| is_over(step)).unwrap();
    assert!(steps > 40, "the first open was over after {steps} calls");
}

/// Not a test of its own: the process that is killed while it opens a store.
#[test]
fn open_process() {
    let Some(folder) = folder_of_child() else { return };
    let _store = Embedded::open(folder, options()).unwrap();
    say("opened");
    std::process::exit(0);
}
