//! docs/guide/aggregates.md

use keyloom::{GroupQuery, PurgeOptions, Query, Result};
use serde_json::{Value, json};

use crate::store_of;

fn run(flow: &str, id: &str, status: &str, seconds: i64) -> Value {
    json!({ "flow": flow, "id": id, "status": status, "seconds": seconds })
}

#[tokio::test]
#[expect(unused_variables, reason = "the page shows how to go on, and does not go on")]
async fn the_whole_page() -> Result<()> {
    let store = store_of("aggregates.md").await;
    let runs = store.documents("run").await?;
    for (id, status, seconds) in [("r1", "done", 20), ("r2", "done", 30), ("r3", "queued", 25)] {
        runs.insert(&run("nightly", id, status, seconds)).await?;
    }

    assert_eq!(runs.counted("by_status", "done").await?, 2);
    assert_eq!(runs.summed("seconds_by_flow", ("nightly", "done")).await?, 50);
    assert_eq!(runs.counted("seconds_by_flow", ("nightly", "done")).await?, 2);
    assert_eq!(runs.counted("all", ()).await?, 3);
    assert_eq!(runs.counted("urgent", "weekly").await?, 0);

    let done = runs.group("seconds_by_flow", ("nightly", "done")).await?;
    assert_eq!((done.count, done.sum, done.swept_until), (2, Some(50), None));

    let done = Query::new().equal("status", "done");
    assert_eq!(runs.count(&done).await?, 2);
    assert!(runs.explain(&done).await?.contains("the aggregate by_status"));

    let nightly = GroupQuery::new("seconds_by_flow").within("nightly").take(10);
    let page = runs.groups(&nightly).await?;
    for group in &page.groups {
        println!("{:?}: {} runs, {:?} seconds", group.values, group.count, group.sum);
    }
    if let Some(next) = page.next {
        let page = runs.groups(&nightly.from_cursor(next)).await?;
    }

    let slowest = runs.top_groups(&GroupQuery::new("seconds_by_flow").limit(1_000), 3).await?;
    assert_eq!(slowest.groups[0].values, [json!("nightly"), json!("done")]);

    let nightly = Query::new().equal("flow", "nightly");
    assert_eq!(runs.min(&nightly, "seconds").await?, Some(json!(20)));
    assert_eq!(runs.max(&nightly, "seconds").await?, Some(json!(30)));

    store.disable("run", "by_status").await?;
    runs.insert(&run("weekly", "r9", "queued", 5)).await?;
    store.build("run", "by_status").await?;
    assert_eq!(runs.counted("by_status", "queued").await?, 2);

    runs.delete(("weekly", "r9")).await?;
    let purged = store.purge_groups(&PurgeOptions::default()).await?;
    assert!(purged.removed > 0);
    assert!(store.verify().await?.is_clean());
    Ok(())
}
