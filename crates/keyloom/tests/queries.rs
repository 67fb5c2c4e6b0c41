//! Queries, held against a filter and a sort over everything.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests fail by panicking"
)]

mod long;

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use keyloom::engine::{Memory, Metered};
use keyloom::{Collection, ErrorKind, Order, Query, Schema, Stopped, Store, Test};
use proptest::prelude::*;
use proptest::sample::Index;
use serde_json::{Value, json};

const SCHEMA: &str = r#"
[collection.item]
key = "item:{id}"
[collection.item.fields]
id     = "integer"
owner  = "text"
second = "text"
kind   = { type = "enum", values = ["a", "b", "c"] }
rank   = "integer"
name   = "text"
at     = "timestamp"
"tags.*" = "text"
[collection.item.index.owner]
key = "idx:owner:{owner}:{at desc}:{id}"
[collection.item.index.second]
key = "idx:second:{second}:{at desc}:{id}"
[collection.item.index.ranked]
key = "idx:ranked:{kind}:{rank}:{at desc}:{id}"
[collection.item.index.name]
key = "idx:name:{name sorted}:{id}"
[collection.item.index.name_down]
key = "idx:down:{kind}:{name sorted desc}:{id}"
[collection.item.index.carried]
key   = "idx:carried:{rank desc}:{id}"
holds = "record"
[collection.item.index.tag]
key = "idx:tag:{tags.*}:{id}"
"#;

#[derive(Clone, Debug)]
struct Item {
    owner: &'static str,
    second: &'static str,
    kind: &'static str,
    rank: i64,
    name: String,
    at: u64,
    tags: Vec<&'static str>,
}

const OWNERS: [&str; 5] = ["ana", "ana:", "ana1", "%", ""];

fn item() -> impl Strategy<Value = Item> {
    let owner = prop::sample::select(&OWNERS[..]);
    let name = prop_oneof!["[ab :!%\u{0}é]{0,4}", Just("a".to_owned())];
    let tags = prop::collection::vec(prop::sample::select(&["x", "y", "x:y"][..]), 0..4);
    (
        owner.clone(),
        owner,
        prop::sample::select(&["a", "b", "c"][..]),
        -3i64..4,
        name,
        0u64..12,
        tags,
    )
        .prop_map(|(owner, second, kind, rank, name, at, tags)| Item {
            owner,
            second,
            kind,
            rank,
            name,
            at,
            tags,
        })
}

