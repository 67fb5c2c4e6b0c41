//! What writes answer: one shape, whatever wrote and whoever asks; and inserts in transactions,
//! which know whether the key is taken.
#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use keyloom::engine::{Memory, Metered};
use keyloom::{
    Collection, Effect, Error, ErrorKind, Key, Record, Result, Store, Transaction, Written,
    blocking,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Record)]
#[record(key = "account:{name}")]
#[counter("logins")]
struct Account {
    name: String,
    #[field(pattern = "A-******", generate)]
    code: Option<String>,
    balance: i64,
    #[serde(default)]
    logins: i64,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Record)]
#[record(key = "transfer:{id}")]
struct Transfer {
    #[field(type = "id", generate)]
    id: Option<String>,
    amount: i64,
}

fn account(name: &str, balance: i64) -> Account {
    Account { name: name.to_owned(), code: None, balance, logins: 0 }
}

async fn accounts() -> (Store, Collection<Account>) {
    let store = Store::open("memory:").await.unwrap();
    let accounts = store.collection::<Account>().await.unwrap();
    store.collection::<Transfer>().await.unwrap();
    (store, accounts)
}

/// Panics unless an answer tells of the record as a read finds it.
async fn check(accounts: &Collection<Account>, written: &Written<Account>, effect: Effect) {
    let read = accounts.get("ana").await.unwrap().unwrap();
    assert_eq!((&written.key, written.version), (&read.key, read.version));
    assert_eq!(written.effect, effect);
    assert_eq!(written.value().unwrap(), read.value);
    assert_eq!(written.text(), accounts.get_document("ana").await.unwrap().unwrap().text());
}

#[tokio::test]
async fn every_write_of_a_record_answers_what_a_read_would() {
    let (store, accounts) = accounts().await;
    let inserted = accounts.insert(&account("ana", 1)).await.unwrap();
    check(&accounts, &inserted, Effect::Created).await;
    let drawn = inserted.value().unwrap();
    assert!(drawn.code.is_some(), "what was generated is in the answer");
    accounts.increment("ana", [("logins", 3)]).await.unwrap();

    let same = accounts.upsert(&drawn).await.unwrap();
    check(&accounts, &same, Effect::Unchanged).await;
    assert_eq!(same.value().unwrap().logins, 3, "and so are the counters");
    let more = Account { balance: 2, ..drawn };
    check(&accounts, &accounts.replace(&more).await.unwrap(), Effect::Replaced).await;
    let patched = accounts.update_with_retry("ana", &json!({ "balance": 4 })).await.unwrap();
    check(&accounts, &patched, Effect::Replaced).await;
    let patched = accounts.update("ana", &json!({ "balance": 5 }), patched.version).await.unwrap();
    check(&accounts, &patched, Effect::Replaced).await;
    let add = |account: &mut Account| {
        account.balance += 1;
        Ok(())
    };
    check(&accounts, &accounts.modify("ana", add).await.unwrap(), Effect::Replaced).await;
    let with = accounts.upsert_with(&account("ana", 0), add).await.unwrap();
    check(&accounts, &with, Effect::Replaced).await;
    let name = |account: &mut Account| {
        account.name = "ana".to_owned();
        account.balance += 1;
        Ok(())
    };
    check(&accounts, &accounts.rename("ana", name).await.unwrap(), Effect::Replaced).await;

    let within = store.transaction(async |tx: Transaction| {
        let accounts = tx.collection::<Account>()?;
        let deleted = accounts.delete("ana").await?;
        Ok::<_, Error>((deleted, accounts.insert(&account("ana", 7)).await?))
    });
    let before = accounts.get("ana").await.unwrap().unwrap().version;
    let (deleted, again) = within.await.unwrap();
    check(&accounts, &again, Effect::Created).await;
    assert_eq!(deleted, Some(before), "a delete gives the version that there was");
    assert_eq!(accounts.delete("ana").await.unwrap(), Some(again.version));
    assert_eq!(accounts.delete("ana").await.unwrap(), None);
}

#[test]
fn answers_of_the_blocking_facade_are_the_same() {
    let store = blocking::Store::open("memory:").unwrap();
    let accounts = store.collection::<Account>().unwrap();
    let inserted: Written<Account> = accounts.insert(&account("ana", 1)).unwrap();
    assert_eq!(accounts.upsert(&inserted.value().unwrap()).unwrap().effect, Effect::Unchanged);
    let counters = accounts.increment("ana", [("logins", 2)]).unwrap();
    assert_eq!((counters.key == inserted.key, counters["logins"]), (true, 2));
    let refused: Result<Written<Account>> =
        store.transaction(|tx| tx.collection::<Account>()?.insert(&account("ana", 2)));
    assert_eq!(refused.unwrap_err().kind(), ErrorKind::AlreadyExists);
}

#[tokio::test]
async fn increments_name_their_record_in_the_order_of_what_was_asked() {
    let (_, accounts) = accounts().await;
    for name in ["ana", "ben"] {
        accounts.insert(&account(name, 0)).await.unwrap();
    }
    let asked = [("ben", [("logins", 1)]), ("ana", [("logins", 2)]), ("ben", [("logins", 3)])];
    let after = accounts.increment_many(asked).await.unwrap();
    let told: Vec<(&str, i64)> = after.iter().map(|it| (&*it.key, it["logins"])).collect();
    assert_eq!(told, [("account:ben", 4), ("account:ana", 2), ("account:ben", 4)]);
}

