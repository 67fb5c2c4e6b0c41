//! Backups: taken while writers go on, checked byte by byte, restored whole or not at all.

#![cfg(feature = "embedded")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests fail by panicking"
)]

mod backup_support;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use backup_support::{NOW, Subject, account, everything, fill};
use keyloom::engine::{
    Address, Area, Batch, Effect, EngineExt, Memory, Space, Stamp, Torn, Unreliable,
};
use keyloom::{
    BackupCheck, BackupInfo, Clock, ErrorKind, Fate, Position, Query, Result, Schema, Store,
    blocking,
};
use proptest::prelude::*;
use serde_json::json;

async fn taken(store: &Store) -> (Vec<u8>, BackupInfo) {
    let mut bytes = Vec::new();
    let info = store.backup_to(&mut bytes).await.unwrap();
    (bytes, info)
}

/// Restores from pieces of this size.
async fn restore(store: &Store, bytes: &[u8], piece: usize) -> Result<BackupInfo> {
    let mut restorer = store.restorer().await?;
    for piece in bytes.chunks(piece) {
        restorer.write(piece).await?;
    }
    restorer.finish().await
}

fn empty() -> Store {
    Store::on(Arc::new(Memory::new())).with_clock(Clock::new(|| NOW))
}

#[tokio::test]
async fn a_backup_gives_the_same_space_on_every_engine() {
    for Subject { name, store, folder: _folder } in Subject::every_filled().await {
        let (bytes, info) = taken(&store).await;
        let before = everything(&store).await;
        let cells: usize = before.0.iter().map(|(_, rows)| rows.len()).sum();
        assert_eq!((info.cells, info.bytes), (cells as u64, bytes.len() as u64), "{name}");
        assert_eq!(info.log_entries, before.1.entries.len() as u64, "{name}");
        assert_eq!((info.space.as_str(), info.taken_at_ms), ("main", NOW));
        for target in Subject::every() {
            for space in ["main", "other"] {
                let into = target.store.space(space).unwrap();
                let restored = into.restore_from(&mut &bytes[..]).await.unwrap();
                assert_eq!(restored, info, "{name} to {}", target.name);
                assert_eq!(everything(&into).await, before, "{name} to {}", target.name);
                assert!(into.verify().await.unwrap().is_clean());
            }
        }
    }
}

