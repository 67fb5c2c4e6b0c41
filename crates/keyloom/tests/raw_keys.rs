//! The keys of a space as they lie: every one is listed once, and branches count what they hold.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests fail by panicking"
)]

mod long;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;
use keyloom::engine::{Address, Area, Batch, Effect, Memory, Metered, Space, Stamp};
use keyloom::{BranchOptions, ErrorKind, RawKeys, RawKind, RawList, Schema, Store};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde_json::json;

const SCHEMA: &str = r#"
[collection.user]
key = "user:{id}"
counters.hits = {}
history = { versions = 2 }
[collection.user.fields]
id    = "text"
email = "text"
[collection.user.unique.email]
key  = "{email}"
area = "emails"
"#;

async fn store() -> Store {
    let store = Store::on(Arc::new(Memory::new()));
    store.apply(&Schema::from_toml(SCHEMA).unwrap()).await.unwrap();
    store
}

/// Puts cells that no collection knows of.
async fn put(store: &Store, area: &Area, keys: impl IntoIterator<Item = Bytes>) {
    let mut batch = Batch::new(Space::main());
    for key in keys {
        let effect = Effect::Put { stamp: Stamp([7; Stamp::BYTES]), bytes: "xy".into() };
        batch.push(Address::new(area.clone(), key), None, Some(effect));
    }
    store.engine().commit(batch).await.unwrap();
}

async fn every_page(raw: &RawKeys, list: &RawList) -> Vec<(String, Bytes)> {
    let mut all = Vec::new();
    let mut list = list.clone();
    loop {
        let page = raw.list(&list).await.unwrap();
        assert!(!page.keys.is_empty() || page.next.is_none());
        all.extend(page.keys.into_iter().map(|key| (key.area, key.key)));
        match page.next {
            Some(next) => list = list.from_cursor(next),
            None => return all,
        }
    }
}

fn key() -> impl Strategy<Value = Bytes> {
    let part = prop::sample::select(vec![b':', b'_', b'a', b'b', 0, 0xff, b'/']);
    prop::collection::vec(part, 1..7).prop_map(Bytes::from)
}

fn run<S: Strategy>(strategy: S, check: impl Fn(S::Value) + std::panic::RefUnwindSafe) {
    let config = Config { cases: long::times(200), failure_persistence: None, ..Config::default() };
    let mut runner = TestRunner::new(config);
    runner
        .run(&strategy, |value| {
            check(value);
            Ok(())
        })
        .unwrap();
}

fn block_on<F: Future>(future: F) -> F::Output {
    tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(future)
}

#[test]
fn every_key_is_listed_once_and_in_order() {
    let keys = || prop::collection::btree_set(key(), 0..30);
    run((keys(), keys(), key(), 0..3_usize, 1..9_usize), |(plain, mails, prefix, cut, take)| {
        block_on(async {
            let store = store().await;
            let areas = [Area::default_area(), Area::new("emails").unwrap()];
            put(&store, &areas[0], plain.clone()).await;
            put(&store, &areas[1], mails.clone()).await;
            let prefix = prefix.slice(..cut.min(prefix.len()));
            let raw = store.raw_keys().unwrap();
            let list = RawList::new().prefix(&prefix).take(take);
            let of = |name: &str, keys: &BTreeSet<Bytes>| -> Vec<(String, Bytes)> {
                let begin = keys.iter().filter(|key| key.starts_with(&prefix));
                begin.map(|key| (name.to_owned(), key.clone())).collect()
            };
            let mut expected = of("", &plain);
            expected.extend(of("emails", &mails));
            let own: BTreeSet<Bytes> = ["catalog", "epoch"].map(Bytes::from).into();
            assert_eq!(every_page(&raw, &list.clone().area("")).await, of("", &plain));
            expected.extend(of("~", &own));
            assert_eq!(every_page(&raw, &list).await, expected);
        });
    });
}

/// The next level, computed from all keys.
fn levels(keys: &BTreeSet<Bytes>, prefix: &[u8]) -> BTreeMap<Bytes, (u64, bool)> {
    let mut levels = BTreeMap::new();
    for key in keys.iter().filter(|key| key.starts_with(prefix)) {
        let rest = &key[prefix.len()..];
        let end = rest.iter().position(|byte| b":_/".contains(byte));
        let level = end.map_or(key.clone(), |end| key.slice(..prefix.len() + end + 1));
        let found = levels.entry(level.clone()).or_insert((0, false));
        found.0 += 1;
        found.1 |= *key == level;
    }
    levels
}

