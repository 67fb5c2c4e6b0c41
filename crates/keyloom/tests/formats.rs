//! What docs/formats/values.md says lies in a store, read without Keyloom's own reading.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests fail by panicking"
)]

use keyloom::engine::{Address, Area, Cell, Direction, Range, Space};
use keyloom::{Schema, Store};
use serde_json::{Value, json};

const POSTS: &str = r#"
[collection.post]
key = "user:{userId}:posts:{postId}"

[collection.post.fields]
userId = "text"
postId = "text"
stars  = { type = "integer", digits = 2 }
slug   = "text"

[collection.post.index.field]
key   = "field:{stars}:{userId}:{postId}"
holds = "stars"

[collection.post.index.whole_key]
key   = "key:{stars}:{userId}:{postId}"
holds = "key"

[collection.post.index.object]
key   = "object:{stars}:{userId}:{postId}"
holds = "{postId, userId}"

[collection.post.index.covering]
key   = "record:{stars}:{userId}:{postId}"
holds = "record"

[collection.post.index.default]
key = "default:{userId}:{postId}"

[collection.post.unique.slug]
key = "slug:{slug}"
"#;

async fn posts() -> Store {
    let store = Store::open("memory:").await.unwrap();
    store.apply(&Schema::from_toml(POSTS).unwrap()).await.unwrap();
    store
}

async fn cell(store: &Store, area: Area, key: &str) -> Option<Cell> {
    let address = Address::new(area, key.as_bytes().to_vec());
    store.engine().get(&Space::main(), &[address]).await.unwrap().pop().unwrap()
}

async fn text(store: &Store, key: &str) -> Option<String> {
    let cell = cell(store, Area::default_area(), key).await?;
    Some(String::from_utf8(cell.bytes().unwrap().to_vec()).unwrap())
}

