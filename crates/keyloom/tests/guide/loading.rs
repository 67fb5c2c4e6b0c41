//! docs/guide/loading.md

use keyloom::{ErrorKind, Result};
use serde_json::json;

use crate::store_of;

#[tokio::test]
async fn the_whole_page() -> Result<()> {
    let store = store_of("loading.md").await;
    let cities = store.documents("city").await?;
    let file = (1..=5_000).map(|id| json!({ "id": id, "name": format!("C{id}"), "country": "xx" }));
    let load = cities.load(file).await?;
    assert_eq!(load.inserted, 5_000);

    let more = [
        json!({ "id": 5_001, "name": "Ulm", "country": "de" }),
        json!({ "id": 17, "name": "There already" }),
        json!({ "name": "Without an id" }),
    ];
    let load = cities.load(&more).await?;
    assert_eq!((load.inserted, load.refused_count), (1, 2));
    let refused: Vec<_> = load.refused.iter().map(|one| (one.place, one.error.kind())).collect();
    assert_eq!(refused, [(1, ErrorKind::AlreadyExists), (2, ErrorKind::InvalidRecord)]);
    Ok(())
}
