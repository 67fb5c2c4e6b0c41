//! docs/guide/getting-started.md

use keyloom::{Effect, ErrorKind, Order, Query, Result, Store};
use serde_json::json;

use crate::schemas_of;

#[tokio::test]
async fn the_whole_page() -> Result<()> {
    let folder = tempfile::tempdir().unwrap();
    let address = &format!("file:{}", folder.path().display());
    let schema = schemas_of("getting-started.md");

    let store = Store::open(address).await?;
    store.apply(&schema).await?;
    let approvals = store.documents("approval").await?;

    let made = approvals
        .insert(&json!({ "requester_id": "ana", "approver_id": "ben", "status": "pending" }))
        .await?;
    println!("{} in version {}", made.key, made.version);
    let record = made.value()?;

    let id = record["id"].as_str().unwrap();
    let code = record["code"].as_str().unwrap();
    let by_id = approvals.get(id).await?.unwrap();
    let by_code = approvals.get_by("code", code).await?.unwrap();
    assert_eq!(by_id, by_code);
    assert_eq!(by_id["requester_id"], "ana");

    let newest = Query::new().equal("approver_id", "ben").order("created_at", Order::Descending);
    let page = approvals.page(&newest.take(20)).await?;
    for approval in &page.records {
        println!("{} asks for {}", approval["requester_id"], approval["code"]);
    }
    assert_eq!(page.records, std::slice::from_ref(&by_id));

    let mut changed = by_id.value.clone();
    changed["status"] = json!("approved");
    let written = approvals.replace_if(&changed, by_id.version).await?;
    assert_eq!(written.effect, Effect::Replaced);
    assert_eq!(written.version.revision(), 2);

    // The version is out of date now.
    let error = approvals.replace_if(&changed, by_id.version).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::VersionConflict);

    // `approved` is final: no transition leads on from it.
    changed["status"] = json!("pending");
    let error = approvals.replace(&changed).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::IllegalTransition);
    assert_eq!(error.context_value("from"), Some("approved"));

    approvals.delete(id).await?;
    assert!(approvals.get_by("code", code).await?.is_none());

    let tenant = store.space("tenant-7")?;
    tenant.apply(&schema).await?;

    store.close().await?;
    Ok(())
}
