//! An index is built on data, while writers go on, after a crash, and after something was mended.

#![cfg(feature = "embedded")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests fail by panicking"
)]

mod index_support;

use std::sync::{Arc, Mutex};

use index_support::{Clients, Meddled, dump, plant, schema};
use keyloom::engine::{Embedded, EmbeddedOptions, Engine, Memory, Metered, Torn, Usage};
use keyloom::{
    Applied, Built, Error, ErrorKind, IndexState, Query, Record, RepairOptions, Schema, Store,
    VerifyOptions,
};
use serde::{Deserialize, Serialize};
use serde_json::json;

/// The schema without any index: what the store held before.
fn bare_schema() -> Schema {
    let mut declaration = schema().declaration();
    for collection in declaration.collections.values_mut() {
        collection.index.clear();
        collection.unique.clear();
        collection.geo.clear();
    }
    Schema::from_declaration(declaration).unwrap()
}

const USERS: &str = r#"
[collection.user]
key = "user:{id}"
fields = { id = "text", email = "text", age = "integer" }
"#;

const BY_EMAIL: &str = "[collection.user.unique.email]\nkey = \"index:email:{email}\"\n";

fn users(more: &str) -> Schema {
    Schema::from_toml(&format!("{USERS}\n{more}")).unwrap()
}

fn problems(error: &Error) -> Vec<&str> {
    error.context().filter(|(name, _)| *name == "problem").map(|(_, value)| value).collect()
}

/// Nothing is wrong with what was looked at, whether or not all indexes are ready.
async fn assert_no_finding(store: &Store) {
    let verification = store.verify().await.unwrap();
    assert_eq!(verification.findings, [], "{:#?}", verification.findings);
}

async fn assert_clean(store: &Store) {
    let verification = store.verify().await.unwrap();
    assert!(verification.is_clean(), "{:#?}", verification.findings);
}

/// A store with users, and an e-mail index that is building.
async fn users_before_index(emails: &[Option<&str>]) -> Store {
    let store = Store::on(Arc::new(Memory::new()));
    store.apply(&users("")).await.unwrap();
    let collection = store.documents("user").await.unwrap();
    for (n, email) in emails.iter().enumerate() {
        collection.insert(&json!({ "id": format!("u{n}"), "email": email })).await.unwrap();
    }
    let applied = store.apply(&users(BY_EMAIL)).await.unwrap();
    assert_eq!(applied.to_build, [("user".to_owned(), "email".to_owned())]);
    store
}

#[tokio::test]
async fn a_built_index_answers() {
    let store = users_before_index(&[Some("a"), None, Some("b")]).await;
    let collection = store.documents("user").await.unwrap();
    let error = collection.get_by("email", "a").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::IndexNotReady);
    let built = store.build("user", "email").await.unwrap();
    assert_eq!((built.records, built.put, built.removed), (3, 2, 0));
    assert_eq!(collection.get_by("email", "b").await.unwrap().unwrap().value["id"], "u2");
    let again = store.build("user", "email").await.unwrap();
    assert_eq!((again.records, again.put), (0, 0));
    assert_clean(&store).await;
}

#[derive(Serialize, Deserialize, Record)]
#[record(key = "user:{id}", collection = "user")]
struct User {
    id: String,
    email: Option<String>,
}

#[derive(Debug, Serialize, Deserialize, Record)]
#[record(key = "user:{id}", collection = "user")]
#[unique(email = "index:email:{email}")]
#[count(by_email = ["email"])]
struct UserByEmail {
    id: String,
    email: Option<String>,
}

#[tokio::test]
async fn a_collection_tells_what_is_to_be_built() {
    let store = Store::on(Arc::new(Memory::new()));
    let older = store.collection::<User>().await.unwrap();
    older.insert(&User { id: "u".into(), email: Some("a@x".into()) }).await.unwrap();
    assert!(older.to_build().await.unwrap().is_empty());
    let users = store.collection::<UserByEmail>().await.unwrap();
    let names = async || -> Vec<String> { users.to_build().await.unwrap().into_keys().collect() };
    assert_eq!(names().await, ["by_email", "email"]);
    let error = users.by_email("a@x").get().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::IndexNotReady);
    for (index, state) in users.to_build().await.unwrap() {
        assert_eq!(state, IndexState::Building);
        store.build(users.name(), &index).await.unwrap();
    }
    assert_eq!(names().await, [""; 0]);
    assert!(users.by_email("a@x").get().await.unwrap().is_some());
    store.disable("user", "email").await.unwrap();
    assert_eq!(users.to_build().await.unwrap()["email"], IndexState::Disabled);
    let acting = store.acting_as("ana").unwrap().documents("user").await.unwrap();
    assert_eq!(acting.to_build().await.unwrap_err().kind(), ErrorKind::Forbidden);
}

