//! docs/guide/updates.md

use keyloom::{ErrorKind, Result, Retry};
use serde_json::{Value, json};

use crate::store_of;

#[tokio::test]
async fn the_whole_page() -> Result<()> {
    let store = store_of("updates.md").await;
    let runs = store.documents("run").await?;
    let run = json!({ "flow": "f", "id": "r1", "status": "running", "stats": { "ok": 3 } });
    runs.insert(&run).await?;

    let read = runs.get(("f", "r1")).await?.expect("it was inserted");
    let written = runs.update(("f", "r1"), &json!({ "status": "done" }), read.version).await?;
    assert_eq!(written.version.revision(), 2);

    let late = runs.update(("f", "r1"), &json!({ "note": "too late" }), read.version).await;
    let error = late.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::VersionConflict);
    let now = error.current().expect("the record as it is now");
    assert_eq!(now.version, written.version);

    let patch = json!({ "stats": { "failed": 1 }, "emittedEvents": { "order.created": 1700000000000_u64 } });
    runs.update_with_retry(("f", "r1"), &patch).await?;

    runs.modify(("f", "r1"), |run: &mut Value| {
        run["attempts"] = json!(run["attempts"].as_u64().unwrap_or(0) + 1);
        Ok(())
    })
    .await?;

    let hasty = runs.with_retry(Retry::never());
    hasty
        .modify(("f", "r1"), |run: &mut Value| {
            run["by"] = json!("me");
            Ok(())
        })
        .await?;

    let run = runs.get(("f", "r1")).await?.expect("it was inserted");
    assert_eq!(run.value["stats"], json!({ "ok": 3, "failed": 1 }));
    assert_eq!((&run.value["attempts"], &run.value["by"]), (&json!(1), &json!("me")));

    runs.rename(("f", "r1"), |run: &mut Value| {
        run["id"] = json!("r2");
        Ok(())
    })
    .await?;
    assert!(runs.get(("f", "r1")).await?.is_none());
    Ok(())
}
