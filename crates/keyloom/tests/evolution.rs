//! The schema of a live store changes, and every process obeys what is stored.
//!
//! Two stores on one engine stand for two processes: each has its own idea of the schema.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests fail by panicking"
)]

use std::sync::Arc;

use keyloom::engine::{Address, Area, Engine, EngineExt, Memory, Space};
use keyloom::{Applied, Class, ErrorKind, IndexState, Query, Schema, Store};
use serde_json::{Value, json};

const NOTES: &str = r#"
[collection.note]
key = "note:{id}"

[collection.note.fields]
id    = "text"
owner = "text"
at    = "timestamp"
"#;

const BY_OWNER: &str = r#"
[collection.note.index.owner]
key = "by-owner:{owner}:{id}"
"#;

const BY_TIME: &str = r#"
[collection.note.index.time]
key = "by-time:{at desc}:{id}"
"#;

fn notes(parts: &[&str]) -> Schema {
    Schema::from_toml(&[&[NOTES], parts].concat().join("\n")).unwrap()
}

/// Several processes that opened the same store.
struct Processes(Arc<dyn Engine>);

impl Processes {
    fn new() -> Self {
        Processes(Arc::new(Memory::new()))
    }

    async fn open(&self, schema: &Schema) -> (Store, Applied) {
        let store = Store::on(self.0.clone());
        let applied = store.apply(schema).await.unwrap();
        (store, applied)
    }

    async fn catalog(&self) -> Option<Value> {
        let address = Address::new(Area::own(), "catalog");
        let cell = self.0.get_one(&Space::main(), &address).await.unwrap()?;
        Some(serde_json::from_slice(cell.bytes().unwrap()).unwrap())
    }
}

async fn insert(store: &Store, id: &str) {
    let note = json!({ "id": id, "owner": "ana", "at": 1_000 });
    store.documents("note").await.unwrap().insert(&note).await.unwrap();
}

async fn owned(store: &Store) -> Result<usize, keyloom::Error> {
    let notes = store.documents("note").await.unwrap();
    notes.count(&Query::new().index("owner").equal("owner", "ana")).await
}

async fn assert_clean(store: &Store) {
    let verification = store.verify().await.unwrap();
    assert!(verification.findings.is_empty(), "{:#?}", verification.findings);
}

fn classes(applied: &Applied) -> Vec<Class> {
    applied.changes.iter().map(|change| change.class).collect()
}

/// A process that only reads never meets the fence.
#[tokio::test]
async fn a_reader_learns_of_what_others_declared_and_built() {
    let processes = Processes::new();
    let (reader, _) = processes.open(&notes(&[])).await;
    let read = reader.documents("note").await.unwrap();
    read.insert(&json!({ "id": "1", "owner": "ana", "at": 5 })).await.unwrap();
    let owned = Query::new().equal("owner", "ana");
    assert_eq!(read.page(&owned).await.unwrap_err().kind(), ErrorKind::NoIndex);

    let unique = "[collection.note.unique.at]\nkey = \"at:{at}\"";
    let (other, applied) = processes.open(&notes(&[BY_OWNER, unique])).await;
    assert_eq!(read.page(&owned).await.unwrap_err().kind(), ErrorKind::IndexNotReady);
    for (collection, index) in &applied.to_build {
        other.build(collection, index).await.unwrap();
    }
    assert_eq!(read.page(&owned).await.unwrap().records.len(), 1);
    assert_eq!(read.count(&owned).await.unwrap(), 1);
    assert!(read.explain(&owned).await.unwrap().starts_with("index note.owner"));
    assert!(read.get_by("at", 5).await.unwrap().is_some());
}

#[tokio::test]
async fn a_new_index_on_an_empty_collection_is_ready_at_once() {
    let processes = Processes::new();
    let (_, applied) = processes.open(&notes(&[])).await;
    assert!(applied.to_build.is_empty());
    let (store, applied) = processes.open(&notes(&[BY_OWNER])).await;
    assert_eq!(classes(&applied), [Class::NeedsBuild]);
    assert!(applied.to_build.is_empty());
    assert_eq!(store.index_state("note", "owner").await.unwrap(), IndexState::Ready);
    insert(&store, "n1").await;
    assert_eq!(owned(&store).await.unwrap(), 1);
}

