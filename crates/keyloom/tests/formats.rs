//! What docs/formats/values.md and log.md say lies in a store, read without Keyloom's own reading.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests fail by panicking"
)]

use std::time::Duration;

use keyloom::engine::{Address, Area, Cell, Direction, EngineExt, Position, Range, Space};
use keyloom::{Clock, Due, Schema, Store};
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
    let first = posts.insert(&post).await.unwrap().version;
    post["text"] = json!("b");
    let second = posts.replace(&post).await.unwrap().version;

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
    let epoch = cell(&store, Area::own(), "epoch").await.unwrap();
    assert_eq!(epoch.stamp, catalog.stamp);
    let catalog: Value = serde_json::from_slice(catalog.bytes().unwrap()).unwrap();
    let members: Vec<&str> = catalog.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(members, ["format", "epoch", "cursor_secret", "schema", "states", "buildings"]);
    assert_eq!(catalog["format"], 1);
    assert_eq!(epoch.bytes().unwrap()[..], *catalog["epoch"].to_string().as_bytes());
    assert_eq!(catalog["cursor_secret"].as_str().unwrap().len(), 64);
    assert_eq!(catalog["schema"]["collection"]["post"]["key"], "user:{userId}:posts:{postId}");
    assert_eq!(catalog["states"]["post"]["object"], json!({ "state": "ready" }));
    assert_eq!(catalog["buildings"]["post"]["object"], 1);
}

#[tokio::test]
async fn an_entry_of_the_log_has_every_cell() {
    let store = Store::open("memory:").await.unwrap();
    let schema = "[log]\n[collection.note]\nkey = \"note:{id}\"\n\
                  fields = { id = \"text\", n = { type = \"integer\", digits = 1 } }\n\
                  [collection.note.index.n]\nkey = \"n:{n}:{id}\"\n";
    store.apply(&Schema::from_toml(schema).unwrap()).await.unwrap();
    let at_300 = store.with_clock(Clock::new(|| 300)).acting_as("ana").unwrap();
    let notes = at_300.documents("note").await.unwrap();
    notes.insert(&json!({ "id": "1" })).await.unwrap();
    notes.upsert(&json!({ "id": "1", "n": 7 })).await.unwrap();
    let engine = store.engine();
    let next = engine.log_bounds(&Space::main()).await.unwrap().next;
    let from = Position::from_number(next.number() - 2).unwrap();
    let entries = engine.read_log(&Space::main(), from, 2, 9999).await.unwrap().entries;

    let stamp_of = async |key| cell(&store, Area::default_area(), key).await.unwrap().stamp.0;
    let second = stamp_of("note:1").await;
    let mut first = second;
    first[23] = 1;
    let begins = b"\x01\xac\x02\x03ana";
    let inserted = [
        &begins[..],
        &[&[1][..], &first].concat(),
        b"\x01\x00\x06note:1\x01\x00\x0a{\"id\":\"1\"}",
        b"\x01\x04note\x01\x00\x00",
    ];
    assert_eq!(entries[0].bytes, inserted.concat());
    let replaced = [
        &begins[..],
        &[&[2][..], &second, &first].concat(),
        b"\x02\x00\x06note:1\x01\x00\x10{\"id\":\"1\",\"n\":7}",
        b"\x00\x05n:7:1\x01\x00\x03\"1\"",
        b"\x01\x04note\x01\x02\x00",
    ];
    assert_eq!(entries[1].bytes, replaced.concat());
}

const RUNS: &str = r#"
[collection.run]
key        = "run:{flow}:{id}"
expires_at = "ends"

[collection.run.fields]
flow = "text"
id   = "text"
ends = "timestamp"
due  = "timestamp"

[collection.run.index.due]
key = "run-due:{due}:{flow}:{id}"
"#;

