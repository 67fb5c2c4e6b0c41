//! A process that has not heard of a change of the schema reads no index that nobody maintains.
//!
//! Two stores on one engine stand for two processes: each has its own idea of the schema.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests fail by panicking"
)]

use std::sync::Arc;

use keyloom::engine::{Embedded, EmbeddedOptions, Engine, Memory, Metered, Torn, Usage};
use keyloom::{Collection, Error, ErrorKind, Near, Query, Result, Schema, Store};
use serde_json::{Value, json};

const SCHEMA: &str = r#"
[collection.shop]
key = "shop:{id}"

[collection.shop.fields]
id    = "text"
owner = "text"
code  = "text"
place = "point"
"tags.*" = "text"

[collection.shop.index.owner]
key = "by-owner:{owner}:{id}"

[collection.shop.index.card]
key = "card:{owner}:{id}"
holds = "record"

[collection.shop.index.tag]
key = "by-tag:{tags.*}:{id}"

[collection.shop.unique.code]
key = "code:{code}"

[collection.shop.geo.place]
key = "by-place:{place geohash 6}:{id}"
"#;

const INDEXES: [&str; 5] = ["owner", "card", "tag", "code", "place"];

fn shop(id: &str) -> Value {
    let place = json!({ "lat": 48.8, "lon": 2.3 });
    json!({ "id": id, "owner": "ana", "code": format!("c{id}"), "place": place, "tags": ["new"] })
}

/// What each way in gives: how many records, through the index of that name.
async fn found(shops: &Collection<Value>, index: &str) -> Result<Vec<usize>> {
    match index {
        "code" => {
            let mut there = 0;
            for id in ["1", "2", "3"] {
                there += usize::from(shops.get_by("code", format!("c{id}")).await?.is_some());
            }
            Ok(vec![there])
        }
        "place" => Ok(vec![shops.near(&Near::new(48.8, 2.3)).await?.records.len()]),
        _ => {
            let field = if index == "tag" { "tags.*" } else { "owner" };
            let value = if index == "tag" { "new" } else { "ana" };
            let query = Query::new().index(index).equal(field, value);
            let page = shops.page(&query).await?;
            assert!(page.problems.is_empty(), "{index}: {:?}", page.problems);
            let keys = shops.keys(&query).await?.records.len();
            Ok(vec![page.records.len(), keys, shops.count(&query).await?])
        }
    }
}

async fn two_processes(engine: Arc<dyn Engine>) -> (Store, Store, Collection<Value>) {
    let (ours, theirs) = (Store::on(engine.clone()), Store::on(engine));
    ours.apply(&Schema::from_toml(SCHEMA).unwrap()).await.unwrap();
    let shops = ours.documents("shop").await.unwrap();
    shops.insert(&shop("1")).await.unwrap();
    theirs.documents("shop").await.unwrap().insert(&shop("2")).await.unwrap();
    (ours, theirs, shops)
}

async fn stale_readers_are_told(engine: Arc<dyn Engine>) {
    let (_ours, theirs, shops) = two_processes(engine).await;
    for index in INDEXES {
        assert!(found(&shops, index).await.unwrap().iter().all(|&count| count == 2), "{index}");
    }
    for index in INDEXES {
        theirs.disable("shop", index).await.unwrap();
        // Nobody maintains the index by now, and our process has not written anything since.
        let written = theirs.documents("shop").await.unwrap();
        written.insert(&shop("3")).await.unwrap();
        let error = found(&shops, index).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::IndexNotReady, "{index}: {error}");
        theirs.build("shop", index).await.unwrap();
        assert!(found(&shops, index).await.unwrap().iter().all(|&count| count == 3), "{index}");
        written.delete("3").await.unwrap();
    }
}

#[tokio::test]
async fn an_index_that_another_process_disabled_is_not_read() {
    stale_readers_are_told(Arc::new(Memory::new())).await;
    stale_readers_are_told(Arc::new(Torn::new(Arc::new(Memory::new()), 7))).await;
    let folder = tempfile::tempdir().unwrap();
    let embedded = Embedded::open(folder.path(), EmbeddedOptions::default()).unwrap();
    stale_readers_are_told(Arc::new(embedded)).await;
}

/// An index that was disabled, left alone and built again holds other entries than before.
#[tokio::test]
async fn the_planner_chooses_again_when_its_choice_is_gone() {
    let (_ours, theirs, shops) = two_processes(Arc::new(Memory::new())).await;
    let owned = Query::new().equal("owner", "ana");
    let by_card = shops.explain(&owned).await.unwrap();
    assert!(by_card.starts_with("index shop.card"), "{by_card}");
    theirs.disable("shop", "card").await.unwrap();
    theirs.documents("shop").await.unwrap().insert(&shop("3")).await.unwrap();
    assert_eq!(shops.page(&owned).await.unwrap().records.len(), 3);
    let by_owner = shops.explain(&owned).await.unwrap();
    assert!(by_owner.starts_with("index shop.owner"), "{by_owner}");
}

