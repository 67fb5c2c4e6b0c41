//! Sweeps: whole at every point where they can be cut, beside writers, and on stores that learn
//! late that their records expire.

#![cfg(feature = "embedded")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests fail by panicking"
)]

mod index_support;
mod long;
mod time_support;

use std::collections::BTreeMap;
use std::sync::Arc;

use index_support::{Dice, Meddled};
use keyloom::engine::{Area, Capabilities, CommitFault, Engine, Memory, Torn, Unreliable};
use keyloom::{
    Class, Collection, ErrorKind, FindingKind, IndexState, Query, RepairOptions, Schema, Store,
    SweepOptions,
};
use serde_json::{Value, json};
use time_support::{START, Small, Subject, TestClock, plant};

const SCHEMA: &str = r#"
[collection.token]
key        = "token:{id}"
expires_at = "ends"
[collection.token.fields]
id       = "text"
email    = "text"
ends     = "timestamp"
"tags.*" = "text"
[collection.token.unique.email]
key = "token-index:email:{email}"
[collection.token.index.tag]
key = "token-index:tag:{tags.*}:{id}"
"#;

fn token(id: &str, email: &str, ends: u64) -> Value {
    json!({ "id": id, "email": email, "ends": START + ends, "tags": ["x", "y"] })
}

async fn tokens(store: &Store) -> Collection<Value> {
    store.documents("token").await.unwrap()
}

async fn sweep(store: &Store) -> u64 {
    store.sweep(&SweepOptions::default()).await.unwrap().records
}

/// A store with eight tokens, five of which have expired.
async fn five_of_eight(engine: Arc<dyn Engine>) -> Subject {
    let subject = Subject::on("subject", engine, SCHEMA).await;
    let tokens = tokens(&subject.store).await;
    for n in 0..8 {
        let id = format!("t{n}");
        tokens.insert(&token(&id, &format!("{id}@x"), 10 + n)).await.unwrap();
    }
    subject.clock.pass(14);
    subject
}

const FAULTS: [CommitFault; 3] =
    [CommitFault::Refused, CommitFault::RequestLost, CommitFault::AnswerLost];

#[tokio::test]
async fn a_sweep_may_be_cut_at_every_commit() {
    for fault in FAULTS {
        for (batch_records, commits) in [(1, 5), (2, 3), (32, 1)] {
            for cut in 0..commits {
                let memory: Arc<dyn Engine> = Arc::new(Memory::new());
                let subject = five_of_eight(memory.clone()).await;
                let unreliable = Unreliable::new(memory, 1, 0.0);
                unreliable.script(std::iter::repeat_n(CommitFault::None, cut).chain([fault]));
                let cut_off = Store::on(Arc::new(unreliable)).with_clock(subject.clock.clock());
                let options = SweepOptions { batch_records, ..SweepOptions::default() };
                assert!(cut_off.sweep(&options).await.is_err(), "{fault:?} at {cut}");
                subject.assert_sound().await;
                let done = cut + usize::from(fault == CommitFault::AnswerLost);
                let left = 5_u64.saturating_sub((done * batch_records) as u64);
                assert_eq!(sweep(&subject.store).await, left, "{fault:?} at {cut}");
                subject.assert_sound().await;
                assert_eq!(subject.keys().await.len(), 3 * 5, "three tokens of five keys");
            }
        }
    }
}

#[tokio::test]
async fn a_write_over_an_expired_record_may_be_cut_at_every_commit() {
    for fault in FAULTS {
        for cut in 0..3 {
            let memory: Arc<dyn Engine> = Arc::new(Memory::new());
            let subject = five_of_eight(memory.clone()).await;
            let unreliable = Unreliable::new(memory, 1, 0.0);
            unreliable.script(std::iter::repeat_n(CommitFault::None, cut).chain([fault]));
            let cut_off = Store::on(Arc::new(unreliable)).with_clock(subject.clock.clock());
            // Rejected by the key of one, then by the e-mail of another, then carried out.
            let written = tokens(&cut_off).await.insert(&token("t0", "t1@x", 999)).await;
            assert!(written.is_err(), "{fault:?} at {cut}");
            subject.assert_sound().await;
            let found = tokens(&subject.store).await.get("t0").await.unwrap();
            assert_eq!(found.is_some(), cut == 2 && fault == CommitFault::AnswerLost);
            tokens(&subject.store).await.upsert(&token("t0", "t1@x", 999)).await.unwrap();
            subject.assert_sound().await;
        }
    }
}