fn record(id: usize, item: &Item) -> Value {
    json!({
        "id": id, "owner": item.owner, "second": item.second, "kind": item.kind,
        "rank": item.rank, "name": item.name, "at": item.at, "tags": item.tags,
    })
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

async fn filled(items: &[Item]) -> Collection<Value> {
    let store = Store::open("memory:").await.unwrap();
    store.apply(&Schema::from_toml(SCHEMA).unwrap()).await.unwrap();
    let collection = store.documents("item").await.unwrap();
    for (id, item) in items.iter().enumerate() {
        collection.insert(&record(id, item)).await.unwrap();
    }
    collection
}

/// Every page, forward to the end; then back to the start, which must show the same pages.
async fn walk(items: &Collection<Value>, query: &Query) -> Vec<usize> {
    let mut forward: Vec<Vec<usize>> = Vec::new();
    let mut asked = query.clone();
    let ids = |page: &keyloom::Page<keyloom::Stored<Value>>| -> Vec<usize> {
        page.records.iter().map(|item| item.value["id"].as_u64().unwrap() as usize).collect()
    };
    let mut last_page = items.page(&asked).await.unwrap();
    assert!(last_page.previous.is_none());
    loop {
        assert!(last_page.problems.is_empty());
        forward.push(ids(&last_page));
        let Some(next) = &last_page.next else { break };
        assert_eq!(last_page.stopped, Stopped::Take);
        asked = query.clone().from_cursor(next);
        last_page = items.page(&asked).await.unwrap();
    }
    let mut backward = vec![forward.last().cloned().unwrap()];
    while let Some(previous) = &last_page.previous {
        last_page = items.page(&query.clone().from_cursor(previous)).await.unwrap();
        backward.push(ids(&last_page));
    }
    backward.reverse();
    assert_eq!(backward.concat(), forward.concat(), "the way back shows the same records");
    forward.concat()
}

fn expected(
    items: &[Item],
    keep: impl Fn(&Item) -> bool,
    order: impl Fn(&Item, &Item) -> std::cmp::Ordering,
) -> Vec<usize> {
    let mut ids: Vec<usize> = (0..items.len()).filter(|id| keep(&items[*id])).collect();
    ids.sort_by(|a, b| order(&items[*a], &items[*b]).then(a.cmp(b)));
    ids
}

fn reversed(mut ids: Vec<usize>) -> Vec<usize> {
    ids.reverse();
    ids
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(long::times(64)))]

    #[test]
    fn an_answer_is_what_a_filter_and_a_sort_would_give(
        items in prop::collection::vec(item(), 0..60),
        take in 1usize..8,
        (low, high) in (0u64..12, 0u64..12),
        rank in -3i64..4,
        bound in "[ab :!%\u{0}é]{0,3}",
    ) {
        block_on(async {
            let collection = filled(&items).await;
            for owner in OWNERS {
                let mine = Query::new().equal("owner", owner).take(take);
                let newest = expected(&items, |item| item.owner == owner, |a, b| b.at.cmp(&a.at));
                prop_assert_eq!(&walk(&collection, &mine.clone().order("at", Order::Descending)).await, &newest);
                // The opposite order is the same keys from the other end.
                prop_assert_eq!(walk(&collection, &mine.clone().order("at", Order::Ascending)).await, reversed(newest));
                let between = expected(
                    &items,
                    |item| item.owner == owner && (low..high).contains(&item.at),
                    |a, b| b.at.cmp(&a.at),
                );
                let query = mine.clone().range("at", low..high);
                prop_assert_eq!(walk(&collection, &query).await, between.clone());
                prop_assert_eq!(collection.count(&query).await.unwrap(), between.len());
                let keys = collection.keys(&query.take(1_000)).await.unwrap();
                let key = |id: &usize| format!("item:{id:019}");
                prop_assert_eq!(keys.records, between.iter().map(key).collect::<Vec<_>>());
                let query = mine.clone().range("at", (Bound::Excluded(low), Bound::Included(high)));
                let between = expected(
                    &items,
                    |item| item.owner == owner && low < item.at && item.at <= high,
                    |a, b| b.at.cmp(&a.at),
                );
                prop_assert_eq!(walk(&collection, &query).await, between);
                // What I own or am second of, each once.
                let either = Query::new().any("owner", owner).any("second", owner).take(take);
                let wanted = expected(
                    &items,
                    |item| item.owner == owner || item.second == owner,
                    |a, b| b.at.cmp(&a.at),
                );
                prop_assert_eq!(&walk(&collection, &either).await, &wanted);
                prop_assert_eq!(walk(&collection, &either.order("at", Order::Ascending)).await, reversed(wanted));
            }
            let ranked = Query::new().equal("kind", "b").range("rank", rank..).take(take);
            let wanted = expected(
                &items,
                |item| item.kind == "b" && item.rank >= rank,
                |a, b| a.rank.cmp(&b.rank).then(b.at.cmp(&a.at)),
            );
            prop_assert_eq!(walk(&collection, &ranked).await, wanted);
            let named = Query::new().range("name", bound.as_str()..).take(take);
            let wanted = expected(&items, |item| item.name.as_str() >= bound.as_str(), |a, b| a.name.cmp(&b.name));
            prop_assert_eq!(walk(&collection, &named).await, wanted);
            let starting = Query::new().starts_with("name", &bound).take(take);
            let wanted = expected(&items, |item| item.name.starts_with(&bound), |a, b| a.name.cmp(&b.name));
            prop_assert_eq!(walk(&collection, &starting).await, wanted);
            let down = Query::new().equal("kind", "c").order("name", Order::Descending).take(take);
            let wanted = expected(&items, |item| item.kind == "c", |a, b| b.name.cmp(&a.name));
            prop_assert_eq!(walk(&collection, &down).await, wanted);
            let top = Query::new().order("rank", Order::Descending).take(take);
            let wanted = expected(&items, |_| true, |a, b| b.rank.cmp(&a.rank));
            prop_assert_eq!(walk(&collection, &top).await, wanted);
            let tagged = Query::new().equal("tags.*", "x:y").take(take);
            let wanted = expected(&items, |item| item.tags.contains(&"x:y"), |_, _| std::cmp::Ordering::Equal);
            prop_assert_eq!(walk(&collection, &tagged).await, wanted);
            // Served by whichever index has the kind first; the filter only drops.
            let filtered =
                Query::new().equal("kind", "a").filter("rank", Test::Less(json!(rank))).take(take);
            let same = |_: &Item, _: &Item| std::cmp::Ordering::Equal;
            let wanted = expected(&items, |item| item.kind == "a" && item.rank < rank, same);
            let mut found = walk(&collection, &filtered).await;
            found.sort_unstable();
            prop_assert_eq!(found, wanted);
            let scanned = Query::new().scan().equal("at", low).take(take);
            prop_assert_eq!(
                walk(&collection, &scanned).await,
                expected(&items, |item| item.at == low, same)
            );
            Ok(())
        })?;
    }

    #[test]
    fn no_record_that_stays_put_is_missed_or_shown_twice(
        items in prop::collection::vec(item(), 1..40),
        changes in prop::collection::vec((any::<Index>(), item(), 0..3), 0..60),
        take in 1usize..5,
    ) {
        block_on(async {
            let collection = filled(&items).await;
            let query = Query::new().any("owner", "ana").any("second", "ana").take(take);
            let mut changes = changes.into_iter();
            let mut touched: BTreeMap<usize, ()> = BTreeMap::new();
            let mut shown: Vec<usize> = Vec::new();
            let mut asked = query.clone();
            loop {
                let page = collection.page(&asked).await.unwrap();
                shown.extend(page.records.iter().map(|item| item.value["id"].as_u64().unwrap() as usize));
                for (place, item, what) in changes.by_ref().take(6) {
                    let id = place.index(items.len() + 20);
                    touched.insert(id, ());
                    match what {
                        0 => drop(collection.delete(id as u64).await.unwrap()),
                        _ => drop(collection.upsert(&record(id, &item)).await.unwrap()),
                    }
                }
                match page.next {
                    Some(next) => asked = query.clone().from_cursor(next),
                    None => break,
                }
            }
            let still: Vec<usize> = expected(
                &items,
                |item| item.owner == "ana" || item.second == "ana",
                |a, b| b.at.cmp(&a.at),
            );
            let still: Vec<usize> = still.into_iter().filter(|id| !touched.contains_key(id)).collect();
            let shown: Vec<usize> = shown.into_iter().filter(|id| !touched.contains_key(id)).collect();
            prop_assert_eq!(shown, still);
            Ok(())
        })?;
    }
}

