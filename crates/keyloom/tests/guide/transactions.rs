//! docs/guide/transactions.md

use keyloom::{Error, ErrorKind, Query, Result, Retry, Transaction};
use serde_json::json;

use crate::store_of;

fn missing(name: &str) -> Error {
    Error::new(ErrorKind::NotFound, "there is no such account").with("name", name)
}

#[tokio::test]
async fn the_whole_page() -> Result<()> {
    let store = store_of("transactions.md").await;
    let accounts = store.documents("account").await?;
    for name in ["ana", "ben"] {
        let email = format!("{name}@example.org");
        accounts.insert(&json!({ "name": name, "email": email, "balance": 50 })).await?;
    }

    let id = store
        .transaction(async |tx: Transaction| {
            let accounts = tx.documents("account")?;
            let mut from = accounts.get("ana").await?.ok_or_else(|| missing("ana"))?.into_value();
            let mut to = accounts.get("ben").await?.ok_or_else(|| missing("ben"))?.into_value();
            let balance = from["balance"].as_i64().unwrap_or(0);
            if balance < 30 {
                return Err(Error::new(ErrorKind::Aborted, "the balance is too low"));
            }
            from["balance"] = json!(balance - 30);
            to["balance"] = json!(to["balance"].as_i64().unwrap_or(0) + 30);
            accounts.replace(&from).await?;
            accounts.replace(&to).await?;
            let transfer = json!({ "from": "ana", "to": "ben", "amount": 30 });
            let made = tx.documents("transfer")?.insert(&transfer).await?;
            Ok(made.key.to_string())
        })
        .await?;
    assert!(id.starts_with("transfer:"));
    assert_eq!(accounts.get("ana").await?.unwrap()["balance"], 20);
    assert_eq!(accounts.get("ben").await?.unwrap()["balance"], 80);

    let ben = json!({ "name": "ben", "balance": 5 });
    let (account, is_new) = store
        .transaction(async |tx: Transaction| {
            let accounts = tx.documents("account")?;
            match accounts.insert(&ben).await {
                Ok(made) => Ok((made.value()?, true)),
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                    let there = accounts.get("ben").await?.ok_or(error)?;
                    Ok((there.into_value(), false))
                }
                Err(error) => Err(error),
            }
        })
        .await?;
    assert!(!is_new && account["balance"] == 80);

    let ben = accounts.get("ben").await?.expect("he was inserted");
    let refused: Result<_> = store
        .transaction(async |tx: Transaction| {
            let accounts = tx.documents("account")?;
            accounts.update("ana", &json!({ "note": "closed Ben's account" })).await?;
            accounts.update("ben", &json!({ "note": "closing" })).await?;
            accounts.delete_if("ben", ben.version).await
        })
        .await;
    assert_eq!(refused.unwrap_err().kind(), ErrorKind::VersionConflict); // it is "closing" already

    let once = store
        .transaction_with(Retry::never(), async |tx: Transaction| {
            tx.documents("account")?.get("ana").await
        })
        .await?;
    assert_eq!(once.unwrap().version.revision(), 2);

    let name = store
        .transaction(async |tx: Transaction| {
            let accounts = tx.documents("account")?;
            if let Some(holder) = accounts.get_by("email", "ana@example.org").await? {
                return Ok(holder.value["name"].clone());
            }
            let account = json!({ "name": "ana2", "email": "ana@example.org" });
            accounts.insert(&account).await?;
            Ok::<_, Error>(account["name"].clone())
        })
        .await?;
    assert_eq!(name, "ana");

    let rival = json!({ "name": "rival", "email": "ana@example.org" });
    let error = accounts.insert(&rival).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::UniqueConflict);
    assert_eq!(error.holder(), Some("account:ana"));

    let refused: Result<_> = store
        .transaction(async |tx: Transaction| {
            tx.documents("account")?.page(&Query::new().equal("name", "ana")).await
        })
        .await;
    assert_eq!(refused.unwrap_err().kind(), ErrorKind::InvalidQuery);
    Ok(())
}
