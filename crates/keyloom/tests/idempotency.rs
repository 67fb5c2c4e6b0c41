//! A write with a key happens once, however often it is sent.

#![cfg(feature = "embedded")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests fail by panicking"
)]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use keyloom::engine::{
    Address, Area, Batch, CommitFault, Direction, Durability, Effect as CellEffect, Embedded,
    EmbeddedOptions, Engine, EngineExt, Memory, Metered, Range, Row, Space, Stamp, Torn,
    Unreliable,
};
use keyloom::{
    Class, Clock, Collection, Effect, Error, ErrorKind, Fate, FindingKind, PurgeOptions,
    RepairOptions, Result, Schema, Store, Transaction,
};
use serde_json::{Value, json};

const START: u64 = 1_700_000_000_000;
const HOUR: u64 = 60 * 60 * 1_000;

const SCHEMA: &str = r#"
[idempotency]
keep = "2 hours"

[collection.note]
key = "note:{id}"
[collection.note.fields]
id    = { type = "text", required = true }
email = "text"
state = { type = "enum", values = ["open", "done"], transitions = { open = ["done"] }, illegal = "ignore" }
[collection.note.counters]
hits = {}
[collection.note.unique.email]
key = "email:{email}"

[collection.ticket]
key = "ticket:{id}"
[collection.ticket.fields]
id = { type = "id", generate = true }
"#;

struct Subject {
    store: Store,
    notes: Collection<Value>,
    time: Arc<AtomicU64>,
    _folder: tempfile::TempDir,
}

impl Subject {
    async fn on(engine: Arc<dyn Engine>, folder: tempfile::TempDir) -> Subject {
        let time = Arc::new(AtomicU64::new(START));
        let told = time.clone();
        let store = Store::on(engine).with_clock(Clock::new(move || told.load(Ordering::SeqCst)));
        store.apply(&Schema::from_toml(SCHEMA).unwrap()).await.unwrap();
        let notes = store.documents("note").await.unwrap();
        Subject { store, notes, time, _folder: folder }
    }

    async fn all() -> Vec<Subject> {
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
            all.push(Subject::on(engine, folder).await);
        }
        all
    }

    fn pass(&self, ms: u64) {
        self.time.fetch_add(ms, Ordering::SeqCst);
    }

    fn keyed(&self, key: &str) -> Collection<Value> {
        self.notes.with_idempotency_key(key).unwrap()
    }

    async fn rows(&self, area: Area) -> Vec<Row> {
        let range = Range::all(area);
        let engine = self.store.engine();
        engine.scan_all(&Space::main(), &range, 100, Direction::Forward).await.unwrap()
    }

    /// Everything that lies in the store.
    async fn dump(&self) -> Vec<Row> {
        let mut rows = self.rows(Area::default_area()).await;
        rows.extend(self.rows(Area::own()).await);
        rows
    }

    async fn count(&self, id: &str) -> Value {
        self.notes.get(id).await.unwrap().unwrap()["n"].clone()
    }
}

