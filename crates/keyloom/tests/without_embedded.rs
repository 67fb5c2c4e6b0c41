//! Without the feature `embedded` there is the engine in memory, and an error that names the feature.

#![cfg(not(feature = "embedded"))]
#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

use keyloom::{ErrorKind, Store};

#[tokio::test]
async fn an_engine_that_is_not_built_in_is_named_with_its_feature() {
    let parent = tempfile::tempdir().unwrap();
    let address = format!("file:{}", parent.path().join("data").display());
    for opened in [Store::open(&address).await, Store::open_existing(&address).await] {
        let error = opened.map(|_| "a store").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        assert!(error.to_string().contains("`embedded`"), "{error}");
    }
    assert!(std::fs::read_dir(parent.path()).unwrap().next().is_none(), "nothing was made");
    Store::open("memory:").await.unwrap().close().await.unwrap();
}
