//! What transactions promise, on both engines.

#![cfg(feature = "embedded")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests fail by panicking"
)]

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use keyloom::engine::{Area, Direction, Embedded, EmbeddedOptions, Engine, Memory, Range, Space};
use keyloom::{
    Collection, Error, ErrorKind, Fate, Increment, Query, Retry, Schema, Store, Transaction,
};
use serde_json::{Value, json};

const SCHEMA: &str = r#"
[collection.account]
key = "account:{id}"
[collection.account.fields]
id    = "text"
email = "text"
[collection.account.unique.email]
key = "account-email:{email}"

[collection.entry]
key = "entry:{account}:{n}"
[collection.entry.fields]
account = "text"
n       = "integer"
status  = { type = "enum", values = ["open", "closed"], transitions = { open = ["closed"] } }
"#;

struct Subject {
    store: Store,
    engine: Arc<dyn Engine>,
    _folder: tempfile::TempDir,
}

impl Subject {
    async fn all() -> Vec<Subject> {
        let mut all = Vec::new();
        for embedded in [false, true] {
            let folder = tempfile::tempdir().unwrap();
            let engine: Arc<dyn Engine> = match embedded {
                true => {
                    Arc::new(Embedded::open(folder.path(), EmbeddedOptions::default()).unwrap())
                }
                false => Arc::new(Memory::new()),
            };
            let store = Store::on(engine.clone());
            store.apply(&Schema::from_toml(SCHEMA).unwrap()).await.unwrap();
            all.push(Subject { store, engine, _folder: folder });
        }
        all
    }

    async fn accounts(&self) -> Collection<Value> {
        self.store.documents("account").await.unwrap()
    }

    async fn keys(&self) -> Vec<String> {
        let range = Range::all(Area::default_area());
        let found =
            self.engine.scan(&Space::main(), &[range], 10_000, Direction::Forward).await.unwrap();
        found[0].rows.iter().map(|row| String::from_utf8(row.key.to_vec()).unwrap()).collect()
    }
}

