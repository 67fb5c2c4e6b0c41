//! What is declared over records that do not fit keeps them from nothing but staying unfit: they
//! can be changed elsewhere, what changes must fit, and indexes stay sound.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests fail by panicking"
)]

mod long;

use std::collections::BTreeMap;
use std::sync::Arc;

use keyloom::engine::Memory;
use keyloom::{
    Collection, Effect, Error, ErrorKind, FindingKind, IndexState, Query, RepairOptions, Schema,
    Store,
};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde_json::{Value, json};

const BARE: &str = "[collection.x]\nkey = \"x:{id}\"\n[collection.x.fields]\nid = \"text\"\n";

fn schema(more: &str) -> Schema {
    Schema::from_toml(&format!("{BARE}{more}")).unwrap()
}

/// A store with these records, from before anything was declared.
async fn store_with(records: &[Value]) -> (Store, Collection<Value>) {
    let store = Store::on(Arc::new(Memory::new()));
    store.apply(&schema("")).await.unwrap();
    let collection = store.documents("x").await.unwrap();
    for record in records {
        collection.insert(record).await.unwrap();
    }
    (store, collection)
}

/// The findings of a verification, as kind and key.
async fn findings(store: &Store) -> Vec<(FindingKind, String)> {
    let found = store.verify().await.unwrap().findings;
    found.into_iter().map(|finding| (finding.kind, finding.key)).collect()
}

async fn patch(collection: &Collection<Value>, id: &str, patch: Value) -> Result<Effect, Error> {
    collection.update_with_retry(id, &patch).await.map(|written| written.effect)
}

#[tokio::test]
async fn a_record_that_does_not_fit_can_be_changed_in_other_fields_by_every_way() {
    let misfit = json!({ "id": "a", "n": "seven", "note": 0 });
    let (store, collection) = store_with(std::slice::from_ref(&misfit)).await;
    let applied = store.apply(&schema("n = \"integer\"")).await.unwrap();
    assert_eq!(
        applied.misfits.iter().map(ToString::to_string).collect::<Vec<_>>(),
        ["1 of 1 records of x do not fit, such as x:a: n: an integer here is a whole \
          number from -9223372036854775808 to 9223372036854775807; \
          it is \"seven\""]
    );
    let with = |note: u8| json!({ "id": "a", "n": "seven", "note": note });
    patch(&collection, "a", json!({ "note": 1 })).await.unwrap();
    collection.replace(&with(2)).await.unwrap();
    collection.upsert(&with(3)).await.unwrap();
    collection
        .modify("a", |record: &mut Value| {
            record["note"] = 4.into();
            Ok(())
        })
        .await
        .unwrap();
    let version = collection.get("a").await.unwrap().unwrap().version;
    let version = collection.update("a", &json!({ "note": 5 }), version).await.unwrap().version;
    collection.replace_if(&with(6), version).await.unwrap();
    store
        .transaction(async |tx| {
            let inner = tx.documents("x")?;
            inner.replace(&with(7)).await?;
            inner.update("a", &json!({ "note": 8 })).await.map(drop)
        })
        .await
        .unwrap();
    assert_eq!(collection.get("a").await.unwrap().unwrap().value, with(8));
    let renamed = collection
        .rename("a", |record: &mut Value| {
            record["id"] = "b".into();
            Ok(())
        })
        .await
        .unwrap();
    assert_eq!(renamed.key, "x:b");
    assert_eq!(findings(&store).await, [(FindingKind::Misfit, "x:b".to_owned())]);
}

#[tokio::test]
async fn what_changes_must_fit_and_what_is_new_must_fit_as_a_whole() {
    let (store, collection) = store_with(&[json!({ "id": "a", "n": "seven" })]).await;
    store
        .apply(&schema("n = \"integer\"\nowner = { type = \"text\", required = true }"))
        .await
        .unwrap();
    let refused = |error: Error, field: &str| {
        assert_eq!(error.kind(), ErrorKind::InvalidRecord, "{error}");
        assert_eq!(error.context_value("field"), Some(field), "{error}");
    };
    refused(patch(&collection, "a", json!({ "n": "eight" })).await.unwrap_err(), "n");
    refused(patch(&collection, "a", json!({ "owner": 5 })).await.unwrap_err(), "owner");
    refused(
        collection.insert(&json!({ "id": "b", "n": "seven", "owner": "o" })).await.unwrap_err(),
        "n",
    );
    refused(collection.upsert(&json!({ "id": "b", "n": 7 })).await.unwrap_err(), "owner");
    // What is mended stays mended.
    patch(&collection, "a", json!({ "n": 8 })).await.unwrap();
    refused(patch(&collection, "a", json!({ "n": "seven" })).await.unwrap_err(), "n");
    patch(&collection, "a", json!({ "owner": "o" })).await.unwrap();
    refused(patch(&collection, "a", json!({ "owner": null })).await.unwrap_err(), "owner");
    assert!(store.verify().await.unwrap().is_clean());
}

