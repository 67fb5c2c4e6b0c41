//! What records were: every version, by key, by number and by time.

#![cfg(feature = "embedded")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests fail by panicking"
)]

mod history {
    pub mod ledger;
}
mod long;
#[path = "model/random.rs"]
mod random;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use history::ledger::{Ledger, check};
use keyloom::engine::{
    Address, Area, Batch, Direction, Durability, Effect, Embedded, EmbeddedOptions, Engine,
    EngineExt, Memory, Metered, Range, Space, Stamp, Torn,
};
use keyloom::{
    Class, Clock, Collection, ErrorKind, FindingKind, HistoryDeclaration, HistoryEntry,
    HistoryKind, Page, PurgeOptions, Purged, Record, RepairOptions, Schema, Stopped, Store,
};
use random::Random;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

const DAY: u64 = 24 * 60 * 60 * 1_000;
const START: u64 = 1_700_000_000_000;

fn schema(history: &str) -> Schema {
    let text = format!(
        "[collection.note]\nkey = \"note:{{id}}\"\n{history}\n\
         [collection.note.fields]\nid = \"text\"\ntag = \"text\"\n\
         [collection.note.index.tag]\nkey = \"tag:{{tag}}:{{id}}\"\n"
    );
    Schema::from_toml(&text).unwrap()
}

/// A store by a clock that the test sets.
struct Subject {
    store: Store,
    notes: Collection<Value>,
    time: Arc<AtomicU64>,
    _folder: tempfile::TempDir,
}

impl Subject {
    async fn on(engine: Arc<dyn Engine>, history: &str, folder: tempfile::TempDir) -> Subject {
        let time = Arc::new(AtomicU64::new(START));
        let told = time.clone();
        let clock = Clock::new(move || told.load(Ordering::SeqCst));
        let store = Store::on(engine).with_clock(clock);
        store.apply(&schema(history)).await.unwrap();
        let notes = store.documents("note").await.unwrap();
        Subject { store, notes, time, _folder: folder }
    }

    async fn all(history: &str) -> Vec<Subject> {
        let mut all = Vec::new();
        for kind in 0..3 {
            let folder = tempfile::tempdir().unwrap();
            let engine: Arc<dyn Engine> = match kind {
                0 => Arc::new(Memory::new()),
                1 => {
                    let sync_every = Duration::from_millis(50);
                    let options =
                        EmbeddedOptions::default().durability(Durability::Relaxed { sync_every });
                    Arc::new(Embedded::open(folder.path(), options).unwrap())
                }
                _ => Arc::new(Torn::new(Arc::new(Memory::new()), 7)),
            };
            all.push(Subject::on(engine, history, folder).await);
        }
        all
    }

    fn now(&self) -> u64 {
        self.time.load(Ordering::SeqCst)
    }

    fn pass(&self, ms: u64) {
        self.time.fetch_add(ms, Ordering::SeqCst);
    }

    /// The whole history of a key, in pages of this size.
    async fn history(&self, id: &str, take: usize) -> Vec<HistoryEntry<Value>> {
        let (mut all, mut cursor) = (Vec::new(), None);
        loop {
            let page: Page<HistoryEntry<Value>> =
                self.notes.history(id, take, cursor.as_deref()).await.unwrap();
            assert_eq!(page.problems, []);
            assert!(page.records.len() <= take);
            all.extend(page.records);
            match page.next {
                Some(next) => {
                    assert_eq!(page.stopped, Stopped::Take);
                    cursor = Some(next.to_string());
                }
                None => {
                    assert_eq!(page.stopped, Stopped::End);
                    return all;
                }
            }
        }
    }

    async fn cells(&self, prefix: &'static str) -> Vec<String> {
        let range = Range::prefix(Area::own(), prefix);
        let engine = self.store.engine();
        let rows = engine.scan_all(&Space::main(), &range, 100, Direction::Forward).await.unwrap();
        rows.iter().map(|row| String::from_utf8_lossy(&row.key).into_owned()).collect()
    }