async fn balance(accounts: &Collection<Value>, id: &str) -> i64 {
    accounts.get(id).await.unwrap().unwrap().value["balance"].as_i64().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn money_moves_between_accounts_and_none_is_lost() {
    for it in Subject::all().await {
        let accounts = it.accounts().await;
        for id in ["a", "b", "c"] {
            accounts.insert(&json!({"id": id, "balance": 1_000})).await.unwrap();
        }
        let patient = Retry { attempts: 1_000, ..Retry::eager() };
        let movers = (0..8).map(|mover| {
            let store = it.store.clone();
            tokio::spawn(async move {
                for step in 0..25 {
                    let (from, to) = [("a", "b"), ("b", "c"), ("c", "a")][(mover + step) % 3];
                    let moved = store
                        .transaction_with(patient, |tx| async move {
                            let accounts = tx.documents("account")?;
                            for (id, delta) in [(from, -1), (to, 1)] {
                                let mut account =
                                    accounts.get(id).await?.expect("it was created").value;
                                account["balance"] =
                                    json!(account["balance"].as_i64().unwrap() + delta);
                                accounts.replace(&account).await?;
                            }
                            Ok::<_, Error>(())
                        })
                        .await;
                    moved.unwrap();
                }
            })
        });
        for mover in movers.collect::<Vec<_>>() {
            mover.await.unwrap();
        }
        let mut sum = 0;
        for id in ["a", "b", "c"] {
            sum += balance(&accounts, id).await;
            let revision = accounts.get(id).await.unwrap().unwrap().version.revision();
            assert!(revision > 100, "every move is a revision of two accounts: {revision}");
        }
        assert_eq!(sum, 3_000);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn write_skew_is_impossible() {
    for it in Subject::all().await {
        let accounts = it.accounts().await;
        for round in 0..20 {
            let (x, y) = (format!("x{round}"), format!("y{round}"));
            for id in [&x, &y] {
                accounts.insert(&json!({"id": id, "on_call": true})).await.unwrap();
            }
            // Each may leave as long as the other stays.
            let leave = |own: String, other: String| {
                let store = it.store.clone();
                tokio::spawn(async move {
                    let patient = Retry { attempts: 100, ..Retry::eager() };
                    store
                        .transaction_with(patient, |tx| {
                            let (own, other) = (own.clone(), other.clone());
                            async move {
                                let accounts = tx.documents("account")?;
                                let stays = accounts.get(&other).await?.expect("it was created");
                                if stays.value["on_call"] == true {
                                    accounts.replace(&json!({"id": own, "on_call": false})).await?;
                                }
                                Ok::<_, Error>(())
                            }
                        })
                        .await
                })
            };
            let both = (leave(x.clone(), y.clone()), leave(y.clone(), x.clone()));
            both.0.await.unwrap().unwrap();
            both.1.await.unwrap().unwrap();
            let mut on_call = 0;
            for id in [&x, &y] {
                on_call +=
                    i32::from(accounts.get(id).await.unwrap().unwrap().value["on_call"] == true);
            }
            assert_eq!(on_call, 1);
        }
    }
}

#[tokio::test]
async fn the_same_record_written_twice_leaves_only_the_last() {
    for it in Subject::all().await {
        let version = it
            .store
            .transaction(|tx| async move {
                let accounts = tx.documents("account")?;
                accounts.insert(&json!({"id": "a", "email": "1@x"})).await?;
                accounts.replace(&json!({"id": "a", "email": "2@x"})).await?;
                accounts.insert(&json!({"id": "gone", "email": "3@x"})).await?;
                assert!(accounts.delete("gone").await?.is_some());
                let last = accounts.replace(&json!({"id": "a", "email": "4@x"})).await?;
                assert_eq!(accounts.get("a").await?.unwrap().value["email"], "4@x");
                assert_eq!(accounts.get_by("email", "4@x").await?.unwrap().key, "account:a");
                assert!(accounts.get_by("email", "2@x").await?.is_none());
                Ok::<_, Error>(last.version)
            })
            .await
            .unwrap();
        assert_eq!(it.keys().await, ["account-email:4@x", "account:a"]);
        let stored = it.accounts().await.get("a").await.unwrap().unwrap();
        assert_eq!((stored.version, stored.version.revision()), (version, 1));
    }
}

#[tokio::test]
async fn a_unique_value_passes_from_one_record_to_another() {
    for it in Subject::all().await {
        let accounts = it.accounts().await;
        accounts.insert(&json!({"id": "a", "email": "one@x"})).await.unwrap();
        accounts.insert(&json!({"id": "b", "email": "two@x"})).await.unwrap();
        let swapped = it.store.transaction(|tx| async move {
            let accounts = tx.documents("account")?;
            accounts.replace(&json!({"id": "a", "email": "two@x"})).await?;
            accounts.replace(&json!({"id": "b", "email": "one@x"})).await?;
            Ok::<_, Error>(())
        });
        swapped.await.unwrap();
        assert_eq!(accounts.get_by("email", "one@x").await.unwrap().unwrap().key, "account:b");
        assert_eq!(accounts.get_by("email", "two@x").await.unwrap().unwrap().key, "account:a");
        let clash = it.store.transaction(|tx| async move {
            let accounts = tx.documents("account")?;
            accounts.insert(&json!({"id": "c", "email": "new@x"})).await?;
            accounts.insert(&json!({"id": "d", "email": "new@x"})).await?;
            Ok::<_, Error>(())
        });
        let error = clash.await.unwrap_err();
        assert_eq!((error.kind(), error.fate()), (ErrorKind::UniqueConflict, Fate::DidNotHappen));
        assert_eq!(it.keys().await.len(), 4);
    }
}

#[derive(Debug, PartialEq)]
enum Mine {
    TooPoor,
    Keyloom(ErrorKind),
}

impl From<Error> for Mine {
    fn from(error: Error) -> Self {
        Mine::Keyloom(error.kind())
    }
}

#[tokio::test]
async fn the_closures_own_error_aborts_and_nothing_is_written() {
    for it in Subject::all().await {
        let runs = AtomicUsize::new(0);
        let aborted = it.store.transaction(|tx| {
            runs.fetch_add(1, Ordering::Relaxed);
            async move {
                tx.documents("account")?.insert(&json!({"id": "a"})).await?;
                Err::<(), Mine>(Mine::TooPoor)
            }
        });
        assert_eq!(aborted.await.unwrap_err(), Mine::TooPoor);
        assert_eq!(runs.load(Ordering::Relaxed), 1);
        let unknown = it.store.transaction(|tx| async move {
            tx.documents("nothing")?;
            Ok::<(), Mine>(())
        });
        assert_eq!(unknown.await.unwrap_err(), Mine::Keyloom(ErrorKind::InvalidArgument));
        assert!(it.keys().await.is_empty());
    }
}

#[tokio::test]
async fn ranges_are_refused_inside() {
    for it in Subject::all().await {
        let refused = it.store.transaction(|tx| async move {
            tx.documents("entry")?.page(&Query::new().equal("account", "a")).await?;
            Ok::<_, Error>(())
        });
        assert_eq!(refused.await.unwrap_err().kind(), ErrorKind::InvalidQuery);
    }
}

#[tokio::test]
async fn an_attempt_reads_no_more_than_it_may_keep() {
    const LARGE: usize = 350 << 10;
    let store = Store::open("memory:").await.unwrap();
    store.apply(&Schema::from_toml(SCHEMA).unwrap()).await.unwrap();
    let accounts: Collection<Value> = store.documents("account").await.unwrap();
    for number in 0..100 {
        let (id, email) = (format!("a{number}"), format!("e{number}"));
        let record = json!({ "id": id, "email": email, "text": "x".repeat(LARGE) });
        accounts.insert(&record).await.unwrap();
    }
    let reading = |times: usize| {
        let store = store.clone();
        async move {
            let read = store.transaction(|tx| async move {
                let accounts = tx.documents("account")?;
                for number in 0..times {
                    // What was read is not read again, and counts once.
                    for _ in 0..3 {
                        let found = accounts.get_document(format!("a{number}")).await?;
                        assert!(found.unwrap().text().len() > LARGE);
                    }
                }
                Ok::<_, Error>(())
            });
            read.await
        }
    };
    reading(90).await.unwrap();
    let error = reading(95).await.unwrap_err();
    assert_eq!((error.kind(), error.fate()), (ErrorKind::LimitExceeded, Fate::DidNotHappen));
    assert_eq!(error.context_value("key"), Some("account:a93"));
}

#[tokio::test]
async fn what_was_read_must_still_hold_at_the_commit() {
    for it in Subject::all().await {
        let accounts = it.accounts().await;
        accounts.insert(&json!({"id": "a", "email": "a@x", "n": 0})).await.unwrap();
        // Every kind of read: a record, an absent record, a unique value, an absent one.
        type Read = fn(keyloom::TransactionCollection<Value>) -> tokio::task::JoinHandle<bool>;
        let reads: [(Read, Value); 4] = [
            (
                |c| tokio::spawn(async move { c.get("a").await.unwrap().is_some() }),
                json!({"id": "a", "email": "a@x", "n": 1}),
            ),
            (
                |c| tokio::spawn(async move { c.get("b").await.unwrap().is_some() }),
                json!({"id": "b"}),
            ),
            (
                |c| tokio::spawn(async move { c.get_by("email", "a@x").await.unwrap().is_some() }),
                json!({"id": "a", "email": "moved@x"}),
            ),
            (
                |c| {
                    tokio::spawn(async move { c.get_by("email", "new@x").await.unwrap().is_some() })
                },
                json!({"id": "d", "email": "new@x"}),
            ),
        ];
        for (place, (read, meanwhile)) in reads.into_iter().enumerate() {
            let runs = AtomicUsize::new(0);
            let seen = it.store.transaction(|tx| {
                let run = runs.fetch_add(1, Ordering::Relaxed);
                let (accounts, meanwhile) = (accounts.clone(), meanwhile.clone());
                async move {
                    let seen = read(tx.documents("account")?).await.unwrap();
                    if run == 0 {
                        accounts.upsert(&meanwhile).await?;
                    }
                    tx.documents("entry")?
                        .insert(&json!({"account": "x", "n": place, "run": run}))
                        .await?;
                    Ok::<_, Error>(seen)
                }
            });
            let seen = seen.await.unwrap();
            assert_eq!(runs.load(Ordering::Relaxed), 2, "read number {place}");
            assert_eq!(seen, [true, true, false, true][place], "the second run sees the change");
            let entry =
                it.store.documents("entry").await.unwrap().get(("x", place as u64)).await.unwrap();
            assert_eq!(entry.unwrap().value["run"], 1);
        }
    }
}

#[tokio::test]
async fn a_transaction_that_always_loses_says_so() {
    for it in Subject::all().await {
        let accounts = it.accounts().await;
        accounts.insert(&json!({"id": "a", "n": 0})).await.unwrap();
        let retry = Retry { attempts: 3, first_pause: std::time::Duration::ZERO, ..Retry::eager() };
        let runs = AtomicUsize::new(0);
        let lost = it.store.transaction_with(retry, |tx| {
            let run = runs.fetch_add(1, Ordering::Relaxed);
            let accounts = accounts.clone();
            async move {
                let inside = tx.documents("account")?;
                inside.get("a").await?;
                accounts.replace(&json!({"id": "a", "n": run + 1})).await?;
                inside.replace(&json!({"id": "a", "n": -1})).await?;
                Ok::<_, Error>(())
            }
        });
        let error = lost.await.unwrap_err();
        assert_eq!((error.kind(), error.fate()), (ErrorKind::Contention, Fate::DidNotHappen));
        assert_eq!(error.context_value("attempts"), Some("3"));
        assert!(error.is_retryable());
        assert_eq!(accounts.get("a").await.unwrap().unwrap().value["n"], 3);
    }
}

/// Found by the model test: the record got a new version, and the entry that carries the record
/// kept the old one, so that a page gave a version with which nobody could write.
#[tokio::test]
async fn a_record_that_is_changed_and_changed_back_has_one_version_everywhere() {
    const CARRIED: &str = r#"
        [collection.account]
        key = "account:{id}"
        [collection.account.fields]
        id    = "text"
        email = "text"
        [collection.account.index.email]
        key   = "by-email:{email}:{id}"
        holds = "record"
    "#;
    let store = Store::open("memory:").await.unwrap();
    store.apply(&Schema::from_toml(CARRIED).unwrap()).await.unwrap();
    let accounts = store.documents("account").await.unwrap();
    let (first, other) = (json!({"id": "a", "email": "x"}), json!({"id": "a", "email": "y"}));
    accounts.insert(&first).await.unwrap();
    store
        .transaction(async |transaction| {
            let accounts = transaction.documents("account")?;
            accounts.upsert(&other).await?;
            accounts.upsert(&first).await?;
            Ok::<(), Error>(())
        })
        .await
        .unwrap();
    let read = accounts.get("a").await.unwrap().unwrap();
    let page = accounts.page(&Query::new().equal("email", "x")).await.unwrap();
    assert_eq!(page.records, [read]);
    accounts.replace_if(&other, page.records[0].version).await.unwrap();
}

/// What is deleted and created again is another record, in one transaction as in two: it begins
/// with any status, and no version of the old one fits it.
#[tokio::test]
async fn a_record_that_is_deleted_and_created_again_is_a_new_incarnation() {
    for it in Subject::all().await {
        let entries = it.store.documents("entry").await.unwrap();
        let entry = |status: &str| json!({ "account": "a", "n": 1, "status": status });
        let closed = entries.insert(&entry("closed")).await.unwrap().version;
        let again = it.store.transaction(async |tx: keyloom::Transaction| {
            let entries = tx.documents("entry")?;
            assert!(entries.delete(("a", 1)).await?.is_some());
            let created = entries.insert(&entry("open")).await?.version;
            let replaced = entries.replace(&entry("closed")).await?;
            assert_eq!(replaced.version, created, "one transaction, one version");
            assert!(entries.delete(("a", 1)).await?.is_some());
            let written = entries.upsert(&entry("open")).await?;
            assert_eq!(written.effect, keyloom::Effect::Created);
            assert_ne!(written.version, created);
            // Of the new record, declared transitions hold as of any other.
            entries.replace(&entry("closed")).await?;
            let error = entries.replace(&entry("open")).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::IllegalTransition);
            Ok::<_, Error>(written.version)
        });
        let again = again.await.unwrap();
        let found = entries.get(("a", 1)).await.unwrap().unwrap();
        assert_eq!((found.version, found.version.revision()), (again, 1));
        assert_eq!(found.value, entry("closed"));
        assert_ne!(again.to_string()[..32], closed.to_string()[..32]);
        let error = entries.replace_if(&entry("closed"), guessed_next(closed)).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::VersionConflict);
    }
}

/// The version after this one, as a program that counts would guess it.
fn guessed_next(version: keyloom::Version) -> keyloom::Version {
    let text = version.to_string();
    format!("{}-{}", &text[..32], version.revision() + 1).parse().unwrap()
}

#[tokio::test]
async fn a_patch_in_a_transaction_is_refused_like_one_outside() {
    for it in Subject::all().await {
        let accounts = it.accounts().await;
        let entries = it.store.documents("entry").await.unwrap();
        accounts.insert(&json!({"id": "a", "email": "a@x", "note": "n"})).await.unwrap();
        let entry = json!({"account": "a", "n": 1, "status": "closed"});
        entries.insert(&entry).await.unwrap();
        let in_transaction = |name: &'static str, key: Vec<Value>, patch: Value| {
            it.store.transaction(move |t| {
                let (key, patch) = (key.clone(), patch.clone());
                async move { t.documents(name)?.update(key, &patch).await }
            })
        };
        let written = in_transaction("account", vec![json!("a")], json!({"note": null, "n": 1}));
        let written = written.await.unwrap().value().unwrap();
        assert_eq!(written, json!({"id": "a", "email": "a@x", "n": 1}));
        let stored = accounts.get("a").await.unwrap().unwrap();
        assert_eq!((&stored.value, stored.version.revision()), (&written, 2));
        for (name, key, patch) in [
            ("account", vec![json!("gone")], json!({"n": 1})),
            ("account", vec![json!("a")], json!({"id": "b"})),
            ("account", vec![json!("a")], json!({"email": 7})),
            ("account", vec![json!("a")], json!([1])),
            ("entry", vec![json!("a"), json!(1)], json!({"status": "open"})),
        ] {
            let inside = in_transaction(name, key.clone(), patch.clone()).await.unwrap_err();
            let outside = it.store.documents(name).await.unwrap();
            let outside = outside.update_with_retry(key, &patch).await.unwrap_err();
            assert_eq!(inside.to_string(), outside.to_string());
        }
    }
}

