//! docs/guide/history.md

use keyloom::{ErrorKind, HistoryKind, PurgeOptions, Result, Stored};
use serde_json::{Value, json};

use crate::store_of;

#[tokio::test]
async fn the_whole_page() -> Result<()> {
    let store = store_of("history.md").await;
    // A history answers for the time since it was declared, and this one is new.
    let pages = store.documents("page").await?;
    let as_ana = store.acting_as("ana")?.documents("page").await?;
    let first = as_ana.insert(&json!({ "name": "home", "text": "hello", "tags": ["a"] })).await?;
    as_ana.update_with_retry("home", &json!({ "text": "welcome" })).await?;
    store.documents("page").await?.delete("home").await?;

    let page = pages.history("home", 20, None).await?;
    let told: Vec<(HistoryKind, Option<&str>)> =
        page.records.iter().map(|entry| (entry.kind, entry.by.as_deref())).collect();
    assert_eq!(
        told,
        [
            (HistoryKind::Deleted, None),
            (HistoryKind::Updated, Some("ana")),
            (HistoryKind::Created, Some("ana")),
        ]
    );
    let change = &page.records[1].changes[0];
    assert_eq!(change.path, ["text"]);
    assert_eq!(change.before, Some(json!("hello")));
    assert_eq!(change.after, Some(json!("welcome")));

    let text = |found: Option<Stored<Value>>| found.map(|page| page["text"].clone());
    let hello = pages.get_version("home", first.version).await?;
    assert_eq!(text(hello), Some(json!("hello")));

    let deleted_at = page.records[0].at_ms;
    assert!(pages.get_as_of("home", deleted_at).await?.is_none());
    assert_eq!(pages.get_as_of("home", 0).await.unwrap_err().kind(), ErrorKind::NotKept);

    let options = PurgeOptions { cells_max: 10_000, ..PurgeOptions::default() };
    let purged = store.purge_history(&options).await?;
    assert_eq!(purged.removed, 0);
    assert!(purged.next.is_none(), "or the place to go on from");
    Ok(())
}