/// Every way to write, each on a record of its own. What it answers is told as text.
async fn perform(subject: &Subject, way: usize, key: Option<&str>) -> Result<String> {
    let notes = match key {
        Some(key) => subject.keyed(key),
        None => subject.notes.clone(),
    };
    let id = format!("w{way}");
    let record = json!({ "id": id, "n": 5 });
    let add = |note: &mut Value| {
        note["n"] = json!(note["n"].as_i64().unwrap() + 1);
        Ok(())
    };
    Ok(match way {
        0 => format!("{:?}", notes.insert(&json!({ "id": "new", "n": 0 })).await?),
        1 => format!("{:?}", notes.upsert(&record).await?),
        2 => format!("{:?}", notes.replace(&record).await?),
        3 => format!("{:?}", notes.update_with_retry(&id, &json!({ "n": 2 })).await?),
        4 => format!("{:?}", notes.modify(&id, add).await?),
        5 => format!("{:?}", notes.upsert_with(&record, add).await?),
        6 => format!("{:?}", notes.delete(&id).await?),
        7 => {
            let to = |note: &mut Value| {
                note["id"] = json!("moved");
                Ok(())
            };
            format!("{:?}", notes.rename(&id, to).await?)
        }
        8 => {
            let adding = |transaction: Transaction| async move {
                let notes = transaction.documents("note")?;
                let mut note = notes.get("w8").await?.unwrap().value;
                note["n"] = json!(note["n"].as_i64().unwrap() + 1);
                notes.replace(&note).await?;
                Ok::<_, Error>(note["n"].clone())
            };
            let answer = match key {
                Some(key) => subject.store.transaction_once(key, adding).await?,
                None => subject.store.transaction(adding).await?,
            };
            format!("{answer:?}")
        }
        9..12 => {
            let plain = match key {
                Some(key) => subject.store.plain().with_idempotency_key(key)?,
                None => subject.store.plain(),
            };
            match way {
                9 => format!("{:?}", plain.put("free", "bytes").await?),
                10 => format!("{:?}", plain.delete("there").await?),
                _ => format!("{:?}", plain.put("note:w11", r#"{"id":"w11","n":9}"#).await?),
            }
        }
        12 => format!(
            "{:?}",
            subject.store.plain().with_idempotency_key(key.unwrap())?.delete("note:w12").await?
        ),
        // What changes nothing is remembered too.
        13 => format!("{:?}", notes.delete("nobody").await?),
        14 => format!("{:?}", notes.upsert(&json!({ "id": "w14", "n": 1 })).await?),
        15 => format!("{:?}", notes.upsert(&json!({ "id": "w15", "state": "open" })).await?),
        16 => {
            let reading = |transaction: Transaction| async move {
                Ok::<_, Error>(
                    transaction.documents("note")?.get("w16").await?.unwrap()["n"].clone(),
                )
            };
            format!("{:?}", subject.store.transaction_once(key.unwrap(), reading).await?)
        }
        _ => {
            let tickets = subject.store.documents("ticket").await?;
            format!("{:?}", tickets.with_idempotency_key(key.unwrap())?.insert(&json!({})).await?)
        }
    })
}

const WAYS: usize = 18;

async fn prepare(subject: &Subject) {
    for way in 1..WAYS {
        let record = json!({ "id": format!("w{way}"), "n": 1 });
        subject.notes.insert(&record).await.unwrap();
        subject.notes.increment(format!("w{way}"), [("hits", 3)]).await.unwrap();
    }
    let done = json!({ "id": "w15", "state": "done" });
    subject.notes.upsert(&done).await.unwrap();
    subject.store.plain().put("there", "x").await.unwrap();
}

#[tokio::test]
async fn a_repeated_write_changes_nothing_and_answers_as_before() {
    for subject in Subject::all().await {
        prepare(&subject).await;
        for way in 0..WAYS {
            let key = format!("key {way}");
            let answer = perform(&subject, way, Some(&key)).await.unwrap();
            // What is counted later is no part of the first answer; what was counted before is.
            let id = if way == 7 { "moved".to_owned() } else { format!("w{way}") };
            if subject.notes.get(&id).await.unwrap().is_some() {
                subject.notes.increment(&id, [("hits", 1)]).await.unwrap();
            }
            if [1, 2, 3, 4, 5, 7, 14, 15].contains(&way) {
                assert!(answer.contains(r#""hits":3"#), "{way}: {answer}");
            }
            let dump = subject.dump().await;
            for _ in 0..2 {
                assert_eq!(perform(&subject, way, Some(&key)).await.unwrap(), answer, "{way}");
                assert_eq!(subject.dump().await, dump, "{way}");
            }
        }
        // It is the first answer, whatever became of the record since.
        subject.notes.delete("new").await.unwrap();
        subject.notes.insert(&json!({ "id": "nobody" })).await.unwrap();
        subject.notes.update_with_retry("w4", &json!({ "n": 77 })).await.unwrap();
        let dump = subject.dump().await;
        for way in [0, 4, 13] {
            perform(&subject, way, Some(&format!("key {way}"))).await.unwrap();
        }
        assert_eq!(subject.dump().await, dump);
        assert!(subject.store.verify().await.unwrap().is_clean());
    }
}

#[tokio::test]
async fn another_request_with_the_key_is_refused() {
    for subject in Subject::all().await {
        prepare(&subject).await;
        subject.keyed("k").upsert(&json!({ "id": "w1", "n": 8, "m": 1 })).await.unwrap();
        let dump = subject.dump().await;
        let again = subject.keyed("k");
        // The order of the names is no difference.
        again.upsert(&json!({ "m": 1, "n": 8, "id": "w1" })).await.unwrap();
        let kinds = [
            again.upsert(&json!({ "id": "w1", "n": 9, "m": 1 })).await.map(drop),
            again.replace(&json!({ "id": "w1", "n": 8, "m": 1 })).await.map(drop),
            again.insert(&json!({ "id": "other" })).await.map(drop),
            again.delete("w1").await.map(drop),
            again.modify("w1", |_| Ok(())).await.map(drop),
            subject.store.plain().with_idempotency_key("k").unwrap().put("x", "y").await.map(drop),
            subject.store.transaction_once("k", |_| async { Ok::<(), Error>(()) }).await.map(drop),
        ];
        for answer in kinds {
            let error = answer.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::IdempotencyConflict);
            assert_eq!(error.fate(), Fate::DidNotHappen);
        }
        assert_eq!(subject.dump().await, dump);
    }
}

#[tokio::test]
async fn a_write_that_fails_leaves_its_key_free() {
    for subject in Subject::all().await {
        subject.notes.insert(&json!({ "id": "1", "email": "a@b" })).await.unwrap();
        let clash = json!({ "id": "2", "email": "a@b" });
        let error = subject.keyed("k").insert(&clash).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::UniqueConflict);
        let error = subject.keyed("k").insert(&json!({ "id": "1" })).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::AlreadyExists);
        let error = subject.keyed("k").modify("nobody", |_| Ok(())).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound);
        let aborted = subject.store.transaction_once("k", |_| async {
            Err::<(), Error>(Error::new(ErrorKind::Aborted, "no"))
        });
        assert_eq!(aborted.await.unwrap_err().kind(), ErrorKind::Aborted);
        subject.keyed("k").insert(&json!({ "id": "2" })).await.unwrap();
        // A record that leaves no room for its answer is refused as a whole.
        let large = json!({ "id": "3", "text": "x".repeat(389_000) });
        let error = subject.keyed("large").insert(&large).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::LimitExceeded);
        assert_eq!(subject.notes.get("3").await.unwrap(), None);
    }
}