/// A record that is written several times in one transaction is one version further.
#[tokio::test]
async fn patches_of_one_transaction_build_on_each_other() {
    for it in Subject::all().await {
        let accounts = it.accounts().await;
        accounts.insert(&json!({"id": "a", "email": "a@x"})).await.unwrap();
        let both = it.store.transaction(|t| async move {
            let accounts = t.documents("account")?;
            accounts.update("a", &json!({"email": "b@x"})).await?;
            let second = accounts.update("a", &json!({"n": 1})).await?;
            accounts.update_if("a", &json!({"m": 2}), second.version).await
        });
        assert_eq!(both.await.unwrap().version.revision(), 2);
        let found = accounts.get_by("email", "b@x").await.unwrap().unwrap();
        assert_eq!(found.value, json!({"id": "a", "email": "b@x", "n": 1, "m": 2}));
        assert!(it.store.verify().await.unwrap().is_clean());
    }
}

#[tokio::test]
async fn a_guard_in_a_transaction_is_no_reason_to_run_it_again() {
    for it in Subject::all().await {
        let accounts = it.accounts().await;
        let first = accounts.insert(&json!({"id": "a"})).await.unwrap().version;
        let second = accounts.update_with_retry("a", &json!({"n": 1})).await.unwrap();
        let runs = AtomicUsize::new(0);
        for deletes in [false, true] {
            let late = it.store.transaction(|t| {
                runs.fetch_add(1, Ordering::Relaxed);
                async move {
                    let accounts = t.documents("account")?;
                    accounts.insert(&json!({"id": "b"})).await?;
                    match deletes {
                        true => accounts.delete_if("a", first).await,
                        false => accounts.update_if("a", &json!({"n": 2}), first).await.map(drop),
                    }
                }
            });
            let late: Error = late.await.unwrap_err();
            assert_eq!(late.kind(), ErrorKind::VersionConflict);
            assert!(!late.is_retryable());
            assert_eq!(late.current(), Some(&second.clone().into_document()));
        }
        assert_eq!(runs.into_inner(), 2);
        assert_eq!(it.keys().await, ["account:a"], "all or nothing");
        let version = second.version;
        let done = it.store.transaction(|t| async move {
            let accounts = t.documents("account")?;
            accounts.update_if("a", &json!({"n": 3}), version).await?;
            accounts.delete_if("a", version).await
        });
        let error: Error = done.await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::VersionConflict, "it has another version by then");
        let done = it
            .store
            .transaction(|t| async move { t.documents("account")?.delete_if("a", version).await });
        done.await.map_err(|error: Error| error).unwrap();
        assert!(it.keys().await.is_empty());
        let gone = it
            .store
            .transaction(|t| async move { t.documents("account")?.delete_if("a", version).await });
        assert_eq!(gone.await.unwrap_err().kind(), ErrorKind::NotFound);
    }
}