#[tokio::test]
async fn a_record_that_is_prolonged_after_the_look_is_not_removed() {
    let meddled = Arc::new(Meddled::new(Arc::new(Memory::new())));
    let subject = five_of_eight(meddled.clone()).await;
    // Somebody whose clock is behind still sees it.
    let behind = Store::on(meddled.clone()).with_clock(TestClock::new().clock());
    let behind = tokens(&behind).await;
    meddled.before_next_commit(async move {
        behind.update_with_retry("t2", &json!({ "ends": START + 999 })).await.unwrap();
    });
    assert_eq!(sweep(&subject.store).await, 4, "the others of its batch go all the same");
    assert!(meddled.has_meddled());
    assert!(tokens(&subject.store).await.get("t2").await.unwrap().is_some());
    subject.assert_sound().await;
}

#[tokio::test]
async fn what_others_sweep_or_replace_meanwhile_is_let_be() {
    let meddled = Arc::new(Meddled::new(Arc::new(Memory::new())));
    let subject = five_of_eight(meddled.clone()).await;
    let other = subject.store.clone();
    meddled.before_next_commit(async move {
        tokens(&other).await.insert(&token("t0", "t0@x", 999)).await.unwrap();
        assert_eq!(sweep(&other).await, 4);
    });
    assert_eq!(sweep(&subject.store).await, 0);
    assert!(tokens(&subject.store).await.get("t0").await.unwrap().is_some());
    // An expired record that is in the way of a write, and swept in that moment.
    tokens(&subject.store).await.insert(&token("late", "late@x", 20)).await.unwrap();
    subject.clock.pass(6);
    let other = subject.store.clone();
    meddled.before_next_commit(async move { assert_eq!(sweep(&other).await, 4) });
    tokens(&subject.store).await.insert(&token("new", "late@x", 999)).await.unwrap();
    subject.assert_sound().await;
}

#[tokio::test]
async fn small_batches_are_enough() {
    let schema = SCHEMA.replace(
        "key = \"token-index:tag:{tags.*}:{id}\"",
        "key = \"token-index:tag:{tags.*}:{id}\"\nmax = 2",
    );
    let memory = Memory::new();
    // One record twice, two e-mails, two tags twice, two ends and a key: the worst move.
    let capabilities = Capabilities { batch_entries_max: 11, ..memory.capabilities().clone() };
    let subject = Subject::on("small", Arc::new(Small(memory, capabilities)), &schema).await;
    let tokens = tokens(&subject.store).await;
    tokens.insert(&token("a", "a@x", 10)).await.unwrap();
    tokens.insert(&token("b", "b@x", 10)).await.unwrap();
    tokens.insert(&token("c", "c@x", 10)).await.unwrap();
    subject.clock.pass(10);
    tokens.insert(&token("a", "b@x", 999)).await.unwrap();
    assert_eq!(tokens.get_by("email", "b@x").await.unwrap().unwrap()["id"], "a");
    assert_eq!(sweep(&subject.store).await, 1);
    assert_eq!(subject.keys().await.len(), 5);
    subject.assert_sound().await;
}