#[tokio::test]
async fn a_collection_is_opened_again_without_a_call() {
    let metered = Metered::new(Arc::new(Memory::new()));
    let store = Store::on(Arc::new(metered.clone()));
    let acting = store.acting_as("ana").unwrap();
    assert_eq!(
        acting.collection::<UserByEmail>().await.map(drop).unwrap_err().kind(),
        ErrorKind::Forbidden,
        "what was refused is not remembered"
    );
    store.collection::<UserByEmail>().await.unwrap();
    let users = store.collection::<User>().await.unwrap();
    users.insert(&User { id: "u".into(), email: None }).await.unwrap();
    metered.take();
    store.collection::<User>().await.unwrap();
    store.clone().collection::<UserByEmail>().await.unwrap();
    acting.collection::<User>().await.unwrap();
    assert_eq!(metered.take(), Usage::default(), "neither a read nor a commit");
    // Another space is another store.
    store.space("other").unwrap().collection::<User>().await.unwrap();
    assert!(metered.take().round_trips() > 0);
}

#[tokio::test]
async fn unknown_names_are_told() {
    let store = users_before_index(&[Some("a")]).await;
    for (collection, index) in [("usr", "email"), ("user", "mail")] {
        assert_eq!(
            store.build(collection, index).await.unwrap_err().kind(),
            ErrorKind::InvalidArgument
        );
        assert_eq!(
            store.disable(collection, index).await.unwrap_err().kind(),
            ErrorKind::InvalidArgument
        );
    }
}

#[tokio::test]
async fn duplicates_are_named_and_mended_and_built_again() {
    let store = users_before_index(&[Some("a"), Some("b"), Some("a"), Some("a")]).await;
    let error = store.build("user", "email").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::UniqueConflict);
    assert_eq!(
        problems(&error),
        ["email \"a\" is in user:u0 and in user:u2", "email \"a\" is in user:u0 and in user:u3"]
    );
    let IndexState::Failed { reason } = store.index_state("user", "email").await.unwrap() else {
        panic!("the index failed")
    };
    assert!(reason.contains("user:u0 and in user:u2"), "{reason}");
    let collection = store.documents("user").await.unwrap();
    let unread = collection.get_by("email", "b").await.unwrap_err();
    assert_eq!(unread.kind(), ErrorKind::IndexNotReady);
    assert_eq!(unread.context_value("reason"), Some(reason.as_str()));

    // A failed index stands in nobody's way, and its entries grow stale.
    collection.replace(&json!({ "id": "u2", "email": "c" })).await.unwrap();
    collection.delete("u3").await.unwrap();
    collection.replace(&json!({ "id": "u0", "email": "b2" })).await.unwrap();
    collection.insert(&json!({ "id": "u9", "email": "a" })).await.unwrap();
    assert_no_finding(&store).await;
    let built = store.build("user", "email").await.unwrap();
    assert!(built.removed > 0);
    assert_eq!(collection.get_by("email", "a").await.unwrap().unwrap().value["id"], "u9");
    assert_clean(&store).await;
}

/// What verify and repair tell of the index that is not ready, in words, and whether it is a fault.
async fn not_ready(store: &Store) -> (Vec<String>, bool) {
    let verification = store.verify().await.unwrap();
    assert_eq!(verification.counts.total(), 0, "{:#?}", verification.findings);
    let mut chunks = store.verifier(&VerifyOptions::default()).await.unwrap();
    while chunks.next_chunk().await.unwrap().is_some() {}
    assert_eq!(chunks.not_ready().await.unwrap(), verification.not_ready);
    for dry_run in [true, false] {
        let options = RepairOptions { dry_run, ..RepairOptions::default() };
        assert_eq!(store.repair(&options).await.unwrap().not_ready, verification.not_ready);
    }
    let told = verification.not_ready.iter().map(ToString::to_string).collect();
    (told, verification.is_clean())
}