#[tokio::test]
async fn records_and_entries_hold_what_the_page_says() {
    let store = posts().await;
    let posts = store.documents("post").await.unwrap();
    let post = json!({ "userId": "ana", "postId": "p1", "stars": 3 });
    posts.insert(&post).await.unwrap();
    let record = r#"{"userId":"ana","postId":"p1","stars":3}"#;
    for (key, value) in [
        ("user:ana:posts:p1", record),
        ("field:03:ana:p1", "3"),
        ("key:03:ana:p1", r#""user:ana:posts:p1""#),
        ("object:03:ana:p1", r#"{"postId":"p1","userId":"ana"}"#),
        ("record:03:ana:p1", record),
        ("default:ana:p1", r#""user:ana:posts:p1""#),
    ] {
        assert_eq!(text(&store, key).await.as_deref(), Some(value), "{key}");
    }
    let everything = Range::all(Area::default_area());
    let keys = store.engine().scan(&Space::main(), &[everything], 100, Direction::Forward).await;
    assert_eq!(keys.unwrap()[0].rows.len(), 6, "and nothing else");
}

#[tokio::test]
async fn stamps_are_versions() {
    let store = posts().await;
    let posts = store.documents("post").await.unwrap();
    let mut post = json!({ "userId": "ana", "postId": "p1", "stars": 3, "text": "a" });
    let first = posts.insert(&post).await.unwrap().version();
    post["text"] = json!("b");
    let second = posts.replace(&post).await.unwrap().version();

    let shown = |cell: &Cell| {
        let hex: String = cell.stamp.0[..16].iter().map(|byte| format!("{byte:02x}")).collect();
        format!("{hex}-{}", u64::from_be_bytes(cell.stamp.0[16..].try_into().unwrap()))
    };
    let at = async |key| cell(&store, Area::default_area(), key).await.unwrap();
    assert_eq!(shown(&at("user:ana:posts:p1").await), second.to_string());
    assert_eq!(shown(&at("record:03:ana:p1").await), second.to_string(), "its value changed");
    assert_eq!(shown(&at("key:03:ana:p1").await), first.to_string(), "it was not touched");
    assert!(first.to_string().ends_with("-1") && second.to_string().ends_with("-2"));
}

#[tokio::test]
async fn counters_are_cells_of_integers_in_the_area_of_keyloom() {
    let store = Store::open("memory:").await.unwrap();
    let schema = r#"
        [collection.flow]
        key = "flow:stats:{flow}"
        fields = { flow = "text" }
        counters = { "stats.running" = {}, "hits.*" = {} }
        [collection.tenant]
        key = "{id raw}"
        area = "tenants"
        fields = { id = "text" }
        counters = { used = {} }
    "#;
    store.apply(&Schema::from_toml(schema).unwrap()).await.unwrap();
    let flows = store.documents("flow").await.unwrap();
    flows.insert(&json!({ "flow": "mail", "stats": { "running": 0 } })).await.unwrap();
    assert!(cell(&store, Area::own(), "counter::flow:stats:mail").await.is_none());
    flows.increment("mail", [("hits.a", 4), ("stats.running", -2)]).await.unwrap();
    let tenants = store.documents("tenant").await.unwrap();
    tenants.insert(&json!({ "id": "a:b" })).await.unwrap();
    tenants.increment("a:b", [("used", 1)]).await.unwrap();
    for (key, values) in [
        ("counter::flow:stats:mail", &[("hits.a", 4), ("stats.running", -2)][..]),
        ("counter:tenants:a:b", &[("used", 1)]),
    ] {
        let cell = cell(&store, Area::own(), key).await.unwrap();
        let found = cell.integers().unwrap().iter().map(|(name, value)| (name.as_str(), *value));
        assert_eq!(found.collect::<Vec<_>>(), values, "{key}");
    }
    assert_eq!(text(&store, "flow:stats:mail").await.unwrap(), r#"{"flow":"mail"}"#);
}

#[tokio::test]
async fn the_catalog_is_a_document() {
    let store = posts().await;
    let catalog = cell(&store, Area::own(), "catalog").await.unwrap();
    let catalog: Value = serde_json::from_slice(catalog.bytes().unwrap()).unwrap();
    let members: Vec<&str> = catalog.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(members, ["format", "epoch", "cursor_secret", "schema", "states"]);
    assert_eq!(catalog["format"], 1);
    assert_eq!(catalog["cursor_secret"].as_str().unwrap().len(), 64);
    assert_eq!(catalog["schema"]["collection"]["post"]["key"], "user:{userId}:posts:{postId}");
    assert_eq!(catalog["states"]["post"]["object"], json!({ "state": "ready" }));
}

#[tokio::test]
async fn counts_and_sums_hold_what_the_page_says() {
    let store = Store::open("memory:").await.unwrap();
    let aggregates = r#"
        count.by_stars = { group = ["stars"] }
        count.all = { group = [] }
        sum.stars = { field = "stars", group = ["userId", "postId"] }
    "#;
    let schema = POSTS
        .replace("\n[collection.post.fields]", &format!("{aggregates}\n[collection.post.fields]"));
    store.apply(&Schema::from_toml(&schema).unwrap()).await.unwrap();
    let posts = store.documents("post").await.unwrap();
    let post = json!({ "userId": "a:b", "postId": "p1", "stars": 3 });
    posts.insert(&post).await.unwrap();
    let own = async |key: &str| {
        let cell = cell(&store, Area::own(), key).await;
        cell.map(|cell| cell.integers().unwrap().clone().into_iter().collect::<Vec<_>>())
    };
    let n = |n| ("n".to_owned(), n);
    assert_eq!(own("aggregate:post:by_stars:1:03:0").await, Some(vec![n(1)]));
    assert_eq!(own("aggregate:post:all:1:0").await, Some(vec![n(1)]));
    let sum = Some(vec![n(1), ("sum".to_owned(), 3)]);
    assert_eq!(own("aggregate:post:stars:1:a:b!:p1!:0").await, sum);
    let everything = Range::all(Area::own());
    let keys = store.engine().scan(&Space::main(), &[everything], 100, Direction::Forward).await;
    assert_eq!(keys.unwrap()[0].rows.len(), 1 + 3, "the catalog, and nothing else");

    store.recount("post", "by_stars").await.unwrap();
    assert_eq!(own("aggregate:post:by_stars:1:03:0").await, None);
    assert_eq!(own("aggregate:post:by_stars:2:03:0").await, Some(vec![n(1)]));
    let catalog = cell(&store, Area::own(), "catalog").await.unwrap();
    let catalog: Value = serde_json::from_slice(catalog.bytes().unwrap()).unwrap();
    let generations =
        json!({ "post": { "by_stars": { "current": { "number": 2, "cells": 1 }, "last": 2 } } });
    assert_eq!(catalog["generations"], generations);
    assert_eq!(catalog["states"]["post"]["by_stars"], json!({ "state": "ready" }));
}