#[test]
fn entries_that_must_be_decoded_take_two_round_trips_however_many_they_are() {
    const NUMBERED: &str = r#"
        [collection.item]
        key = "item:{id}"
        [collection.item.fields]
        id    = "integer"
        owner = "text"
        [collection.item.index.numbered]
        key = "idx:numbered:{owner}:{id desc}"
    "#;
    block_on(async {
        let meter = Arc::new(Metered::new(Arc::new(Memory::new())));
        let store = Store::on(meter.clone());
        store.apply(&Schema::from_toml(NUMBERED).unwrap()).await.unwrap();
        let items = store.documents("item").await.unwrap();
        for id in -15..15 {
            items.insert(&json!({ "id": id, "owner": "ana" })).await.unwrap();
        }
        let query = Query::new().equal("owner", "ana").take(20);
        let plan = items.explain(&query).await.unwrap();
        assert!(plan.contains("scan and get, 2 round trips"), "{plan}");
        meter.take();
        let page = items.page(&query).await.unwrap();
        let usage = meter.take();
        assert_eq!((usage.scans, usage.gets, usage.follows), (1, 1, 0));
        let ids: Vec<i64> =
            page.records.iter().map(|item| item.value["id"].as_i64().unwrap()).collect();
        assert_eq!(ids, (-5..15).rev().collect::<Vec<_>>());
        assert!(page.problems.is_empty());
    });
}

#[test]
fn plans_say_what_they_read() {
    block_on(async {
        let items = filled(&[]).await;
        let explain = async |query: Query| items.explain(&query).await.unwrap();
        let newest =
            explain(Query::new().equal("owner", "ana").order("at", Order::Ascending)).await;
        assert_eq!(
            newest,
            "\
index item.owner: idx:owner:{owner}:{at desc}:{id}
  fixed: owner
  range: idx:owner:ana: .. idx:owner:ana;
  read: follow, 1 round trip
direction: backward"
        );
        let filtered =
            explain(Query::new().scan().equal("kind", "a").filter("rank", Test::Less(json!(3))))
                .await;
        assert_eq!(
            filtered,
            "\
index item.name_down: idx:down:{kind}:{name sorted desc}:{id}
  fixed: kind
  only records that have: name
  range: idx:down:a: .. idx:down:a;
  read: follow, 1 round trip
direction: forward
filter: rank < 3"
        );
        let carried = explain(Query::new().order("rank", Order::Descending)).await;
        assert!(carried.contains("carry the record"), "{carried}");
    });
}