#[tokio::test]
async fn a_body_schema_lets_be_what_breaks_it_already() {
    let (store, collection) = store_with(&[json!({ "id": "a", "stars": 9, "note": 1 })]).await;
    let mut declaration = schema("").declaration();
    declaration.collections.get_mut("x").unwrap().body = Some(json!({
        "required": ["title"], "properties": { "stars": { "maximum": 5 } },
    }));
    let applied = store.apply(&Schema::from_declaration(declaration).unwrap()).await.unwrap();
    assert_eq!(applied.misfits[0].records, 1);
    patch(&collection, "a", json!({ "note": 2 })).await.unwrap();
    patch(&collection, "a", json!({ "stars": 8 })).await.unwrap_err();
    patch(&collection, "a", json!({ "stars": 4 })).await.unwrap();
    patch(&collection, "a", json!({ "stars": 6 })).await.unwrap_err();
    assert_eq!(findings(&store).await, [(FindingKind::Misfit, "x:a".to_owned())]);
    patch(&collection, "a", json!({ "title": "t" })).await.unwrap();
    assert_eq!(findings(&store).await, []);
}

#[tokio::test]
async fn from_a_value_that_is_not_declared_every_declared_one_may_follow() {
    let (store, collection) = store_with(&[json!({ "id": "a", "s": "odd" })]).await;
    let values =
        "s = { type = \"enum\", values = [\"new\", \"done\"], transitions = { new = [\"done\"] } }";
    store.apply(&schema(values)).await.unwrap();
    patch(&collection, "a", json!({ "note": 1 })).await.unwrap();
    let other = patch(&collection, "a", json!({ "s": "odder" })).await.unwrap_err();
    assert_eq!(other.kind(), ErrorKind::InvalidRecord, "{other}");
    patch(&collection, "a", json!({ "s": "done" })).await.unwrap();
    let back = patch(&collection, "a", json!({ "s": "new" })).await.unwrap_err();
    assert_eq!(back.kind(), ErrorKind::IllegalTransition, "{back}");
}

#[tokio::test]
async fn elements_that_do_not_fit_may_stay_move_and_go_and_none_may_come() {
    let (store, collection) = store_with(&[json!({ "id": "a", "tags": [1, "a", 2] })]).await;
    store.apply(&schema("\"tags.*\" = \"text\"")).await.unwrap();
    for tags in [json!(["a", 1, 2, "b"]), json!([2, "c", 1]), json!([1])] {
        patch(&collection, "a", json!({ "tags": tags })).await.unwrap();
    }
    for tags in [json!([1, 1]), json!([1, 3]), json!([2])] {
        patch(&collection, "a", json!({ "tags": tags })).await.unwrap_err();
    }
    patch(&collection, "a", json!({ "tags": ["x"] })).await.unwrap();
    assert!(store.verify().await.unwrap().is_clean());
}

/// While an index is building, records that it cannot hold may change; the build then names them.
#[tokio::test]
async fn a_build_meets_every_record_that_it_cannot_hold() {
    let fields = "n = \"integer\"\nkind = \"text\"\n";
    let aggregate = "[collection.x.sum.total]\nfield = \"n\"\ngroup = [\"kind\"]\n";
    let index = "[collection.x.index.n]\nkey = \"n:{n}:{id}\"\n";
    let misfit = json!({ "id": "a", "n": "seven", "kind": "k" });
    let (store, collection) =
        store_with(&[misfit, json!({ "id": "b", "n": 1, "kind": "k" })]).await;
    store.apply(&schema(&format!("{fields}{index}{aggregate}"))).await.unwrap();
    for note in 0..2 {
        patch(&collection, "a", json!({ "note": note })).await.unwrap();
        patch(&collection, "a", json!({ "kind": format!("k{note}") })).await.unwrap();
    }
    for name in ["n", "total"] {
        let error = store.build("x", name).await.unwrap_err();
        assert!(error.to_string().contains("x:a"), "{error}");
        assert!(matches!(store.index_state("x", name).await.unwrap(), IndexState::Failed { .. }));
    }
    patch(&collection, "a", json!({ "n": 7 })).await.unwrap();
    for name in ["n", "total"] {
        store.build("x", name).await.unwrap();
    }
    assert!(store.verify().await.unwrap().is_clean());
    assert_eq!(collection.summed("total", "k1").await.unwrap(), 7);
}

