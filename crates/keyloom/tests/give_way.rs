//! Reads that take long give way: another task on the same thread goes on meanwhile.

#![cfg(feature = "embedded")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests fail by panicking"
)]

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

use keyloom::engine::{Embedded, EmbeddedOptions, Engine, Memory, Unit};
use keyloom::{
    GroupQuery, MaintainOptions, Order, Position, Query, RawList, RepairOptions, Schema,
    StatsOptions, Store, Test,
};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::task::LocalSet;

const RECORDS: usize = 6_000;

/// So many turns another task has at least while `RECORDS` rows are read: one for each 1,024, the
/// last part left out.
const TURNS: usize = RECORDS / 1_024;

const SCHEMA: &str = r#"
[log]
days = 1
[collection.note]
key = "note:{id}"
[collection.note.fields]
id    = "text"
owner = "text"
[collection.note.index.owner]
key = "owner:{owner}:{id sorted}"
[collection.note.count.by_id]
group = ["id"]
"#;

fn id(number: usize) -> String {
    format!("n{number:05}")
}

async fn filled(engine: Arc<dyn Engine>) -> Store {
    let store = Store::on(engine);
    store.apply(&Schema::from_toml(SCHEMA).unwrap()).await.unwrap();
    let notes = store.documents("note").await.unwrap();
    let text = "x".repeat(400);
    let note = |number| json!({"id": id(number), "owner": "ana", "of": number % 7, "text": text});
    let load = notes.load((0..RECORDS).map(note).collect::<Vec<Value>>()).await.unwrap();
    assert_eq!(load.inserted, RECORDS as u64);
    store
}

struct Subject {
    name: &'static str,
    store: Store,
    _folder: Option<TempDir>,
}

async fn subjects() -> [Subject; 2] {
    let folder = tempfile::tempdir().unwrap();
    let embedded = Embedded::open(folder.path(), EmbeddedOptions::default()).unwrap();
    [
        Subject { name: "memory", store: filled(Arc::new(Memory::new())).await, _folder: None },
        Subject {
            name: "embedded",
            store: filled(Arc::new(embedded)).await,
            _folder: Some(folder),
        },
    ]
}

/// How often another task of the same thread has its turn while this one runs.
async fn turns_during(work: impl Future<Output = ()>) -> usize {
    let turns = Rc::new(Cell::new(0));
    let counted = turns.clone();
    let other = tokio::task::spawn_local(async move {
        loop {
            counted.set(counted.get() + 1);
            tokio::task::yield_now().await;
        }
    });
    // The first turn comes before the work.
    tokio::task::yield_now().await;
    let before = turns.get();
    work.await;
    other.abort();
    turns.get() - before
}

/// Runs on one thread, with nothing else on it.
fn alone(work: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    LocalSet::new().block_on(&runtime, work);
}

macro_rules! gives_way {
    ($($name:ident: |$store:ident| $work:expr;)+) => {$(
        #[test]
        fn $name() {
            alone(async {
                for Subject { name, store: $store, .. } in subjects().await {
                    let turns = turns_during(async { $work }).await;
                    assert!(turns >= TURNS, "{name}: another task had {turns} turns");
                    $store.close().await.unwrap();
                }
            });
        }
    )+};
}

async fn page(store: &Store, query: Query) {
    let notes = store.documents("note").await.unwrap();
    assert_eq!(notes.documents(&query.take(RECORDS)).await.unwrap().records.len(), RECORDS);
}

