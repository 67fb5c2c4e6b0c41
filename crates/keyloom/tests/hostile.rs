//! Hostile input: what cannot be kept is refused by name, nothing panics, and what is kept comes
//! back as it was.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests fail by panicking"
)]

mod long;

use std::sync::LazyLock;
use std::time::Duration;

use keyloom::{
    Collection, Due, Effect, Error, ErrorKind, GroupQuery, Near, Order, Query, Schema, Store,
    Transaction, Version,
};
use proptest::prelude::*;
use serde_json::{Value, json};

const SCHEMA: &str = r#"
[collection.item]
key     = "item:{owner}:{id}"
history = { versions = 5 }
[collection.item.fields]
owner   = "text"
id      = "text"
email   = "text"
at      = "timestamp"
when    = "datetime"
score   = "float"
rank    = { type = "integer", digits = 4 }
flag    = "boolean"
state   = { type = "enum", values = ["a", "b"] }
uid     = { type = "uuid", version = 4 }
place   = "point"
steps   = "map"
"tags.*" = "text"
"steps.*.at" = "timestamp"
[collection.item.counters]
"stats.*" = {}
total     = { min = 0, max = 10 }
[collection.item.unique.email]
key = "email:{email}"
[collection.item.index.at]
key = "at:{owner}:{at desc}:{id}"
[collection.item.index.when]
key = "when:{when}:{owner}:{id}"
[collection.item.index.score]
key = "score:{score}:{owner}:{id}"
[collection.item.index.rank]
key = "rank:{rank}:{owner}:{id}"
[collection.item.index.flag]
key = "flag:{flag}:{state}:{owner}:{id}"
[collection.item.index.uid]
key = "uid:{uid}:{owner}:{id}"
[collection.item.index.tag]
key = "tag:{tags.*}:{owner}:{id}"
max = 4
[collection.item.index.step]
key = "step:{steps.*.at}:{owner}:{id}:{steps.*key}"
[collection.item.geo.place]
key = "geo:{place geohash 6}:{owner}:{id}"
[collection.item.count.states]
group = ["state", "owner"]
"#;

static COMPILED: LazyLock<Schema> = LazyLock::new(|| Schema::from_toml(SCHEMA).unwrap());

async fn items() -> (Store, Collection<Value>) {
    let store = Store::open("memory:").await.unwrap();
    store.apply(&COMPILED).await.unwrap();
    let items = store.documents("item").await.unwrap();
    (store, items)
}

/// Strings that break naive keys.
const STRINGS: [&str; 16] = [
    "",
    ":",
    "%",
    "%3A",
    "%2",
    "a:b",
    "\0",
    "a\0b",
    "\u{7f}",
    "é",
    "e\u{301}",
    "аna",
    "ana ",
    "..",
    "\u{202e}ana",
    "𐍈\u{ffff}",
];

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        3 => prop::sample::select(&STRINGS[..]).prop_map(str::to_owned),
        1 => ".{0,12}".prop_map(|text: String| text),
        1 => (1..1_200_usize).prop_map(|length| "x".repeat(length)),
    ]
}

/// Any JSON, near what a field expects and far from it.
fn value() -> impl Strategy<Value = Value> {
    prop_oneof![
        text().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(|number| json!(number)),
        (-2..2_i64).prop_map(|number| json!(9_999_999_999_999 + number)),
        Just(json!(-1)),
        Just(json!(-0.0)),
        Just(json!(1000.0)),
        Just(json!(null)),
        any::<bool>().prop_map(Value::from),
        Just(json!("2024-02-30T00:00:00.000Z")),
        Just(json!("2024-02-29T23:59:60.000Z")),
        Just(json!("2024-02-29T23:59:59.000Z")),
        Just(json!("c232ab00-9414-11ec-b3c8-9f6bdeced846")),
        Just(json!("c232ab00941441ecb3c89f6bdeced846")),
        Just(json!("c232ab0094144fff03c89f6bdeced846")),
        Just(json!({ "lat": 91, "lon": 0 })),
        Just(json!({ "lat": "1", "lon": 0 })),
        Just(json!({ "lat": -90, "lon": 180.0 })),
        prop::collection::vec(text(), 0..6).prop_map(|texts| json!(texts)),
        Just(json!([null, "a", "a", 5])),
        Just(json!([["a"]])),
        Just(json!({ "a.b": { "at": 5 }, "": { "at": 6 }, ":%": { "at": 7 } })),
        Just(json!({ "a": { "at": -1 } })),
        Just(json!({ "a": 5 })),
    ]
}