#[tokio::test]
async fn a_store_may_learn_late_that_its_records_expire() {
    for subject in Subject::all(&SCHEMA.replace("expires_at = \"ends\"", "")).await {
        let name = subject.name;
        let tokens = tokens(&subject.store).await;
        for n in 0..6 {
            let id = format!("t{n}");
            tokens.insert(&token(&id, &format!("{id}@x"), n)).await.unwrap();
        }
        subject.clock.pass(2);
        assert_eq!(tokens.count(&Query::new().scan()).await.unwrap(), 6);
        let applied = subject.store.apply(&Schema::from_toml(SCHEMA).unwrap()).await.unwrap();
        assert_eq!(applied.to_build, [("token".to_owned(), "expires_at".to_owned())]);
        assert_eq!(applied.changes[0].class, Class::NeedsBuild);
        // They are hidden at once, and swept as far as the index has come.
        assert_eq!(tokens.count(&Query::new().scan()).await.unwrap(), 3, "{name}");
        let swept = subject.store.sweep(&SweepOptions::default()).await.unwrap();
        assert_eq!((swept.records, swept.collections[0].until), (0, 0));
        let counted = tokens.count_entries(&Query::new().scan()).await.unwrap();
        assert_eq!((counted.records, counted.swept_until), (6, Some(0)));
        tokens.insert(&token("t0", "new@x", 999)).await.unwrap();
        let built = subject.store.build("token", "expires_at").await.unwrap();
        assert_eq!(built.put, 5);
        assert_eq!(
            subject.store.index_state("token", "expires_at").await.unwrap(),
            IndexState::Ready
        );
        let swept = subject.store.sweep(&SweepOptions::default()).await.unwrap();
        assert_eq!((swept.records, swept.collections[0].until), (2, START + 2));
        subject.assert_sound().await;
    }
}

#[tokio::test]
async fn entries_of_the_index_over_the_ends_are_verified_and_repaired() {
    let engine: Arc<dyn Engine> = Arc::new(Memory::new());
    let subject = five_of_eight(engine.clone()).await;
    subject.assert_sound().await;
    let orphan = format!("expiry:token:{}:token:nobody", START + 3);
    plant(&engine, Area::own(), &orphan, "\"nobody\"").await;
    let wrong = format!("expiry:token:{}:token:t7", START + 5);
    plant(&engine, Area::own(), &wrong, "\"t7\"").await;
    let verification = subject.store.verify().await.unwrap();
    let found: Vec<FindingKind> = verification.findings.iter().map(|found| found.kind).collect();
    assert_eq!(found.len(), 2, "{:?}", verification.findings);
    // They mislead nobody: what has not expired is not removed.
    assert_eq!(sweep(&subject.store).await, 5);
    assert!(tokens(&subject.store).await.get("t7").await.unwrap().is_some());
    subject.store.repair(&RepairOptions::default()).await.unwrap();
    subject.assert_sound().await;
    assert_eq!(subject.keys().await.len(), 3 * 5);
}

/// What the store should hold: each id with its e-mail and its end.
type Model = BTreeMap<String, (String, u64)>;

fn holder<'m>(model: &'m Model, email: &str, now: u64) -> Option<&'m String> {
    let alive = model.iter().filter(|(_, (_, ends))| *ends > now);
    alive.filter(|(_, (held, _))| held == email).map(|(id, _)| id).next()
}