    async fn purge(&self) -> Purged {
        self.store.purge_history(&PurgeOptions::default()).await.unwrap()
    }
}

fn kinds(history: &[HistoryEntry<Value>]) -> Vec<(HistoryKind, u64)> {
    history.iter().map(|entry| (entry.kind, entry.version.revision())).collect()
}

#[tokio::test]
async fn every_version_has_its_time_its_user_and_what_it_changed() {
    use HistoryKind::{Created, Deleted, Updated};
    for subject in Subject::all("history = { versions = 20 }").await {
        let notes = &subject.notes;
        let as_ana = subject.store.acting_as("ana").unwrap().documents("note").await.unwrap();
        notes.insert(&json!({ "id": "1", "tag": "a", "deep": { "x": 1, "y": 2 } })).await.unwrap();
        subject.pass(10);
        as_ana.update_with_retry("1", &json!({ "tag": "b", "deep": { "x": 3 } })).await.unwrap();
        subject.pass(10);
        as_ana.delete("1").await.unwrap();
        subject.pass(10);
        notes.upsert(&json!({ "id": "1", "tag": "new" })).await.unwrap();

        let history = subject.history("1", 10).await;
        assert_eq!(kinds(&history), [(Created, 1), (Deleted, 3), (Updated, 2), (Created, 1)]);
        let told: Vec<(u64, Option<&str>)> =
            history.iter().map(|entry| (entry.at_ms - START, entry.by.as_deref())).collect();
        assert_eq!(told, [(30, None), (20, Some("ana")), (10, Some("ana")), (0, None)]);
        let changed: Vec<(String, &Option<Value>, &Option<Value>)> = history[2]
            .changes
            .iter()
            .map(|change| (change.path.join("."), &change.before, &change.after))
            .collect();
        let (one, three) = (Some(json!(1)), Some(json!(3)));
        let (a, b) = (Some(json!("a")), Some(json!("b")));
        assert_eq!(changed, [("tag".to_owned(), &a, &b), ("deep.x".to_owned(), &one, &three)]);
        assert!(history[1].record.is_none() && history[1].changes.is_empty());
        assert!(subject.store.verify().await.unwrap().is_clean());
    }
}

#[tokio::test]
async fn what_random_changes_leave_is_what_a_ledger_says() {
    for (history, kept) in
        [("history = { days = 90 }", None), ("history = { versions = 3 }", Some(3))]
    {
        for seed in 0..u64::from(long::times(3)) {
            for subject in Subject::all(history).await {
                let mut ledger = Ledger::new(kept);
                let mut random = Random::new(seed);
                for step in 0..40 {
                    change(&subject, &mut ledger, &mut random, step).await;
                }
                compare(&subject, &ledger, &mut random).await;
                assert_eq!(subject.purge().await.removed, 0, "{seed}");
                compare(&subject, &ledger, &mut random).await;
                assert!(subject.store.verify().await.unwrap().is_clean());
            }
        }
    }
}

const IDS: [&str; 3] = ["a", "a:b", "b%"];