/// A record that an index need not hold, because it does not meet the condition, may not come to
/// meet it while it does not fit: the index would be incomplete, and nobody would know.
#[tokio::test]
async fn no_record_comes_into_an_index_that_cannot_hold_it() {
    let (store, collection) =
        store_with(&[json!({ "id": "a", "n": "seven", "state": "closed" })]).await;
    let partial =
        "[collection.x.index.open]\nkey = \"open:{n}:{id}\"\nwhere = { state = \"open\" }\n";
    let aggregate = "[collection.x.count.open_n]\ngroup = [\"n\"]\nwhere = { state = \"open\" }\n";
    store.apply(&schema(&format!("n = \"integer\"\n{partial}{aggregate}"))).await.unwrap();
    for build in [false, true] {
        if build {
            store.build("x", "open").await.unwrap();
            store.build("x", "open_n").await.unwrap();
        }
        patch(&collection, "a", json!({ "note": build })).await.unwrap();
        let error = patch(&collection, "a", json!({ "state": "open" })).await.unwrap_err();
        assert_eq!(error.context_value("field"), Some("n"), "{error}");
        assert!(error.to_string().contains("open"), "{error}");
    }
    patch(&collection, "a", json!({ "state": "open", "n": 7 })).await.unwrap();
    assert!(store.verify().await.unwrap().is_clean());
}

#[tokio::test]
async fn entries_beyond_a_lowered_max_stay_until_the_elements_change() {
    let tags = |max: u8| {
        schema(&format!(
            "\"tags.*\" = \"text\"\n[collection.x.index.tag]\nkey = \"tag:{{tags.*}}:{{id}}\"\nmax = {max}\n"
        ))
    };
    let store = Store::on(Arc::new(Memory::new()));
    store.apply(&tags(4)).await.unwrap();
    let collection = store.documents("x").await.unwrap();
    collection.insert(&json!({ "id": "a", "tags": ["p", "q", "r"] })).await.unwrap();
    store.apply(&tags(2)).await.unwrap();
    let found = async |tag: &str| {
        let query = Query::new().equal("tags.*", tag);
        collection.page(&query).await.unwrap().records.len()
    };
    patch(&collection, "a", json!({ "note": 1 })).await.unwrap();
    let more = patch(&collection, "a", json!({ "tags": ["p", "q", "r", "s"] })).await.unwrap_err();
    assert_eq!(more.kind(), ErrorKind::LimitExceeded, "{more}");
    let new = json!({ "id": "b", "tags": ["p", "q", "r"] });
    assert_eq!(collection.insert(&new).await.unwrap_err().kind(), ErrorKind::LimitExceeded);
    assert_eq!([found("p").await, found("r").await], [1, 1]);
    assert!(store.verify().await.unwrap().is_clean());
    patch(&collection, "a", json!({ "tags": ["q"] })).await.unwrap();
    assert_eq!([found("p").await, found("q").await], [0, 1]);
    assert!(store.verify().await.unwrap().is_clean());
    // Nor is anything left behind by a record that goes with more than may be put now.
    collection.delete("a").await.unwrap();
    store.apply(&tags(4)).await.unwrap();
    collection.insert(&json!({ "id": "c", "tags": ["p", "q", "r"] })).await.unwrap();
    store.apply(&tags(1)).await.unwrap();
    collection.delete("c").await.unwrap();
    let verification = store.verify().await.unwrap();
    assert!(verification.is_clean() && verification.entries == 0, "{verification:?}");
}

#[tokio::test]
async fn an_index_that_turned_strict_lets_be_what_lacks_its_field() {
    let by_n = |sparse: bool| {
        schema(&format!(
            "n = \"integer\"\n[collection.x.index.n]\nkey = \"n:{{n}}:{{id}}\"\nsparse = {sparse}\n"
        ))
    };
    let store = Store::on(Arc::new(Memory::new()));
    store.apply(&by_n(true)).await.unwrap();
    let collection = store.documents("x").await.unwrap();
    collection.insert(&json!({ "id": "a" })).await.unwrap();
    store.apply(&by_n(false)).await.unwrap();
    patch(&collection, "a", json!({ "note": 1 })).await.unwrap();
    collection.insert(&json!({ "id": "b" })).await.unwrap_err();
    patch(&collection, "a", json!({ "n": 1 })).await.unwrap();
    patch(&collection, "a", json!({ "n": null })).await.unwrap_err();
    assert!(store.verify().await.unwrap().is_clean());
}