/// One random step on the store and on the model, and the two compared.
async fn step(subject: &Subject, tokens: &Collection<Value>, model: &mut Model, dice: &mut Dice) {
    let id = format!("t{}", dice.below(6));
    let email = format!("e{}@x", dice.below(4));
    let now = subject.clock.now();
    let ends = now - START + dice.below(12);
    let is_there = model.get(&id).is_some_and(|(_, ends)| *ends > now);
    let record = token(&id, &email, ends);
    let rival = holder(model, &email, now).filter(|holder| **holder != id).is_some();
    let expected = |wrong: Option<ErrorKind>| match wrong {
        Some(kind) => Err(kind),
        None if rival => Err(ErrorKind::UniqueConflict),
        None => Ok(()),
    };
    let action = dice.below(8);
    let (outcome, expected) = match action {
        0 | 1 => (
            tokens.insert(&record).await.map(drop),
            expected(is_there.then_some(ErrorKind::AlreadyExists)),
        ),
        2 => (tokens.upsert(&record).await.map(drop), expected(None)),
        3 => (
            tokens.replace(&record).await.map(drop),
            expected((!is_there).then_some(ErrorKind::NotFound)),
        ),
        4 => {
            let patch = json!({ "email": email, "ends": START + ends });
            (
                tokens.update_with_retry(&id, &patch).await.map(drop),
                expected((!is_there).then_some(ErrorKind::NotFound)),
            )
        }
        5 => {
            let there = tokens.delete(&id).await.unwrap().is_some();
            assert_eq!(there, is_there);
            model.remove(&id);
            return;
        }
        6 => return subject.clock.pass(dice.below(6)),
        _ => {
            sweep(&subject.store).await;
            model.retain(|_, (_, ends)| *ends > now);
            let keys = subject.keys_of(Area::default_area()).await;
            let records = keys.iter().filter(|key| key.starts_with("token:")).count();
            assert_eq!(records, model.len(), "what has expired is gone");
            return;
        }
    };
    assert_eq!(outcome.map_err(|error| error.kind()), expected, "{action}: {record}");
    if expected.is_ok() {
        model.insert(id, (email, START + ends));
    }
}

#[tokio::test]
async fn expired_records_are_as_if_they_were_deleted() {
    for seed in 0..u64::from(long::times(20)) {
        let torn: Arc<dyn Engine> = match seed % 2 {
            0 => Arc::new(Memory::new()),
            _ => Arc::new(Torn::new(Arc::new(Memory::new()), seed)),
        };
        let subject = Subject::on("random", torn, SCHEMA).await;
        let tokens = tokens(&subject.store).await;
        let (mut model, mut dice) = (Model::new(), Dice::new(seed));
        for _ in 0..150 {
            step(&subject, &tokens, &mut model, &mut dice).await;
            let now = subject.clock.now();
            let page = tokens.page(&Query::new().scan().take(100)).await.unwrap();
            assert!(page.problems.is_empty());
            let seen: Vec<(&str, &str)> = page
                .records
                .iter()
                .map(|record| (record["id"].as_str().unwrap(), record["email"].as_str().unwrap()))
                .collect();
            let alive = model.iter().filter(|(_, (_, ends))| *ends > now);
            let alive: Vec<(&str, &str)> =
                alive.map(|(id, (email, _))| (&**id, &**email)).collect();
            assert_eq!(seen, alive, "seed {seed}");
            let tagged = tokens.count(&Query::new().equal("tags.*", "x")).await.unwrap();
            assert_eq!(tagged, alive.len(), "seed {seed}");
        }
        subject.assert_sound().await;
        subject.clock.pass(1_000);
        sweep(&subject.store).await;
        assert_eq!(subject.keys().await, [""; 0], "seed {seed}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_those_who_want_what_an_expired_record_holds_one_gets_it() {
    for subject in Subject::all(SCHEMA).await {
        let tokens = tokens(&subject.store).await;
        for round in 0..5 {
            tokens.insert(&token("old", "ana@x", 10 * (round + 1))).await.unwrap();
            subject.clock.pass(10);
            let writers = (0..8).map(|writer| {
                let (store, tokens) = (subject.store.clone(), tokens.clone());
                tokio::spawn(async move {
                    if writer % 4 == 3 {
                        sweep(&store).await;
                        return 0;
                    }
                    let record = token(&format!("new{writer}"), "ana@x", 999_999);
                    match tokens.insert(&record).await {
                        Ok(_) => 1,
                        Err(error) => {
                            assert_eq!(error.kind(), ErrorKind::UniqueConflict, "{error}");
                            0
                        }
                    }
                })
            });
            let mut winners = 0;
            for writer in writers.collect::<Vec<_>>() {
                winners += writer.await.unwrap();
            }
            assert_eq!(winners, 1, "{}", subject.name);
            subject.assert_sound().await;
            let holder = tokens.get_by("email", "ana@x").await.unwrap().unwrap();
            tokens.delete(holder["id"].as_str().unwrap()).await.unwrap();
        }
    }
}
