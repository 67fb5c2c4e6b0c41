//! docs/guide/keys.md

use keyloom::{
    BranchOptions, ErrorKind, RawKind, RawList, Result, StatsOptions, keyspace_markdown,
};
use serde_json::json;

use crate::store_of;

#[tokio::test]
async fn the_whole_page() -> Result<()> {
    let store = store_of("keys.md").await;
    let note = json!({ "userId": "ana", "noteId": "n1", "tag": "red" });
    store.documents("note").await?.insert(&note).await?;

    let notes = store.documents("note").await?;
    assert_eq!(notes.name_of("user:ana:notes:n1").await?, "ana:notes:n1");

    let mine = notes.acting_as("ana")?;
    assert_eq!(mine.name_of("user:ana:notes:n1").await?, "n1");
    let note = mine.get(mine.key_named("n1").await?).await?;
    assert_eq!(note.unwrap()["tag"], "red");

    let error = notes.key_named("ana:files:1").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidKey);
    assert_eq!(
        error.context_value("reason"),
        Some("':notes:' is expected where ':files:1' stands")
    );

    for owned in mine.owned_keys("n1").await?.expect("the note is there") {
        println!("{:?} {} = {} {}", owned.kind, owned.key, owned.value, owned.is_present);
    }

    let page = keyspace_markdown(&store.schema().await?);
    assert!(page.contains("query where userId = … and tag = …"));

    let raw = store.raw_keys()?;
    let page = raw.list(&RawList::new().area("").prefix("user:ana:").values()).await?;
    assert_eq!(page.keys[0].text, "user:ana:notes:n1");
    assert_eq!(page.keys[0].kind, RawKind::Record { collection: "note".into() });

    let level = raw.branches("", "user:ana:", &BranchOptions::default()).await?;
    let names: Vec<&str> = level.branches.iter().map(|branch| &*branch.text).collect();
    assert_eq!(names, ["user:ana:notes:", "user:ana:tags:"]);

    let stats = store.stats(&StatsOptions::default()).await?;
    assert_eq!(stats.collections[0].records.keys, 1);

    let spread = store.distribution("note", "tag", 2, 10_000).await?;
    assert_eq!(spread.shares[0].values, [json!("ana"), json!("red")]);
    Ok(())
}
