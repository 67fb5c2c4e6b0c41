//! docs/guide/counters.md

use std::collections::BTreeMap;

use keyloom::{ErrorKind, Increment, Record, Result};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::store_of;

#[derive(Record, Serialize, Deserialize)]
#[record(key = "job:{id}")]
#[counter("stats.*", min = 0)]
struct Job {
    id: String,
    #[serde(default)]
    stats: BTreeMap<String, i64>,
    #[counter(max = 5)]
    #[serde(default)]
    attempts: i64,
}

#[tokio::test]
#[rustfmt::skip]
async fn the_whole_page() -> Result<()> {
    let store = store_of("counters.md").await;
    let flows = store.documents("flow").await?;
    for flow in ["mail", "invoice"] {
        flows.insert(&json!({ "flow": flow, "owner": "ana" })).await?;
    }
    flows.increment("mail", [("stats.running", 3)]).await?;

    let after = flows.increment("mail", [("stats.running", -1), ("stats.success", 1)]).await?;
    assert_eq!((after["stats.running"], after["stats.success"]), (2, 1));

    let error = flows.increment("mail", [("stats.success", 1), ("stats.running", -9)]).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::OutOfBounds);
    assert_eq!(error.context_value("counter"), Some("stats.running"));
    assert_eq!((error.context_value("value"), error.context_value("min")), (Some("2"), Some("0")));

    store
        .increment_many([
            Increment::of("flow", "mail").add("errors.smtp", 2),
            Increment::of("flow", "invoice").add("stats.running", 1),
        ])
        .await?;

    let flow = flows.get("mail").await?.expect("it was inserted");
    assert_eq!(flow.value["stats"], json!({ "running": 2, "success": 1 }));
    assert_eq!(flow.value["errors"], json!({ "smtp": 2 }));

    let error = flows.update_with_retry("mail", &json!({ "stats": { "running": 0 } })).await.unwrap_err();
    assert!(error.to_string().contains("increment"));

    store
        .transaction(async |tx| {
            let flows = tx.documents("flow")?;
            flows.insert(&json!({ "flow": "report", "owner": "ana" })).await?;
            flows.increment("report", [("stats.running", 1)]).await?;
            flows.increment("mail", [("stats.running", -1)]).await
        })
        .await?;
    assert_eq!(flows.get("mail").await?.expect("it is there").value["stats"]["running"], 1);

    let jobs = store.collection::<Job>().await?;
    jobs.insert(&Job { id: "j1".into(), stats: BTreeMap::new(), attempts: 0 }).await?;
    jobs.increment("j1", [("attempts", 1), ("stats.bytes", 512)]).await?;
    let job = jobs.get("j1").await?.expect("it was inserted");
    assert_eq!((job.attempts, job.stats["bytes"]), (1, 512));

    let store = store.with_warnings(|warning| eprintln!("{warning}"));
    store.documents("flow").await?.insert(&json!({ "flow": "x", "owner": "ana", "count": 1 })).await?;
    Ok(())
}