#[tokio::test]
async fn a_conflict_tells_the_program_what_is_in_the_way() {
    for it in Subject::all().await {
        let accounts = it.accounts().await;
        let first = accounts.insert(&json!({"id": "a", "email": "a@x"})).await.unwrap();
        let taken = accounts.insert(&json!({"id": "b", "email": "a@x"})).await.unwrap_err();
        assert_eq!((taken.kind(), taken.holder()), (ErrorKind::UniqueConflict, Some("account:a")));
        assert_eq!(taken.current(), None);
        let both = it.store.transaction(|t| async move {
            let accounts = t.documents("account")?;
            accounts.insert(&json!({"id": "c", "email": "c@x"})).await?;
            accounts.insert(&json!({"id": "d", "email": "c@x"})).await
        });
        assert_eq!(both.await.unwrap_err().holder(), Some("account:c"));
        let now = accounts.update_with_retry("a", &json!({"n": 1})).await.unwrap().into_document();
        let old = first.version;
        let record = json!({"id": "a", "n": 2});
        for late in [
            accounts.update("a", &json!({"n": 2}), old).await.unwrap_err(),
            accounts.replace_if(&record, old).await.unwrap_err(),
            accounts.delete_if("a", old).await.unwrap_err(),
        ] {
            assert_eq!(late.kind(), ErrorKind::VersionConflict);
            assert_eq!((late.current(), late.holder()), (Some(&now), None));
        }
    }
}

