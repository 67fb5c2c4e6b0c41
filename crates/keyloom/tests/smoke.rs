//! The path of a record through all layers, on both engines.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests fail by panicking"
)]

use keyloom::{ErrorKind, Order, Query, Schema, Store};
use serde_json::json;

const APPROVALS: &str = r#"
[collection.approval]
key = "approval:record:{id}"

[collection.approval.fields]
id           = { type = "id", generate = true }
requester_id = "text"
approver_id  = "text"
created_at   = "timestamp"
code         = { type = "code", pattern = "A-******", generate = true }
status       = { type = "enum", values = ["pending", "approved", "denied", "canceled"], transitions = { pending = ["approved", "denied", "canceled"] } }

[collection.approval.index.requester]
key = "approval:index:requester:{requester_id}:{created_at desc}:{id}"

[collection.approval.index.approver]
key = "approval:index:approver:{approver_id}:{created_at desc}:{id}"

[collection.approval.unique.code]
key = "approval:code:{code}"
"#;

async fn round(store: Store) {
    store.apply(&Schema::from_toml(APPROVALS).unwrap()).await.unwrap();
    let approvals = store.documents("approval").await.unwrap();
    let mut ids = Vec::new();
    for n in 0..50 {
        let approval = json!({
            "requester_id": if n % 2 == 0 { "ana" } else { "ben" },
            "approver_id": "ana",
            "created_at": 1_674_950_787_234_u64 + n,
            "status": "pending",
        });
        let document = approvals.insert(&approval).await.unwrap();
        ids.push(document.json().unwrap()["id"].as_str().unwrap().to_owned());
    }
    let mine =
        Query::new().equal("requester_id", "ana").order("created_at", Order::Descending).take(10);
    println!("{}", approvals.explain(&mine).await.unwrap());
    let page = approvals.page(&mine).await.unwrap();
    assert_eq!(page.records.len(), 10);
    assert_eq!(page.records[0].value["created_at"], 1_674_950_787_234_u64 + 48);
    let second = approvals.page(&mine.clone().from_cursor(page.next.unwrap())).await.unwrap();
    assert_eq!(second.records[0].value["created_at"], 1_674_950_787_234_u64 + 28);
    let back = approvals.page(&mine.clone().from_cursor(second.previous.unwrap())).await.unwrap();
    assert_eq!(back.records, page.records);
    let both = Query::new()
        .any("requester_id", "ana")
        .any("approver_id", "ana")
        .order("created_at", Order::Descending)
        .take(100);
    println!("{}", approvals.explain(&both).await.unwrap());
    assert_eq!(approvals.page(&both).await.unwrap().records.len(), 50);
    let found = approvals.get(&ids[3]).await.unwrap().unwrap();
    let code = found.value["code"].as_str().unwrap();
    assert_eq!(approvals.get_by("code", code).await.unwrap().unwrap(), found);
    let mut changed = found.value.clone();
    changed["status"] = json!("approved");
    approvals.replace_if(&changed, found.version).await.unwrap();
    changed["status"] = json!("denied");
    assert_eq!(approvals.replace(&changed).await.unwrap_err().kind(), ErrorKind::IllegalTransition);
    assert!(approvals.delete(&ids[3]).await.unwrap().is_some());
    assert_eq!(approvals.count(&both).await.unwrap(), 49);
    let error = approvals.page(&Query::new().equal("status", "pending")).await.unwrap_err();
    println!("{error}");
    assert_eq!(error.kind(), ErrorKind::NoIndex);
    store.close().await.unwrap();
}

#[tokio::test]
async fn memory() {
    round(Store::open("memory:").await.unwrap()).await;
}

#[tokio::test]
async fn embedded() {
    let folder = tempfile::tempdir().unwrap();
    round(Store::open(&format!("file:{}", folder.path().display())).await.unwrap()).await;
}