#[tokio::test]
async fn ends_and_leases_lie_in_the_area_of_keyloom() {
    let store = Store::open("memory:").await.unwrap();
    let store = store.with_clock(Clock::new(|| 1_700_000_000_000));
    store.apply(&Schema::from_toml(RUNS).unwrap()).await.unwrap();
    let runs = store.documents("run").await.unwrap();
    let run = json!({ "flow": "f", "id": "r1", "ends": 1_700_000_060_000_u64, "due": 7 });
    runs.insert(&run).await.unwrap();
    runs.insert(&json!({ "flow": "f", "id": "without" })).await.unwrap();
    let leased = runs.lease(&Due::new("due"), "worker-1", Duration::from_secs(30)).await.unwrap();
    assert_eq!(leased.items.len(), 1);
    let own = Range::all(Area::own());
    let rows = store.engine().scan(&Space::main(), &[own], 100, Direction::Forward).await.unwrap();
    let shown: Vec<(String, String)> = rows[0]
        .rows
        .iter()
        .map(|row| (row.key.to_vec(), row.cell.bytes().unwrap().to_vec()))
        .map(|(key, value)| (String::from_utf8(key).unwrap(), String::from_utf8(value).unwrap()))
        .filter(|(key, _)| key != "catalog" && key != "epoch")
        .collect();
    // printf run-due:0000000000007:f:r1 | sha256sum
    let hash = "e2021a3103094d2d71ccea5079eb4f24584fc0554e0894d62259e484e899399b";
    let lease =
        r#"{"entry":"run-due:0000000000007:f:r1","owner":"worker-1","until":1700000030000}"#;
    assert_eq!(
        shown,
        [
            ("expiry:run:1700000060000:run:f:r1".to_owned(), r#""run:f:r1""#.to_owned()),
            (format!("lease:run:due:{hash}"), lease.to_owned()),
        ]
    );
}

const NOTES: &str = r#"
[collection.note]
key     = "note:{id}"
history = { days = 9 }
fields  = { id = "text" }
"#;

/// A store whose time stands still, with some notes written by Ana and others.
async fn notes() -> Store {
    let store = Store::open("memory:").await.unwrap().with_clock(Clock::new(|| 1_700_000_000_000));
    store.apply(&Schema::from_toml(NOTES).unwrap()).await.unwrap();
    store
}

/// The keys and values of the own area that begin so.
async fn own_cells(store: &Store, prefix: &'static str) -> Vec<(String, String)> {
    let range = Range::prefix(Area::own(), prefix);
    let found = store.engine().scan(&Space::main(), &[range], 100, Direction::Forward).await;
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    let rows = found.unwrap().remove(0).rows;
    rows.iter().map(|row| (text(&row.key), text(row.cell.bytes().unwrap()))).collect()
}

#[tokio::test]
async fn histories_hold_what_the_page_says() {
    let store = notes().await;
    let by_ana = store.acting_as("ana").unwrap().documents("note").await.unwrap();
    let made = by_ana.insert(&json!({ "id": "1", "text": "before" })).await.unwrap();
    by_ana.update_with_retry("1", &json!({ "text": "after" })).await.unwrap();
    let to = |note: &mut Value| {
        note["id"] = json!("2");
        Ok(())
    };
    let notes = store.documents("note").await.unwrap();
    notes.rename("1", to).await.unwrap();
    notes.delete("2").await.unwrap();

    let version = made.version.to_string();
    let (incarnation, _) = version.split_once('-').unwrap();
    let line = |kind: &str, by: &str, rest: &str| {
        format!("{{\"at\":1700000000000,{by}\"kind\":\"{kind}\",\"key\":{rest}}}")
    };
    let ana = "\"by\":\"ana\",";
    let values = [
        line("created", ana, "\"note:1\""),
        line("updated", ana, "\"note:1\"") + "\n{\"id\":\"1\",\"text\":\"before\"}",
        line("renamed", "", "\"note:2\",\"from\":\"note:1\"")
            + "\n{\"id\":\"1\",\"text\":\"after\"}",
        line("deleted", "", "\"note:2\"") + "\n{\"id\":\"2\",\"text\":\"after\"}",
    ];
    let expected: Vec<(String, String)> = (1..)
        .zip(values)
        .map(|(n, value)| (format!("history:version:note:{incarnation}:{n:020}"), value))
        .collect();
    assert_eq!(own_cells(&store, "history:version:").await, expected);
    let trace = |id: u8, revision: u64| {
        let key = format!("note%3A{id}:1700000000000:{incarnation}:{revision:020}");
        (format!("history:left:note:{key}"), format!("\"note:{id}\""))
    };
    assert_eq!(own_cells(&store, "history:left:").await, [trace(1, 3), trace(2, 4)]);
    let catalog = cell(&store, Area::own(), "catalog").await.unwrap();
    let catalog: Value = serde_json::from_slice(catalog.bytes().unwrap()).unwrap();
    assert_eq!(catalog["history_since"], json!({ "note": 1_700_000_000_000_u64 }));
}

#[tokio::test]
async fn answers_to_keys_hold_what_the_page_says() {
    let store = notes().await;
    let notes = store.acting_as("a:na").unwrap().documents("note").await.unwrap();
    let keyed = notes.with_idempotency_key("k%1").unwrap();
    let made = keyed.insert(&json!({ "id": "1" })).await.unwrap();
    let (key, value) = own_cells(&store, "idempotency:").await.remove(0);
    assert_eq!(key, "idempotency:a%3Ana:k%251");
    let (line, record) = value.split_once('\n').unwrap();
    assert_eq!(record, r#"{"id":"1"}"#);
    // `printf '["insert","note",{"id":"1"}]' | sha256sum`
    let version = made.version;
    let expected = json!({
        "at": 1_700_000_000_000_u64,
        "request": REQUEST,
        "answer": { "record": { "key": "note:1", "version": version.to_string(), "effect": "created" } },
    });
    assert_eq!(line, expected.to_string());
}

const REQUEST: &str = "91e52f3d9594d06887b6afb1dc61f494944cd568e8315e7bd064ddef448bcc8b";

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
    assert_eq!(keys.unwrap()[0].rows.len(), 2 + 3, "the catalog, its epoch, and nothing else");

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