/// What was held before fits after: versions, idempotency keys, the log's positions.
#[tokio::test]
async fn a_restored_store_goes_on_where_the_other_stood() {
    for Subject { store, folder: _folder, .. } in Subject::every_filled().await {
        let held = store.documents("account").await.unwrap().get("a003").await.unwrap().unwrap();
        let (bytes, info) = taken(&store).await;
        let next = info.log.unwrap().next;
        for target in Subject::every() {
            let Subject { name, store, folder: _folder } = target;
            restore(&store, &bytes, 1000).await.unwrap();
            let accounts = store.documents("account").await.unwrap();
            let once = accounts.with_idempotency_key("once").unwrap();
            once.insert(&account(40, 7)).await.unwrap();
            assert_eq!(store.log_bounds().await.unwrap().next, next, "{name}: it was done already");
            let mut changed = held.value.clone();
            changed["balance"] = json!(-1);
            accounts.replace_if(&changed, held.version).await.unwrap();
            let told = store.changes(next, 10).await.unwrap();
            assert_eq!(told.commits[0].changes[0].key, "account:a003", "{name}");
            assert_eq!(accounts.history("a003", 9, None).await.unwrap().records.len(), 3, "{name}");
            accounts.increment("a003", [("stats.moves", 1)]).await.unwrap();
            assert_eq!(accounts.get("a003").await.unwrap().unwrap().value["stats"]["moves"], 0);
            assert!(store.verify().await.unwrap().is_clean(), "{name}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_backup_is_of_one_moment_while_writers_go_on() {
    for Subject { name, store, folder: _folder } in Subject::every_filled().await {
        let is_over = Arc::new(AtomicBool::new(false));
        let writers: Vec<_> = (0..3)
            .map(|_| {
                let (store, is_over) = (store.clone(), is_over.clone());
                tokio::spawn(async move {
                    while !is_over.load(Ordering::Acquire) {
                        transfer(&store).await;
                    }
                })
            })
            .collect();
        for _ in 0..4 {
            let (bytes, info) = taken(&store).await;
            let into = empty();
            into.restore_from(&mut &bytes[..]).await.unwrap();
            assert_eq!(sum(&into).await, 100 + 7, "{name}: a sum of two records");
            assert_eq!(into.log_bounds().await.unwrap(), info.log.unwrap(), "{name}");
            assert!(into.verify().await.unwrap().is_clean(), "{name}");
        }
        is_over.store(true, Ordering::Release);
        for writer in writers {
            writer.await.unwrap();
        }
    }
}

async fn transfer(store: &Store) {
    let moved = store.transaction(async |transaction| {
        let accounts = transaction.documents("account")?;
        for (key, change) in [("a020", -1), ("a040", 1)] {
            let mut record = accounts.get(key).await?.unwrap().value;
            record["balance"] = json!(record["balance"].as_i64().unwrap() + change);
            accounts.upsert(&record).await?;
        }
        Ok::<_, keyloom::Error>(())
    });
    if let Err(error) = moved.await {
        assert!(error.is_retryable(), "{error}");
    }
}

async fn sum(store: &Store) -> i64 {
    let accounts = store.documents("account").await.unwrap();
    let mut sum = 0;
    for key in ["a020", "a040"] {
        let record = accounts.get(key).await.unwrap().unwrap();
        sum += record.value["balance"].as_i64().unwrap();
    }
    sum
}

/// Wherever a restore stops, nobody can use the space, and the same backup goes on.
#[tokio::test]
async fn a_restore_that_broke_off_is_taken_up_again() {
    let source = Subject::embedded();
    fill(&source.store).await;
    let (bytes, info) = taken(&source.store).await;
    let before = everything(&source.store).await;
    let ends: Vec<usize> = (1..40).map(|part| part * bytes.len() / 40).collect();
    for Subject { name, store, folder: _folder } in Subject::every() {
        for (number, end) in ends.iter().enumerate() {
            let into = store.space(&format!("s{number}")).unwrap();
            let mut restorer = into.restorer().await.unwrap();
            restorer.write(&bytes[..*end]).await.unwrap();
            let error = restorer.finish().await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Corrupt, "{name} {end}: {error}");
            for refused in [
                into.documents("account").await.map(drop),
                into.plain().put("x", "y").await.map(drop),
                into.apply(&backup_support::schema()).await.map(drop),
                into.verify().await.map(drop),
                into.backup().await.map(drop),
            ] {
                let error = refused.expect_err("it is not all there");
                assert_eq!(error.kind(), ErrorKind::Unavailable, "{name} {end}: {error}");
                assert!(error.to_string().contains("restore the same backup again"), "{error}");
            }
            assert_eq!(restore(&into, &bytes, 777).await.unwrap(), info, "{name} {end}");
            assert_eq!(everything(&into).await, before, "{name} {end}");
        }
    }
}

/// Answers that are lost, commits that do not happen, and reads that fail.
#[tokio::test]
async fn a_restore_over_a_bad_line_ends_with_the_same_space() {
    let source = Subject::memory();
    fill(&source.store).await;
    let (bytes, _) = taken(&source.store).await;
    let before = everything(&source.store).await;
    let mut failures = 0;
    for seed in 0..40 {
        let memory = Arc::new(Memory::new());
        let bad = Arc::new(Unreliable::new(memory.clone(), seed, 0.05));
        let mut last = None;
        for _ in 0..500 {
            match restore(&Store::on(bad.clone()), &bytes, 2000).await {
                Ok(_) => {
                    last = None;
                    break;
                }
                Err(error) => {
                    failures += 1;
                    last = Some(error);
                }
            }
            if last.as_ref().is_some_and(|error| error.kind() == ErrorKind::InvalidArgument) {
                break;
            }
        }
        // Only the answer to the last step can be lost for good: then all is there.
        if let Some(error) = last {
            assert!(error.to_string().contains("it has a schema"), "{seed}: {error}");
        }
        assert_eq!(everything(&Store::on(memory)).await, before, "{seed}");
    }
    assert!(failures > 10, "{failures} failures");
}

#[tokio::test]
async fn only_an_empty_space_is_restored_into() {
    let Subject { store, .. } = Subject::memory();
    fill(&store).await;
    let (bytes, _) = taken(&store).await;
    let (other, _) = taken(&store).await;
    let refused = async |into: &Store, bytes: &[u8], reason: &str| {
        let error = restore(into, bytes, 100).await.unwrap_err();
        let told = (error.kind(), error.fate());
        assert_eq!(told, (ErrorKind::InvalidArgument, Fate::DidNotHappen), "{error}");
        assert!(error.to_string().contains(reason), "{error}");
    };
    let before = everything(&store).await;
    refused(&store, &bytes, "it has a schema").await;
    assert_eq!(everything(&store).await, before);
    let plain = empty();
    plain.plain().put("k", "v").await.unwrap();
    refused(&plain, &bytes, "it has a schema").await;
    let begun = empty();
    begun.restorer().await.unwrap().write(&bytes[..bytes.len() / 2]).await.unwrap();
    refused(&begun, &other, "a restore of another backup broke off").await;
    restore(&begun, &bytes, 100).await.unwrap();
    let user = empty().acting_as("ana").unwrap();
    assert_eq!(user.restorer().await.map(drop).unwrap_err().kind(), ErrorKind::Forbidden);
    assert_eq!(user.backup().await.map(drop).unwrap_err().kind(), ErrorKind::Forbidden);
}

/// A key that somebody else put there meanwhile, past every schema, is not overwritten.
#[tokio::test]
async fn what_is_there_is_never_overwritten() {
    let Subject { store, .. } = Subject::memory();
    store.plain().put("k", "of the backup").await.unwrap();
    let (bytes, _) = taken(&store).await;
    let into = empty();
    let (engine, space) = (into.engine(), Space::main());
    let mut restorer = into.restorer().await.unwrap();
    let mut given = 0;
    while engine.areas(&space).await.unwrap().is_empty() {
        restorer.write(&bytes[given..=given]).await.unwrap();
        given += 1;
    }
    let mut batch = Batch::new(space.clone());
    let foreign = Effect::Put { stamp: Stamp([9; Stamp::BYTES]), bytes: "of another".into() };
    let address = Address::new(Area::default_area(), "k");
    batch.push(address.clone(), None, Some(foreign));
    engine.commit(batch).await.unwrap();
    let error = restorer.write(&bytes[given..]).await.unwrap_err();
    assert_eq!(error.context_value("key"), Some("k"), "{error}");
    let cell = engine.get_one(&space, &address).await.unwrap().unwrap();
    assert_eq!(cell.bytes().unwrap(), "of another");
}

#[tokio::test]
async fn a_space_without_a_schema_or_a_log_is_kept_too() {
    let store = empty();
    let nothing = taken(&store).await;
    assert_eq!((nothing.1.cells, nothing.1.log), (0, None));
    store.plain().put("k", vec![0u8; 380 << 10]).await.unwrap();
    store.plain().put([0, 255], "v").await.unwrap();
    let (bytes, info) = taken(&store).await;
    // Two of them are Keyloom's own: the schema and its epoch.
    assert_eq!((info.cells, info.log_entries, info.log), (4, 0, None));
    for Subject { name, store: into, folder: _folder } in Subject::every() {
        restore(&into, &bytes, 5000).await.unwrap();
        assert_eq!(everything(&into).await, everything(&store).await, "{name}");
        fill(&into).await;
        let bare = into.space("bare").unwrap();
        restore(&bare, &nothing.0, 1).await.unwrap();
        fill(&bare).await;
    }
}

/// A log whose beginning was trimmed goes on with its own numbers.
#[tokio::test]
async fn a_trimmed_log_begins_where_it_began() {
    let Subject { store, .. } = Subject::memory();
    fill(&store).await;
    let space = Space::main();
    let half = Position::from_number(20).unwrap();
    let engine = store.engine();
    let bounds = engine.trim_log(&space, half, usize::MAX).await.unwrap();
    let (half_kept, info) = taken(&store).await;
    assert_eq!(info.log, Some(bounds));
    engine.trim_log(&space, bounds.next, usize::MAX).await.unwrap();
    let (none_kept, info) = taken(&store).await;
    assert_eq!((info.log_entries, info.log.unwrap().next), (0, bounds.next));
    for (bytes, oldest) in [(half_kept, half), (none_kept, bounds.next)] {
        for Subject { name, store, folder: _folder } in Subject::every() {
            restore(&store, &bytes, 999).await.unwrap();
            let bounds_now = store.log_bounds().await.unwrap();
            assert_eq!((bounds_now.oldest, bounds_now.next), (oldest, bounds.next), "{name}");
            store.documents("account").await.unwrap().delete("a001").await.unwrap();
            assert_eq!(store.log_bounds().await.unwrap().next, bounds.next.next(), "{name}");
        }
    }
}

#[tokio::test]
async fn an_engine_without_moments_says_so_and_can_be_restored_into() {
    let torn = Store::on(Arc::new(Torn::new(Arc::new(Memory::new()), 1)));
    let error = torn.backup().await.map(drop).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    let Subject { store, .. } = Subject::memory();
    let logged = store.space("logged").unwrap();
    fill(&logged).await;
    let (bytes, _) = taken(&logged).await;
    let error = restore(&torn.space("logged").unwrap(), &bytes, 1000).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
    let notes = "[collection.note]\nkey = \"note:{id}\"\nfields = { id = \"text\" }";
    store.apply(&Schema::from_toml(notes).unwrap()).await.unwrap();
    store.documents("note").await.unwrap().insert(&json!({ "id": "one" })).await.unwrap();
    let (bytes, _) = taken(&store).await;
    restore(&torn, &bytes, 1000).await.unwrap();
    assert!(torn.documents("note").await.unwrap().get("one").await.unwrap().is_some());
    assert!(torn.verify().await.unwrap().is_clean());
}

#[tokio::test]
async fn what_is_no_backup_is_told() {
    for (text, kind, said) in [
        (&b"{\"collection\":\"note\"}\n"[..], ErrorKind::InvalidArgument, "an export"),
        (b"PK\x03\x04", ErrorKind::InvalidArgument, "no backup of Keyloom"),
        (b"keyloom backup 9\nxyz", ErrorKind::UnknownFormat, "a newer one may"),
        (b"keyloom", ErrorKind::Corrupt, "it breaks off"),
        (b"", ErrorKind::Corrupt, "it breaks off"),
    ] {
        let error = BackupInfo::read_from(&mut &text[..]).unwrap_err();
        assert_eq!(error.kind(), kind, "{error}");
        assert!(error.to_string().contains(said), "{error}");
        let into = empty();
        let error = into.restore_from(&mut &text[..]).await.unwrap_err();
        assert_eq!(error.kind(), kind, "{error}");
        fill(&into).await;
    }
}

#[test]
fn the_blocking_store_has_both() {
    let clock = || Clock::new(|| NOW);
    let store = blocking::Store::open("memory:").unwrap().with_clock(clock());
    let filled = async {
        fill(store.as_async()).await;
        Ok::<_, keyloom::Error>(())
    };
    store.run(filled).unwrap();
    let mut bytes = Vec::new();
    let info = store.backup_to(&mut bytes).unwrap();
    let into = blocking::Store::open("memory:").unwrap().with_clock(clock());
    assert_eq!(into.restore_from(&mut &bytes[..]).unwrap(), info);
    let found = into.documents("account").unwrap().count(&Query::new().equal("owner", "o1"));
    assert_eq!(found.unwrap(), 5);
}

/// A backup of a small store, made once.
fn small() -> (Vec<u8>, BackupInfo) {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let Subject { store, .. } = Subject::memory();
        fill(&store).await;
        taken(&store).await
    })
}

