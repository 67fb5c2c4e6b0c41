//! Many writers of one record in one process: with default settings all of them succeed, and in
//! a fair order.

#![cfg(feature = "embedded")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests fail by panicking"
)]

use std::num::NonZeroU64;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use keyloom::engine::{Embedded, EmbeddedOptions, Engine, Memory};
use keyloom::{Collection, ErrorKind, Retry, Schema, Store};
use serde_json::{Value, json};

const WRITERS: u64 = 64;
const ROUNDS: u64 = 4;

const SCHEMA: &str = r#"
[collection.page]
key = "page:{id}"
[collection.page.fields]
id = "text"
seen = "integer"
[collection.page.index.by_seen]
key = "page:seen:{seen}:{id}"
"#;

struct Subject {
    name: &'static str,
    store: Store,
    pages: Collection<Value>,
    _folder: tempfile::TempDir,
}

impl Subject {
    async fn all() -> Vec<Subject> {
        let mut all = Vec::new();
        for name in ["memory:", "memory:?conflicts=5", "file:"] {
            let folder = tempfile::tempdir().unwrap();
            let engine: Arc<dyn Engine> = match name {
                "memory:" => Arc::new(Memory::new()),
                "file:" => {
                    Arc::new(Embedded::open(folder.path(), EmbeddedOptions::default()).unwrap())
                }
                _ => Arc::new(Memory::new().with_conflicts(NonZeroU64::new(5).unwrap())),
            };
            let store = Store::on(engine);
            store.apply(&Schema::from_toml(SCHEMA).unwrap()).await.unwrap();
            let pages = store.documents("page").await.unwrap();
            all.push(Subject { name, store, pages, _folder: folder });
        }
        all
    }

    async fn with_pages(self, ids: &[&str]) -> Subject {
        for id in ids {
            self.pages.insert(&json!({ "id": id, "seen": 0 })).await.unwrap();
        }
        self
    }

    async fn seen(&self, id: &str) -> u64 {
        self.pages.get(id).await.unwrap().unwrap()["seen"].as_u64().unwrap()
    }
}

fn add_one(page: &mut Value) -> keyloom::Result<()> {
    page["seen"] = json!(page["seen"].as_u64().unwrap_or(0) + 1);
    Ok(())
}

