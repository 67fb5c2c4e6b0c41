//! All pages of an answer, as streams and as iterators.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests fail by panicking"
)]

mod typed_support;

use std::sync::Arc;

use futures_util::{Stream, StreamExt, TryStreamExt};
use keyloom::engine::{Address, Area, Batch, Effect, Engine, Memory, Metered, Space, Unreliable};
use keyloom::{
    Collection, Cursor, ErrorKind, Key, Near, Order, Page, Query, Record, Result, Schema, Store,
    Stored, Test, blocking,
};
use proptest::prelude::*;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use typed_support::approvals::Approval;

const SCHEMA: &str = r#"
    [collection.item]
    key = "item:{n}"
    history = { versions = 20 }
    fields = { n = { type = "integer", digits = 4 }, of = "text", place = "point" }
    index.of = { key = "item-of:{of}:{n desc}" }
    geo.place = { key = "item-place:{place geohash 3}:{n}" }
"#;

async fn items_on(engine: Arc<dyn Engine>, count: u32) -> (Store, Collection<Value>) {
    let store = Store::on(engine);
    store.apply(&Schema::from_toml(SCHEMA).unwrap()).await.unwrap();
    let items = store.documents("item").await.unwrap();
    for n in 0..count {
        let place = json!({ "lat": 0.01 * f64::from(n), "lon": 0 });
        items.insert(&json!({ "n": n, "of": "x", "place": place })).await.unwrap();
    }
    (store, items)
}

async fn items(count: u32) -> Collection<Value> {
    items_on(Arc::new(Memory::new()), count).await.1
}

fn number(item: &Stored<Value>) -> u64 {
    item["n"].as_u64().unwrap()
}

fn descending(take: usize) -> Query {
    Query::new().equal("of", "x").order("n", Order::Descending).take(take)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Pages of any size hold every record once and in order; so do their records one by one, and
    /// so they do backwards from any cursor.
    #[test]
    fn all_pages_together_are_the_answer(
        count in 0_u32..40,
        take in 1_usize..9,
        ascending in any::<bool>(),
        turn_at in 0_usize..12,
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let items = items(count).await;
            let order = if ascending { Order::Ascending } else { Order::Descending };
            let query = descending(take).order("n", order);
            let mut all: Vec<u64> = (0..u64::from(count)).collect();
            if !ascending {
                all.reverse();
            }
            let pages: Vec<Page<_>> = items.pages(&query).try_collect().await.unwrap();
            let numbers = pages.iter().flat_map(|page| page.records.iter().map(number));
            assert_eq!(numbers.collect::<Vec<_>>(), all);
            assert!(pages.iter().rev().skip(1).all(|page| page.records.len() == take));

            let one_by_one: Vec<_> = items.pages(&query).records().try_collect().await.unwrap();
            assert_eq!(one_by_one.iter().map(number).collect::<Vec<_>>(), all);

            if let Some(turn) = pages.get(turn_at).and_then(|page| page.previous.clone()) {
                let back = items.pages(&query.from_cursor(turn)).records();
                let back: Vec<_> = back.try_collect().await.unwrap();
                let expected: Vec<u64> = all[..turn_at * take].iter().rev().copied().collect();
                assert_eq!(back.iter().map(number).collect::<Vec<_>>(), expected);
            }
        });
    }
}

#[tokio::test]
async fn what_is_not_asked_for_is_not_read() {
    let metered = Metered::new(Arc::new(Memory::new()));
    let (_, items) = items_on(Arc::new(metered.clone()), 100).await;
    metered.take();
    let query = descending(10);
    items.page(&query).await.unwrap();
    let one_page = metered.take();
    let mut pages = items.pages(&query);
    assert_eq!(metered.take().round_trips(), 0, "nothing was asked for");
    pages.next().await.unwrap().unwrap();
    drop(pages);
    assert_eq!(metered.take(), one_page);

    let some: Vec<_> = items.pages(&query).records().take(10).collect().await;
    assert_eq!((some.len(), metered.take()), (10, one_page), "the second page is not looked at");
    let more: Vec<_> = items.pages(&query).records().take(11).collect().await;
    assert_eq!(more.len(), 11);
    assert_eq!(metered.take().round_trips(), 2 * one_page.round_trips());
}

#[tokio::test]
async fn a_limit_bounds_each_page_and_not_the_whole() {
    let items = items(50).await;
    let query = descending(5).filter("n", Test::Less(json!(3))).limit(7);
    let found: Vec<_> = items.pages(&query).records().try_collect().await.unwrap();
    assert_eq!(found.iter().map(number).collect::<Vec<_>>(), [2, 1, 0]);
    let sizes: Vec<usize> =
        items.pages(&query).map_ok(|page| page.read).try_collect().await.unwrap();
    assert!(sizes.len() > 5 && sizes.iter().all(|read| *read <= 7), "{sizes:?}");
}