/// Makes one random change, and lets the ledger know.
async fn change(subject: &Subject, ledger: &mut Ledger, random: &mut Random, step: usize) {
    subject.pass(random.below(3) as u64);
    let (id, other) = (*random.pick(&IDS), *random.pick(&IDS));
    let by = random.percent(50).then_some("ana");
    let store = match by {
        Some(user) => subject.store.acting_as(user).unwrap(),
        None => subject.store.clone(),
    };
    let notes = store.documents("note").await.unwrap();
    let record = json!({ "id": id, "tag": format!("t{}", random.below(3)), "step": step });
    let is_there = ledger.present(&key(id)).is_some();
    match random.below(10) {
        0..2 => match notes.insert(&record).await {
            Ok(written) => ledger.write(&written.into_document(), subject.now(), by),
            Err(error) => {
                assert!(is_there);
                assert_eq!(error.kind(), ErrorKind::AlreadyExists);
            }
        },
        2..4 => {
            let written = notes.upsert(&record).await.unwrap();
            ledger.write(&written.into_document(), subject.now(), by);
        }
        4..6 if is_there => {
            let patch = json!({ "step": step });
            let written = notes.update_with_retry(id, &patch).await.unwrap();
            ledger.write(&written.into_document(), subject.now(), by);
        }
        6..8 if is_there && ledger.present(&key(other)).is_none() => {
            // Of two records that leave a key within one millisecond, one of which came from
            // elsewhere, the history does not know which was first.
            subject.pass(1);
            let to = |note: &mut Value| {
                note["id"] = json!(other);
                Ok(())
            };
            let written = notes.rename(id, to).await.unwrap();
            ledger.rename(&key(id), &written.into_document(), subject.now(), by);
            subject.pass(1);
        }
        8 => {
            // Deleted and written again within one transaction, it is another record.
            let changed = store.transaction(async |transaction: keyloom::Transaction| {
                let notes = transaction.documents("note")?;
                notes.get(id).await?;
                notes.delete(id).await?;
                notes.insert(&record).await
            });
            let written = changed.await.unwrap();
            if is_there {
                ledger.delete(&key(id), subject.now(), by);
            }
            ledger.write(&written.into_document(), subject.now(), by);
        }
        _ => {
            let deleted = notes.delete(id).await.unwrap();
            assert_eq!(deleted.is_some(), is_there);
            if is_there {
                ledger.delete(&key(id), subject.now(), by);
            }
        }
    }
}

fn key(id: &str) -> String {
    let escaped: String = id.replace('%', "%25").replace(':', "%3A");
    format!("note:{escaped}")
}

/// Holds everything that can be asked against the ledger.
async fn compare(subject: &Subject, ledger: &Ledger, random: &mut Random) {
    for id in IDS {
        let key = key(id);
        let listing = ledger.listing(&key);
        let history = subject.history(id, 1 + random.below(6)).await;
        assert_eq!(history.len(), listing.len(), "{key}: {history:#?}");
        for (entry, (fact, record)) in history.iter().zip(&listing) {
            check(entry, fact, *record);
        }
        for (fact, is_kept) in ledger.versions(&key) {
            let found = subject.notes.get_version(id, fact.version).await.unwrap();
            if is_kept || found.is_some() {
                let found = found.map(|found| (found.key.to_string(), found.version, found.value));
                let record = fact.record.clone();
                assert_eq!(found, record.map(|record| (fact.key.clone(), fact.version, record)));
            }
        }
        for time in START - 1..subject.now() + 2 {
            let expected = ledger.as_of(&key, time);
            match subject.notes.get_as_of(id, time).await {
                Ok(found) => {
                    let found = found.map(|found| (found.version, found.value));
                    let record =
                        expected.map(|(fact, _)| (fact.version, fact.record.clone().unwrap()));
                    assert_eq!(found, record, "{key} at {time}");
                }
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::NotKept);
                    let is_gone = ledger.has_lost() && expected.is_none_or(|(_, kept)| !kept);
                    assert!(time < START || is_gone, "{key} at {time}: {error}");
                }
            }
        }
    }
}