#[test]
fn branches_count_what_is_below_them() {
    let keys = prop::collection::btree_set(key(), 0..60);
    run((keys, key(), 0..3_usize, 1..5_usize, 1..4_usize), |(keys, prefix, cut, some, few)| {
        block_on(async {
            let store = store().await;
            put(&store, &Area::default_area(), keys.clone()).await;
            let raw = store.raw_keys().unwrap();
            let prefix = prefix.slice(..cut.min(prefix.len()));
            let expected = levels(&keys, &prefix);
            let all = raw.branches("", &prefix, &BranchOptions::default()).await.unwrap();
            assert!(!all.more);
            let found = all.branches.iter().map(|it| (it.prefix.clone(), (it.keys, it.is_key)));
            assert_eq!(found.clone().collect::<BTreeMap<_, _>>(), expected);
            assert!(found.map(|(prefix, _)| prefix).is_sorted());
            for branch in &all.branches {
                let below = keys.iter().filter(|key| key.starts_with(&branch.prefix));
                let bytes: usize = below.take(branch.keys as usize).map(|key| key.len() + 2).sum();
                assert!(branch.is_exact && branch.bytes == bytes as u64, "{branch:?}");
            }
            // With less to spend it says so, and page by page it comes to the same.
            let mut options =
                BranchOptions { keys_max: some, branches_max: few, ..BranchOptions::default() };
            let mut paged = Vec::new();
            loop {
                let page = raw.branches("", &prefix, &options).await.unwrap();
                options.after = page.branches.last().map(|last| last.prefix.clone());
                paged.extend(page.branches);
                if !page.more {
                    break;
                }
            }
            assert_eq!(paged.len(), all.branches.len());
            for (part, whole) in paged.iter().zip(&all.branches) {
                assert_eq!((&part.prefix, part.is_key), (&whole.prefix, whole.is_key));
                assert_eq!(part.keys, whole.keys.min(some as u64));
                assert_eq!(part.is_exact, whole.keys <= some as u64);
            }
        });
    });
}

#[tokio::test]
async fn a_branch_costs_its_budget_and_not_its_size() {
    let metered = Metered::new(Arc::new(Memory::new()));
    let store = Store::on(Arc::new(metered.clone()));
    store.apply(&Schema::from_toml(SCHEMA).unwrap()).await.unwrap();
    let many = (0..5_000).map(|n| Bytes::from(format!("many:{n:05}")));
    put(&store, &Area::default_area(), many.chain(["other:1".into(), "single".into()])).await;
    let raw = store.raw_keys().unwrap();
    metered.take();
    let options = BranchOptions { keys_max: 10, ..BranchOptions::default() };
    let found = raw.branches("", "", &options).await.unwrap().branches;
    let told: Vec<_> =
        found.iter().map(|it| (&*it.text, it.keys, it.is_key, it.is_exact)).collect();
    assert_eq!(
        told,
        [("many:", 10, false, false), ("other:", 1, false, true), ("single", 1, true, true)]
    );
    assert!(metered.usage().cells_read < 30, "{:?}", metered.usage());
}

#[tokio::test]
async fn keys_are_told_apart() {
    let store = store().await;
    let users = store.documents("user").await.unwrap();
    users.insert(&json!({ "id": "ana", "email": "a@x" })).await.unwrap();
    users.increment("ana", [("hits", 3)]).await.unwrap();
    put(&store, &Area::default_area(), ["free".into(), Bytes::from_static(b"user:%\xff")]).await;
    let raw = store.raw_keys().unwrap();
    assert_eq!(raw.areas().await.unwrap(), ["", "emails", "~"]);
    let kind = |area: &'static str, key: &'static [u8]| {
        let raw = raw.clone();
        async move { raw.get(area, key).await.unwrap().unwrap() }
    };
    let user = kind("", b"user:ana").await;
    assert_eq!(user.kind, RawKind::Record { collection: "user".into() });
    assert_eq!(user.bytes, 8 + user.value.unwrap().len() as u64);
    let entry = kind("emails", b"a@x").await;
    let (collection, index) = ("user".into(), "email".into());
    assert_eq!(entry.kind, RawKind::Entry { collection, index });
    let counters = kind("~", b"counter::user:ana").await;
    assert_eq!(counters.kind, RawKind::Counters);
    assert_eq!(counters.value.unwrap(), r#"{"hits":3}"#);
    assert_eq!(kind("~", b"catalog").await.kind, RawKind::Own);
    assert_eq!(kind("", b"free").await.kind, RawKind::Free);
    let stray = kind("", b"user:%\xff").await;
    assert_eq!(stray.kind, RawKind::Stray { template: "user:{id}".into() });
    assert_eq!(stray.text, r"user:%\xff");
    assert_eq!(raw.get("", "nothing").await.unwrap(), None);
    let list = raw.list(&RawList::new().area("")).await.unwrap();
    assert!(list.keys.iter().all(|key| key.value.is_none()));
    let list = raw.list(&RawList::new().area("").values()).await.unwrap();
    assert!(list.keys.iter().all(|key| key.value.is_some()));
}

#[tokio::test]
async fn what_cannot_be_listed_is_refused() {
    let store = store().await;
    put(&store, &Area::default_area(), ["a".into(), "b".into()]).await;
    let raw = store.raw_keys().unwrap();
    let next = raw.list(&RawList::new().take(1)).await.unwrap().next.unwrap();
    for (list, kind) in [
        (RawList::new().take(0), ErrorKind::InvalidArgument),
        (RawList::new().take(10_001), ErrorKind::InvalidArgument),
        (RawList::new().area("no such area"), ErrorKind::InvalidArgument),
        (RawList::new().from_cursor("nonsense"), ErrorKind::InvalidCursor),
        (RawList::new().area("").from_cursor(&next), ErrorKind::InvalidCursor),
        (RawList::new().prefix("a").from_cursor(&next), ErrorKind::InvalidCursor),
    ] {
        assert_eq!(raw.list(&list).await.unwrap_err().kind(), kind, "{list:?}");
    }
    let error = store.acting_as("ana").unwrap().raw_keys().err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Forbidden);
}