const FIELDS: [&str; 14] = [
    "owner", "id", "email", "at", "when", "score", "rank", "flag", "state", "uid", "place",
    "steps", "tags", "free",
];

fn record() -> impl Strategy<Value = Value> {
    prop::collection::vec((prop::sample::select(&FIELDS[..]), value()), 0..8).prop_map(|members| {
        let mut record = json!({ "owner": "ana", "id": "1" });
        members.into_iter().for_each(|(name, value)| record[name] = value);
        record
    })
}

/// The record as it is kept: whole numbers are written as such where they are declared.
fn as_kept(record: &Value) -> Value {
    let mut kept = record.clone();
    for field in ["at", "rank"] {
        if let Some(number) = record[field].as_f64().filter(|_| record[field].is_f64()) {
            kept[field] = json!(number as i64);
        }
    }
    kept
}

fn wait<F: Future>(future: F) -> F::Output {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(future)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: long::times(100), ..ProptestConfig::default() })]

    /// What is accepted comes back as it was by every way in, and what is refused leaves nothing.
    #[test]
    fn a_record_is_kept_whole_or_refused_by_name(record in record()) {
        wait(async {
            let (store, items) = items().await;
            match items.insert(&record).await {
                Ok(document) => {
                    let mut kept = document.value().unwrap();
                    let key = (record["owner"].clone(), record["id"].clone());
                    let found = items.get(vec![key.0, key.1]).await.unwrap().unwrap().into_value();
                    assert_eq!(kept, found);
                    // Counters are shown, and are no part of what was written.
                    kept.as_object_mut().unwrap().remove("total");
                    kept.as_object_mut().unwrap().remove("stats");
                    let text = |value: &Value| value.to_string();
                    assert_eq!(text(&kept), text(&as_kept(&record)));
                    let page = items.page(&Query::new().scan()).await.unwrap();
                    assert_eq!((page.records.len(), page.problems.len()), (1, 0));
                    for field in ["at", "when", "score", "rank", "uid"] {
                        if record[field].is_null() {
                            continue;
                        }
                        let mut query = Query::new().equal(field, record[field].clone());
                        if field == "at" {
                            query = query.equal("owner", record["owner"].clone());
                        }
                        let page = items.page(&query).await.unwrap();
                        assert_eq!(page.records.len(), 1, "{field} of {record}");
                    }
                }
                Err(error) => {
                    let told = error.to_string();
                    assert!(told.contains("item"), "it names the collection: {told}");
                    let named = FIELDS.iter().any(|field| told.contains(field));
                    assert!(named || told.contains("bytes"), "it names the field: {told}");
                    assert!(told.len() < 2_000, "it is short enough to be read");
                }
            }
            let verification = store.verify().await.unwrap();
            assert!(verification.is_clean(), "{:?}", verification.findings);
        });
    }

    /// A patch is merged or refused; either way nothing drifts.
    #[test]
    fn a_patch_is_merged_or_refused(first in record(), patch in prop_oneof![record(), value()]) {
        wait(async {
            let (store, items) = items().await;
            let base = json!({ "owner": "ana", "id": "1", "tags": ["t"], "at": 5, "state": "a" });
            items.insert(&base).await.unwrap();
            items.increment(("ana", "1"), [("stats.x", 2)]).await.unwrap();
            drop(items.upsert(&first).await);
            let before = items.get(("ana", "1")).await.unwrap().unwrap().into_value();
            match items.update_with_retry(("ana", "1"), &patch).await {
                Ok(written) => {
                    let now = written.value().unwrap();
                    assert_eq!(now["stats"], before["stats"]);
                    if written.effect == Effect::Unchanged {
                        assert_eq!(now, before);
                    }
                }
                Err(_) => {
                    let now = items.get(("ana", "1")).await.unwrap().unwrap().into_value();
                    assert_eq!(now, before);
                }
            }
            assert!(store.verify().await.unwrap().is_clean());
        });
    }

    /// Any question is answered rightly or refused.
    #[test]
    fn a_question_is_answered_or_refused(
        equal in prop::collection::vec((prop::sample::select(&FIELDS[..]), value()), 0..3),
        ranged in prop::option::of((prop::sample::select(&FIELDS[..]), value(), value())),
        order in prop::option::of(prop::sample::select(&FIELDS[..])),
        cursor in prop::option::of(text()),
        (take, limit, scan) in (0..3_usize, prop::option::of(0..3_usize), any::<bool>()),
    ) {
        wait(async {
            let (_, items) = items().await;
            let base = json!({
                "owner": "ana", "id": "1", "at": 5, "score": 1.5, "rank": 3, "state": "a",
                "email": ":", "flag": true,
            });
            items.insert(&base).await.unwrap();
            let mut query = Query::new().take(take);
            for (field, value) in &equal {
                query = query.equal(field, value.clone());
            }
            if let Some((field, from, to)) = ranged {
                query = query.range(field, from..to);
            }
            if let Some(field) = order {
                query = query.order(field, Order::Descending);
            }
            if let Some(limit) = limit {
                query = query.limit(limit);
            }
            if let Some(cursor) = cursor {
                query = query.from_cursor(cursor);
            }
            if scan {
                query = query.scan();
            }
            if let Ok(page) = items.page(&query).await {
                for record in page.records {
                    for (field, value) in &equal {
                        assert_eq!(&record.value[*field], value, "{query:?}");
                    }
                }
            }
            let _ = items.count(&query).await;
            let _ = items.keys(&query).await;
            let _ = items.explain(&query).await;
        });
    }
}