/// While a unique index is being built, records from before may share a value. All of them can go
/// at once, and with them the entry of the one that has it.
#[tokio::test]
async fn records_that_share_a_value_of_a_building_index_go_together() {
    for subject in Subject::all().await {
        let accounts = subject.accounts().await;
        for id in ["x", "y", "z"] {
            accounts.insert(&json!({ "id": id, "tax": "same" })).await.unwrap();
        }
        let unique = "[collection.account]\nkey = \"account:{id}\"\n\
                      fields = { id = \"text\", tax = \"text\" }\n\
                      unique.tax = { key = \"tax:{tax}\" }";
        subject.store.apply(&Schema::from_toml(unique).unwrap()).await.unwrap();
        // The second gets the entry, and comes neither first nor last below.
        accounts.upsert(&json!({ "id": "y", "tax": "same", "free": 1 })).await.unwrap();
        let removal = subject.store.transaction(|transaction: Transaction| async move {
            let accounts = transaction.documents("account")?;
            for id in ["x", "y", "z"] {
                assert!(accounts.delete(id).await?.is_some());
            }
            Ok::<_, Error>(())
        });
        removal.await.unwrap();
        subject.store.build("account", "tax").await.unwrap();
        let verification = subject.store.verify().await.unwrap();
        assert!(verification.is_clean(), "{:?}", verification.findings);
        assert!(accounts.get_by("tax", "same").await.unwrap().is_none());
        accounts.insert(&json!({ "id": "w", "tax": "same" })).await.unwrap();
    }
}