/// Lets each of the writers do its rounds, all at the same time.
async fn at_once<W: Future<Output = keyloom::Result<()>> + Send + 'static>(
    name: &str,
    write: impl Fn(u64, u64) -> W + Clone + Send + Sync + 'static,
) {
    let start = Arc::new(tokio::sync::Barrier::new(WRITERS as usize));
    let writers = (0..WRITERS).map(|writer| {
        let (start, write) = (start.clone(), write.clone());
        tokio::spawn(async move {
            start.wait().await;
            for round in 0..ROUNDS {
                write(writer, round).await?;
            }
            Ok::<_, keyloom::Error>(())
        })
    });
    for writer in writers.collect::<Vec<_>>() {
        writer.await.unwrap().unwrap_or_else(|error| panic!("{name}: {error}"));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn every_modify_of_one_record_succeeds() {
    for it in Subject::all().await {
        let it = it.with_pages(&["a"]).await;
        let pages = it.pages.clone();
        at_once(it.name, move |_, _| {
            let pages = pages.clone();
            async move { pages.modify("a", add_one).await.map(drop) }
        })
        .await;
        assert_eq!(it.seen("a").await, WRITERS * ROUNDS, "{}", it.name);
        assert!(it.store.verify().await.unwrap().is_clean());
    }
}

/// Every kind of write that reads first, all of one record.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn every_kind_of_write_has_its_turn() {
    for it in Subject::all().await {
        let pages = it.pages.clone();
        let store = it.store.clone();
        at_once(it.name, move |writer, round| {
            let (pages, store) = (pages.clone(), store.clone());
            async move {
                let first = json!({ "id": "a", "seen": 1 });
                match writer % 4 {
                    0 => pages.upsert_with(&first, add_one).await.map(drop),
                    1 => {
                        // Moves its own record onto a key that is free, and counts.
                        let (id, to) = (format!("w{writer}-{round}"), format!("m{writer}-{round}"));
                        pages.insert(&json!({ "id": id, "seen": 0 })).await?;
                        let rename = |page: &mut Value| {
                            page["id"] = json!(to);
                            Ok(())
                        };
                        pages.rename(id.as_str(), rename).await?;
                        pages.upsert_with(&first, add_one).await.map(drop)
                    }
                    2 => {
                        pages.upsert_with(&first, add_one).await?;
                        let patch = json!({ "by": format!("{writer}.{round}") });
                        pages.update_with_retry("a", &patch).await.map(drop)
                    }
                    _ => {
                        store
                            .transaction(async |transaction| {
                                let pages = transaction.documents("page")?;
                                let seen = pages.get("a").await?;
                                let seen =
                                    seen.map_or(0, |page| page["seen"].as_u64().unwrap_or(0));
                                pages.upsert(&json!({ "id": "a", "seen": seen + 1 })).await?;
                                Ok::<_, keyloom::Error>(())
                            })
                            .await
                    }
                }
            }
        })
        .await;
        assert_eq!(it.seen("a").await, WRITERS * ROUNDS, "{}", it.name);
        assert!(it.store.verify().await.unwrap().is_clean());
    }
}

/// Transactions over two records that every one of them reads and writes, in both orders.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn transactions_over_the_same_records_all_succeed() {
    for it in Subject::all().await {
        let it = it.with_pages(&["a", "b"]).await;
        let store = it.store.clone();
        let pages = it.pages.clone();
        at_once(it.name, move |writer, _| {
            let (store, pages) = (store.clone(), pages.clone());
            let (first, second) = if writer % 2 == 0 { ("a", "b") } else { ("b", "a") };
            async move {
                if writer % 4 == 0 {
                    // Among those who write one of the two alone.
                    return pages.modify(second, add_one).await.map(drop);
                }
                store
                    .transaction(async |transaction| {
                        let pages = transaction.documents("page")?;
                        for id in [first, second] {
                            let mut page = pages.get(id).await?.expect("inserted above").value;
                            add_one(&mut page)?;
                            pages.replace(&page).await?;
                        }
                        Ok::<_, keyloom::Error>(())
                    })
                    .await
            }
        })
        .await;
        let both = WRITERS / 4 * 3 * ROUNDS;
        assert_eq!(it.seen("a").await, both, "{}", it.name);
        assert_eq!(it.seen("b").await, both + WRITERS / 4 * ROUNDS, "{}", it.name);
        assert!(it.store.verify().await.unwrap().is_clean());
    }
}

/// A transaction that waits for its turn holds nothing: two that want each other's record, and a
/// closure that itself waits for a write of the record it read, all come to an end.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_closure_that_waits_for_another_writer_is_not_stuck() {
    for it in Subject::all().await {
        let it = it.with_pages(&["a"]).await;
        let attempts = AtomicU32::new(0);
        it.store
            .transaction(async |transaction| {
                let pages = transaction.documents("page")?;
                let mut page = pages.get("a").await?.expect("inserted above").value;
                if attempts.fetch_add(1, Ordering::Relaxed) < 2 {
                    // Outside of the transaction, and so a conflict; the second time while it
                    // has its turn.
                    it.pages.modify("a", add_one).await?;
                }
                add_one(&mut page)?;
                pages.replace(&page).await?;
                Ok::<_, keyloom::Error>(())
            })
            .await
            .unwrap();
        assert_eq!(it.seen("a").await, 3, "{}", it.name);
    }
}

#[tokio::test]
async fn a_store_in_memory_conflicts_when_it_is_told_to() {
    let store = Store::open("memory:?conflicts=2").await.unwrap();
    store.apply(&Schema::from_toml(SCHEMA).unwrap()).await.unwrap();
    let pages = store.documents("page").await.unwrap();
    pages.insert(&json!({ "id": "a", "seen": 0 })).await.unwrap();
    let hasty = pages.with_retry(Retry::never());
    let mut outcomes = Vec::new();
    for _ in 0..6 {
        outcomes.push(hasty.modify("a", add_one).await.map(drop).map_err(|error| error.kind()));
    }
    let (written, refused) = (Ok(()), Err(ErrorKind::Contention));
    let in_turns = [written, refused, written, refused, written, refused];
    assert_eq!(outcomes, in_turns, "the first conflict is the second write's");
    for _ in 0..6 {
        pages.modify("a", add_one).await.unwrap();
    }
    assert_eq!(pages.get("a").await.unwrap().unwrap()["seen"], 9);
    for wrong in ["memory:?conflicts=1", "memory:?conflicts=0", "memory:?conflicts=x", "memory:x"] {
        let error = Store::open(wrong).await.err().expect(wrong);
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{wrong}: {error}");
    }
}