fn refused<T: std::fmt::Debug>(answer: Result<T, Error>, kind: ErrorKind) -> Error {
    let error = answer.unwrap_err();
    assert_eq!(error.kind(), kind, "{error}");
    error
}

#[tokio::test]
async fn every_bit_of_a_cursor_is_sealed() {
    let (store, items) = items().await;
    for n in 0..5 {
        items.insert(&json!({ "owner": "ana", "id": n.to_string(), "at": n })).await.unwrap();
    }
    let query = Query::new().equal("owner", "ana").order("at", Order::Descending).take(2);
    let cursor = items.page(&query).await.unwrap().next.unwrap().to_string();
    let opened = async |text: String| items.page(&query.clone().from_cursor(text)).await;
    assert_eq!(opened(cursor.clone()).await.unwrap().records.len(), 2);
    for place in 0..cursor.len() {
        for other in ["A", "z", "_", "=", "\0"] {
            let mut altered = cursor.clone();
            altered.replace_range(place..=place, other);
            if altered != cursor {
                assert!(opened(altered).await.is_err(), "{place} {other}");
            }
        }
        assert!(opened(cursor[..place].to_owned()).await.is_err(), "cut at {place}");
    }
    for longer in [format!("{cursor}A"), format!("{cursor}="), format!(" {cursor}")] {
        refused(opened(longer).await, ErrorKind::InvalidCursor);
    }
    let elsewhere = store.space("other").unwrap();
    elsewhere.apply(&Schema::from_toml(SCHEMA).unwrap()).await.unwrap();
    let others = elsewhere.documents("item").await.unwrap();
    refused(others.page(&query.clone().from_cursor(&cursor)).await, ErrorKind::InvalidCursor);
    let acting = items.acting_as("ana").unwrap();
    refused(acting.page(&query.clone().from_cursor(&cursor)).await, ErrorKind::InvalidCursor);
    let other = Query::new().equal("owner", "ben").order("at", Order::Descending).take(2);
    refused(items.page(&other.from_cursor(&cursor)).await, ErrorKind::InvalidCursor);
}

#[tokio::test]
async fn counters_take_any_name_that_can_be_shown_and_no_other() {
    let (store, items) = items().await;
    items.insert(&json!({ "owner": "ana", "id": "1" })).await.unwrap();
    let add = |name: &str, delta: i64| items.increment(("ana", "1"), [(name.to_owned(), delta)]);
    for name in STRINGS.iter().filter(|name| !name.is_empty()) {
        if name.chars().any(char::is_control) {
            refused(add(&format!("stats.{name}"), 1).await, ErrorKind::InvalidArgument);
            continue;
        }
        add(&format!("stats.{name}"), 1).await.unwrap();
        let shown = items.get(("ana", "1")).await.unwrap().unwrap().into_value();
        assert_eq!(shown["stats"][*name], 1, "{name:?}");
    }
    for name in ["", "stats", "stats.", "stats.*", ".stats", "Stats.a", "total.a", "nothing"] {
        refused(add(name, 1).await, ErrorKind::InvalidArgument);
    }
    let twice = [("stats.big", i64::MAX), ("stats.big", 1)];
    assert!(items.increment(("ana", "1"), twice).await.is_err());
    for (name, delta) in [("total", -1), ("total", 11), ("stats.low", i64::MIN)] {
        let _ = add(name, delta).await;
    }
    refused(add("total", 11).await, ErrorKind::OutOfBounds);
    refused(add("stats.low", -1).await, ErrorKind::OutOfBounds);
    let long = format!("stats.{}", "x".repeat(500_000));
    let error = refused(add(&long, 1).await, ErrorKind::InvalidArgument).to_string();
    assert!(error.contains("255 bytes") && error.len() < 1_000, "{error}");
    // As many as fit, and then an error that changes nothing.
    let many: Vec<(String, i64)> =
        (0..40_000).map(|n| (format!("stats.{n:06}-{}", "x".repeat(9)), 1)).collect();
    refused(items.increment(("ana", "1"), many).await, ErrorKind::LimitExceeded);
    let shown = items.get(("ana", "1")).await.unwrap().unwrap().into_value();
    assert!(shown["stats"].as_object().unwrap().len() < 30);
    assert!(store.verify().await.unwrap().is_clean());
}

