//! docs/guide/owners.md

use keyloom::{ErrorKind, Query, Result};
use serde_json::json;

use crate::store_of;

#[tokio::test]
async fn the_whole_page() -> Result<()> {
    let store = store_of("owners.md").await;
    let ana = store.acting_as("ana")?;
    let notes = ana.documents("note").await?;
    notes.insert(&json!({ "noteId": "n1", "title": "Milk", "slug": "milk" })).await?;

    let note = notes.get("n1").await?.expect("it is Ana's");
    assert_eq!(note.key, "user:ana:notes:n1");
    assert_eq!(note.value["userId"], "ana");

    let preferences = ana.documents("preferences").await?;
    preferences.upsert(&json!({ "dark": true })).await?;
    assert!(preferences.get(()).await?.is_some());

    let mine = notes.page(&Query::new()).await?; // all of Ana's notes are one range
    assert_eq!(mine.records.len(), 1);

    let bens = notes.acting_as("ben")?;
    assert!(bens.page(&Query::new()).await?.records.is_empty());

    assert!(bens.get(("ana", "n1")).await?.is_none());
    assert!(bens.get_by("slug", "milk").await?.is_none());
    assert!(bens.page(&Query::new().equal("userId", "ana")).await?.records.is_empty());
    let error = bens.update_with_retry(("ana", "n1"), &json!({ "title": "x" })).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);

    let error = bens.insert(&json!({ "noteId": "n1", "slug": "milk" })).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::UniqueConflict);
    assert_eq!(error.context_value("held by"), None);

    ana.documents("post").await?.insert(&json!({ "postId": "p1", "timestamp": 5 })).await?;
    let posts = store.acting_as("ben")?.documents("post").await?;
    assert!(posts.get(("ana", "p1")).await?.is_some());
    let error = posts.delete(("ana", "p1")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Forbidden);
    Ok(())
}
