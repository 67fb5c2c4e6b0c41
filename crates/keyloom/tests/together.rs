//! Features that meet: counters, counts, ends, keys, histories and the log of one collection.

#![cfg(feature = "embedded")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests fail by panicking"
)]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use keyloom::engine::{CommitFault, Embedded, EmbeddedOptions, Engine, Memory, Torn, Unreliable};
use keyloom::{
    Clock, Collection, Error, ErrorKind, HistoryKind, Increment, Schema, Store, SweepOptions,
};
use serde_json::{Value, json};

const START: u64 = 1_700_000_000_000;

const SCHEMA: &str = r#"
[collection.session]
key        = "session:{id}"
expires_at = "ends"
history    = { versions = 9 }
fields     = { id = "text", user = "text", ends = "timestamp", email = "text" }
unique.email   = { key = "email:{email}" }
count.by_user  = { group = ["user"] }
counters.hits  = { min = 0 }
counters.bytes = {}
"#;

/// A store whose time the test holds.
struct Subject {
    store: Store,
    now: Arc<AtomicU64>,
    sessions: Collection<Value>,
    _folder: tempfile::TempDir,
}

impl Subject {
    async fn on(engine: Arc<dyn Engine>) -> Subject {
        let now = Arc::new(AtomicU64::new(START));
        let clock = Clock::new({
            let now = now.clone();
            move || now.load(Ordering::SeqCst)
        });
        let store = Store::on(engine).with_clock(clock);
        store.apply(&Schema::from_toml(SCHEMA).unwrap()).await.unwrap();
        let sessions = store.documents("session").await.unwrap();
        Subject { store, now, sessions, _folder: tempfile::tempdir().unwrap() }
    }

    async fn all() -> Vec<Subject> {
        let folder = tempfile::tempdir().unwrap();
        let embedded = Embedded::open(folder.path(), EmbeddedOptions::default()).unwrap();
        let torn = Torn::new(Arc::new(Memory::new()), 11);
        let embedded = Subject { _folder: folder, ..Subject::on(Arc::new(embedded)).await };
        vec![
            Subject::on(Arc::new(Memory::new())).await,
            embedded,
            Subject::on(Arc::new(torn)).await,
        ]
    }

    fn pass(&self, millis: u64) {
        self.now.fetch_add(millis, Ordering::SeqCst);
    }

    async fn counted(&self, user: &str) -> i64 {
        self.sessions.counted("by_user", user).await.unwrap()
    }

    async fn assert_sound(&self) {
        let verification = self.store.verify().await.unwrap();
        assert!(verification.is_clean(), "{:#?}", verification.findings);
    }
}

fn session(id: &str, lives: u64) -> Value {
    json!({ "id": id, "user": "ana", "ends": START + lives, "email": "a@x" })
}

fn hits(record: &Value) -> i64 {
    record["hits"].as_i64().unwrap()
}

#[tokio::test]
async fn counters_and_counts_end_with_a_record_that_expires() {
    for subject in Subject::all().await {
        let sessions = &subject.sessions;
        sessions.insert(&session("s", 10)).await.unwrap();
        let after = sessions.increment("s", [("hits", 7), ("bytes", 1)]).await.unwrap();
        assert_eq!(after["hits"], 7);
        assert_eq!(subject.counted("ana").await, 1);
        subject.pass(10);
        let error = sessions.increment("s", [("hits", 1)]).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound, "it has expired");
        subject.assert_sound().await;
        let swept = subject.store.sweep(&SweepOptions::default()).await.unwrap();
        assert_eq!(swept.records, 1);
        assert_eq!(subject.counted("ana").await, 0);
        subject.assert_sound().await;
        sessions.insert(&session("s", 99)).await.unwrap();
        assert_eq!(hits(&sessions.get("s").await.unwrap().unwrap().value), 0);
        let past = sessions.history("s", 10, None).await.unwrap();
        let kinds: Vec<HistoryKind> = past.records.iter().map(|entry| entry.kind).collect();
        assert_eq!(kinds, [HistoryKind::Created, HistoryKind::Expired, HistoryKind::Created]);
    }
}