#[tokio::test]
async fn a_new_index_on_data_is_maintained_at_once_and_read_once_built() {
    let processes = Processes::new();
    let (older, _) = processes.open(&notes(&[])).await;
    insert(&older, "n1").await;
    let (store, applied) = processes.open(&notes(&[BY_OWNER])).await;
    assert_eq!(applied.to_build, [("note".to_owned(), "owner".to_owned())]);
    assert_eq!(store.index_state("note", "owner").await.unwrap(), IndexState::Building);

    insert(&store, "n2").await;
    let entry = store.plain().get("by-owner:ana:n2").await.unwrap();
    assert_eq!(entry.unwrap(), r#""n2""#, "a write after the change is indexed");
    assert!(store.plain().get("by-owner:ana:n1").await.unwrap().is_none());
    let error = owned(&store).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::IndexNotReady);
    assert_eq!(error.context_value("index"), Some("owner"));
    // What is not built yet is not called missing.
    assert_clean(&store).await;

    store.build("note", "owner").await.unwrap();
    assert_eq!(owned(&store).await.unwrap(), 2);
    assert_clean(&store).await;
    let (_, again) = processes.open(&notes(&[BY_OWNER])).await;
    assert!(again.changes.is_empty() && again.to_build.is_empty());
}

/// A planner that may choose does not choose an index that is not complete.
#[tokio::test]
async fn a_building_index_does_not_answer_unasked() {
    let processes = Processes::new();
    let (store, _) = processes.open(&notes(&[])).await;
    insert(&store, "n1").await;
    let (store, _) = processes.open(&notes(&[BY_OWNER])).await;
    let notes = store.documents("note").await.unwrap();
    let query = Query::new().equal("owner", "ana");
    assert!(notes.page(&query).await.is_err());
    store.build("note", "owner").await.unwrap();
    assert_eq!(notes.page(&query).await.unwrap().records.len(), 1);
}

#[tokio::test]
async fn an_older_schema_drops_nothing() {
    let processes = Processes::new();
    let (newer, _) = processes.open(&notes(&[BY_OWNER, BY_TIME])).await;
    insert(&newer, "n1").await;
    let before = processes.catalog().await;
    let (older, applied) = processes.open(&notes(&[])).await;
    assert_eq!(classes(&applied), [Class::Kept, Class::Kept]);
    assert_eq!(processes.catalog().await, before, "opening with less changes nothing");
    insert(&older, "n2").await;
    assert_eq!(owned(&newer).await.unwrap(), 2);
    assert_eq!(owned(&older).await.unwrap(), 2, "an older process may even read it");
    older.documents("note").await.unwrap().delete("n1").await.unwrap();
    assert_eq!(owned(&newer).await.unwrap(), 1);
    assert_clean(&older).await;
}

/// Neither process declares what the other does; the store has both.
#[tokio::test]
async fn declarations_add_up() {
    let processes = Processes::new();
    let (first, _) = processes.open(&notes(&[BY_OWNER])).await;
    let (second, _) = processes.open(&notes(&[BY_TIME])).await;
    insert(&first, "n1").await;
    insert(&second, "n2").await;
    let verification = first.verify().await.unwrap();
    assert!(verification.is_clean());
    assert_eq!((verification.records, verification.entries), (2, 4));
    let stored = first.schema().await.unwrap();
    assert_eq!(stored, notes(&[BY_OWNER, BY_TIME]));
}