#[tokio::test]
async fn verify_tells_of_every_state_in_which_an_index_does_not_serve() {
    let store = users_before_index(&[Some("a"), Some("a"), Some("b")]).await;
    assert_eq!(not_ready(&store).await, (vec!["user.email is building".to_owned()], false));
    store.build("user", "email").await.unwrap_err();
    let failed = "user.email is failed: email \"a\" is in user:u0 and in user:u1".to_owned();
    assert_eq!(not_ready(&store).await, (vec![failed], false));
    // Somebody meant it to be so.
    store.disable("user", "email").await.unwrap();
    assert_eq!(not_ready(&store).await, (vec!["user.email is disabled".to_owned()], true));
    store.documents("user").await.unwrap().delete("u0").await.unwrap();
    store.build("user", "email").await.unwrap();
    assert_eq!(not_ready(&store).await, (vec![], true));
}

#[tokio::test]
async fn verify_tells_of_aggregates_that_do_not_serve() {
    let store = users_before_index(&[Some("a")]).await;
    store.build("user", "email").await.unwrap();
    let counted = format!("{BY_EMAIL}\n[collection.user.count.by_email]\ngroup = [\"email\"]\n");
    store.apply(&users(&counted)).await.unwrap();
    assert_eq!(not_ready(&store).await, (vec!["user.by_email is building".to_owned()], false));
    store.build("user", "by_email").await.unwrap();
    assert_eq!(not_ready(&store).await, (vec![], true));
    store.disable("user", "by_email").await.unwrap();
    assert_eq!(not_ready(&store).await, (vec!["user.by_email is disabled".to_owned()], true));
}

#[tokio::test]
async fn no_more_than_32_duplicates_are_listed() {
    let store = users_before_index(&[Some("a"); 400]).await;
    let error = store.build("user", "email").await.unwrap_err();
    assert_eq!(problems(&error).len(), 32);
}

#[tokio::test]
async fn records_that_do_not_fit_are_named() {
    let store = users_before_index(&[Some("a")]).await;
    let collection = store.documents("user").await.unwrap();
    plant(&store, "", "user:u7", Some("not JSON")).await;
    plant(&store, "", "user:u8", Some(r#"{"id":"u8","email":7}"#)).await;
    let error = store.build("user", "email").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    let problems = problems(&error);
    assert_eq!(problems.len(), 2);
    assert!(problems[0].starts_with("user:u7: it is not JSON"), "{error}");
    assert!(problems[1].starts_with("user:u8: "), "{error}");
    plant(&store, "", "user:u7", None).await;
    assert_eq!(store.build("user", "email").await.unwrap_err().kind(), ErrorKind::InvalidKey);
    plant(&store, "", "user:u8", None).await;
    store.build("user", "email").await.unwrap();
    assert!(collection.get_by("email", "a").await.unwrap().is_some());
}

#[tokio::test]
async fn an_index_that_is_not_sparse_names_records_without_the_field() {
    let strict = "[collection.user.index.age]\nkey = \"age:{age}:{id}\"\nsparse = false\n";
    let store = Store::on(Arc::new(Memory::new()));
    store.apply(&users("")).await.unwrap();
    let collection = store.documents("user").await.unwrap();
    collection.insert(&json!({ "id": "u1" })).await.unwrap();
    store.apply(&users(strict)).await.unwrap();
    let error = store.build("user", "age").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidRecord);
    assert!(problems(&error)[0].starts_with("user:u1: "), "{error}");
}

/// An index that became strict after a record was written does not make the record wrong.
#[tokio::test]
async fn an_index_that_turned_strict_gives_no_alarm() {
    let index = |sparse| {
        users(&format!(
            "[collection.user.index.age]\nkey = \"age:{{age}}:{{id}}\"\nsparse = {sparse}\n"
        ))
    };
    let store = Store::on(Arc::new(Memory::new()));
    store.apply(&index(true)).await.unwrap();
    store.documents("user").await.unwrap().insert(&json!({ "id": "u1" })).await.unwrap();
    store.apply(&index(false)).await.unwrap();
    assert_clean(&store).await;
}

#[tokio::test]
async fn a_disabled_index_is_neither_read_nor_kept_and_comes_back() {
    let store = users_before_index(&[Some("a"), Some("b")]).await;
    store.build("user", "email").await.unwrap();
    store.disable("user", "email").await.unwrap();
    let collection = store.documents("user").await.unwrap();
    let error = collection.get_by("email", "a").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::IndexNotReady);
    collection.replace(&json!({ "id": "u0", "email": "z" })).await.unwrap();
    collection.delete("u1").await.unwrap();
    let built = store.build("user", "email").await.unwrap();
    assert_eq!((built.put, built.removed), (1, 2));
    assert!(collection.get_by("email", "z").await.unwrap().is_some());
    assert!(collection.get_by("email", "a").await.unwrap().is_none());
    assert_clean(&store).await;
}