#[tokio::test]
async fn a_history_begins_when_it_is_switched_on() {
    for subject in Subject::all("").await {
        let notes = &subject.notes;
        for id in ["kept", "changed", "deleted"] {
            notes.insert(&json!({ "id": id, "tag": "old" })).await.unwrap();
        }
        let refused = notes.history("kept", 5, None).await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::InvalidQuery);
        assert!(subject.cells("history:").await.is_empty());
        subject.pass(10);
        let applied = subject.store.apply(&schema("history = { versions = 2 }")).await.unwrap();
        let changes: Vec<String> = applied.changes.iter().map(ToString::to_string).collect();
        assert_eq!(changes, ["collection.note.history: is new; what changes from now on is kept"]);
        assert_eq!(applied.changes[0].class, Class::Safe);
        subject.pass(10);
        let old = notes.get("changed").await.unwrap().unwrap();
        notes.update_with_retry("changed", &json!({ "tag": "new" })).await.unwrap();
        notes.delete("deleted").await.unwrap();
        subject.pass(10);

        let tag = |found: Option<keyloom::Stored<Value>>| found.map(|found| found["tag"].clone());
        for (id, after) in [("kept", Some("old")), ("changed", Some("new")), ("deleted", None)] {
            let early = notes.get_as_of(id, START + 5).await.unwrap_err();
            assert_eq!(early.kind(), ErrorKind::NotKept, "{id}");
            let between = notes.get_as_of(id, START + 15).await.unwrap();
            assert_eq!(tag(between), Some(json!("old")), "{id}");
            let now = notes.get_as_of(id, START + 25).await.unwrap();
            assert_eq!(tag(now), after.map(Value::from), "{id}");
        }
        assert_eq!(kinds(&subject.history("kept", 5).await), []);
        assert_eq!(kinds(&subject.history("changed", 5).await), [(HistoryKind::Updated, 2)]);
        assert_eq!(kinds(&subject.history("deleted", 5).await), [(HistoryKind::Deleted, 2)]);
        let before = notes.get_version("changed", old.version).await.unwrap().unwrap();
        assert_eq!(before, old);
        assert!(subject.store.verify().await.unwrap().is_clean());
        // Another process that does not declare it keeps it all the same.
        let other = Store::on(subject.store.engine().clone());
        other.apply(&schema("")).await.unwrap();
        other.documents("note").await.unwrap().delete("kept").await.unwrap();
        assert_eq!(kinds(&subject.history("kept", 5).await), [(HistoryKind::Deleted, 2)]);
    }
}

#[tokio::test]
async fn days_are_swept_in_bounded_steps_and_no_day_that_is_kept_is_lost() {
    for subject in Subject::all("history = { days = 2 }").await {
        let notes = &subject.notes;
        for id in ["long", "gone"] {
            notes.insert(&json!({ "id": id, "n": 0 })).await.unwrap();
        }
        for n in 1..6 {
            subject.pass(DAY);
            notes.update_with_retry("long", &json!({ "n": n })).await.unwrap();
            if n == 1 {
                notes.delete("gone").await.unwrap();
            }
        }
        let since = subject.now() - 2 * DAY;
        let mut purged = Purged::default();
        let mut options = PurgeOptions { cells_max: 1, ..PurgeOptions::default() };
        loop {
            let step = subject.store.purge_history(&options).await.unwrap();
            purged.removed += step.removed;
            options.from = step.next;
            if options.from.is_none() {
                break;
            }
        }
        // Days 0 to 2 of the one; creation, end and trace of the other.
        assert_eq!(purged.removed, 3 + 3);
        assert_eq!(subject.purge().await.removed, 0);
        assert_eq!(subject.cells("history:left:").await, Vec::<String>::new());
        assert_eq!(subject.history("gone", 9).await, []);
        let revisions: Vec<u64> =
            subject.history("long", 9).await.iter().map(|e| e.version.revision()).collect();
        assert_eq!(revisions, [6, 5, 4]);
        for (time, n) in [(since, 3), (since + 1, 3), (since + DAY, 4), (since + 2 * DAY, 5)] {
            let found = notes.get_as_of("long", time).await.unwrap().unwrap();
            assert_eq!(found["n"], json!(n));
            assert_eq!(notes.get_as_of("gone", time).await.unwrap(), None);
        }
        for id in ["long", "gone"] {
            let error = notes.get_as_of(id, since - 1).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::NotKept, "{id}");
        }
        assert!(subject.store.verify().await.unwrap().is_clean());
        // A record that nobody changes keeps the version that it is in.
        subject.pass(100 * DAY);
        subject.purge().await;
        assert_eq!(kinds(&subject.history("long", 9).await), [(HistoryKind::Updated, 6)]);
        let found = notes.get_as_of("long", subject.now() - DAY).await.unwrap().unwrap();
        assert_eq!(found["n"], json!(5));
    }
}