#[tokio::test]
async fn a_narrower_type_holds_for_what_is_written_from_now_on() {
    let digits = |digits: u8| schema(&format!("n = {{ type = \"integer\", digits = {digits} }}\n"));
    let store = Store::on(Arc::new(Memory::new()));
    store.apply(&digits(6)).await.unwrap();
    let collection = store.documents("x").await.unwrap();
    collection.insert(&json!({ "id": "a", "n": 123_456 })).await.unwrap();
    let applied = store.apply(&digits(3)).await.unwrap();
    assert_eq!(applied.misfits[0].records, 1);
    collection.insert(&json!({ "id": "b", "n": 1_234 })).await.unwrap_err();
    patch(&collection, "a", json!({ "note": 1 })).await.unwrap();
    patch(&collection, "a", json!({ "n": 1_234 })).await.unwrap_err();
    patch(&collection, "a", json!({ "n": 123 })).await.unwrap();
    store.apply(&digits(6)).await.unwrap();
    collection.insert(&json!({ "id": "b", "n": 1_234 })).await.unwrap();
}

#[tokio::test]
async fn only_the_first_records_are_looked_at_when_a_schema_is_applied() {
    let (store, _) = store_with(&[]).await;
    let records: Vec<Value> =
        (0..1_200).map(|n| json!({ "id": format!("r{n:04}"), "n": format!("{n}") })).collect();
    store.documents("x").await.unwrap().load(&records).await.unwrap();
    let applied = store.apply(&schema("n = \"integer\"")).await.unwrap();
    let [misfits] = &applied.misfits[..] else { panic!("{applied:?}") };
    assert_eq!((misfits.records, misfits.looked_at, misfits.is_exact), (1_000, 1_000, false));
    assert_eq!(misfits.first.len(), 8);
    assert!(misfits.to_string().starts_with("1000 of the first 1000 records of x do not fit"));
    let verification = store.verify().await.unwrap();
    assert_eq!(verification.counts.misfit, 1_200);
    let repair = store.repair(&RepairOptions::default()).await.unwrap();
    assert_eq!((repair.mended_counts.total(), repair.left_counts.misfit), (0, 1_200));
    // What is applied again is not looked at again.
    assert_eq!(store.apply(&schema("n = \"integer\"")).await.unwrap().misfits, []);
}

/// What fields may hold before their types are declared; the first three fit.
fn values(field: &str) -> Vec<Value> {
    match field {
        "n" => vec![json!(null), json!(1), json!(99), json!(100_000), json!("x"), json!(1.5)],
        "s" => vec![json!(null), json!("a"), json!("b"), json!("c"), json!(3), json!({})],
        _ => vec![
            json!(null),
            json!(["p", "q"]),
            json!([]),
            json!(["p", 1]),
            json!([1, 2]),
            json!([[], "q"]),
        ],
    }
}

const FIELDS: [&str; 3] = ["n", "s", "tags"];

const TYPED: &str = r#"
n = { type = "integer", digits = 3 }
s = { type = "enum", values = ["a", "b"] }
"tags.*" = "text"
[collection.x.index.n]
key = "n:{n}:{id}"
[collection.x.index.both]
key   = "both:{s}:{n}:{id}"
where = { s = { present = true } }
[collection.x.index.tag]
key = "tag:{tags.*}:{id}"
[collection.x.count.by_s]
group = ["s"]
"#;

/// One change: which record, which field, which value, and by which way.
type Step = (usize, usize, usize, u8);

/// Whether the elements that do not fit were all there before.
fn no_worse(old: &Value, new: &Value) -> bool {
    let unfit = |value: &Value| -> Vec<Value> {
        let elements = value.as_array().into_iter().flatten();
        elements.filter(|element| !element.is_string()).cloned().collect()
    };
    let mut known = unfit(old);
    unfit(new).iter().all(|element| {
        let place = known.iter().position(|known| known == element);
        place.map(|place| known.remove(place)).is_some()
    })
}