/// A record from before may give up a key that it never got an entry for, while another record
/// has claimed that key.
#[tokio::test]
async fn writers_do_not_take_each_others_claims_while_an_index_is_built() {
    let store = users_before_index(&[Some("a")]).await;
    let collection = store.documents("user").await.unwrap();
    collection.insert(&json!({ "id": "u9", "email": "a" })).await.unwrap();
    collection.replace(&json!({ "id": "u0", "email": "b" })).await.unwrap();
    let claim = store.plain().get("index:email:a").await.unwrap();
    assert_eq!(claim.unwrap(), r#""u9""#, "the claim of the second record is untouched");
    store.build("user", "email").await.unwrap();
    assert_eq!(collection.get_by("email", "a").await.unwrap().unwrap().value["id"], "u9");
    assert_clean(&store).await;
}

/// The same when a transaction passes a key on that a third record holds.
#[tokio::test]
async fn a_claim_that_is_passed_on_must_be_the_givers() {
    let store = users_before_index(&[Some("a"), Some("c")]).await;
    let collection = store.documents("user").await.unwrap();
    collection.insert(&json!({ "id": "u9", "email": "a" })).await.unwrap();
    let pass_on = async |giver: &str, taker: &str, email: &str| {
        let (giver, taker) =
            (json!({ "id": giver, "email": "x" }), json!({ "id": taker, "email": email }));
        store
            .transaction(|transaction| {
                let (giver, taker) = (giver.clone(), taker.clone());
                async move {
                    let users = transaction.documents("user")?;
                    users.replace(&giver).await?;
                    users.replace(&taker).await?;
                    Ok::<_, Error>(())
                }
            })
            .await
    };
    let error = pass_on("u0", "u1", "a").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::UniqueConflict);
    assert_eq!(error.context_value("held by"), Some("user:u9"));
    pass_on("u9", "u1", "a").await.unwrap();
    collection.replace(&json!({ "id": "u0", "email": "y" })).await.unwrap();
    store.build("user", "email").await.unwrap();
    assert_eq!(collection.get_by("email", "a").await.unwrap().unwrap().value["id"], "u1");
    assert_clean(&store).await;
}