#[tokio::test]
async fn a_key_is_free_again_when_its_time_has_passed() {
    for subject in Subject::all().await {
        let add = |note: &mut Value| {
            note["n"] = json!(note["n"].as_i64().unwrap() + 1);
            Ok(())
        };
        subject.notes.insert(&json!({ "id": "1", "n": 0 })).await.unwrap();
        for (wait, count) in [(0, 1), (2 * HOUR - 1, 1), (1, 2), (2 * HOUR - 1, 2)] {
            subject.pass(wait);
            subject.keyed("k").modify("1", add).await.unwrap();
            assert_eq!(subject.count("1").await, json!(count));
        }
        // An insert looks nothing up, and finds it free all the same.
        subject.keyed("i").insert(&json!({ "id": "2" })).await.unwrap();
        subject.notes.delete("2").await.unwrap();
        subject.pass(2 * HOUR);
        subject.keyed("i").insert(&json!({ "id": "2", "n": 2 })).await.unwrap();

        for key in 0..200 {
            subject.keyed(&format!("many {key}")).upsert(&json!({ "id": "3" })).await.unwrap();
        }
        subject.pass(HOUR);
        subject.keyed("late").upsert(&json!({ "id": "3" })).await.unwrap();
        subject.pass(HOUR);
        let (mut removed, mut options) = (0, PurgeOptions { cells_max: 1, from: None });
        loop {
            let purged = subject.store.purge_idempotency_keys(&options).await.unwrap();
            assert!(purged.read <= 64);
            removed += purged.removed;
            options.from = purged.next;
            if options.from.is_none() {
                break;
            }
        }
        assert_eq!(removed, 202);
        let left = subject.rows(Area::own()).await;
        let left: Vec<_> = left.iter().filter(|row| row.key.starts_with(b"idempotency:")).collect();
        assert_eq!(left.len(), 1, "{left:?}");
        assert_eq!(&left[0].key[..], b"idempotency::late");
    }
}