/// Whether the index `both` has to hold a record, and whether it can.
fn is_held(record: &Value) -> bool {
    record["n"] != Value::Null && record["s"] != Value::Null
}

fn is_held_well(record: &Value) -> bool {
    ["n", "s"].iter().all(|field| values(field)[..3].contains(&record[*field]))
}

async fn is_maintained(store: &Store, index: &str) -> bool {
    let state = store.index_state("x", index).await.unwrap();
    matches!(state, IndexState::Building | IndexState::Ready)
}

async fn run(records: &[[usize; 3]], steps: &[Step]) {
    let mut model: BTreeMap<String, Value> = BTreeMap::new();
    for (n, chosen) in records.iter().enumerate() {
        let mut record = json!({ "id": format!("r{n}") });
        for (field, value) in FIELDS.iter().zip(chosen) {
            let value = values(field)[*value].clone();
            if !value.is_null() {
                record[*field] = value;
            }
        }
        model.insert(format!("r{n}"), record);
    }
    let (store, collection) = store_with(&model.values().cloned().collect::<Vec<_>>()).await;
    store.apply(&schema(TYPED)).await.unwrap();
    for (record, field, value, way) in steps {
        let Some(id) = model.keys().nth(record % model.len().max(1)).cloned() else { return };
        if *way == 4 {
            // It may find records that it cannot hold.
            let _ = store.build("x", ["n", "both", "tag", "by_s"][field + value % 2]).await;
            continue;
        }
        let (field, value) = (FIELDS[field % 3], values(FIELDS[field % 3])[*value].clone());
        let old = model[&id].clone();
        let mut new = old.clone();
        match &value {
            Value::Null => drop(new.as_object_mut().unwrap().remove(field)),
            value => new[field] = value.clone(),
        }
        let fits = match field {
            "tags" => no_worse(&old["tags"], &new["tags"]),
            _ => values(field)[..3].contains(&value) || old[field] == value,
        };
        let written = match way % 4 {
            0 => collection.update_with_retry(&id, &json!({ field: value })).await.map(drop),
            1 => collection.replace(&new).await.map(drop),
            2 => {
                let change = |record: &mut Value| {
                    record.clone_from(&new);
                    Ok(())
                };
                collection.modify(&id, change).await.map(drop)
            }
            _ => {
                let whole = new.clone();
                store
                    .transaction(async |tx| tx.documents("x")?.upsert(&whole).await.map(drop))
                    .await
            }
        };
        // An index refuses what it now has to hold and cannot.
        let both = is_maintained(&store, "both").await;
        let comes = both && is_held(&new) && !is_held(&old) && !is_held_well(&new);
        assert_eq!(written.is_ok(), fits && !comes, "{old} to {new} by way {way}: {written:?}");
        if written.is_ok() {
            model.insert(id, new);
        }
    }
    let stored = collection.page(&Query::new().scan()).await.unwrap().records;
    let stored: Vec<Value> = stored.into_iter().map(|stored| stored.value).collect();
    assert_eq!(stored, model.values().cloned().collect::<Vec<_>>());
    for index in ["n", "both", "tag", "by_s"] {
        let unfit = |record: &&Value| match index {
            "n" => !values("n")[..3].contains(&record["n"]),
            "both" => is_held(record) && !is_held_well(record),
            "tag" => !no_worse(&json!([]), &record["tags"]),
            // A group is named by any text.
            _ => !record["s"].is_null() && !record["s"].is_string(),
        };
        let expected = model.values().filter(unfit).count();
        let built = store.build("x", index).await;
        assert_eq!(built.is_ok(), expected == 0, "{index}: {built:?} over {model:?}");
    }
    // Whatever the records are, what is ready is whole, and everything else is told.
    let verification = store.verify().await.unwrap();
    let all = verification.counts;
    assert_eq!(all.total(), all.misfit, "{:?}", verification.findings);
}

#[test]
fn a_change_goes_through_if_what_it_changes_fits() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let config = Config { cases: long::times(150), failure_persistence: None, ..Config::default() };
    let records = prop::collection::vec([0..6_usize, 0..6, 0..6], 1..4);
    let steps = prop::collection::vec((0..4_usize, 0..3_usize, 0..6_usize, 0..5_u8), 1..12);
    TestRunner::new(config)
        .run(&(records, steps), |(records, steps)| {
            runtime.block_on(run(&records, &steps));
            Ok(())
        })
        .unwrap();
}