#[tokio::test]
async fn a_build_gives_way_to_the_rightful_holder_of_a_stale_claim() {
    let store = users_before_index(&[Some("a")]).await;
    plant(&store, "", "index:email:a", Some(r#""u5""#)).await;
    plant(&store, "", "index:email:b", Some(r#""u0""#)).await;
    let built = store.build("user", "email").await.unwrap();
    assert_eq!((built.put, built.removed), (1, 2));
    assert_clean(&store).await;
}

#[tokio::test]
async fn many_records_are_built_in_few_round_trips() {
    let folder = tempfile::tempdir().unwrap();
    let engine = Embedded::open(folder.path(), EmbeddedOptions::default()).unwrap();
    let metered = Arc::new(Metered::new(Arc::new(engine)));
    let store = Store::on(metered.clone());
    store.apply(&users("")).await.unwrap();
    for n in 0..700 {
        let record = json!({ "id": format!("u{n}"), "email": format!("{n}@x") }).to_string();
        plant(&store, "", format!("user:u{n}"), Some(&record)).await;
    }
    store.apply(&users(BY_EMAIL)).await.unwrap();
    metered.take();
    let built = store.build("user", "email").await.unwrap();
    assert_eq!((built.records, built.put), (700, 700));
    let usage = metered.take();
    // Three chunks of at most 256 records; 63 records and their entries fill a batch, and the
    // catalog is one more.
    assert!(usage.commits <= 700 / 63 + 3 + 1, "{usage:?}");
    assert!(usage.reads() <= 12, "{usage:?}");
    let verification = store.verify().await.unwrap();
    assert!(verification.is_clean(), "{:#?}", verification.findings);
    assert_eq!((verification.records, verification.entries), (700, 700));
    let usage = metered.take();
    // Each chunk of 256 keys is one scan and one get of the other halves; and the catalog, a scan
    // each for histories, idempotency keys and leases, one look for keys of aggregates that there
    // are not, and the catalog again for the states at the end.
    assert!(usage.reads() <= 2 * 6 + 6 && usage.commits == 0, "{usage:?}");
    store.close().await.unwrap();
}

/// Builds every index of the whole schema while writers that have not heard of any index write to
/// the store.
async fn build_with_writers(engine: Arc<dyn Engine>, times: u64) {
    let older = Store::on(engine.clone());
    older.apply(&bare_schema()).await.unwrap();
    let before = Arc::new(Clients::new(&older).await);
    before.act_often(0, times, 40).await;
    // Without indexes nothing was refused, so that e-mails and titles may be taken twice.
    make_unique(&older).await;

    let newer = Store::on(engine);
    let Applied { to_build, .. } = newer.apply(&schema()).await.unwrap();
    assert_eq!(to_build.len(), 10);
    // These clients were made before any index was, and learn of them by being refused.
    let writers: Vec<_> = (1..=3)
        .map(|seed| {
            let before = before.clone();
            tokio::spawn(async move { before.act_often(seed, times, 40).await })
        })
        .collect();
    for (collection, index) in &to_build {
        let built = newer.build(collection, index).await.unwrap();
        assert!(built.records > 0);
    }
    for writer in writers {
        writer.await.unwrap();
    }
    assert_clean(&newer).await;
    assert_clean(&older).await;
}

/// Gives every e-mail and every title away once only.
async fn make_unique(store: &Store) {
    let clients = Clients::new(store).await;
    for (collection, field) in [(&clients.users, "email"), (&clients.notes, "title")] {
        let all = collection.page(&Query::new().scan().take(10_000)).await.unwrap();
        for (n, stored) in all.records.into_iter().enumerate() {
            let mut record = stored.value;
            record[field] = format!("unique {n}").into();
            collection.replace(&record).await.unwrap();
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_build_under_writers_misses_nothing_in_memory() {
    build_with_writers(Arc::new(Memory::new()), 1_000).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_build_under_writers_misses_nothing_in_a_folder() {
    let folder = tempfile::tempdir().unwrap();
    let engine = Embedded::open(folder.path(), EmbeddedOptions::default()).unwrap();
    build_with_writers(Arc::new(engine), 150).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_build_under_writers_misses_nothing_where_batches_are_torn() {
    build_with_writers(Arc::new(Torn::new(Arc::new(Memory::new()), 1)), 200).await;
}

/// A store with users, an e-mail index that is building, and a second handle that acts right
/// before the next commit of the first.
async fn meddled() -> (Arc<Meddled>, Store, Store) {
    let memory: Arc<dyn Engine> = Arc::new(Memory::new());
    let meddled = Arc::new(Meddled::new(memory.clone()));
    let (first, second) = (Store::on(meddled.clone()), Store::on(memory));
    first.apply(&users("")).await.unwrap();
    let collection = first.documents("user").await.unwrap();
    for n in 0..3 {
        let user = json!({ "id": format!("u{n}"), "email": format!("{n}") });
        collection.insert(&user).await.unwrap();
    }
    first.apply(&users(BY_EMAIL)).await.unwrap();
    (meddled, first, second)
}

#[tokio::test]
async fn a_build_rests_on_the_records_that_it_read() {
    let (meddled, first, second) = meddled().await;
    meddled.before_next_commit(async move {
        let collection = second.documents("user").await.unwrap();
        collection.replace(&json!({ "id": "u0", "email": "x" })).await.unwrap();
        collection.delete("u1").await.unwrap();
        collection.insert(&json!({ "id": "u9", "email": "1" })).await.unwrap();
    });
    first.build("user", "email").await.unwrap();
    assert!(meddled.has_meddled());
    assert_clean(&first).await;
    let collection = first.documents("user").await.unwrap();
    assert_eq!(collection.get_by("email", "1").await.unwrap().unwrap().value["id"], "u9");
    assert!(collection.get_by("email", "0").await.unwrap().is_none());
}

/// Whoever disables an index that is being built has the last word.
#[tokio::test]
async fn a_build_ends_when_its_index_is_disabled() {
    let (meddled, first, second) = meddled().await;
    let other = second.clone();
    meddled.before_next_commit(async move { other.disable("user", "email").await.unwrap() });
    let error = first.build("user", "email").await.unwrap_err();
    assert!(meddled.has_meddled());
    assert_eq!(error.kind(), ErrorKind::IndexNotReady);
    assert_eq!(second.index_state("user", "email").await.unwrap(), IndexState::Disabled);
    first.build("user", "email").await.unwrap();
    assert_clean(&first).await;
}

/// The same when there is nothing left to do but to call the index ready.
#[tokio::test]
async fn a_complete_index_is_not_called_ready_behind_who_disabled_it() {
    let (meddled, first, second) = meddled().await;
    let collection = first.documents("user").await.unwrap();
    for n in 0..3 {
        collection.delete(format!("u{n}")).await.unwrap();
    }
    collection.insert(&json!({ "id": "u9", "email": "9" })).await.unwrap();
    meddled.before_next_commit(async move { second.disable("user", "email").await.unwrap() });
    let error = first.build("user", "email").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::IndexNotReady);
    assert_eq!(first.index_state("user", "email").await.unwrap(), IndexState::Disabled);
}

/// Another change of the schema costs another pass, and nothing else.
#[tokio::test]
async fn a_build_outlives_other_changes_of_the_schema() {
    let (meddled, first, second) = meddled().await;
    let age = "[collection.user.index.age]\nkey = \"age:{age}:{id}\"\n";
    meddled.before_next_commit(async move { drop(second.apply(&users(age)).await.unwrap()) });
    first.build("user", "email").await.unwrap();
    assert_eq!(first.index_state("user", "email").await.unwrap(), IndexState::Ready);
    assert_eq!(first.index_state("user", "age").await.unwrap(), IndexState::Building);
    assert_no_finding(&first).await;
}

/// Two processes build the same index at the same time.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_builds_at_once_are_one() {
    let engine: Arc<dyn Engine> = Arc::new(Memory::new());
    let store = Store::on(engine.clone());
    store.apply(&users("")).await.unwrap();
    let collection = store.documents("user").await.unwrap();
    for n in 0..500 {
        let record = json!({ "id": format!("u{n}"), "email": format!("{n}") });
        collection.insert(&record).await.unwrap();
    }
    store.apply(&users(BY_EMAIL)).await.unwrap();
    let builds: Vec<_> = (0..2)
        .map(|_| {
            let store = Store::on(engine.clone());
            tokio::spawn(async move { store.build("user", "email").await })
        })
        .collect();
    for build in builds {
        build.await.unwrap().unwrap();
    }
    assert_eq!(store.index_state("user", "email").await.unwrap(), IndexState::Ready);
    assert_clean(&store).await;
    assert_eq!(dump(&store).await.len(), 1_000);
}

#[tokio::test]
async fn a_build_tells_how_far_it_is() {
    let emails: Vec<String> = (0..600).map(|n| format!("{n}@x")).collect();
    let emails: Vec<Option<&str>> = emails.iter().map(|email| Some(email.as_str())).collect();
    let store = users_before_index(&emails).await;
    let counted = format!("{BY_EMAIL}[collection.user.count.all]\ngroup = []\n");
    store.apply(&users(&counted)).await.unwrap();
    for name in ["email", "all"] {
        let heard = Mutex::new(Vec::new());
        let hear = |so_far: Built| heard.lock().unwrap().push((so_far.records, so_far.put));
        let built = store.build_with_progress("user", name, hear).await.unwrap();
        let heard = heard.into_inner().unwrap();
        assert_eq!(heard, [(256, 256), (512, 512), (600, 600)], "{name}");
        assert_eq!((built.records, built.put), (600, 600), "{name}");
    }
}
