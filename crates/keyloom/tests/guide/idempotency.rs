//! docs/guide/idempotency.md

use keyloom::{Error, PurgeOptions, Result};
use serde_json::{Value, json};

use crate::store_of;

#[tokio::test]
async fn the_whole_page() -> Result<()> {
    let store = store_of("idempotency.md").await;
    let accounts = store.documents("account").await?;
    accounts.insert(&json!({ "id": "ana" })).await?;

    let keyed = accounts.with_idempotency_key("payment 17")?;
    let add = |account: &mut Value| {
        account["balance"] = json!(account["balance"].as_i64().unwrap_or(0) + 10);
        Ok(())
    };
    let paid = keyed.modify("ana", add).await?;
    let again = keyed.modify("ana", add).await?;
    assert_eq!(again, paid);
    assert_eq!(accounts.get("ana").await?.expect("it is there")["balance"], 10);

    let balance = store
        .transaction_once("transfer 3", |transaction| async move {
            let accounts = transaction.documents("account")?;
            let mut account = accounts.get("ana").await?.expect("it is there").value;
            account["balance"] = json!(account["balance"].as_i64().unwrap_or(0) - 3);
            accounts.replace(&account).await?;
            Ok::<_, Error>(account["balance"].as_i64())
        })
        .await?;
    assert_eq!(balance, Some(7));

    let purged = store.purge_idempotency_keys(&PurgeOptions::default()).await?;
    assert_eq!((purged.read, purged.removed), (2, 0));
    Ok(())
}