/// A closure may keep a clone of its transaction. What that clone did after the end would go
/// nowhere, so it does nothing, and says so.
#[tokio::test]
async fn a_transaction_that_is_over_reads_and_writes_nothing_more() {
    let over = |error: Error| {
        assert_eq!((error.kind(), error.fate()), (ErrorKind::InvalidArgument, Fate::DidNotHappen));
        assert!(error.to_string().contains("the transaction is over"), "{error}");
    };
    for it in Subject::all().await {
        let record = json!({"id": "a", "email": "a@x", "balance": 1});
        for commits in [true, false] {
            let leaked = Mutex::new(None);
            let ended = it.store.transaction(async |tx: Transaction| {
                let accounts = tx.documents("account")?;
                accounts.upsert(&record).await?;
                *leaked.lock().unwrap() = Some((tx, accounts));
                if commits { Ok(()) } else { Err(Error::new(ErrorKind::Aborted, "given up")) }
            });
            assert_eq!(ended.await.is_ok(), commits);
            let before = it.keys().await;
            let (tx, accounts) = leaked.lock().unwrap().take().unwrap();
            let version = it.accounts().await.get("a").await.unwrap().unwrap().version;
            let other = json!({"id": "b", "email": "b@x"});
            over(tx.documents("account").map(drop).unwrap_err());
            over(tx.increment_many([Increment::of("account", "a").add("n", 1)]).await.unwrap_err());
            over(accounts.get("a").await.unwrap_err());
            over(accounts.get_by("email", "a@x").await.unwrap_err());
            over(accounts.insert(&other).await.unwrap_err());
            over(accounts.upsert(&other).await.unwrap_err());
            over(accounts.replace(&record).await.unwrap_err());
            over(accounts.replace_if(&record, version).await.unwrap_err());
            over(accounts.update("a", &json!({"balance": 2})).await.unwrap_err());
            over(accounts.update_if("a", &json!({"balance": 2}), version).await.unwrap_err());
            over(accounts.delete("a").await.unwrap_err());
            over(accounts.delete_if("a", version).await.unwrap_err());
            over(accounts.increment("a", [("n", 1)]).await.unwrap_err());
            assert_eq!(it.keys().await, before);
        }
    }
}