/// What can happen to a file.
#[derive(Clone, Debug)]
enum Damage {
    Flip { at: usize, bit: u8 },
    Cut { at: usize },
    Lose { at: usize, bytes: usize },
    Repeat { at: usize, bytes: usize },
    Append(Vec<u8>),
    Zeros { at: usize, bytes: usize },
}

impl Damage {
    fn done_to(&self, mut bytes: Vec<u8>) -> Vec<u8> {
        let place = |at: usize| at % bytes.len();
        match self {
            Damage::Flip { at, bit } => {
                let at = place(*at);
                bytes[at] ^= 1 << bit;
            }
            Damage::Cut { at } => bytes.truncate(place(*at)),
            Damage::Lose { at, bytes: count } => {
                let at = place(*at);
                bytes.drain(at..(at + count).min(bytes.len()));
            }
            Damage::Repeat { at, bytes: count } => {
                let at = place(*at);
                let again = bytes[at..(at + count).min(bytes.len())].to_vec();
                bytes.splice(at..at, again);
            }
            Damage::Append(more) => bytes.extend(more),
            Damage::Zeros { at, bytes: count } => {
                let at = place(*at);
                let end = (at + count).min(bytes.len());
                bytes[at..end].fill(0);
            }
        }
        bytes
    }
}

