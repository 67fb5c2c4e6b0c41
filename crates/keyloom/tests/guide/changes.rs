//! docs/guide/changes.md

use keyloom::{Position, Result, Store, WatchOptions};
use serde_json::json;

use crate::store_of;

#[tokio::test]
async fn the_whole_page() -> Result<()> {
    let store = store_of("changes.md").await;
    let notes = store.documents("note").await?;

    let changes = store.changes(Position::FIRST, 100).await?;
    for commit in &changes.commits {
        for change in &commit.changes {
            println!("{} {} {:?}", commit.position, change.key, change.became);
        }
    }
    let more = store.changes(changes.next, 100).await?;
    assert!(more.is_end());

    let mut watch = store.watch(WatchOptions::from_now().collection("note")).await?;
    notes.insert(&json!({ "owner": "ana", "id": "milk" })).await?;
    let commit = watch.next().await?;
    assert_eq!(commit.changes[0].key, "note:ana:milk");

    notes.insert(&json!({ "owner": "ana", "id": "tea" })).await?;
    let resume = commit.position.next();
    let mut watch = store.watch(WatchOptions::from_position(resume)).await?;
    assert_eq!(watch.next().await?.changes[0].key, "note:ana:tea");

    let trimmed = store.trim_log().await?;
    println!("{} entries are gone, {} is the oldest", trimmed.removed, trimmed.bounds.oldest);

    let copy = Store::open("memory:").await?;
    copy.replay(&store).await?;
    assert!(copy.documents("note").await?.get(("ana", "milk")).await?.is_some());
    Ok(())
}