#[tokio::test]
async fn a_lowered_count_is_swept_and_either_bound_ends_a_version() {
    for subject in Subject::all("history = { versions = 9 }").await {
        let notes = &subject.notes;
        for n in 0..8 {
            notes.upsert(&json!({ "id": "1", "n": n })).await.unwrap();
        }
        assert_eq!(subject.purge().await.removed, 0);
        subject.store.apply(&schema("history = { versions = 3, days = 1 }")).await.unwrap();
        assert_eq!(subject.purge().await.removed, 5);
        let revisions = |history: Vec<HistoryEntry<Value>>| {
            history.iter().map(|entry| entry.version.revision()).collect::<Vec<_>>()
        };
        assert_eq!(revisions(subject.history("1", 9).await), [8, 7, 6]);
        notes.update_with_retry("1", &json!({ "n": 8 })).await.unwrap();
        assert_eq!(revisions(subject.history("1", 9).await), [9, 8, 7]);
        subject.pass(DAY + 1);
        assert_eq!(subject.purge().await.removed, 2);
        assert_eq!(revisions(subject.history("1", 9).await), [9]);
    }
}

#[tokio::test]
async fn a_write_adds_one_cell_and_reads_nothing_for_it() {
    // Insert, update and delete without a history write 2, 1 and 2 entries.
    for (history, written) in [
        ("", [2, 1, 2]),
        ("history = { days = 2 }", [3, 2, 4]),
        // A count of one removes the version before with every write.
        ("history = { versions = 1 }", [3, 3, 5]),
    ] {
        let metered = Arc::new(Metered::new(Arc::new(Memory::new())));
        let engine: Arc<dyn Engine> = metered.clone();
        let subject = Subject::on(engine, history, tempfile::tempdir().unwrap()).await;
        let notes = &subject.notes;
        let counted = || {
            let usage = metered.take();
            (usage.entries_written, usage.reads())
        };
        counted();
        notes.insert(&json!({ "id": "1", "tag": "a" })).await.unwrap();
        assert_eq!(counted(), (written[0], 0), "{history}");
        notes.update_with_retry("1", &json!({ "n": 1 })).await.unwrap();
        assert_eq!(counted(), (written[1], 1), "{history}");
        notes.delete("1").await.unwrap();
        assert_eq!(counted(), (written[2], 1), "{history}");
    }
}

#[tokio::test]
async fn a_time_is_found_among_many_versions_in_few_reads() {
    let metered = Arc::new(Metered::new(Arc::new(Memory::new())));
    let engine: Arc<dyn Engine> = metered.clone();
    let subject = Subject::on(engine, "history = { days = 9 }", tempfile::tempdir().unwrap()).await;
    for n in 0..1_000 {
        subject.notes.upsert(&json!({ "id": "1", "n": n })).await.unwrap();
        subject.pass(2);
    }
    for n in [0, 1, 15, 16, 17, 255, 256, 700, 998, 999] {
        metered.take();
        let found = subject.notes.get_as_of("1", START + 2 * n + 1).await.unwrap().unwrap();
        assert_eq!(found["n"], json!(n));
        let usage = metered.take();
        assert!(usage.round_trips() <= 8, "{usage:?}");
    }
}

#[tokio::test]
async fn keys_of_any_length_have_a_history() {
    for subject in Subject::all("history = { days = 2 }").await {
        // As long as a key may be, and full of what must be escaped.
        for id in ["x".repeat(890), ":".repeat(290), "%\u{0}:é".repeat(40)] {
            subject.notes.insert(&json!({ "id": id })).await.unwrap();
            subject.pass(1);
            subject.notes.delete(&id).await.unwrap();
            let history = subject.history(&id, 1).await;
            assert_eq!(kinds(&history), [(HistoryKind::Deleted, 2), (HistoryKind::Created, 1)]);
        }
        assert!(subject.store.verify().await.unwrap().is_clean());
        subject.pass(3 * DAY);
        subject.purge().await;
        assert_eq!(subject.cells("history:").await, Vec::<String>::new());
    }
}