#[test]
fn what_no_index_serves_is_refused_with_what_would() {
    block_on(async {
        let items = filled(&[]).await;
        for query in [
            Query::new().equal("rank", 3).equal("owner", "ana"),
            Query::new().equal("second", "ana").range("rank", 0..),
            Query::new().equal("owner", "ana").order("rank", Order::Ascending),
            Query::new().range("owner", "ana"..),
            Query::new().order("owner", Order::Ascending),
            Query::new().equal("nothing", 1),
            Query::new().any("owner", "ana").any("name", "x"),
            Query::new().index("owner").equal("name", "x"),
        ] {
            let error = items.page(&query).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::NoIndex, "{query:?}: {error}");
            assert!(error.context_value("would serve").is_some());
        }
        let error = items
            .page(&Query::new().equal("nothing", 1).order("at", Order::Descending))
            .await
            .unwrap_err();
        assert_eq!(
            error.context_value("would serve"),
            Some("item:index:NAME:{nothing}:{at desc}:{id}")
        );
        assert_eq!(error.context_value("first"), Some("declare the field nothing"));
        // An index over the record's key would be a second copy of it.
        let filtered = Query::new().filter("rank", Test::AtLeast(json!(1)));
        let error = items.page(&filtered).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NoIndex, "{error}");
        assert_eq!(error.context_value("would serve"), None, "{error}");
    });
}

#[test]
fn queries_that_cannot_be_asked_are_refused() {
    block_on(async {
        let items = filled(&[]).await;
        for query in [
            Query::new().equal("owner", "ana").take(0),
            Query::new().equal("owner", "ana").take(10_001),
            Query::new().equal("owner", "ana").limit(0),
            Query::new().equal("owner", 7),
            Query::new().equal("kind", "unknown"),
            Query::new().equal("owner", "ana").range("at", "yesterday"..),
            Query::new().equal("", "ana"),
            Query::new().scan().order("at", Order::Ascending).equal("nothing", 1),
        ] {
            let error = items.page(&query).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidQuery, "{query:?}: {error}");
        }
        let unknown = items.page(&Query::new().index("nothing")).await.unwrap_err();
        assert_eq!(unknown.kind(), ErrorKind::InvalidArgument);
    });
}

#[test]
fn a_limit_stops_reading_and_the_next_page_goes_on() {
    block_on(async {
        let one = Item {
            owner: "ana",
            second: "",
            kind: "a",
            rank: 0,
            name: String::new(),
            at: 0,
            tags: vec![],
        };
        let all: Vec<Item> =
            (0..50).map(|at| Item { at, rank: (at % 10) as i64, ..one.clone() }).collect();
        let items = filled(&all).await;
        let rare = Query::new()
            .equal("owner", "ana")
            .filter("rank", Test::Equals(json!(7)))
            .take(10)
            .limit(20);
        let first = items.page(&rare).await.unwrap();
        assert_eq!((first.records.len(), first.read, first.stopped), (2, 20, Stopped::Limit));
        let second = items.page(&rare.clone().from_cursor(first.next.unwrap())).await.unwrap();
        assert_eq!((second.records.len(), second.read, second.stopped), (2, 20, Stopped::Limit));
        let third = items.page(&rare.clone().from_cursor(second.next.unwrap())).await.unwrap();
        assert_eq!((third.records.len(), third.read, third.stopped), (1, 10, Stopped::End));
        assert!(third.next.is_none());
        assert_eq!(
            items.count(&rare.clone().limit(49)).await.unwrap_err().kind(),
            ErrorKind::LimitExceeded
        );
        assert_eq!(items.count(&rare.limit(50)).await.unwrap(), 5);
    });
}

/// The ids of every page, forward and then back, each page within its bytes but for one record.
async fn walk_weighed(items: &Collection<Value>, query: &Query, bytes: usize) -> Vec<Vec<u64>> {
    let weight = |document: &keyloom::Document| document.key.len() + document.text().len();
    let (mut pages, mut asked) = (Vec::new(), query.clone());
    loop {
        let page = items.documents(&asked).await.unwrap();
        let (last, before) = page.records.split_last().expect("no page is empty");
        let total: usize = before.iter().map(weight).sum();
        assert!(total < bytes, "{total} bytes before the last record");
        let ids = page.records.iter().map(|it| it.json().unwrap()["id"].as_u64().unwrap());
        pages.push(ids.collect());
        match page.next {
            Some(next) => {
                assert_eq!(page.stopped, Stopped::Bytes);
                assert!(total + weight(last) >= bytes, "it stopped too early");
                asked = query.clone().from_cursor(next);
            }
            None => {
                assert_eq!(page.stopped, Stopped::End);
                return pages;
            }
        }
    }
}

