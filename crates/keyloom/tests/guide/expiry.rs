//! docs/guide/expiry.md

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use keyloom::{Clock, Due, Error, ErrorKind, Query, Result, Stopped, SweepOptions, Transaction};
use serde_json::{Value, json};

use crate::store_of;

fn session(id: &str, email: &str, expires_at: u64) -> Value {
    json!({ "id": id, "user": "ana", "email": email, "expires_at": expires_at })
}

#[tokio::test]
async fn records_that_expire() -> Result<()> {
    let start = 1_700_000_000_000;
    let clock = Arc::new(AtomicU64::new(start));
    let ticks = clock.clone();
    let store = store_of("expiry.md").await;
    let store = store.with_clock(Clock::new(move || ticks.load(Ordering::SeqCst)));
    let sessions = store.documents("session").await?;

    sessions.insert(&session("s1", "ana@example.org", start + 60_000)).await?;
    assert!(sessions.get("s1").await?.is_some());

    clock.store(start + 60_000, Ordering::SeqCst);
    assert!(sessions.get("s1").await?.is_none());
    assert!(sessions.get_by("email", "ana@example.org").await?.is_none());

    sessions.insert(&session("s2", "ana@example.org", start + 120_000)).await?;
    let holder = sessions.get_by("email", "ana@example.org").await?.expect("it is new");
    assert_eq!(holder.value["id"], "s2");

    let swept = store.sweep(&SweepOptions::default()).await?;
    assert_eq!(swept.stopped, Stopped::End);
    for swept in &swept.collections {
        println!("{}: {} removed, clean until {}", swept.collection, swept.records, swept.until);
    }

    let now = start + 60_000;
    let of_ana = Query::new().equal("user", "ana");
    let keys = sessions.keys(&of_ana).await?;
    assert_eq!(keys.swept_until, Some(now));

    let counted = sessions.count_entries(&of_ana).await?;
    assert_eq!((counted.records, counted.swept_until), (1, Some(now)));
    Ok(())
}

#[tokio::test]
async fn work_that_falls_due() -> Result<()> {
    let store = store_of("expiry.md").await;
    let runs = store.documents("run").await?;
    let steps = json!({ "payment": { "timeoutAt": 1_700_000_000_000_u64 } });
    runs.insert(&json!({ "flow": "f", "run_id": "r1", "awaitingSteps": steps })).await?;

    let due = Due::new("due").take(10);
    let leased = runs.lease(&due, "worker-1", Duration::from_secs(30)).await?;
    for item in &leased.items {
        let step = &item.values["awaitingSteps.*key"];
        println!("{step} of {} was due at {}", item.record.key, item.due_at);
    }
    assert_eq!(leased.items.len(), 1);
    assert!(runs.lease(&due, "worker-2", Duration::from_secs(30)).await?.items.is_empty());

    let done = store
        .transaction(async |tx: Transaction| {
            let runs = tx.documents("run")?;
            let mut run = runs.get(("f", "r1")).await?.expect("it is awaited").into_value();
            run["awaitingSteps"]["payment"] = json!({ "status": "timed out" });
            runs.replace(&run).await?;
            tx.complete(&leased.items[0].lease)?;
            Ok::<_, Error>(())
        })
        .await;
    done?;

    let again = store
        .transaction(async |tx: Transaction| {
            tx.complete(&leased.items[0].lease)?;
            Ok::<_, Error>(())
        })
        .await;
    assert_eq!(again.unwrap_err().kind(), ErrorKind::LeaseLost);
    Ok(())
}