gives_way! {
    a_large_page_of_an_index: |store| page(&store, Query::new().equal("owner", "ana")).await;
    the_same_page_backwards: |store| {
        page(&store, Query::new().equal("owner", "ana").order("id", Order::Descending)).await;
    };
    a_large_page_of_a_scan: |store| page(&store, Query::new().scan()).await;
    keys: |store| {
        let notes = store.documents("note").await.unwrap();
        let query = Query::new().equal("owner", "ana").take(RECORDS);
        assert_eq!(notes.keys(&query).await.unwrap().records.len(), RECORDS);
    };
    a_filter_that_finds_nothing: |store| {
        let notes = store.documents("note").await.unwrap();
        let query = Query::new().equal("owner", "ana").filter("of", Test::Equals(json!(8)));
        assert_eq!(notes.documents(&query).await.unwrap().records.len(), 0);
    };
    a_count: |store| {
        let notes = store.documents("note").await.unwrap();
        assert_eq!(notes.count(&Query::new().equal("owner", "ana")).await.unwrap(), RECORDS);
    };
    many_records_by_their_keys: |store| {
        let notes = store.documents("note").await.unwrap();
        assert_eq!(notes.get_many((0..RECORDS).map(id)).await.unwrap().len(), RECORDS);
    };
    one_record_after_the_other: |store| {
        let notes = store.documents("note").await.unwrap();
        for number in 0..RECORDS {
            assert!(notes.get(id(number)).await.unwrap().is_some());
        }
    };
    groups: |store| {
        let notes = store.documents("note").await.unwrap();
        let query = GroupQuery::new("by_id").take(RECORDS);
        assert_eq!(notes.groups(&query).await.unwrap().groups.len(), RECORDS);
    };
    statistics: |store| {
        let stats = store.stats(&StatsOptions::default()).await.unwrap();
        assert_eq!(stats.collections[0].records.keys, RECORDS as u64);
    };
    a_distribution: |store| {
        let found = store.distribution("note", "owner", 1, RECORDS * 2).await.unwrap();
        assert!(found.is_exact);
    };
    verify: |store| assert!(store.verify().await.unwrap().is_clean());
    repair: |store| {
        let repaired = store.repair(&RepairOptions::default()).await.unwrap();
        assert_eq!(repaired.records, RECORDS as u64);
    };
    raw_keys: |store| {
        let list = RawList::new().take(RECORDS);
        assert_eq!(store.raw_keys().unwrap().list(&list).await.unwrap().keys.len(), RECORDS);
    };
    maintenance: |store| drop(store.maintain(&MaintainOptions::default()).await.unwrap());
    a_backup: |store| drop(store.backup_to(&mut std::io::sink()).await.unwrap());
    a_restore: |store| {
        let mut bytes = Vec::new();
        store.backup_to(&mut bytes).await.unwrap();
        let copy = store.space("copy").unwrap();
        copy.restore_from(&mut &bytes[..]).await.unwrap();
    };
}

/// What is read is measured in bytes as well, where it comes from a disk.
#[test]
fn a_page_of_large_records() {
    alone(async {
        let [_, Subject { store, _folder, .. }] = subjects().await;
        let notes = store.documents("note").await.unwrap();
        let text = "x".repeat(300 << 10);
        let large = |number: usize| json!({"id": id(number), "owner": "ben", "text": text});
        notes
            .load((0..40).map(|number| large(RECORDS + number)).collect::<Vec<_>>())
            .await
            .unwrap();
        let query = Query::new().equal("owner", "ben").take(40);
        let turns = turns_during(async {
            assert_eq!(notes.documents(&query).await.unwrap().records.len(), 40);
        });
        let turns = turns.await;
        assert!(turns >= 8, "another task had {turns} turns while 12 MB were read");
        store.close().await.unwrap();
    });
}

/// An entry of the log may be as large as its batch, so that bytes are counted here too.
#[test]
fn the_log() {
    alone(async {
        for Subject { name, store, _folder } in subjects().await {
            let turns = turns_during(async {
                let mut told = 0;
                let mut from = Position::FIRST;
                while told < RECORDS {
                    let changes = store.changes(from, RECORDS).await.unwrap();
                    told += changes.commits.iter().map(|it| it.changes.len()).sum::<usize>();
                    from = changes.next;
                }
            });
            let turns = turns.await;
            assert!(turns >= 1, "{name}: another task had {turns} turns");
            store.close().await.unwrap();
        }
    });
}

/// A call is not made in one go and paid for afterwards: no turn of the reader looks up more than
/// a part of the records.
#[test]
fn no_turn_reads_all_of_a_large_answer() {
    alone(async {
        let [_, Subject { store, _folder, .. }] = subjects().await;
        let notes = store.documents("note").await.unwrap();
        for is_page in [true, false] {
            let engine = store.engine().clone();
            let seen = Rc::new(RefCell::new(vec![looked_up(&*engine)]));
            let told = seen.clone();
            let other = tokio::task::spawn_local(async move {
                loop {
                    told.borrow_mut().push(looked_up(&*engine));
                    tokio::task::yield_now().await;
                }
            });
            match is_page {
                true => page(&store, Query::new().equal("owner", "ana")).await,
                false => drop(notes.get_many((0..RECORDS).map(id)).await.unwrap()),
            }
            other.abort();
            seen.borrow_mut().push(looked_up(&**store.engine()));
            let steps = seen.borrow().windows(2).map(|pair| pair[1] - pair[0]).collect::<Vec<_>>();
            assert!(steps.iter().sum::<u64>() >= RECORDS as u64, "{steps:?}");
            assert!(steps.iter().all(|step| *step <= 2 * 1_024), "{steps:?}");
        }
        store.close().await.unwrap();
    });
}

/// How many cells were looked for in the engine's record cache.
fn looked_up(engine: &dyn Engine) -> u64 {
    let figures = engine.figures();
    let looks = figures.iter().filter(|figure| figure.name.starts_with("record cache "));
    looks.filter(|figure| figure.unit == Unit::Count).map(|figure| figure.value).sum()
}