/// JSON does not tell 5.0 from 5: neither do keys, questions and look-ups.
#[tokio::test]
async fn a_whole_number_is_one_however_it_is_written() {
    let schema = r#"
        [collection.n]
        key = "n:{id}"
        fields = { id = "integer", at = "timestamp" }
        unique.at = { key = "at:{at}" }
    "#;
    let store = Store::open("memory:").await.unwrap();
    store.apply(&Schema::from_toml(schema).unwrap()).await.unwrap();
    let numbers = store.documents("n").await.unwrap();
    let kept = numbers.insert(&json!({ "id": 5.0, "at": -0.0 })).await.unwrap();
    assert_eq!(String::from_utf8_lossy(kept.text()), r#"{"id":5,"at":0}"#);
    for id in [json!(5), json!(5.0)] {
        assert!(numbers.get(id.clone()).await.unwrap().is_some(), "{id}");
        for query in
            [Query::new().equal("id", id.clone()), Query::new().range("id", id.clone()..=id)]
        {
            assert_eq!(numbers.count(&query).await.unwrap(), 1);
        }
    }
    assert!(numbers.get_by("at", json!(0.0)).await.unwrap().is_some());
    for wrong in [json!(5.5), json!(1e19), json!("5")] {
        assert_eq!(numbers.get(wrong).await.unwrap_err().kind(), ErrorKind::InvalidKey);
    }
}

#[tokio::test]
async fn odd_arguments_are_errors() {
    let (store, items) = items().await;
    items.insert(&json!({ "owner": "ana", "id": "1", "state": "a" })).await.unwrap();
    for (lat, lon) in [(f64::NAN, 0.0), (0.0, f64::INFINITY), (90.1, 0.0), (0.0, -180.1)] {
        refused(items.near(&Near::new(lat, lon)).await, ErrorKind::InvalidQuery);
    }
    for radius in [f64::NAN, -1.0, f64::NEG_INFINITY] {
        refused(items.near(&Near::new(0.0, 0.0).within(radius)).await, ErrorKind::InvalidQuery);
    }
    assert!(items.near(&Near::new(90.0, 180.0).within(f64::INFINITY)).await.is_ok());
    for take in [0, usize::MAX] {
        assert!(items.history(("ana", "1"), take, None).await.is_err());
        assert!(items.groups(&GroupQuery::new("states").take(take)).await.is_err());
        let due = Due::new("step").take(take);
        assert!(items.lease(&due, "w", Duration::from_secs(1)).await.is_err());
    }
    assert!(items.top_groups(&GroupQuery::new("states"), usize::MAX).await.is_ok());
    let due = Due::new("step");
    for worker in ["", &"w".repeat(256)] {
        refused(
            items.lease(&due, worker, Duration::from_secs(1)).await,
            ErrorKind::InvalidArgument,
        );
    }
    refused(items.lease(&due, "w", Duration::ZERO).await, ErrorKind::InvalidArgument);
    assert!(items.lease(&due, "\0:%", Duration::MAX).await.is_ok());
    for text in ["", "-", "x", "1-1", &format!("{}-", "0".repeat(32)), &"f".repeat(99)] {
        assert!(text.parse::<Version>().is_err(), "{text}");
    }
    for name in ["", "~", "a b", "a/b", "é", "\0", &"s".repeat(65)] {
        refused(store.space(name).map(drop), ErrorKind::InvalidArgument);
        if !name.is_empty() {
            refused(store.plain().in_area(name).map(drop), ErrorKind::InvalidArgument);
        }
    }
    for key in [vec![], vec![b'k'; 901]] {
        assert!(store.plain().put(&key, "x").await.is_err());
        assert!(store.plain().get(&key).await.is_err());
        assert!(store.plain().delete(&key).await.is_err());
    }
    store.plain().put([0xff, 0, 0xfe], vec![0, 0xff]).await.unwrap();
    assert_eq!(store.plain().get([0xff, 0, 0xfe]).await.unwrap().unwrap()[..], [0, 0xff]);
}

#[tokio::test]
async fn depth_and_size_are_limited_with_clear_errors() {
    let (store, items) = items().await;
    items.insert(&json!({ "owner": "ana", "id": "1" })).await.unwrap();
    let mut deep = json!(1);
    for _ in 0..900 {
        deep = json!({ "a": deep });
    }
    let patch = json!({ "free": deep });
    let error =
        refused(items.update_with_retry(("ana", "1"), &patch).await, ErrorKind::InvalidRecord);
    assert!(error.to_string().contains("100"), "{error}");
    let large = json!({ "free": "x".repeat(400_000) });
    refused(items.update_with_retry(("ana", "1"), &large).await, ErrorKind::LimitExceeded);
    let mut whole = json!({ "owner": "ana", "id": "2" });
    whole["free"] = patch["free"].clone();
    assert!(items.insert(&whole).await.is_err());
    assert!(items.upsert(&whole).await.is_err());
    assert!(store.plain().put("item:ana:2", whole.to_string()).await.is_err());
    assert!(store.verify().await.unwrap().is_clean());
}

#[tokio::test]
async fn dotted_names_are_refused_in_patches_but_inside_maps() {
    let (_, items) = items().await;
    let sound = json!({ "owner": "ana", "id": "1", "steps": { "a.b": { "at": 5 } } });
    let version = items.insert(&sound).await.unwrap().version;
    // The nested form of a counter would be refused as well.
    for (patch, advice) in [
        (json!({ "stats.x": 5 }), "increment(key, [(\"stats.x\", delta)])"),
        (json!({ "free": { "a.b": 5 } }), "{"),
        (json!({ "free": { "a": { "b": { "c.": 5 } } } }), "{"),
        (json!({ "a.b": null }), "{"),
        (json!({ ".": 1 }), "{"),
        (json!({ "steps": { "a.b": { "at.x": 1 } } }), "{"),
    ] {
        for answer in [
            items.update_with_retry(("ana", "1"), &patch).await,
            items.update(("ana", "1"), &patch, version).await,
        ] {
            let error = refused(answer, ErrorKind::InvalidRecord);
            let instead = error.context_value("instead").map(str::to_owned).unwrap_or_default();
            assert!(instead.starts_with(advice), "what works is shown: {error}");
        }
    }
    let more = json!({ "steps": { "a.b": { "at": 6 }, "..": { "at": 7 } } });
    let now = items.update_with_retry(("ana", "1"), &more).await.unwrap().value().unwrap();
    assert_eq!((&now["steps"]["a.b"]["at"], &now["steps"][".."]["at"]), (&json!(6), &json!(7)));
}

#[tokio::test]
async fn unique_values_pass_between_records_in_one_transaction_and_never_double() {
    let (store, items) = items().await;
    for (id, email) in [("1", "é"), ("2", "e\u{301}")] {
        items.insert(&json!({ "owner": "ana", "id": id, "email": email })).await.unwrap();
    }
    let swap = |transaction: Transaction| async move {
        let items = transaction.documents("item")?;
        let mut one = items.get(("ana", "1")).await?.unwrap().into_value();
        let mut two = items.get(("ana", "2")).await?.unwrap().into_value();
        let (first, second) = (one["email"].clone(), two["email"].clone());
        (one["email"], two["email"]) = (second, first);
        items.replace(&one).await?;
        items.replace(&two).await?;
        Ok::<_, Error>(())
    };
    store.transaction(swap).await.unwrap();
    assert_eq!(items.get_by("email", "é").await.unwrap().unwrap()["id"], "2");
    assert_eq!(items.get_by("email", "e\u{301}").await.unwrap().unwrap()["id"], "1");
    let double = |transaction: Transaction| async move {
        let items = transaction.documents("item")?;
        for id in ["3", "4"] {
            items.insert(&json!({ "owner": "ana", "id": id, "email": "same" })).await?;
        }
        Ok::<_, Error>(())
    };
    let error = refused(store.transaction(double).await, ErrorKind::UniqueConflict);
    assert!(error.to_string().contains("email") && error.to_string().contains("same"), "{error}");
    assert!(store.verify().await.unwrap().is_clean());
}

#[tokio::test]
async fn a_body_schema_reaches_nothing_outside() {
    for reference in ["http://127.0.0.1:9/x", "file:///etc/hostname", "relative.json"] {
        let text = format!(
            "[collection.x]\nkey = \"x:{{id}}\"\nfields = {{ id = \"text\" }}\n\
             body = {{ properties = {{ a = {{ \"$ref\" = \"{reference}\" }} }} }}"
        );
        let loaded = Schema::from_toml(&text);
        assert_eq!(loaded.unwrap_err().kind(), ErrorKind::InvalidSchema, "{reference}");
    }
}