#[test]
fn a_page_ends_with_the_record_that_reaches_its_bytes() {
    block_on(async {
        let items = filled(&[]).await;
        let sizes = [10, 5_000, 20, 30, 9_000, 1, 1, 1, 1, 4_000, 4_000, 4_000, 2];
        for (id, size) in sizes.into_iter().enumerate() {
            let record = json!({
                "id": id, "owner": "ana", "second": "ben", "kind": "a", "rank": id, "name": "",
                "at": id, "tags": [], "body": "x".repeat(size),
            });
            items.insert(&record).await.unwrap();
        }
        let all: Vec<u64> = (0..sizes.len() as u64).collect();
        let newest: Vec<u64> = all.iter().rev().copied().collect();
        for (query, wanted) in [
            (Query::new().scan(), &all),
            (Query::new().equal("owner", "ana"), &newest),
            (Query::new().any("owner", "ana").any("second", "ben"), &newest),
            (Query::new().equal("owner", "ana").filter("kind", Test::Equals(json!("a"))), &newest),
            (Query::new().range("rank", 0..100), &newest),
        ] {
            for bytes in [1, 300, 4_096, 12_000, 1 << 20] {
                let asked = query.clone().take(100).bytes(bytes);
                let pages = walk_weighed(&items, &asked, bytes).await;
                assert_eq!(pages.concat(), *wanted, "{query:?} with {bytes} bytes");
                assert_eq!(pages.len() == 1, bytes == 1 << 20, "{query:?} with {bytes} bytes");
            }
            // Bytes are no part of the question: its cursor serves with any.
            let first = items.documents(&query.clone().bytes(1)).await.unwrap();
            let rest = query.clone().take(100).from_cursor(first.next.unwrap());
            assert_eq!(items.documents(&rest).await.unwrap().records.len(), all.len() - 1);
        }
    });
}

/// Large records are read a few at a time, however many the page may take.
#[test]
fn a_page_with_bytes_reads_few_records_ahead() {
    block_on(async {
        let metered =
            keyloom::engine::Metered::new(std::sync::Arc::new(keyloom::engine::Memory::new()));
        let store = Store::on(std::sync::Arc::new(metered.clone()));
        store.apply(&Schema::from_toml(SCHEMA).unwrap()).await.unwrap();
        let items = store.documents("item").await.unwrap();
        for id in 0..500 {
            let record = json!({
                "id": id, "owner": "ana", "second": "", "kind": "a", "rank": 0, "name": "",
                "at": 0, "tags": [],
            });
            items.insert(&record).await.unwrap();
        }
        metered.take();
        let page = items.page(&Query::new().scan().take(500).bytes(1)).await.unwrap();
        assert_eq!((page.records.len(), page.stopped), (1, Stopped::Bytes));
        let usage = metered.take();
        assert!(usage.cells_read < 40, "{usage:?}");
    });
}

#[test]
fn cursors_of_another_query_or_space_are_refused_and_survive_a_restart() {
    block_on(async {
        let folder = tempfile::tempdir().unwrap();
        let address = format!("file:{}", folder.path().display());
        let query = Query::new().equal("owner", "ana").take(2);
        let open = async || {
            let store = Store::open(&address).await.unwrap();
            for space in ["main", "other"] {
                store
                    .space(space)
                    .unwrap()
                    .apply(&Schema::from_toml(SCHEMA).unwrap())
                    .await
                    .unwrap();
            }
            store
        };
        let store = open().await;
        let items = store.documents("item").await.unwrap();
        for id in 0..5 {
            items.insert(&json!({"id": id, "owner": "ana", "at": id})).await.unwrap();
        }
        let cursor = items.page(&query).await.unwrap().next.unwrap().to_string();
        store.close().await.unwrap();
        drop((items, store));
        let store = open().await;
        let items = store.documents("item").await.unwrap();
        let page = items.page(&query.clone().from_cursor(&cursor)).await.unwrap();
        assert_eq!(page.records[0].value["id"], 2);
        // Another page size is the same question.
        assert_eq!(
            items.page(&query.clone().take(9).from_cursor(&cursor)).await.unwrap().records.len(),
            3
        );
        let elsewhere = store.space("other").unwrap().documents("item").await.unwrap();
        for (collection, query) in [
            (&items, Query::new().equal("owner", "ben")),
            (&items, Query::new().equal("owner", "ana").order("at", Order::Ascending)),
            (&items, Query::new().equal("owner", "ana").filter("rank", Test::Present)),
            (&elsewhere, query.clone()),
        ] {
            let error = collection.page(&query.from_cursor(&cursor)).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidCursor);
        }
        for wrong in ["", "x", "===", &cursor[1..], &format!("{cursor}A")] {
            let error = items.page(&query.clone().from_cursor(wrong)).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidCursor, "{wrong}");
        }
    });
}