#[tokio::test]
async fn a_type_that_cannot_read_what_it_wrote_does_not_make_a_write_fail() {
    #[derive(Debug, Serialize, Deserialize, Record)]
    #[record(key = "odd:{id}")]
    struct Odd {
        id: String,
        #[serde(serialize_with = "as_number")]
        text: String,
    }
    fn as_number<S: serde::Serializer>(text: &str, to: S) -> std::result::Result<S::Ok, S::Error> {
        to.serialize_u64(text.len() as u64)
    }
    let store = Store::open("memory:").await.unwrap();
    let odd = store.collection::<Odd>().await.unwrap();
    let record = Odd { id: "a".to_owned(), text: "four".to_owned() };
    let written = odd.insert(&record).await.unwrap();
    assert_eq!(written.key, "odd:a");
    assert_eq!(written.value().unwrap_err().kind(), ErrorKind::Corrupt);
    assert_eq!(written.into_document().json().unwrap(), json!({ "id": "a", "text": 4 }));
}

#[test]
fn keys_are_found_in_maps_by_their_text() {
    let store = blocking::Store::open("memory:").unwrap();
    let accounts = store.collection::<Account>().unwrap();
    accounts.insert(&account("ana", 1)).unwrap();
    accounts.insert(&account("ben", 2)).unwrap();
    let page = accounts.scan().page(10).wait().unwrap();
    let known: HashMap<Key, i64> =
        page.records.into_iter().map(|found| (found.key, found.value.balance)).collect();
    assert_eq!((known["account:ana"], known.get("account:ben")), (1, Some(&2)));
    let key = accounts.scan().keys(1).wait().unwrap().records.remove(0);
    assert_eq!(key, "account:ana".to_owned());
    assert_eq!("account:ana", key);
    assert!(key.starts_with("account:"));
    assert_eq!(
        (json!(key), format!("{key:>13}|{key:?}")),
        (json!("account:ana"), "  account:ana|\"account:ana\"".to_owned(),)
    );
}

#[tokio::test]
async fn an_insert_in_a_transaction_knows_that_the_key_is_taken() {
    let (store, accounts) = accounts().await;
    let first = accounts.insert(&account("ana", 1)).await.unwrap();
    // What was refused leaves nothing behind, and the rest is committed.
    let get_or_insert = async |tx: Transaction| {
        let accounts = tx.collection::<Account>()?;
        let mut found = Vec::new();
        for name in ["ana", "ben"] {
            found.push(match accounts.insert(&account(name, 9)).await {
                Ok(made) => (made.value()?, made.version, true),
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                    let there = accounts.get(name).await?.unwrap();
                    (there.value, there.version, false)
                }
                Err(error) => return Err(error),
            });
        }
        Ok(found)
    };
    let found = store.transaction(get_or_insert).await.unwrap();
    assert_eq!((found[0].0.balance, found[0].1, found[0].2), (1, first.version, false));
    let made = accounts.get("ben").await.unwrap().unwrap();
    assert_eq!((&found[1].0, found[1].1, found[1].2), (&made.value, made.version, true));

    // One's own record is taken, too, and one that was deleted is not.
    let own = store.transaction(async |tx: Transaction| {
        let accounts = tx.collection::<Account>()?;
        accounts.insert(&account("eve", 1)).await?;
        let again = accounts.insert(&account("eve", 2)).await.unwrap_err();
        assert_eq!(again.kind(), ErrorKind::AlreadyExists);
        accounts.delete("ana").await?;
        accounts.insert(&account("ana", 5)).await
    });
    assert_eq!(own.await.unwrap().value().unwrap().balance, 5);
    assert_eq!(accounts.get("eve").await.unwrap().unwrap().balance, 1);
}

#[tokio::test]
async fn an_insert_that_loses_its_key_before_the_commit_is_told_so_when_it_runs_again() {
    let (store, accounts) = accounts().await;
    let attempts = AtomicUsize::new(0);
    let told = store.transaction(async |tx: Transaction| {
        let mine = tx.collection::<Account>()?.insert(&account("ana", 1)).await;
        if attempts.fetch_add(1, Ordering::Relaxed) == 0 {
            accounts.insert(&account("ana", 2)).await?;
        }
        Ok::<_, Error>(mine.map_err(|error| error.kind()))
    });
    assert_eq!(told.await.unwrap(), Err(ErrorKind::AlreadyExists));
    assert_eq!(attempts.into_inner(), 2);
    assert_eq!(accounts.get("ana").await.unwrap().unwrap().balance, 2);
}

#[tokio::test]
async fn an_insert_in_a_transaction_looks_only_for_keys_that_others_could_have() {
    let engine = Arc::new(Metered::new(Arc::new(Memory::new())));
    let store = Store::on(engine.clone());
    store.collection::<Account>().await.unwrap();
    let transfers = store.collection::<Transfer>().await.unwrap();
    let transfer = Transfer { id: None, amount: 3 };
    let given = Transfer { id: Some("0".repeat(26)), amount: 3 };
    transfers.insert(&transfer).await.unwrap();
    engine.take();
    let reads = async |record: &Transfer| {
        let insert = async |tx: Transaction| tx.collection::<Transfer>()?.insert(record).await;
        store.transaction(insert).await.unwrap();
        engine.take().gets
    };
    assert_eq!(reads(&transfer).await, 0, "nobody else draws the same id");
    assert_eq!(reads(&given).await, 1);
    let json: Value = json!({ "name": "ana", "balance": 1 });
    let insert = async |tx: Transaction| tx.documents("account")?.insert(&json).await;
    store.transaction(insert).await.unwrap();
    assert_eq!(engine.take().gets, 1, "a code is not the key, and a name may be taken");
}