/// The attempt that lost is over while the next one runs.
#[tokio::test]
async fn an_attempt_that_lost_is_over() {
    for it in Subject::all().await {
        let accounts = it.accounts().await;
        accounts.insert(&json!({"id": "a", "balance": 1})).await.unwrap();
        let lost: Mutex<Option<Transaction>> = Mutex::new(None);
        let run = it.store.transaction(async |tx: Transaction| {
            let ours = tx.documents("account")?;
            ours.update("a", &json!({"balance": 5})).await?;
            let before = lost.lock().unwrap().take();
            match before {
                None => {
                    accounts.upsert(&json!({"id": "a", "balance": 2})).await?;
                    *lost.lock().unwrap() = Some(tx);
                }
                Some(lost) => {
                    let error = lost.documents("account").map(drop).unwrap_err();
                    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
                }
            }
            Ok::<_, Error>(())
        });
        run.await.unwrap();
        assert_eq!(balance(&accounts, "a").await, 5);
    }
}

/// Nobody waits for the closure any more.
#[tokio::test]
async fn a_transaction_that_is_dropped_is_over() {
    for it in Subject::all().await {
        let (give, mut take) = tokio::sync::mpsc::unbounded_channel();
        let never = it.store.transaction(async |tx: Transaction| {
            give.send(tx).map_err(|_| Error::new(ErrorKind::Aborted, "nobody takes it"))?;
            std::future::pending::<Result<(), Error>>().await
        });
        let leaked = tokio::select! {
            _ = never => panic!("it never ends"),
            leaked = take.recv() => leaked.unwrap(),
        };
        assert!(leaked.documents("account").is_err());
    }
}