/// A process that runs since before the change: its next write is refused by the fence, it reads
/// the catalog again, and writes what the new schema asks for.
#[tokio::test]
async fn a_running_process_learns_of_a_new_index_by_writing() {
    let processes = Processes::new();
    let (running, _) = processes.open(&notes(&[])).await;
    let collection = running.documents("note").await.unwrap();
    insert(&running, "n1").await;
    let (newer, _) = processes.open(&notes(&[BY_OWNER])).await;

    insert(&running, "n2").await;
    collection.replace(&json!({ "id": "n1", "owner": "ben", "at": 1_000 })).await.unwrap();
    assert!(newer.plain().get("by-owner:ana:n2").await.unwrap().is_some());
    assert!(newer.plain().get("by-owner:ben:n1").await.unwrap().is_some());
    let (before, after) = (json!("n2"), json!({ "id": "n3", "owner": "ana", "at": 1 }));
    running
        .transaction(|transaction| {
            let (before, after) = (before.clone(), after.clone());
            async move {
                let notes = transaction.documents("note")?;
                notes.delete(before).await?;
                notes.insert(&after).await?;
                Ok::<_, keyloom::Error>(())
            }
        })
        .await
        .unwrap();
    newer.build("note", "owner").await.unwrap();
    assert_clean(&newer).await;
    // The state of the index changed again, and that is learned in the same way.
    insert(&running, "n4").await;
    assert_eq!(owned(&running).await.unwrap(), 2);
    assert_eq!(owned(&newer).await.unwrap(), 2);
    assert_clean(&running).await;
}

#[tokio::test]
async fn a_running_process_keeps_the_uniqueness_that_another_declared() {
    let processes = Processes::new();
    let (running, _) = processes.open(&notes(&[])).await;
    insert(&running, "n1").await;
    let unique = "[collection.note.unique.owner]\nkey = \"owner:{owner}\"\n";
    let (newer, _) = processes.open(&notes(&[unique])).await;
    newer.build("note", "owner").await.unwrap();
    let second = json!({ "id": "n2", "owner": "ana" });
    let error = running.documents("note").await.unwrap().insert(&second).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::UniqueConflict);
    assert_eq!(error.context_value("held by"), Some("note:n1"));
}

/// What contradicts stored keys is refused, and leaves the catalog byte for byte as it was.
#[tokio::test]
async fn incompatible_changes_are_refused_and_change_nothing() {
    let processes = Processes::new();
    let (store, _) = processes.open(&notes(&[BY_OWNER])).await;
    insert(&store, "n1").await;
    let before = processes.catalog().await;
    let whole = format!("{NOTES}{BY_OWNER}");
    for (what, from, to) in [
        ("the key of the records", "note:{id}", "notes:{id}"),
        ("their area", "key = \"note:{id}\"", "key = \"note:{id}\"\narea = \"notes\""),
        ("the type of a field in a key", "owner = \"text\"", "owner = \"uuid\""),
        ("the key of an index", "by-owner:{owner}:{id}", "by-owner:{owner sorted}{id}"),
        (
            "what entries hold",
            "by-owner:{owner}:{id}\"",
            "by-owner:{owner}:{id}\"\nholds = \"record\"",
        ),
        (
            "which records have entries",
            "by-owner:{owner}:{id}\"",
            "by-owner:{owner}:{id}\"\nwhere = { at = 1 }",
        ),
        (
            "the kind of an index",
            "note.index.owner]\nkey = \"by-owner:{owner}:{id}\"",
            "note.unique.owner]\nkey = \"by-owner:{owner}\"",
        ),
    ] {
        assert!(whole.contains(from), "{what}");
        // Something harmless comes with it, and must not be applied alone.
        let changed = format!("{}{BY_TIME}", whole.replace(from, to));
        let changed = Schema::from_toml(&changed).unwrap_or_else(|error| panic!("{what}: {error}"));
        let other = Store::on(processes.0.clone());
        let error = other.apply(&changed).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::IncompatibleSchema, "{what}: {error}");
        assert!(error.context_value("change").is_some(), "{what}");
        assert_eq!(processes.catalog().await, before, "{what}");
        // The store that was refused can still be used as it is.
        assert_eq!(owned(&other).await.unwrap(), 1);
    }
    assert_eq!(owned(&store).await.unwrap(), 1);
    assert_clean(&store).await;
}

