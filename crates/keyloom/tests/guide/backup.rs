//! docs/guide/backup.md

use std::fs::File;

use keyloom::{BackupInfo, Schema, Store};
use serde_json::json;

#[tokio::test]
async fn in_a_program() -> Result<(), Box<dyn std::error::Error>> {
    let store = Store::open("memory:").await?;
    let notes = "[collection.note]\nkey = \"note:{id}\"\nfields = { id = \"text\" }";
    store.apply(&Schema::from_toml(notes)?).await?;
    store.documents("note").await?.insert(&json!({ "id": "one" })).await?;
    let folder = tempfile::tempdir()?;
    let path = &folder.path().join("monday.keyloom");

    let mut file = File::create(path)?;
    let taken = store.backup_to(&mut file).await?;
    file.sync_all()?;
    println!("{} keys, sha256 {}", taken.cells, taken.sha256);

    let restored = Store::open("memory:").await?;
    restored.restore_from(&mut File::open(path)?).await?;
    assert!(restored.verify().await?.is_clean());

    assert!(restored.documents("note").await?.get("one").await?.is_some());
    assert_eq!(BackupInfo::read_from(&mut File::open(path)?)?, taken);
    Ok(())
}