#[tokio::test]
async fn a_record_leaves_room_for_its_history_and_a_larger_one_is_still_deleted() {
    let subject = Subject::on(Arc::new(Memory::new()), "", tempfile::tempdir().unwrap()).await;
    let large = |id: &str, bytes: usize| json!({ "id": id, "text": "x".repeat(bytes) });
    subject.notes.insert(&large("1", 388_000)).await.unwrap();
    subject.store.apply(&schema("history = { days = 2 }")).await.unwrap();
    let error = subject.notes.insert(&large("2", 388_000)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::LimitExceeded);
    subject.notes.insert(&large("2", 372_000)).await.unwrap();
    subject.notes.update_with_retry("2", &json!({ "n": 1 })).await.unwrap();
    subject.notes.delete("1").await.unwrap();
    assert_eq!(kinds(&subject.history("1", 5).await), [(HistoryKind::Deleted, 2)]);
    assert_eq!(subject.history("2", 5).await.len(), 2);
}

#[tokio::test]
async fn a_version_is_reached_by_its_own_key_only() {
    for subject in Subject::all("history = { days = 2 }").await {
        let made = subject.notes.insert(&json!({ "id": "mine", "n": 1 })).await.unwrap();
        subject.notes.insert(&json!({ "id": "other" })).await.unwrap();
        subject.pass(1);
        subject.notes.update_with_retry("mine", &json!({ "n": 2 })).await.unwrap();
        let version = made.version;
        assert!(subject.notes.get_version("mine", version).await.unwrap().is_some());
        for other in ["other", "nobody"] {
            assert_eq!(subject.notes.get_version(other, version).await.unwrap(), None);
        }
        let page = subject.notes.history("mine", 1, None).await.unwrap();
        let cursor = page.next.unwrap().to_string();
        let error = subject.notes.history("other", 1, Some(&cursor)).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidCursor);
        for take in [0, 10_001] {
            let error = subject.notes.history("mine", take, None).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidQuery);
        }
    }
}

#[tokio::test]
async fn a_listing_goes_on_where_it_was_when_the_record_goes_meanwhile() {
    for subject in Subject::all("history = { days = 2 }").await {
        for n in 0..4 {
            subject.notes.upsert(&json!({ "id": "1", "n": n })).await.unwrap();
        }
        let page = subject.notes.history("1", 2, None).await.unwrap();
        subject.notes.delete("1").await.unwrap();
        subject.notes.insert(&json!({ "id": "1", "n": "new" })).await.unwrap();
        let cursor = page.next.unwrap().to_string();
        let page = subject.notes.history("1", 9, Some(&cursor)).await.unwrap();
        let told: Vec<Value> =
            page.records.iter().map(|entry| entry.record.as_ref().unwrap()["n"].clone()).collect();
        assert_eq!(told, [json!(1), json!(0)]);
        assert!(page.next.is_none());
    }
}