#[tokio::test]
async fn keys_of_users_and_spaces_never_meet_and_odd_keys_are_contained() {
    let long = "k".repeat(255);
    let keys = ["k", ":", "ana:k", "%", "%3A", "\0", "..", " ", "é", "k:k", &long];
    for subject in Subject::all().await {
        let users = [None, Some("ana"), Some("ana:"), Some("an"), Some("%"), Some("\0:")];
        let longest = ":".repeat(255);
        let mut made_in_all = 0;
        for user in users.into_iter().chain([Some(&*longest)]) {
            let store = match user {
                Some(user) => subject.store.acting_as(user).unwrap(),
                None => subject.store.clone(),
            };
            let notes = store.documents("note").await.unwrap();
            for key in keys {
                let keyed = notes.with_idempotency_key(key).unwrap();
                made_in_all += 1;
                let record = json!({ "id": made_in_all.to_string() });
                let made = keyed.upsert(&record).await.unwrap();
                assert_eq!(made.effect, Effect::Created, "{user:?} {key}");
                assert_eq!(keyed.upsert(&record).await.unwrap(), made);
            }
        }
        let other = subject.store.space("other").unwrap();
        other.apply(&Schema::from_toml(SCHEMA).unwrap()).await.unwrap();
        let notes = other.documents("note").await.unwrap().with_idempotency_key("k").unwrap();
        assert_eq!(notes.upsert(&json!({ "id": "1" })).await.unwrap().effect, Effect::Created);
        for wrong in ["", &"k".repeat(256)] {
            let error = subject.notes.with_idempotency_key(wrong).map(drop).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        }
        assert!(subject.store.verify().await.unwrap().is_clean());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_same_sent_at_once_is_applied_once_and_answered_alike() {
    for subject in Subject::all().await {
        subject.notes.insert(&json!({ "id": "1", "n": 0 })).await.unwrap();
        for round in 0..20 {
            let key = format!("round {round}");
            let sent = (0..6).map(|_| {
                let (notes, store, key) =
                    (subject.keyed(&key), subject.store.clone(), format!("{key} t"));
                tokio::spawn(async move {
                    let added = notes.modify("1", |note| {
                        note["n"] = json!(note["n"].as_i64().unwrap() + 1);
                        Ok(())
                    });
                    let made = notes.with_idempotency_key(&format!("{key} i")).unwrap();
                    let record = json!({ "id": key.clone() });
                    let made = made.insert(&record);
                    let counted = store.transaction_once(&key, |transaction| async move {
                        let notes = transaction.documents("note")?;
                        let mut note = notes.get("1").await?.unwrap().value;
                        note["n"] = json!(note["n"].as_i64().unwrap() + 1);
                        notes.replace(&note).await?;
                        Ok::<_, Error>(note["n"].clone())
                    });
                    (added.await.unwrap(), made.await.unwrap(), counted.await.unwrap())
                })
            });
            let sent: Vec<_> = sent.collect();
            let mut answers = Vec::new();
            for task in sent {
                answers.push(task.await.unwrap());
            }
            assert!(answers.windows(2).all(|pair| pair[0] == pair[1]), "{answers:?}");
            assert_eq!(subject.count("1").await, json!(2 * (round + 1)));
        }
    }
}

#[tokio::test]
async fn an_answer_that_is_lost_is_asked_for_again() {
    use CommitFault::{AnswerLost, Refused, RequestLost};
    for way in 0..WAYS {
        for faults in [
            vec![AnswerLost],
            vec![RequestLost],
            vec![RequestLost, AnswerLost],
            vec![Refused, RequestLost, Refused, AnswerLost],
        ] {
            let unreliable = Arc::new(Unreliable::new(Arc::new(Memory::new()), 1, 0.0));
            let engine: Arc<dyn Engine> = unreliable.clone();
            let subject = Subject::on(engine, tempfile::tempdir().unwrap()).await;
            prepare(&subject).await;
            unreliable.script(faults.clone());
            let answer = perform(&subject, way, Some("k")).await.unwrap();
            assert_eq!(perform(&subject, way, Some("k")).await.unwrap(), answer);
            let applied = subject.notes.get(format!("w{way}")).await.unwrap();
            if let (4 | 5 | 8, Some(note)) = (way, applied) {
                assert_eq!(
                    (note.version.revision(), &note["n"]),
                    (2, &json!(2)),
                    "{way} {faults:?}"
                );
            }
        }
    }
}

#[tokio::test]
async fn without_end_the_caller_hears_that_it_may_have_happened() {
    let unreliable = Arc::new(Unreliable::new(Arc::new(Memory::new()), 1, 0.0));
    let engine: Arc<dyn Engine> = unreliable.clone();
    let subject = Subject::on(engine, tempfile::tempdir().unwrap()).await;
    unreliable.script([CommitFault::AnswerLost]);
    unreliable.set_rate(1.0);
    let record = json!({ "id": "1" });
    let error = subject.keyed("k").insert(&record).await.unwrap_err();
    assert_eq!((error.kind(), error.fate()), (ErrorKind::Unavailable, Fate::MayHaveHappened));
    unreliable.set_rate(0.0);
    let made = subject.keyed("k").insert(&record).await.unwrap();
    assert_eq!(subject.notes.get("1").await.unwrap().unwrap().version, made.version);
}

#[tokio::test]
async fn a_key_costs_one_cell_and_an_insert_no_read() {
    let metered = Arc::new(Metered::new(Arc::new(Memory::new())));
    let engine: Arc<dyn Engine> = metered.clone();
    let subject = Subject::on(engine, tempfile::tempdir().unwrap()).await;
    metered.take();
    subject.keyed("i").insert(&json!({ "id": "1" })).await.unwrap();
    let usage = metered.take();
    assert_eq!((usage.entries_written, usage.reads(), usage.commits), (2, 0, 1));
    subject.keyed("u").update_with_retry("1", &json!({ "n": 1 })).await.unwrap();
    let usage = metered.take();
    assert_eq!((usage.entries_written, usage.reads(), usage.commits), (2, 2, 1));
    subject.keyed("u").update_with_retry("1", &json!({ "n": 1 })).await.unwrap();
    let usage = metered.take();
    assert_eq!((usage.entries_written, usage.reads(), usage.commits), (0, 1, 0));
}

#[tokio::test]
async fn verify_tells_of_cells_that_are_no_answers() {
    for subject in Subject::all().await {
        subject.keyed("k").insert(&json!({ "id": "1" })).await.unwrap();
        for (key, kind) in [
            ("idempotency::odd", FindingKind::Unreadable),
            ("idempotency:a:b:c", FindingKind::Unknown),
            ("idempotency:%3a:b", FindingKind::Unknown),
            ("idempotency:alone", FindingKind::Unknown),
        ] {
            let address = Address::new(Area::own(), key);
            let planted = CellEffect::Put { stamp: Stamp([1; Stamp::BYTES]), bytes: "{}".into() };
            let mut batch = Batch::new(Space::main());
            batch.push(address.clone(), None, Some(planted));
            subject.store.engine().commit(batch).await.unwrap();
            let found = subject.store.verify().await.unwrap();
            let kinds: Vec<FindingKind> = found.findings.iter().map(|it| it.kind).collect();
            assert_eq!(kinds, [kind], "{key}");
            let repair = subject.store.repair(&RepairOptions::default()).await.unwrap();
            assert_eq!((repair.mended, repair.left), (found.findings, vec![]), "{key}");
            assert!(subject.store.verify().await.unwrap().is_clean(), "{key}");
            let kept = subject.keyed("k").insert(&json!({ "id": "1" })).await.unwrap();
            assert_eq!(kept.version.revision(), 1, "the others are let be");
        }
    }
}

#[test]
fn blocking_stores_have_it_too() {
    let store = keyloom::blocking::Store::open("memory:").unwrap();
    store.apply(&Schema::from_toml(SCHEMA).unwrap()).unwrap();
    let notes = store.documents("note").unwrap();
    let keyed = notes.with_idempotency_key("k").unwrap();
    let made = keyed.insert(&json!({ "id": "1", "n": 0 })).unwrap();
    assert_eq!(keyed.insert(&json!({ "id": "1", "n": 0 })).unwrap(), made);
    let mut ran = 0;
    for _ in 0..2 {
        let answer = store.transaction_once("t", |transaction| {
            ran += 1;
            let notes = transaction.documents("note")?;
            let mut note = notes.get("1")?.unwrap().value;
            note["n"] = json!(note["n"].as_i64().unwrap() + 1);
            notes.replace(&note)?;
            Ok::<_, Error>(note["n"].as_i64().unwrap())
        });
        assert_eq!(answer.unwrap(), 1);
    }
    assert_eq!(ran, 1);
    let purged = store.purge_idempotency_keys(&PurgeOptions::default()).unwrap();
    assert_eq!((purged.read, purged.removed), (2, 0));
}

#[tokio::test]
async fn the_time_is_declared_and_another_one_is_taken_over() {
    for (keep, fits) in
        [("\"90 minutes\"", true), ("\"1 week\"", false), ("\"0 days\"", false), ("24", false)]
    {
        let read = Schema::from_toml(&format!("[idempotency]\nkeep = {keep}\n"));
        assert_eq!(read.is_ok(), fits, "{keep}: {read:?}");
    }
    let problem = Schema::from_toml("[idempotency]\nkeep = \"a while\"\n").unwrap_err().to_string();
    assert!(problem.contains("line 2, column 8: idempotency.keep: must be a time"), "{problem}");
    let problem = Schema::from_toml("[idempotency]\n").unwrap_err().to_string();
    assert!(problem.contains("idempotency: lacks `keep`"), "{problem}");

    let subject = Subject::on(Arc::new(Memory::new()), tempfile::tempdir().unwrap()).await;
    subject.keyed("k").insert(&json!({ "id": "1" })).await.unwrap();
    let longer = Schema::from_toml("[idempotency]\nkeep = \"3 hours\"\n").unwrap();
    let applied = subject.store.apply(&longer).await.unwrap();
    let change = applied.changes.iter().find(|change| change.class == Class::Safe).unwrap();
    assert_eq!(change.to_string(), "idempotency: `keep` is now 3 hours");
    let applied = subject.store.apply(&Schema::default()).await.unwrap();
    assert!(applied.changes.iter().all(|change| change.class == Class::Kept));
    subject.pass(3 * HOUR - 1);
    subject.keyed("k").insert(&json!({ "id": "1" })).await.unwrap();
    assert_eq!(
        subject.store.schema().await.unwrap().merge(&longer).unwrap(),
        subject.store.schema().await.unwrap()
    );
    let shorter = Schema::from_toml("[idempotency]\nkeep = \"1 hour\"\n").unwrap();
    assert_eq!(longer.merge(&shorter).unwrap_err().kind(), ErrorKind::InvalidSchema);
}