#[tokio::test]
async fn an_error_ends_the_stream_and_the_cursor_goes_on() {
    let unreliable = Arc::new(Unreliable::new(Arc::new(Memory::new()), 7, 0.0));
    let (_, items) = items_on(unreliable.clone(), 10).await;
    let mut pages = items.pages(&descending(4));
    assert_eq!(pages.cursor(), None);
    let mut seen: Vec<u64> =
        pages.next().await.unwrap().unwrap().records.iter().map(number).collect();
    unreliable.set_rate(1.0);
    let error = pages.next().await.unwrap().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    unreliable.set_rate(0.0);
    assert!(pages.next().await.is_none(), "it is over");

    let cursor: Cursor = pages.cursor().unwrap().parse().unwrap();
    let rest: Vec<_> =
        items.pages(&descending(4).from_cursor(cursor)).records().try_collect().await.unwrap();
    seen.extend(rest.iter().map(number));
    assert_eq!(seen, (0..10).rev().collect::<Vec<_>>());

    let mut whole = items.pages(&descending(4));
    while let Some(page) = whole.next().await {
        page.unwrap();
    }
    assert_eq!(whole.cursor(), None, "there is nothing to go on with");
}

#[tokio::test]
async fn a_question_that_is_refused_is_one_error() {
    let items = items(3).await;
    for (query, kind) in [
        (Query::new().equal("color", "red"), ErrorKind::NoIndex),
        (descending(0), ErrorKind::InvalidQuery),
        (descending(1).from_cursor("page 2"), ErrorKind::InvalidCursor),
    ] {
        let answers: Vec<Result<_>> = items.pages(&query).records().collect().await;
        let kinds: Vec<_> = answers.into_iter().map(|answer| answer.unwrap_err().kind()).collect();
        assert_eq!(kinds, [kind], "{query:?}");
    }
}

/// Takes a record away and leaves its entries, as another program might.
async fn tear(store: &Store, key: &'static str) {
    let mut batch = Batch::new(Space::main());
    batch.push(Address::new(Area::default_area(), key), None, Some(Effect::Delete));
    store.engine().commit(batch).await.unwrap();
}

#[tokio::test]
async fn a_problem_is_an_error_that_the_stream_survives() {
    let (store, items) = items_on(Arc::new(Memory::new()), 10).await;
    tear(&store, "item:0009").await;

    let answers: Vec<Result<_>> = items.pages(&descending(4)).records().collect().await;
    let (found, problems): (Vec<_>, Vec<_>) = answers.into_iter().partition(Result::is_ok);
    let numbers: Vec<u64> = found.iter().map(|found| number(found.as_ref().unwrap())).collect();
    assert_eq!(numbers, (0..9).rev().collect::<Vec<_>>(), "no record is hidden");
    let [problem] = &problems[..] else { panic!("{problems:?}") };
    let error = problem.as_ref().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    assert_eq!(error.context_value("key"), Some("item-of:x:-9990"));
    let stopped: Result<Vec<_>> = items.pages(&descending(4)).records().try_collect().await;
    assert_eq!(stopped.unwrap_err().kind(), ErrorKind::Corrupt, "and `?` does not pass over it");
}

#[tokio::test]
async fn keys_documents_places_and_histories_come_as_streams_too() {
    let items = items(7).await;
    let keys: Vec<Key> = items.key_pages(&descending(3)).records().try_collect().await.unwrap();
    assert_eq!(keys.len(), 7);
    assert_eq!(keys[0], "item:0006");
    let documents: Vec<_> =
        items.document_pages(&descending(3)).records().try_collect().await.unwrap();
    assert_eq!(keys, documents.iter().map(|document| document.key.clone()).collect::<Vec<_>>());
    let near: Vec<_> =
        items.near_pages(&Near::new(0.0, 0.0).take(2)).records().try_collect().await.unwrap();
    assert_eq!(
        near.iter().map(|near| number(&near.record)).collect::<Vec<_>>(),
        Vec::from_iter(0..7)
    );
    for note in 0..4 {
        items.update_with_retry(3, &json!({ "note": note })).await.unwrap();
    }
    let past: Vec<_> = items.history_pages(3, 2).records().try_collect().await.unwrap();
    let revisions: Vec<u64> = past.iter().map(|entry| entry.version.revision()).collect();
    assert_eq!(revisions, [5, 4, 3, 2, 1]);
}

/// What frameworks want of a stream.
fn assert_served<R: Send>(stream: impl Stream<Item = Result<R>> + Send + Unpin + 'static) {
    drop(stream);
}