#[tokio::test]
async fn verify_tells_of_cells_that_cannot_be_read_or_reached() {
    for subject in Subject::all("history = { days = 2 }").await {
        subject.notes.insert(&json!({ "id": "1" })).await.unwrap();
        subject.notes.delete("1").await.unwrap();
        subject.notes.insert(&json!({ "id": "2" })).await.unwrap();
        let version = subject.notes.get("2").await.unwrap().unwrap().version;
        let (incarnation, _) = version.to_string().split_once('-').map(own).unwrap();
        assert!(subject.store.verify().await.unwrap().is_clean());
        let orphan = "f".repeat(32);
        let line = r#"{"at":1,"kind":"updated","key":"note:2"}"#;
        for (key, value, kind) in [
            (format!("history:version:note:{incarnation}:{:020}", 1), "{", FindingKind::Unreadable),
            (format!("history:version:note:{orphan}:{:020}", 1), line, FindingKind::Dangling),
            (format!("history:version:post:{orphan}:{:020}", 1), line, FindingKind::Unknown),
            (format!("history:version:note:{orphan}:1"), line, FindingKind::Unknown),
            ("history:nonsense".to_owned(), line, FindingKind::Unknown),
            (
                format!("history:left:note:note%3A2:{:013}:{orphan}:{:020}", 7, 2),
                "\"note:3\"",
                FindingKind::Unreadable,
            ),
        ] {
            let held = subject.put(&key, Some(value)).await;
            let found = subject.store.verify().await.unwrap();
            assert_eq!(found.counts.total(), 1, "{key}: {found:?}");
            assert_eq!((found.findings[0].kind, &found.findings[0].key), (kind, &key));
            let dry = RepairOptions { dry_run: true, ..RepairOptions::default() };
            for options in [dry, RepairOptions::default()] {
                let repair = subject.store.repair(&options).await.unwrap();
                assert_eq!((repair.mended, repair.left), (found.findings.clone(), vec![]), "{key}");
            }
            assert!(subject.store.verify().await.unwrap().is_clean(), "{key}");
            if let Some(held) = held {
                subject.put(&key, Some(&held)).await;
            }
            assert!(subject.store.verify().await.unwrap().is_clean());
        }
        let trace = subject.cells("history:left:").await.remove(0);
        subject.put(&trace, None).await;
        let found = subject.store.verify().await.unwrap();
        assert_eq!(found.findings[0].kind, FindingKind::Dangling, "{found:?}");
    }
}

/// Of a history with one version that cannot be read, only that version is lost.
#[tokio::test]
async fn a_repair_takes_out_what_cannot_be_read_and_nothing_else() {
    // Which cell breaks: of a creation, of a change, of a move, of the last version there is, of
    // the end.
    for broken in 1..=6_u64 {
        for ended in [false, true] {
            for subject in Subject::all("history = { days = 2 }").await {
                subject.notes.insert(&json!({ "id": "1", "n": 1 })).await.unwrap();
                let version = subject.notes.get("1").await.unwrap().unwrap().version;
                let (incarnation, _) = version.to_string().split_once('-').map(own).unwrap();
                for n in [2, 3] {
                    subject.notes.update_with_retry("1", &json!({ "n": n })).await.unwrap();
                }
                let to = |note: &mut Value| {
                    note["id"] = json!("2");
                    Ok(())
                };
                subject.notes.rename("1", to).await.unwrap();
                subject.notes.update_with_retry("2", &json!({ "n": 5 })).await.unwrap();
                if ended {
                    subject.notes.delete("2").await.unwrap();
                }
                let cell = format!("history:version:note:{incarnation}:{broken:020}");
                if subject.put(&cell, Some("{")).await.is_none() {
                    subject.put(&cell, None).await;
                    continue;
                }
                let repair = subject.store.repair(&RepairOptions::default()).await.unwrap();
                assert_eq!(repair.mended_counts.unreadable, 1, "{broken} {ended}");
                assert_eq!(repair.left, []);
                let found = subject.store.verify().await.unwrap();
                assert!(found.is_clean(), "{broken} {ended}: {:?}", found.findings);
                let again = subject.store.repair(&RepairOptions::default()).await.unwrap();
                assert_eq!(again.mended, [], "{broken} {ended}");
                let listed = subject.notes.history("2", 9, None).await.unwrap();
                assert!(listed.problems.is_empty());
                let all = if ended { 6 } else { 5 };
                assert_eq!(listed.records.len(), all - 1, "{broken} {ended}");
                for entry in &listed.records {
                    // What a version left is told by it or by the next one, and never guessed.
                    let revision = entry.version.revision();
                    let is_told = revision < 6 && revision + 1 != broken;
                    let n = entry.record.as_ref().map(|record| record["n"].as_u64().unwrap());
                    let left = [1, 2, 3, 3, 5].get(usize::try_from(revision).unwrap() - 1);
                    assert_eq!(n, left.copied().filter(|_| is_told), "{broken} {ended} {revision}");
                }
            }
        }
    }
}