#[tokio::test]
async fn a_record_over_an_expired_one_begins_with_nothing_counted() {
    for subject in Subject::all().await {
        let sessions = &subject.sessions;
        for (round, id) in
            ["same", "other", "in a transaction", "counted at once"].iter().enumerate()
        {
            let lives = 10 * (round as u64 + 1);
            sessions.insert(&session("same", lives)).await.unwrap();
            sessions.increment("same", [("hits", 5)]).await.unwrap();
            subject.pass(10);
            // The same key, or another whose e-mail the expired one holds.
            match round {
                0 => drop(sessions.insert(&session("same", 900)).await.unwrap()),
                1 => drop(sessions.insert(&session(id, 900)).await.unwrap()),
                2 => subject
                    .store
                    .transaction(async |tx| {
                        let sessions = tx.documents("session")?;
                        assert!(sessions.get("same").await?.is_none());
                        sessions.insert(&session("same", 900)).await?;
                        Ok::<_, Error>(())
                    })
                    .await
                    .unwrap(),
                _ => subject
                    .store
                    .transaction(async |tx| {
                        let sessions = tx.documents("session")?;
                        sessions.insert(&session("same", 900)).await?;
                        sessions.increment("same", [("hits", 3)]).await?;
                        Ok::<_, Error>(())
                    })
                    .await
                    .unwrap(),
            }
            let id = if round == 1 { id } else { "same" };
            let expected = if round == 3 { 3 } else { 0 };
            let found = sessions.get(id).await.unwrap().unwrap();
            assert_eq!(hits(&found.value), expected, "round {round}");
            assert_eq!(subject.counted("ana").await, 1, "round {round}");
            subject.assert_sound().await;
            sessions.delete(id).await.unwrap();
            assert_eq!(subject.counted("ana").await, 0, "round {round}");
            subject.assert_sound().await;
        }
    }
}

#[tokio::test]
async fn an_increment_with_a_key_is_added_once_and_answered_with_what_is_there() {
    for subject in Subject::all().await {
        let sessions = &subject.sessions;
        sessions.insert(&session("s", 900)).await.unwrap();
        let keyed = sessions.with_idempotency_key("k").unwrap();
        assert_eq!(keyed.increment("s", [("hits", 2)]).await.unwrap()["hits"], 2);
        assert_eq!(keyed.increment("s", [("hits", 2)]).await.unwrap()["hits"], 2);
        sessions.increment("s", [("hits", 10)]).await.unwrap();
        assert_eq!(keyed.increment("s", [("hits", 2)]).await.unwrap()["hits"], 12);
        let error = keyed.increment("s", [("hits", 3)]).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::IdempotencyConflict);
        let other = sessions.with_idempotency_key("other").unwrap();
        let error = other.increment("s", [("hits", -99)]).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::OutOfBounds);
        // A refusal does not use the key up.
        assert_eq!(other.increment("s", [("hits", -12)]).await.unwrap()["hits"], 0);
    }
}

#[tokio::test]
async fn increments_whose_answers_are_lost_are_added_once() {
    let unreliable = Arc::new(Unreliable::new(Arc::new(Memory::new()), 5, 0.0));
    let subject = Subject::on(unreliable.clone()).await;
    subject.sessions.insert(&session("s", 900)).await.unwrap();
    let faults = [CommitFault::Refused, CommitFault::RequestLost, CommitFault::AnswerLost];
    for round in 0..30_i64 {
        let fault = |place: i64| faults[(round / 3_i64.pow(place as u32)) as usize % 3];
        unreliable.script([fault(0), fault(1), fault(2)]);
        let keyed = subject.sessions.with_idempotency_key(&format!("k{round}")).unwrap();
        let after = keyed.increment("s", [("hits", 1)]).await.unwrap();
        assert_eq!(after["hits"], round + 1);
    }
}

#[tokio::test]
async fn the_log_tells_what_was_added_and_builds_the_same_counters() {
    let with_log = format!("[log]\n{SCHEMA}");
    let store = Store::open("memory:").await.unwrap();
    store.apply(&Schema::from_toml(&with_log).unwrap()).await.unwrap();
    let sessions = store.documents("session").await.unwrap();
    let far = 9_999_999_999_999_u64;
    sessions.insert(&json!({ "id": "s", "user": "ana", "ends": far })).await.unwrap();
    let from = store.log_bounds().await.unwrap().next;
    let finished = Increment::of("session", "s").add("hits", 2).add("bytes", -1);
    store.increment_many([finished]).await.unwrap();
    let changes = store.changes(from, 10).await.unwrap();
    let change = &changes.commits[0].changes[0];
    assert_eq!((change.key.as_str(), change.document()), ("session:s", None));
    assert_eq!(change.increments, [("bytes".to_owned(), -1), ("hits".to_owned(), 2)].into());
    let copy = Store::open("memory:").await.unwrap();
    copy.replay(&store).await.unwrap();
    let copied = copy.documents("session").await.unwrap();
    let there = sessions.get("s").await.unwrap().unwrap();
    assert_eq!(copied.get("s").await.unwrap().unwrap(), there);
    assert_eq!(hits(&there.value), 2);
    assert_eq!(copied.counted("by_user", "ana").await.unwrap(), 1);
}