/// Puts another schema into the catalog, as a migration of a later release would.
async fn migrate(processes: &Processes, change: impl Fn(&mut Value)) {
    use keyloom::engine::{Batch, Condition, Effect, Outcome, Stamp};
    let address = Address::new(Area::own(), "catalog");
    let cell = processes.0.get_one(&Space::main(), &address).await.unwrap().unwrap();
    let mut catalog: Value = serde_json::from_slice(cell.bytes().unwrap()).unwrap();
    change(&mut catalog);
    let mut stamp = cell.stamp.0;
    stamp[Stamp::BYTES - 1] = stamp[Stamp::BYTES - 1].wrapping_add(1);
    let put = Effect::Put { stamp: Stamp(stamp), bytes: catalog.to_string().into() };
    let mut batch = Batch::new(Space::main());
    batch.push(address, Some(Condition::Unchanged(cell.stamp)), Some(put));
    let put = Effect::Put { stamp: Stamp(stamp), bytes: "99".into() };
    batch.push(Address::new(Area::own(), "epoch"), None, Some(put));
    assert!(matches!(processes.0.commit(batch).await.unwrap(), Outcome::Committed(_)));
}

#[tokio::test]
async fn a_running_process_fails_only_if_what_it_declared_is_broken() {
    let processes = Processes::new();
    let (declares_owner, _) = processes.open(&notes(&[BY_OWNER])).await;
    let (declares_nothing_of_it, _) = processes.open(&notes(&[])).await;
    insert(&declares_owner, "n1").await;
    insert(&declares_nothing_of_it, "n2").await;
    migrate(&processes, |catalog| {
        catalog["schema"]["collection"]["note"]["index"]["owner"]["key"] =
            "by-owner-first:{owner}:{id}".into();
    })
    .await;
    let note = json!({ "id": "n3", "owner": "ana", "at": 1_000 });
    let collection = declares_owner.documents("note").await.unwrap();
    let error = collection.insert(&note).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::IncompatibleSchema);
    assert!(error.context_value("change").unwrap().contains("note.index.owner"), "{error}");
    let plain = declares_nothing_of_it.plain();
    assert!(plain.get("note:n3").await.unwrap().is_none(), "nothing was written");
    // It stays so: no later write slips through under the old schema.
    assert_eq!(collection.insert(&note).await.unwrap_err().kind(), ErrorKind::IncompatibleSchema);

    insert(&declares_nothing_of_it, "n3").await;
    assert!(plain.get("by-owner-first:ana:n3").await.unwrap().is_some());
}

#[tokio::test]
async fn safe_changes_take_effect_at_once() {
    let processes = Processes::new();
    let tags = "[collection.note.index.tag]\nkey = \"tag:{tags.*}:{id}\"\nmax = 1\n";
    let fields = "[collection.note.fields.\"tags.*\"]\ntype = \"text\"\n";
    let (running, _) = processes.open(&notes(&[fields, tags])).await;
    let note = json!({ "id": "n1", "tags": ["a", "b"] });
    let collection = running.documents("note").await.unwrap();
    assert_eq!(collection.insert(&note).await.unwrap_err().kind(), ErrorKind::LimitExceeded);
    let (newer, applied) =
        processes.open(&notes(&[fields, &tags.replace("max = 1", "max = 2")])).await;
    assert_eq!(classes(&applied), [Class::Safe]);
    newer.documents("note").await.unwrap().insert(&note).await.unwrap();
    // So does lowering it again, for what is written from now on.
    let (_, applied) = processes.open(&notes(&[fields, tags])).await;
    assert_eq!(classes(&applied), [Class::Safe]);
    let another = json!({ "id": "n2", "tags": ["a", "b"] });
    let refused = newer.documents("note").await.unwrap().insert(&another).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::LimitExceeded);
    assert_clean(&newer).await;
}