fn own((one, other): (&str, &str)) -> (String, String) {
    (one.to_owned(), other.to_owned())
}

impl Subject {
    /// Puts a cell of the own area as it is, and gives what was there.
    async fn put(&self, key: &str, value: Option<&str>) -> Option<String> {
        let address = Address::new(Area::own(), key.to_owned());
        let engine = self.store.engine();
        let held = engine.get_one(&Space::main(), &address).await.unwrap();
        let mut batch = Batch::new(Space::main());
        let effect = match value {
            Some(text) => {
                Effect::Put { stamp: Stamp([9; Stamp::BYTES]), bytes: text.to_owned().into() }
            }
            None => Effect::Delete,
        };
        batch.push(address, None, Some(effect));
        engine.commit(batch).await.unwrap();
        held.map(|cell| String::from_utf8(cell.bytes().unwrap().to_vec()).unwrap())
    }
}

#[derive(Record, Serialize, Deserialize, Debug, Clone, PartialEq)]
#[record(key = "task:{id}", history(versions = 5, days = 30))]
struct Task {
    id: String,
    done: bool,
}

#[test]
fn rust_types_declare_it_and_blocking_stores_read_it() {
    let declared = Task::declaration().unwrap().history;
    assert_eq!(declared, Some(HistoryDeclaration { versions: Some(5), days: Some(30) }));
    let store = keyloom::blocking::Store::open("memory:").unwrap();
    let tasks = store.collection::<Task>().unwrap();
    let mut task = Task { id: "1".to_owned(), done: false };
    let made = tasks.insert(&task).unwrap();
    task.done = true;
    tasks.upsert(&task).unwrap();
    let history = tasks.history("1", 5, None).unwrap().records;
    let done: Vec<bool> = history.iter().map(|entry| entry.record.as_ref().unwrap().done).collect();
    assert_eq!(done, [true, false]);
    assert!(!tasks.get_version("1", made.version).unwrap().unwrap().done);
    assert!(tasks.get_as_of("1", history[0].at_ms).unwrap().unwrap().done);
    assert_eq!(store.purge_history(&PurgeOptions::default()).unwrap().removed, 0);
}

#[test]
fn bounds_are_checked_and_count_in_a_batch() {
    for (history, problem) in [
        ("history = {}", "needs `versions`, `days` or both: what is kept has a bound"),
        ("history = { versions = 0 }", "must be a number from 1 to 1000000"),
        ("history = { days = 40000 }", "must be a number from 1 to 36500"),
        ("history = { days = -1 }", "must be a whole number, not -1"),
        ("history = { versoins = 3 }", "did you mean `versions`?"),
        ("history = 20", "must be a table, not 20"),
    ] {
        let text = format!(
            "[collection.note]\nkey = \"note:{{id}}\"\nfields = {{ id = \"text\" }}\n{history}"
        );
        let error = Schema::from_toml(&text).unwrap_err();
        assert!(error.to_string().contains(problem), "{history}: {error}");
    }
    let limits = |most| keyloom::engine::Capabilities {
        batch_entries_max: most,
        ..Memory::new().capabilities().clone()
    };
    // The record and the entry twice, the answer to a key, the version, its trace, and the version
    // that goes.
    assert!(schema("history = { versions = 3 }").check_against(&limits(8)).is_ok());
    assert!(schema("history = { versions = 3 }").check_against(&limits(7)).is_err());
    assert!(schema("history = { days = 3 }").check_against(&limits(7)).is_ok());
}
