//! docs/guide/queries.md

use keyloom::{ErrorKind, Near, Order, Query, Result, Stopped, Test};
use serde_json::json;

use crate::{blocks_of, guide, store_of};

#[tokio::test]
async fn the_whole_page() -> Result<()> {
    let store = store_of("queries.md").await;
    let requests = store.documents("request").await?;
    for n in 1..=60_u64 {
        requests
            .insert(&json!({
                "id": n,
                "requester": if n % 2 == 0 { "ana" } else { "ben" },
                "approver": if n % 3 == 0 { "ana" } else { "cai" },
                "created_at": 1_699_999_999_980_u64 + n,
                "title": format!("{} {n}", if n % 4 == 0 { "Invoice" } else { "Travel" }),
                "status": if n % 5 == 0 { "closed" } else { "open" },
                "tags": if n % 10 == 0 { json!(["urgent", "late"]) } else { json!([]) },
                "days": n % 7,
                "place": { "lat": 48.85 + n as f64 / 1_000.0, "lon": 2.35 },
            }))
            .await?;
    }

    let recent = Query::new()
        .equal("requester", "ana")
        .range("created_at", 1_700_000_000_000_u64..)
        .order("created_at", Order::Descending)
        .take(10);
    let page = requests.page(&recent).await?;
    assert_eq!(page.records.len(), 10);
    assert_eq!(page.records[0]["id"], 60);
    assert_eq!(page.stopped, Stopped::Take);

    let from_m = Query::new().range("title", "M"..).order("title", Order::Ascending);
    let beginning = Query::new().starts_with("title", "Inv");
    assert_eq!(requests.count(&from_m).await?, 45);
    assert_eq!(requests.count(&beginning).await?, 15);
    assert_eq!(requests.count(&Query::new().range("id", 50..200)).await?, 11);

    let first = requests.page(&Query::new().take(20)).await?;
    assert_eq!(first.records[19]["id"], 20);
    let error = requests.count(&Query::new()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NoIndex);
    assert_eq!(requests.count(&Query::new().limit(60)).await?, 60);

    let plan = requests.explain(&recent).await?;
    let blocks = blocks_of(&guide().join("queries.md"));
    let shown = blocks.iter().find(|block| block.language == "text").unwrap();
    assert_eq!(plan.trim(), shown.text.trim());

    let error = requests.page(&Query::new().equal("status", "closed")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NoIndex);
    assert_eq!(error.context_value("would serve"), Some("request:index:NAME:{status}:{id}"));

    let closed = Query::new().equal("status", "closed").scan();
    assert_eq!(requests.count(&closed).await?, 12);

    let urgent = Query::new().equal("tags.*", "urgent");
    assert_eq!(requests.count(&urgent).await?, 6);

    let oldest_open = Query::new().equal("status", "open").order("created_at", Order::Ascending);
    assert_eq!(requests.count(&oldest_open).await?, 48);
    assert_eq!(requests.page(&oldest_open.take(1)).await?.records[0]["id"], 1);
    let open = Query::new().index("open").order("created_at", Order::Ascending);
    assert_eq!(requests.count(&open).await?, 48);

    let error = requests.page(&Query::new().equal("created_at", "soon").scan()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidQuery);
    let late = Query::new().filter("tags", Test::Equals(json!("late"))).scan();
    let error = requests.page(&late).await.unwrap_err();
    assert_eq!(error.context_value("did you mean"), Some("tags.*"));

    let mine = Query::new()
        .any("requester", "ana")
        .any("approver", "ana")
        .order("created_at", Order::Descending)
        .take(20);

    let nearby = requests.near(&Near::new(48.8566, 2.3522).within(1_500.0).take(10)).await?;
    for found in &nearby.records {
        println!("{:.0} m: {}", found.distance_m, found.record["title"]);
    }
    assert_eq!(nearby.records[0].record["id"], 7);
    assert_eq!(nearby.records.len(), 10);

    let first = requests.page(&mine).await?;
    let cursor = first.next.unwrap().to_string();
    let second = requests.page(&mine.clone().from_cursor(cursor)).await?;
    let back = requests.page(&mine.clone().from_cursor(second.previous.unwrap())).await?;
    assert_eq!(back.records, first.records);

    let mut all = requests.pages(&mine).records();
    let mut titles = Vec::new();
    while let Some(request) = all.next().await {
        titles.push(request?["title"].clone());
    }
    assert_eq!(titles.len(), 40);

    let long = Query::new()
        .equal("requester", "ana")
        .filter("days", Test::AtLeast(json!(5)))
        .take(10)
        .limit(500);
    let page = requests.page(&long).await?;
    assert!(page.records.iter().all(|request| request["days"].as_u64() >= Some(5)));
    assert!(page.read > page.records.len() && !page.records.is_empty());

    let keys = requests.keys(&mine).await?;
    let count = requests.count(&mine).await?;
    assert_eq!(keys.records[0], "request:record:000060");
    assert_eq!(count, 40);

    let some = requests.get_many([1, 2, 999_999]).await?;
    assert!(some[0].is_some() && some[2].is_none());
    Ok(())
}