#[tokio::test]
async fn typed_queries_come_as_streams() {
    let store = Store::open("memory:").await.unwrap();
    let approvals = store.collection::<Approval>().await.unwrap();
    for n in 0..10 {
        approvals.insert(&Approval::new("ana", "ben", 1_000 + n)).await.unwrap();
    }
    let mine = approvals.by_requester("ana").newest();
    assert_served(mine.pages(3));
    assert_served(mine.pages(3).records());
    let mut times = Vec::new();
    let mut records = mine.pages(3).records();
    while let Some(approval) = records.next().await {
        times.push(approval.unwrap().created_at.millis());
    }
    assert_eq!(times, (1_000..1_010).rev().collect::<Vec<_>>());

    let page = mine.page(3).await.unwrap();
    let rest: Vec<_> = mine.pages(3).after(&page.next).records().try_collect().await.unwrap();
    assert_eq!(rest.len(), 7);
    let keys: Vec<Key> = mine.key_pages(4).records().try_collect().await.unwrap();
    let documents: Vec<_> = mine.document_pages(4).records().try_collect().await.unwrap();
    assert_eq!(keys, documents.iter().map(|document| document.key.clone()).collect::<Vec<_>>());
    assert_eq!(keys.len(), 10);

    let odd = approvals.by_requester("ana").newest().or(approvals.by_requester("ben").oldest());
    let refused: Vec<Result<_>> = odd.pages(3).collect().await;
    assert_eq!(refused.len(), 1);
    assert_eq!(refused[0].as_ref().unwrap_err().kind(), ErrorKind::InvalidQuery);
    let error = mine.pages(3).wait().err().unwrap();
    assert!(error.message().contains("awaited"), "{error}");
}

#[derive(Serialize, Deserialize, Record)]
#[record(key = "cafe:{name}")]
#[geo(place = "cafe-place:{place geohash 4}:{name}")]
struct Cafe {
    name: String,
    place: keyloom::Point,
}

#[test]
fn a_blocking_store_gives_iterators() {
    let store = blocking::Store::open("memory:").unwrap();
    let approvals = store.collection::<Approval>().unwrap();
    for n in 0..10 {
        approvals.insert(&Approval::new("ana", "ben", 1_000 + n)).unwrap();
    }
    let mine = approvals.by_requester("ana").newest();
    let sizes: Result<Vec<usize>> =
        mine.pages(4).wait().unwrap().map(|page| page.map(|page| page.records.len())).collect();
    assert_eq!(sizes.unwrap(), [4, 4, 2]);
    let times: Result<Vec<i64>> = mine
        .pages(4)
        .wait()
        .unwrap()
        .records()
        .map(|approval| approval.map(|approval| approval.created_at.millis()))
        .collect();
    assert_eq!(times.unwrap(), (1_000..1_010).rev().collect::<Vec<_>>());
    let query = Query::new().equal("requester_id", "ana").take(4);
    assert_eq!(approvals.pages(&query).records().count(), 10);
    assert_eq!(approvals.key_pages(&query).records().count(), 10);
    assert_eq!(approvals.document_pages(&query).count(), 3);
    let mut pages = approvals.pages(&query);
    pages.next().unwrap().unwrap();
    let rest = approvals.pages(&query.clone().from_cursor(pages.cursor()));
    assert_eq!(rest.records().count(), 6);

    let cafes = store.collection::<Cafe>().unwrap();
    for (name, lat) in [("far", 0.5), ("near", 0.1), ("middle", 0.2)] {
        cafes.insert(&Cafe { name: name.to_owned(), place: (lat, 0.0).into() }).unwrap();
    }
    let names: Result<Vec<String>> = cafes
        .by_place((0.0, 0.0))
        .pages(1)
        .wait()
        .unwrap()
        .records()
        .map(|near| near.map(|near| near.record.name.clone()))
        .collect();
    assert_eq!(names.unwrap(), ["near", "middle", "far"]);
    assert_eq!(cafes.near_pages(&Near::new(0.0, 0.0).take(2)).count(), 2);

    // Inside a task an iterator ends after one error, so that no loop runs for ever.
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let kinds = |error: Result<_>| error.err().unwrap().kind();
        let refused = approvals.pages(&query).take(5).map(|page| kinds(page.map(drop)));
        assert_eq!(refused.collect::<Vec<_>>(), [ErrorKind::InvalidArgument]);
        let refused =
            approvals.pages(&query).records().take(5).map(|record| kinds(record.map(drop)));
        assert_eq!(refused.collect::<Vec<_>>(), [ErrorKind::InvalidArgument]);
    });
}
