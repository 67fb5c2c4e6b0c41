//! A page that is said to be fresh is what a new question would get.

#![cfg(feature = "embedded")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests fail by panicking"
)]

use std::sync::Arc;

use keyloom::engine::{Embedded, EmbeddedOptions, Engine, Memory};
use keyloom::{
    Collection, Document, ErrorKind, Freshness, Order, Page, Query, Schema, Store, Test,
};
use proptest::prelude::*;
use serde_json::{Value, json};
use tempfile::TempDir;

const SCHEMA: &str = r#"
[collection.shop]
key = "shop:{id}"

[collection.shop.fields]
id    = "text"
owner = "text"
rank  = { type = "integer", digits = 3 }
"tags.*" = "text"

[collection.shop.index.owner]
key = "by-owner:{owner}:{rank}:{id}"

[collection.shop.index.tag]
key = "by-tag:{tags.*}:{id}"

[collection.shop.index.card]
key = "card:{owner}:{id}"
holds = "record"

[collection.lamp]
key = "lamp:{id}"
expires_at = "until"

[collection.lamp.fields]
id = "text"
until = "timestamp"

[collection.page]
key = "page:{id}"

[collection.page.fields]
id = "text"

[collection.page.counters]
seen = {}
"#;

async fn store() -> (TempDir, Store) {
    let folder = tempfile::tempdir().unwrap();
    let engine = Embedded::open(folder.path(), EmbeddedOptions::default()).unwrap();
    let store = Store::on(Arc::new(engine) as Arc<dyn Engine>);
    store.apply(&Schema::from_toml(SCHEMA).unwrap()).await.unwrap();
    (folder, store)
}

fn shop(id: u8, owner: u8, rank: u16, tag: u8) -> Value {
    let tags = [format!("t{tag}"), format!("t{}", tag + 1)];
    json!({ "id": id.to_string(), "owner": format!("o{owner}"), "rank": rank, "tags": tags })
}

fn questions() -> Vec<Query> {
    let owner = |owner: &str| Query::new().equal("owner", owner);
    vec![
        owner("o0").index("owner").take(3),
        owner("o1").index("owner").order("rank", Order::Descending).take(2),
        owner("o0").index("owner").range("rank", 2..5).take(10),
        owner("o0").index("card").take(3),
        Query::new().equal("tags.*", "t1").take(4),
        Query::new().any("owner", "o0").any("owner", "o1").index("owner").take(5),
        owner("o1").index("owner").filter("rank", Test::AtLeast(3.into())).take(3),
        Query::new().scan().take(4),
        owner("nobody").index("owner").take(3),
    ]
}

/// Everything that a reader sees of a page.
fn seen(page: &Page<Document>) -> Vec<(String, String, Vec<u8>)> {
    let all = page.records.iter();
    let mut seen: Vec<_> =
        all.map(|it| (it.key.to_string(), it.version.to_string(), it.text().to_vec())).collect();
    let ends = format!("{:?} {} {:?}", page.stopped, page.read, page.problems);
    let next = page.next.as_ref().map(ToString::to_string).unwrap_or_default();
    seen.push((ends, next, Vec::new()));
    seen
}

async fn holds(freshness: Option<&Freshness>) -> bool {
    match freshness {
        Some(freshness) => freshness.holds().await.unwrap(),
        None => false,
    }
}

#[derive(Clone, Debug)]
enum Act {
    Put(u8, u8, u16, u8),
    Delete(u8),
    Ask(usize),
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let act = prop_oneof![
        2 => (0_u8..8, 0_u8..3, 0_u16..6, 0_u8..3).prop_map(|(id, o, r, t)| Act::Put(id, o, r, t)),
        1 => (0_u8..8).prop_map(Act::Delete),
        6 => (0..questions().len()).prop_map(Act::Ask),
    ];
    prop::collection::vec(act, 1..80)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn fresh_pages_are_those_that_a_new_question_gets(acts in acts()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let (_folder, store) = store().await;
            let shops: Collection<Value> = store.documents("shop").await.unwrap();
            let questions = questions();
            let mut kept: Vec<(usize, Page<Document>)> = Vec::new();
            for act in acts {
                match act {
                    Act::Put(id, owner, rank, tag) => {
                        drop(shops.upsert(&shop(id, owner, rank, tag)).await.unwrap());
                    }
                    Act::Delete(id) => drop(shops.delete(id.to_string()).await.unwrap()),
                    Act::Ask(at) => kept.push((at, shops.documents(&questions[at]).await.unwrap())),
                }
                for (at, page) in &kept {
                    if holds(page.freshness.as_ref()).await {
                        let now = shops.documents(&questions[*at]).await.unwrap();
                        assert_eq!(seen(&now), seen(page), "{:?}", questions[*at]);
                    }
                }
            }
        });
    }
}