#[tokio::test]
async fn a_cursor_goes_on_under_a_schema_that_changed_elsewhere() {
    let (_ours, theirs, shops) = two_processes(Arc::new(Memory::new())).await;
    shops.insert(&shop("3")).await.unwrap();
    let owned = Query::new().index("owner").equal("owner", "ana").take(2);
    let first = shops.page(&owned).await.unwrap();
    theirs.disable("shop", "tag").await.unwrap();
    let next = owned.from_cursor(first.next.unwrap());
    let second = shops.page(&next).await.unwrap();
    let ids: Vec<&Value> = second.records.iter().map(|shop| &shop.value["id"]).collect();
    assert_eq!(ids, ["3"]);
}

/// The epoch rides along: no call more than without it.
#[tokio::test]
async fn knowing_that_the_schema_holds_costs_no_round_trip() {
    let metered = Metered::new(Arc::new(Memory::new()));
    let (_ours, _theirs, shops) = two_processes(Arc::new(metered.clone())).await;
    let calls = |usage: Usage| (usage.gets, usage.scans, usage.follows, usage.commits);
    metered.take();
    let by_owner = Query::new().index("owner").equal("owner", "ana");
    shops.page(&by_owner).await.unwrap();
    assert_eq!(calls(metered.take()), (0, 0, 1, 0), "a list");
    shops.page(&Query::new().index("card").equal("owner", "ana")).await.unwrap();
    assert_eq!(calls(metered.take()), (0, 1, 0, 0), "a list of entries that hold the record");
    shops.get_by("code", "c1").await.unwrap().unwrap();
    assert_eq!(calls(metered.take()), (0, 0, 1, 0), "a look-up");
    assert!(shops.get_by("code", "free").await.unwrap().is_none());
    assert_eq!(calls(metered.take()), (0, 0, 1, 0), "a look-up of nothing");
    shops.insert(&shop("9")).await.unwrap();
    assert_eq!(calls(metered.take()), (0, 0, 0, 1), "an insert");
}

/// What a transaction read by an index counts only under the schema that it was read by, also when
/// the closure gives up because of what it saw.
#[tokio::test]
async fn a_transaction_does_not_give_up_over_a_stale_index() {
    let (ours, theirs, _) = two_processes(Arc::new(Memory::new())).await;
    theirs.disable("shop", "code").await.unwrap();
    let elsewhere = theirs.documents("shop").await.unwrap();
    elsewhere.insert(&shop("3")).await.unwrap();
    let look = |tx: keyloom::Transaction| async move {
        let there = tx.documents("shop")?.get_by("code", "c3").await?.is_some();
        if there { Ok(()) } else { Err(Error::new(ErrorKind::Aborted, "there is no such code")) }
    };
    let error = ours.transaction(look).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::IndexNotReady, "{error}");
    theirs.build("shop", "code").await.unwrap();
    ours.transaction(look).await.unwrap();
}

/// What this process knows of the schema does not decide what a transaction may do.
#[tokio::test]
async fn a_transaction_learns_of_what_others_declared() {
    let (ours, theirs, _) = two_processes(Arc::new(Memory::new())).await;
    let more = r#"
        [collection.note]
        key = "note:{id}"
        fields = { id = "text", mood = { type = "enum", values = ["good"] } }
        unique.mood = { key = "mood:{mood}" }
    "#;
    theirs.apply(&Schema::from_toml(more).unwrap()).await.unwrap();
    let good = json!({ "id": "1", "mood": "good" });
    let written = ours.transaction(|tx| {
        let good = good.clone();
        async move { tx.documents("note")?.insert(&good).await }
    });
    written.await.unwrap();

    let even_more = more.replace("[\"good\"]", "[\"good\", \"bad\"]");
    theirs.apply(&Schema::from_toml(&even_more).unwrap()).await.unwrap();
    let bad = json!({ "id": "2", "mood": "bad" });
    let written = ours.transaction(|tx| {
        let bad = bad.clone();
        async move { tx.documents("note")?.upsert(&bad).await }
    });
    written.await.unwrap();

    let by_text = "[collection.note]\nkey = \"note:{id}\"\n\
                   fields = { id = \"text\", text = \"text\" }\n\
                   unique.text = { key = \"text:{text}\" }";
    theirs.apply(&Schema::from_toml(by_text).unwrap()).await.unwrap();
    theirs.build("note", "text").await.unwrap();
    let found =
        ours.transaction(|tx| async move { tx.documents("note")?.get_by("text", "x").await });
    assert!(found.await.unwrap().is_none());

    let mut runs = 0;
    let refused = ours.transaction(|tx| {
        runs += 1;
        async move { tx.documents("nothing").map(drop) }
    });
    assert_eq!(refused.await.unwrap_err().kind(), ErrorKind::InvalidArgument);
    assert_eq!(runs, 1, "a schema that did not change refuses once");
}