/// Verify judges by the schema of the moment, also when that changes under it.
#[tokio::test]
async fn a_schema_change_under_a_verification_causes_no_alarm() {
    let processes = Processes::new();
    let (store, _) = processes.open(&notes(&[BY_OWNER])).await;
    for n in 0..20 {
        insert(&store, &format!("n{n}")).await;
    }
    let options = keyloom::VerifyOptions { chunk_keys: 3, ..Default::default() };
    let mut verifier = store.verifier(&options).await.unwrap();
    let mut findings = verifier.next_chunk().await.unwrap().unwrap().findings;
    let (newer, _) = processes.open(&notes(&[BY_OWNER, BY_TIME])).await;
    // Its keys lie in a range of the old schema only if they look like strangers there.
    let near = "[collection.note.index.near]\nkey = \"by-owner:{owner}:{at}:{id}\"\n";
    processes.open(&notes(&[near])).await;
    newer.build("note", "near").await.unwrap();
    newer.disable("note", "owner").await.unwrap();
    newer.documents("note").await.unwrap().delete("n9").await.unwrap();
    while let Some(chunk) = verifier.next_chunk().await.unwrap() {
        findings.extend(chunk.findings);
    }
    assert_eq!(findings, []);
}

const STEPS: &str = r#"
[collection.run]
key = "run:{id}"

[collection.run.fields]
id    = "text"
steps = "map"
"steps.*.due"   = "timestamp"
"steps.*.token" = "text"

[collection.run.index.due]
key = "due:{steps.*.due}:{id}:{steps.*key}"

[collection.run.unique.token]
key = "token:{steps.*.token}"
"#;

/// Elements that lack a field have no entry, and their neighbours do, whatever the index says of
/// records that are written later.
#[tokio::test]
async fn what_a_record_owns_stays_its_own_when_an_index_becomes_strict() {
    let processes = Processes::new();
    let (store, _) = processes.open(&Schema::from_toml(STEPS).unwrap()).await;
    let runs = store.documents("run").await.unwrap();
    for id in ["r1", "r2"] {
        let token = format!("t-{id}");
        let run = json!({ "id": id, "steps": { "a": { "due": 5, "token": token }, "b": {} } });
        runs.insert(&run).await.unwrap();
    }
    let strict = STEPS.replace(":{steps.*key}\"\n", ":{steps.*key}\"\nsparse = false\n");
    let strict = strict.replace("{steps.*.token}\"\n", "{steps.*.token}\"\nsparse = false\n");
    let (store, applied) = processes.open(&Schema::from_toml(&strict).unwrap()).await;
    assert_eq!(classes(&applied), [Class::Safe, Class::Safe]);
    assert_clean(&store).await;
    let runs = store.documents("run").await.unwrap();
    let by_token = runs.get_by("token", "t-r1").await.unwrap().unwrap();
    assert_eq!(by_token.key, "run:r1");
    let in_transaction: keyloom::Result<bool> = store
        .transaction(|tx| async move {
            Ok(tx.documents("run")?.get_by("token", "t-r1").await?.is_some())
        })
        .await;
    assert!(in_transaction.unwrap());
    runs.replace(&json!({ "id": "r2", "steps": { "c": { "due": 7, "token": "t-c" } } }))
        .await
        .unwrap();
    assert_clean(&store).await;
    runs.delete("r1").await.unwrap();
    assert_clean(&store).await;
    assert_eq!(store.verify().await.unwrap().entries, 2);
}

#[tokio::test]
async fn schema_changes_of_many_processes_at_once_all_arrive() {
    let processes = Arc::new(Processes::new());
    processes.open(&notes(&[])).await;
    let changes: Vec<_> = (0..6)
        .map(|n| {
            let processes = processes.clone();
            tokio::spawn(async move {
                let index =
                    format!("[collection.note.index.i{n}]\nkey = \"i{n}:{{owner}}:{{id}}\"\n");
                processes.open(&notes(&[&index])).await;
            })
        })
        .collect();
    for change in changes {
        change.await.unwrap();
    }
    let (store, _) = processes.open(&notes(&[])).await;
    insert(&store, "n1").await;
    assert_eq!(store.verify().await.unwrap().entries, 6);
}