#[tokio::test]
async fn a_page_stays_fresh_until_something_of_it_changes() {
    let (_folder, store) = store().await;
    let shops: Collection<Value> = store.documents("shop").await.unwrap();
    for id in 0..6 {
        shops.insert(&shop(id, id % 2, 1, 0)).await.unwrap();
    }
    for question in questions() {
        let page = shops.documents(&question).await.unwrap();
        assert!(holds(page.freshness.as_ref()).await, "{question:?}");
    }
    let question = &questions()[0];
    let page = shops.documents(question).await.unwrap();
    shops.upsert(&shop(1, 1, 2, 0)).await.unwrap();
    assert!(holds(page.freshness.as_ref()).await, "of another owner");
    let changed = json!({ "id": "0", "owner": "o0", "rank": 1, "tags": ["t0", "t1"], "new": 1 });
    shops.upsert(&changed).await.unwrap();
    assert!(!holds(page.freshness.as_ref()).await, "a record of the page, in the same place");
    let page = shops.documents(question).await.unwrap();
    shops.insert(&shop(7, 0, 0, 0)).await.unwrap();
    assert!(!holds(page.freshness.as_ref()).await, "a record before those of the page");
    let keys = shops.keys(question).await.unwrap();
    assert!(holds(keys.freshness.as_ref()).await);
    shops.delete("0").await.unwrap();
    assert!(!holds(keys.freshness.as_ref()).await, "a key of the page");
}

#[tokio::test]
async fn a_change_of_the_schema_by_anybody_ends_it() {
    let (_folder, store) = store().await;
    let shops: Collection<Value> = store.documents("shop").await.unwrap();
    shops.insert(&shop(0, 0, 0, 0)).await.unwrap();
    let page = shops.documents(&questions()[0]).await.unwrap();
    assert!(holds(page.freshness.as_ref()).await);
    // Another process is another store on the engine.
    let other = Store::on(store.engine().clone());
    other.disable("shop", "owner").await.unwrap();
    assert!(!holds(page.freshness.as_ref()).await);
}

#[tokio::test]
async fn what_only_time_or_counters_change_is_never_said_to_be_fresh() {
    let (_folder, store) = store().await;
    let everything = Query::new().scan();
    let lamps: Collection<Value> = store.documents("lamp").await.unwrap();
    let pages: Collection<Value> = store.documents("page").await.unwrap();
    lamps.insert(&json!({ "id": "1", "until": 9_999_999_999_999_u64 })).await.unwrap();
    pages.insert(&json!({ "id": "1" })).await.unwrap();
    assert!(lamps.documents(&everything).await.unwrap().freshness.is_none());
    assert!(lamps.keys(&everything).await.unwrap().freshness.is_none());
    assert!(pages.documents(&everything).await.unwrap().freshness.is_none());
    assert!(pages.keys(&everything).await.unwrap().freshness.is_some(), "keys have no counters");
}

#[tokio::test]
async fn a_closed_store_knows_of_nothing_fresh() {
    let (_folder, store) = store().await;
    let shops: Collection<Value> = store.documents("shop").await.unwrap();
    let page = shops.documents(&questions()[0]).await.unwrap();
    store.close().await.unwrap();
    let error = page.freshness.unwrap().holds().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Closed);
}

#[tokio::test]
async fn an_engine_without_witnesses_gives_pages_without_freshness() {
    let store = Store::on(Arc::new(Memory::new()) as Arc<dyn Engine>);
    store.apply(&Schema::from_toml(SCHEMA).unwrap()).await.unwrap();
    let shops: Collection<Value> = store.documents("shop").await.unwrap();
    shops.insert(&shop(0, 0, 0, 0)).await.unwrap();
    assert!(shops.documents(&questions()[0]).await.unwrap().freshness.is_none());
}