fn any_damage() -> impl Strategy<Value = Damage> {
    let (at, bytes) = (any::<usize>(), 1_usize..2000);
    prop_oneof![
        (any::<usize>(), 0..8_u8).prop_map(|(at, bit)| Damage::Flip { at, bit }),
        at.prop_map(|at| Damage::Cut { at }),
        (at, bytes.clone()).prop_map(|(at, bytes)| Damage::Lose { at, bytes }),
        (at, bytes.clone()).prop_map(|(at, bytes)| Damage::Repeat { at, bytes }),
        proptest::collection::vec(any::<u8>(), 1..50).prop_map(Damage::Append),
        (at, bytes).prop_map(|(at, bytes)| Damage::Zeros { at, bytes }),
    ]
}

/// Whatever happens to the bytes, a check finds it, and a restore of them is never taken for whole.
#[test]
fn no_damage_is_overlooked() {
    let (whole, info) = small();
    assert_eq!(BackupInfo::read_from(&mut &whole[..]).unwrap(), info);
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    proptest!(|(damage in any_damage(), piece in 1_usize..9000)| {
        let bytes = damage.done_to(whole.clone());
        prop_assume!(bytes != whole);
        let mut check = BackupCheck::new();
        let pushed = bytes.chunks(piece).try_for_each(|piece| check.write(piece));
        let error = pushed.and_then(|()| check.finish().map(drop)).unwrap_err();
        prop_assert!(matches!(
            error.kind(),
            ErrorKind::Corrupt | ErrorKind::InvalidArgument | ErrorKind::UnknownFormat
        ), "{error}");
        runtime.block_on(async {
            let into = empty();
            restore(&into, &bytes, piece).await.unwrap_err();
            // The whole backup mends it, unless nothing was written at all.
            restore(&into, &whole, 9000).await.unwrap();
            assert!(into.verify().await.unwrap().is_clean());
        });
    });
}

/// Every single bit, in the parts that decide how the rest is read, and every length.
#[test]
fn no_bit_and_no_length_is_overlooked() {
    let (whole, _) = small();
    for at in 0..600.min(whole.len()) {
        for bit in 0..8 {
            let bytes = Damage::Flip { at, bit }.done_to(whole.clone());
            assert!(BackupInfo::read_from(&mut &bytes[..]).is_err(), "byte {at}, bit {bit}");
        }
    }
    for end in (0..whole.len()).step_by(37).chain(whole.len() - 60..whole.len()) {
        assert!(BackupInfo::read_from(&mut &whole[..end]).is_err(), "{end} bytes");
    }
}
